#include "estimators/spectral/shrinkage.hpp"

#include <algorithm>
#include <limits>

namespace spiked::estimators {

void append(Shrinkage& result, const ShrunkComponent& component) {
    result.strengths.push_back(component.strength);
    result.overlap_left.push_back(component.overlap_left);
    result.overlap_right.push_back(component.overlap_right);
    result.shrunk.push_back(component.shrunk);
}

Shrinkage unshrunk(const RelativeSpectrum& spectrum, std::size_t rank, std::string note) {
    Shrinkage result = truncated(spectrum, rank);
    result.bulk_edge = Eigenvalue{0.0};
    result.strengths = result.shrunk;
    result.overlap_left.assign(result.rank, 1.0);
    result.overlap_right.assign(result.rank, 1.0);
    result.note = std::move(note);
    return result;
}

Shrinkage truncated(const RelativeSpectrum& spectrum, std::size_t rank) {
    Shrinkage result;
    result.rank = std::min(rank, spectrum.above_rounding);
    result.shrunk.assign(spectrum.observed.begin(),
                         spectrum.observed.begin() + static_cast<std::ptrdiff_t>(result.rank));
    result.strengths.assign(result.rank, std::numeric_limits<double>::quiet_NaN());
    result.overlap_left = result.overlap_right = result.strengths;
    return result;
}

Shrinkage nothing_found(std::string note) {
    Shrinkage result;
    result.note = std::move(note);
    return result;
}

}  // namespace spiked::estimators
