#pragma once
#include <armadillo>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {

/// A low-rank cache of the literature. Heads that belong together are joined, channels beside channels, and all tokens
/// of a sequence are coded at once: not a block of one head, as a MethodSpec codes it.
struct CacheMethod {
    std::string text;         ///< as typed
    bool unrope = false;      ///< as in Method
    bool calibrated = false;  ///< its basis comes from other sequences of the same model
    std::size_t heads = 0;    ///< of a layer that are joined; 0: all
    std::size_t layers = 1;   ///< that are joined, with all their heads; 0: all
};

/// One line of `spiked list caches` each.
[[nodiscard]] const std::vector<QuantizerEntry>& cache_methods();
/// Whether the name, with or without `unrope+`, is one of them.
[[nodiscard]] bool is_cache_method(std::string_view text);
/// Throws usage_error for an unknown name or option, or bits that the method does not take.
[[nodiscard]] CacheMethod cache_method(std::string_view text, double bits);

/// A cache method for joined heads: tokens x channels in, bytes out, and back.
struct CacheCoder {
    RowQuantizer sequence;
    std::size_t rank = 0;           ///< latent channels
    std::uint64_t shared_bits = 0;  ///< of the calibrated basis, which serves every sequence: not among the bytes
};

/// `calibration`: tokens x channels of other sequences; not looked at when the method is not calibrated. Throws
/// usage_error for a rank that channels or calibration do not have.
///
/// palu, cskv: the leading right singular vectors V of the calibration in fp16; stored are the rows of X V through a
/// row quantizer (`latents`, B its bits, or fp16), before them the last `window` tokens in fp16.
/// ojakv: the same with a basis that takes a step of Oja's rule every `step` tokens; latent coordinates are those in
/// the basis of their time, what comes back is in the last one, which is stored in fp16: its drift is lost. xkv: the
/// leading components of the sequence itself, which share their token basis over a group of layers; stored as factors
/// of B bits an entry (factor_codec.hpp) or fp16. kvtc: means and principal components of the calibration in fp16,
/// reverse water-filling of B bits an entry over its eigenvalues: components above the water level t are rounded to
/// steps of sqrt(12 t), the others left out; integers as bytes of 7 bits, component after component, deflated. Before
/// them the first `sinks` and last `window` tokens in fp16. B is what the calibration asks for at the ideal rate; the
/// stored bits follow from the data.
///
/// Cost: the decomposition of the calibration (palu, cskv, kvtc) when it is built or of the sequence (xkv) when it is
/// coded.
[[nodiscard]] CacheCoder cache_coder(const CacheMethod& method, std::size_t channels, double bits,
                                     const QuantizerOptions& options, const arma::mat& calibration);

}  // namespace spiked::estimators
