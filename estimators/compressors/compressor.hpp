#pragma once
#include <map>
#include <optional>

#include "estimators/coding/factor_codec.hpp"
#include "estimators/quantizers/quantizer_table.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/transforms/spectral_method.hpp"
#include "theory/quantization/lloyd_max.hpp"

namespace spiked::estimators {

/// Prefix of a method: keys are coded as they were before the rotary embedding.
inline constexpr std::string_view unrope_prefix = "unrope+";
/// The name without this prefix, or as it is where it lacks the prefix; a part of `method`.
[[nodiscard]] constexpr std::string_view without_unrope(std::string_view method) {
    return method.starts_with(unrope_prefix) ? method.substr(unrope_prefix.size()) : method;
}

/// Prefix of a method: the means of the columns of keys (axis key) are stored and subtracted first. Values are coded as
/// without it: where tokens that all others attend to have values near zero, the error of the means would be theirs.
/// In a name it follows `unrope+`.
inline constexpr std::string_view means_prefix = "mean+";

/// A method as users write it, parsed once and passed on: a row quantizer, alone or after a spectral method,
/// `eoptshrink+tq-mse`, `whiten+gd-shrink+tq-mse`; either may have the prefixes `unrope+` and `mean+`, in this order.
struct MethodSpec {
    std::string text;  ///< as written
    /// Keys are coded as they were before the rotary embedding of their tokens, which is applied again after they are
    /// decoded. The caller, who knows the positions, does both: a Compressor sees the rows in between.
    bool unrope = false;
    bool centred = false;  ///< the prefix `mean+`
    std::optional<SpectralMethod> spectral;
    QuantizerSpec quantizer;
};

/// Like spectral_method, but a name that also quantizes gets an error message that says so.
[[nodiscard]] SpectralMethod parse_estimator(std::string_view text, theory::Loss loss = theory::Loss::frobenius);
/// Resolves aliases (`eoptshrinkq-mse`) and checks estimator and quantizer. Throws usage_error with the nearest legal
/// name, or one of `also`.
[[nodiscard]] MethodSpec parse_method(std::string_view text, std::span<const std::string> also = {});
/// Throws usage_error for `unrope+`, for rows that do not come from a dump.
void reject_unrope(const MethodSpec& method);

/// The description of all methods that quantize after a spectral method; its options have an effect on each of them.
[[nodiscard]] const RegistryEntry& composition_entry();

/// The options of commands that have an effect on a method.
[[nodiscard]] std::vector<OptionSpec> options_with_effect(const MethodSpec& method);
/// Whether its codes depend on the seed: not those of a quantizer that neither rotates nor projects rows. Rank rules
/// that compare a block with random copies draw them from numbers of their own.
[[nodiscard]] bool draws_random_numbers(const MethodSpec& method);
/// What an option of commands has an effect on: names of quantizers, and `methods ESTIMATOR+QUANTIZER`.
[[nodiscard]] std::vector<std::string> methods_with(std::string_view option);

/// The names that aliases stand for, for `spiked list`.
[[nodiscard]] const std::map<std::string, std::string>& method_aliases();

/// One method at one bit width for blocks of one width.
///
/// Stored for a composition: the low-rank part (factor_codec.hpp), then the rows of the residual. The residual is
/// formed after the factors are decoded, so their error is quantized with it; with open_loop it is not. With `mean+`,
/// the means of the columns in fp16 stand in front, and the block minus these is coded: 16 / n bits per entry for n
/// rows. Means far larger than the spread, such as those of keys of models with a key bias, otherwise lose most to the
/// levels of the factors, which are those of normal entries.
class Compressor {
public:
    Compressor(const MethodSpec& method, std::size_t dimension, double bits, const QuantizerOptions& options);

    struct Result {
        Encoded encoded;
        std::size_t rank = 0;
    };
    [[nodiscard]] Result encode(AnalysedBlock& block) const;
    [[nodiscard]] arma::mat decode(std::span<const std::uint8_t> bytes, std::size_t rows) const;

    /// Bits per entry by the paper's formula, which leaves out norms, singular values and codebooks:
    /// b + rank (n + d) b_s / (n d).
    [[nodiscard]] double paper_bits(std::size_t rank, std::size_t rows) const;

private:
    /// The low-rank part and the residual.
    [[nodiscard]] Result encode_rows(AnalysedBlock& block) const;
    [[nodiscard]] arma::mat decode_rows(std::span<const std::uint8_t> bytes, std::size_t rows) const;

    std::optional<SpectralMethod> spectral_;
    bool centred_;
    RowQuantizer quantizer_;
    NumberFormat norm_;
    std::size_t dimension_;
    double bits_;
    bool open_loop_;
    FactorCodec factors_;
};

}  // namespace spiked::estimators
