#pragma once
#include <cstdint>
#include <vector>

#include "estimators/quantizers/row_quantizer.hpp"
#include "estimators/quantizers/turboquant.hpp"
#include "theory/quantization/coordinate_law.hpp"

namespace spiked::estimators {

struct EntropyCodedOptions {
    RotationOptions rotation;
    CodebookKind codebook = CodebookKind::sphere;
    ScalarOptions norms;
    RowScale scale = RowScale::least_squares;
};

/// A uniform quantizer whose indices are coded at their entropy: bins of equal width around 0 with their means as
/// levels. The frequencies have the denominator 2^24 and are at least 1, so that any coordinate up to sqrt(d) can be
/// coded.
struct EntropyCodedLevels {
    double step = 0.0;
    std::vector<double> levels;              ///< ascending; the middle one is 0
    std::vector<std::uint32_t> frequencies;  ///< their sum is 2^24
};
/// The levels for the bin width at which the entropy of an index under the law is `rate` bits. Cost: 1 ms (2 bits) to
/// 30 ms (8 bits).
[[nodiscard]] EntropyCodedLevels entropy_coded_levels(CodebookKind law, std::size_t dimension, double rate);

/// Entropy-coded scalar quantization (ECSQ) of rotated rows: B is the entropy of an index, any number from 0.25 to 8.
///
/// Source: Gish and Pierce 1968; coded as one rANS stream per block (Duda 2013; 64-bit state, 32-bit words). Stored:
/// the scale of each row (turboquant.hpp: least squares, unbiased or the norm), then, if there are rows, the state and
/// its words. The size depends on the data: on average B bits per coordinate and about 33 bits per block. The
/// frequencies follow from the law of a rotated coordinate, so they are not stored; a block of another law (without
/// rotation) is coded correctly with a different number of bits. Relative squared error under Haar rotation: .348,
/// .0889, .0222, .00556 at 1, 2, 3, 4 bits in the limit of long rows (Lloyd-Max .363, .1175, .0345, .0095).
[[nodiscard]] RowQuantizer entropy_coded(std::size_t dimension, double rate, const EntropyCodedOptions& options);

}  // namespace spiked::estimators
