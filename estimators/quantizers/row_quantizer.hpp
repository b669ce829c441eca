#pragma once
#include <armadillo>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/name_options.hpp"
#include "core/text/registry.hpp"
#include "estimators/coding/byte_stream.hpp"
#include "estimators/coding/ledger.hpp"
#include "estimators/quantizers/quantizer_options.hpp"
#include "estimators/rotations/row_rotation.hpp"

namespace spiked::estimators {

/// Bytes of a coded block and the purpose of each of their bits: ledger.total() == 8 * bytes.size().
struct Encoded {
    std::vector<std::uint8_t> bytes;
    Ledger ledger;

    /// Appends other coded data.
    Encoded& operator+=(const Encoded& next) {
        bytes.insert(bytes.end(), next.bytes.begin(), next.bytes.end());
        ledger += next.ledger;
        return *this;
    }
};

/// A row quantizer is two functions. Rows are rows of an m x d block; decode needs only their number. The float
/// functions do the same arithmetic in float: the format is the same, and indices differ only for values next to a
/// threshold. Rows with norms above 1e36 may overflow when they are decoded in float.
struct RowQuantizer {
    std::string name;  ///< as written
    std::function<Encoded(const arma::mat& rows)> encode;
    std::function<arma::mat(std::span<const std::uint8_t> bytes, std::size_t rows)> decode;
    std::function<Encoded(const arma::fmat& rows)> encode_float;
    std::function<arma::fmat(std::span<const std::uint8_t> bytes, std::size_t rows)> decode_float;
};

/// An entry of `spiked list quantizers`.
struct QuantizerEntry : RegistryEntry {
    std::string bits_mean;  ///< the meaning of `--bits B` for it
    bool channels =
        false;  ///< rows are neither rotated nor projected, so the error depends on the entries of each channel
    bool fractions = false;                                   ///< bits are a rate from 0.25 to 8, not necessarily whole
    std::vector<unsigned> widths = {1, 2, 3, 4, 5, 6, 7, 8};  ///< the whole numbers of bits that it accepts
};
[[nodiscard]] const std::vector<QuantizerEntry>& row_quantizers();

/// The names of the quantizers on which an option of commands has an effect.
[[nodiscard]] std::vector<std::string> quantizers_with(std::string_view option);

struct QuantizerFamily;

/// A row quantizer by its name and the options in it, `tq-prod:projection=gaussian`: parsed once, where a user or a
/// file gives the name, and then passed on in this form.
struct QuantizerSpec {
    std::string text;  ///< as written
    const QuantizerFamily* family = nullptr;
    NameOptions named;

    [[nodiscard]] const QuantizerEntry& entry() const;
    /// Throws usage_error for bits that are not among its widths or, if it accepts fractions, are outside 0.25 to 8.
    void check_bits(double bits) const;
    /// Makes the quantizer for rows of length `dimension`. Throws the errors of check_bits, input_error for rows that
    /// are too long, and usage_error for options that the quantizer does not accept.
    [[nodiscard]] RowQuantizer make(std::size_t dimension, double bits, const QuantizerOptions& options) const;
    /// The number of last tokens of a sequence that are stored in full precision; 0 for most quantizers.
    [[nodiscard]] std::size_t kept_tail(const QuantizerOptions& options, std::size_t tokens) const;
};
/// Whether a name with its options is that of a row quantizer.
[[nodiscard]] bool is_row_quantizer(std::string_view name);
/// Throws usage_error for an unknown name or option, with the nearest.
[[nodiscard]] QuantizerSpec quantizer_spec(std::string_view text);
/// quantizer_spec and make in one step.
[[nodiscard]] RowQuantizer row_quantizer(std::string_view text, std::size_t dimension, double bits,
                                         const QuantizerOptions& options);

/// Throws precondition_error for rows of another length.
void require_length(std::size_t length, std::size_t dimension);

// Helpers for quantizers.

/// All written data, padded to whole bytes.
[[nodiscard]] Encoded finished(BitWriter& writer);
/// A quantizer without a float path of its own: floats are coded and decoded in double.
[[nodiscard]] RowQuantizer in_double(
    std::string name, std::function<Encoded(const arma::mat& rows)> encode,
    std::function<arma::mat(std::span<const std::uint8_t> bytes, std::size_t rows)> decode);

}  // namespace spiked::estimators
