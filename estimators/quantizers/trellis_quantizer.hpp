#pragma once
#include "estimators/quantizers/row_quantizer.hpp"
#include "estimators/quantizers/turboquant.hpp"

namespace spiked::estimators {

struct TrellisOptions {
    RotationOptions rotation;  ///< its seed also shuffles the levels
    CodebookKind codebook = CodebookKind::sphere;
    ScalarOptions norms;
    unsigned state_bits = 12;
    RowScale scale = RowScale::least_squares;
};

/// Trellis-coded quantization with a bitshift trellis: every coordinate gets B bits, and its level is looked up by the
/// last L of all bits written, L = `state_bits`. So 2^L levels serve B bits an entry, and decoding stays one look-up.
///
/// Source: Marcellin and Fischer 1990; the bitshift trellis Mao and Gray 2010, as Tseng et al., "QTIP", 2024, use it;
/// around it TurboQuant's row norm and rotation. The path runs token after token through chunks of whole rows, up to
/// 2^13 coordinates each, and bites its own tail: the bits before a chunk's first are its last, so no start is stored.
/// The table holds the 2^L quantiles of the codebook's law, shuffled by the seed so that the 2^B levels that may follow
/// a state lie one in each 2^B-th of the law. The end state is the one that an unconstrained search over the joint
/// passes through; then the search is exhaustive (Viterbi, in float).
///
/// Stored: scale of each row (unbiased or least squares, turboquant.hpp), then B bits a coordinate. Relative squared
/// error at d = 128, L = 12, least squares: .272, .0704, .0184 at 1, 2, 3 bits (Lloyd-Max .36, .116, .034; Shannon .25,
/// .0625, .0156). L is lowered where a chunk has fewer bits. Cost: encoding 2^(L+1) operations an entry, decoding a
/// look-up.
[[nodiscard]] RowQuantizer trellis_quantizer(std::size_t dimension, unsigned bits, const TrellisOptions& options);

/// The table: level of every state.
[[nodiscard]] std::vector<float> trellis_levels(const TrellisOptions& options, std::size_t dimension, unsigned bits);

}  // namespace spiked::estimators
