#include "estimators/white_shrinkage.hpp"

namespace spiked::estimators {

void append(Shrinkage& result, const ShrunkComponent& component) {
    result.strengths.push_back(component.strength);
    result.overlap_left.push_back(component.overlap_left);
    result.overlap_right.push_back(component.overlap_right);
    result.shrunk.push_back(component.shrunk);
}

Shrinkage white_shrinkage(const RelativeSpectrum& spectrum, std::size_t rank, double level, theory::Loss loss) {
    const double aspect = AspectRatio::of(spectrum.shape.rows, spectrum.shape.columns).value();
    const double standard = level * std::sqrt(static_cast<double>(spectrum.shape.columns));  // entries of variance 1/d
    Shrinkage result;
    result.rank = rank;
    result.bulk_edge = spectrum.eigenvalue(standard * standard * theory::white::bulk_edge(aspect));
    const RelativeValues values{spectrum.unit, spectrum.observed, spectrum.values, spectrum.eigenvalues};
    for (std::size_t i = 0; i < rank; ++i) append(result, white_component(aspect, loss, standard, values, i));
    return result;
}

}  // namespace spiked::estimators
