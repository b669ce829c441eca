#pragma once
#include <armadillo>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimators/ledger.hpp"
#include "estimators/number_format.hpp"
#include "sim/stream/address.hpp"

namespace spiked::estimators {

/// Bytes of a coded block and what each bit of them is for: ledger.total() == 8 * bytes.size().
struct Encoded {
    std::vector<std::uint8_t> bytes;
    Ledger ledger;
};

/// A row quantizer is two functions. Rows are rows of an m x d block; decode needs their number and nothing else.
struct RowQuantizer {
    std::string name;  ///< as typed
    std::function<Encoded(const arma::mat& rows)> encode;
    std::function<arma::mat(std::span<const std::uint8_t> bytes, std::size_t rows)> decode;
};

enum class RotationKind { haar, identity };
enum class CodebookKind { sphere, normal };

struct QuantizerOptions {
    RotationKind rotation = RotationKind::haar;
    CodebookKind codebook = CodebookKind::sphere;  ///< law of a rotated coordinate: exact at this d, or its limit
    NumberFormat norm = NumberFormat::fp16;
    unsigned factor_bits = 4;  ///< per entry of a stored singular vector
    stream::StudySeed seed;
    std::uint64_t rotation_index = 0;  ///< which rotation of the seed: one a layer, head and side
};

/// One line of `spiked list quantizers`.
struct QuantizerEntry {
    std::string name;
    std::string summary;
    std::string bits_mean;
    std::string source;
};
[[nodiscard]] const std::vector<QuantizerEntry>& row_quantizers();

/// Builds a row quantizer for rows of length `dimension`. Throws usage_error for an unknown name or bits outside 1..8.
[[nodiscard]] RowQuantizer row_quantizer(std::string_view name, std::size_t dimension, unsigned bits,
                                         const QuantizerOptions& options);

[[nodiscard]] RotationKind rotation_kind(std::string_view name);  ///< throws usage_error
[[nodiscard]] CodebookKind codebook_kind(std::string_view name);  ///< throws usage_error

}  // namespace spiked::estimators
