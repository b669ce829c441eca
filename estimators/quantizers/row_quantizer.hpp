#pragma once
#include <armadillo>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/catalogue.hpp"
#include "estimators/coding/byte_stream.hpp"
#include "estimators/coding/ledger.hpp"
#include "estimators/quantizers/quantizer_options.hpp"
#include "estimators/rotations/row_rotation.hpp"

namespace spiked::estimators {

/// Bytes of a coded block and what each bit of them is for: ledger.total() == 8 * bytes.size().
struct Encoded {
    std::vector<std::uint8_t> bytes;
    Ledger ledger;

    /// Another behind this one.
    Encoded& operator+=(const Encoded& next) {
        bytes.insert(bytes.end(), next.bytes.begin(), next.bytes.end());
        ledger += next.ledger;
        return *this;
    }
};

/// A row quantizer is two functions. Rows are rows of an m x d block; decode needs their number and nothing else. The
/// float pair does the same arithmetic in float: the same format, indices that differ only for values next to a
/// threshold. Rows with norms above 1e36 may overflow on the way back in float.
struct RowQuantizer {
    std::string name;  ///< as typed
    std::function<Encoded(const arma::mat& rows)> encode;
    std::function<arma::mat(std::span<const std::uint8_t> bytes, std::size_t rows)> decode;
    std::function<Encoded(const arma::fmat& rows)> encode_float;
    std::function<arma::fmat(std::span<const std::uint8_t> bytes, std::size_t rows)> decode_float;
};

/// One line of `spiked list quantizers`.
struct QuantizerEntry : CatalogueLine {
    std::string bits_mean;
    bool channels = false;  ///< rows are neither turned nor projected: it matters what each channel holds
    std::vector<unsigned> widths = {1, 2, 3, 4, 5, 6, 7, 8};  ///< whole bits it takes
};
[[nodiscard]] const std::vector<QuantizerEntry>& row_quantizers();
/// Whether a name with its options, `tq-prod:projection=gaussian`, is one of them.
[[nodiscard]] bool is_row_quantizer(std::string_view name);
/// The line of a quantizer by its name, options and all; throws usage_error.
[[nodiscard]] const QuantizerEntry& row_quantizer_entry(std::string_view name);

/// Builds a row quantizer for rows of length `dimension` from its name with options, `tq-prod:projection=orthogonal`.
/// Throws usage_error for an unknown name or option, or bits that are not among its widths or, of quantizers that take
/// rates, 0.25 to 8.
[[nodiscard]] RowQuantizer row_quantizer(std::string_view name, std::size_t dimension, double bits,
                                         const QuantizerOptions& options);
/// The same checks without building anything.
void check_row_quantizer(std::string_view name, double bits);
/// These options with those in the name of a kivi; none of other quantizers.
[[nodiscard]] std::optional<QuantizerOptions> kivi_options(std::string_view name, const QuantizerOptions& options);
/// How many of the last tokens of a sequence a row quantizer keeps in full precision; 0 for most. Throws like
/// row_quantizer.
[[nodiscard]] std::size_t kept_tail(std::string_view name, const QuantizerOptions& options, std::size_t tokens);

/// Throws bug for rows of another length.
void require_length(std::size_t length, std::size_t dimension);

// What quantizers are made of.

/// The rotation of these options, of rows of this length.
[[nodiscard]] RowRotation row_rotation(const QuantizerOptions& options, std::size_t dimension);
/// Everything written, to a whole byte.
[[nodiscard]] Encoded finished(BitWriter& writer);
/// A quantizer without a float path of its own: floats are coded and decoded in double.
[[nodiscard]] RowQuantizer in_double(
    std::string name, std::function<Encoded(const arma::mat& rows)> encode,
    std::function<arma::mat(std::span<const std::uint8_t> bytes, std::size_t rows)> decode);

}  // namespace spiked::estimators
