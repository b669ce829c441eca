#pragma once
#include "estimators/quantizers/row_quantizer.hpp"
#include "estimators/quantizers/turboquant.hpp"

namespace spiked::estimators {

inline constexpr unsigned most_state_bits = 12;

struct TrellisOptions {
    RotationOptions rotation;  ///< its seed is also used to shuffle the levels
    CodebookKind codebook = CodebookKind::sphere;
    ScalarOptions norms;
    unsigned state_bits = most_state_bits;
    RowScale scale = RowScale::least_squares;
};

/// Trellis-coded quantization with a bitshift trellis: every coordinate has B bits, and its level is looked up by the
/// last L of all bits written, L = `state_bits`. Thus 2^L levels are used with B bits per entry, and decoding is one
/// look-up.
///
/// Source: Marcellin and Fischer 1990; the bitshift trellis of Mao and Gray 2010, as Tseng et al., "QTIP", 2024, use
/// it; combined with TurboQuant's row norm and rotation. The path runs token after token through chunks of whole rows,
/// up to 2^13 coordinates each, and is tail-biting: the bits before a chunk's first are its last, so no start state is
/// stored. The table holds the 2^L quantiles of the codebook's law, shuffled by the seed such that the 2^B levels that
/// may follow a state lie in different 2^B-th parts of the law. The end state is the one that an unconstrained search
/// passes through where end and start are joined; with it the search is exhaustive (Viterbi, in float).
///
/// Stored: the scale of each row (unbiased or least squares, turboquant.hpp), then B bits per coordinate. Relative
/// squared error at d = 128, L = 12, least squares: .272, .0704, .0184 at 1, 2, 3 bits (Lloyd-Max .36, .116, .034;
/// Shannon .25, .0625, .0156). L is reduced where a chunk has fewer bits. Cost: encoding takes 2^(L+1) operations per
/// entry, decoding one look-up.
[[nodiscard]] RowQuantizer trellis_quantizer(std::size_t dimension, unsigned bits, const TrellisOptions& options);

/// The table: the level of every state.
[[nodiscard]] std::vector<float> trellis_levels(const TrellisOptions& options, std::size_t dimension, unsigned bits);

}  // namespace spiked::estimators
