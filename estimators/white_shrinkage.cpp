#include "estimators/white_shrinkage.hpp"

#include "theory/white_noise.hpp"

namespace spiked::estimators {

Shrinkage white_shrinkage(const RelativeSpectrum& spectrum, std::size_t rank, double level, theory::Loss loss) {
    const Shape shape = spectrum.shape;
    const AspectRatio aspect = AspectRatio::of(shape.rows, shape.columns);
    const double standard = level * std::sqrt(static_cast<double>(shape.columns));  // entries of variance 1/d
    Shrinkage result;
    result.rank = rank;
    result.bulk_edge = spectrum.eigenvalue(standard * standard * theory::white_bulk_edge(aspect).value);
    for (std::size_t i = 0; i < rank; ++i) {
        const SingularValue observed{spectrum.values[i] / standard};
        SignalStrength strength = theory::white_detection_threshold(aspect);
        double left = 0.0;
        double right = 0.0;
        if (squared(observed) > theory::white_bulk_edge(aspect)) {
            strength = theory::white_strength_of(squared(observed), aspect);
            left = theory::white_overlap_left(strength, aspect).value;
            right = theory::white_overlap_right(strength, aspect).value;
        }
        const double shrunk = theory::white_shrunk(observed, aspect, loss).value * standard * spectrum.unit;
        result.strengths.push_back(strength.value * standard * spectrum.unit);
        result.overlap_left.push_back(left);
        result.overlap_right.push_back(right);
        result.shrunk.push_back(std::clamp(shrunk, 0.0, spectrum.observed[i]));
    }
    return result;
}

}  // namespace spiked::estimators
