#pragma once
#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/text/enum_names.hpp"
#include "estimators/coding/byte_stream.hpp"
#include "estimators/coding/number_format.hpp"
#include "estimators/svd/low_rank.hpp"
#include "theory/quantization/lloyd_max.hpp"

namespace spiked::estimators {

/// Levels of the entries of stored singular vectors.
enum class FactorCodebook { normal, lloyd, fp16 };
[[nodiscard]] FactorCodebook factor_codebook(std::string_view name);  ///< throws usage_error
[[nodiscard]] std::string_view name_of(FactorCodebook codebook);

struct FactorOptions {
    FactorCodebook codebook = FactorCodebook::normal;
    unsigned bits = 4;                          ///< per entry of a stored singular vector
    NumberFormat norm = NumberFormat::fp16;     ///< of the singular values
    Underflow underflow = Underflow::rejected;  ///< of the singular values
};

/// The storage format of a low-rank part: the rank (16 bits), the values (norm format), then the vectors, left and
/// right of each component in turn. Entries of sqrt(length) times a unit vector are close to N(0, 1), so one fixed
/// codebook is used for all of them (FactorCodebook::normal). `lloyd` fits two codebooks to the block, one for left and
/// one for right vectors, and stores their levels in fp16; `fp16` stores the entries themselves.
class FactorCodec {
public:
    explicit FactorCodec(const FactorOptions& options);

    void write(BitWriter& writer, const LowRank& signal) const;
    struct Read {
        arma::mat matrix;   ///< rows x columns
        std::size_t bytes;  ///< number of bytes read, rounded up
    };
    [[nodiscard]] Read read(std::span<const std::uint8_t> bytes, std::size_t rows, std::size_t columns) const;
    struct ReadFactors {
        LowRank signal;     ///< its columns are only nearly orthonormal
        std::size_t bytes;  ///< as in Read
    };
    /// Reads the low-rank part as its factors, without multiplying them.
    [[nodiscard]] ReadFactors read_factors(std::span<const std::uint8_t> bytes, std::size_t rows,
                                           std::size_t columns) const;

    /// Bits per entry of a vector.
    [[nodiscard]] unsigned entry_bits() const;

private:
    NumberFormat format_;
    Underflow underflow_;
    FactorCodebook kind_;
    theory::Codebook normal_;
};

}  // namespace spiked::estimators

template <>
struct spiked::EnumNames<spiked::estimators::FactorCodebook> {
    static constexpr EnumName<spiked::estimators::FactorCodebook> table[] = {
        {spiked::estimators::FactorCodebook::normal, "normal"},
        {spiked::estimators::FactorCodebook::lloyd, "lloyd"},
        {spiked::estimators::FactorCodebook::fp16, "fp16", "float16"}};
};
