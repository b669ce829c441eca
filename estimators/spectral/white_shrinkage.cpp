#include "estimators/spectral/white_shrinkage.hpp"

namespace spiked::estimators {

Shrinkage white_shrinkage(const RelativeSpectrum& spectrum, std::size_t rank, double level, theory::Loss loss) {
    const double aspect = AspectRatio::of(spectrum.shape.rows, spectrum.shape.columns).value();
    const double standard = level * std::sqrt(static_cast<double>(spectrum.shape.columns));  // entries of variance 1/d
    Shrinkage result;
    result.rank = rank;
    result.bulk_edge = spectrum.eigenvalue(standard * standard * theory::white::bulk_edge(aspect));
    result.noise_level = level * spectrum.unit;
    for (std::size_t i = 0; i < rank; ++i)
        append(result, white_component(aspect, loss, standard, spectrum.relative(), i));
    return result;
}

}  // namespace spiked::estimators
