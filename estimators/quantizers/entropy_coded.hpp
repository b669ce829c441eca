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

/// A uniform quantizer whose indices are coded at their entropy: cells of one width around 0, reconstruction at their
/// means. Frequencies are out of 2^24 and at least 1, so any coordinate up to sqrt(d) is coded.
struct EntropyCodedLevels {
    double step = 0.0;
    std::vector<double> levels;              ///< ascending; the middle one is 0
    std::vector<std::uint32_t> frequencies;  ///< sum 2^24
};
/// The width at which the entropy of the index under the law is `rate` bits. Cost: 1 ms (2 bits) to 30 ms (8 bits).
[[nodiscard]] EntropyCodedLevels entropy_coded_levels(CodebookKind law, std::size_t dimension, double rate);

/// Entropy-coded scalar quantization (ECSQ) of rotated rows: B is the entropy of an index, any number from 0.25 to 8.
///
/// Source: Gish and Pierce 1968; coded as one rANS stream a block (Duda 2013; 64-bit state, 32-bit words). Stored:
/// scale of each row (turboquant.hpp: least squares, unbiased or the norm), then where there are rows the state and its
/// words. The size depends on the data: in the mean B bits a coordinate and about 33 bits a block. The frequencies come
/// from the law of a rotated coordinate, so nothing of them is stored; a block of another law (no rotation) is coded
/// rightly and takes other bits. Relative squared error under Haar rotation: .348, .0889, .0222, .00556 at 1, 2, 3, 4
/// bits in the limit of long rows (Lloyd-Max .363, .1175, .0345, .0095).
[[nodiscard]] RowQuantizer entropy_coded(std::size_t dimension, double rate, const EntropyCodedOptions& options);

}  // namespace spiked::estimators
