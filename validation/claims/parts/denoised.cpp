#include "validation/claims/parts/denoised.hpp"

namespace spiked::validation {

Denoised denoise(const Fixture& fixture, const TrialPlace& place, std::uint64_t replicate, theory::Loss loss) {
    const auto [sample, block] = fixture.decomposed(place, replicate);
    Denoised result{sample, {}, {}, {}, {}, {}};
    result.observed = block.singular_values();
    const std::size_t spikes = fixture.model.strengths.size();
    const std::size_t rank = place.control_is("rank-1") ? spikes - 1 : spikes;
    result.shrinkage = shrink_at_rank(result.observed, block.shape(), rank, loss);
    auto& values = result.shrinkage.shrunk;
    if (place.control_is("truncated"))
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += place.fault * (result.observed[i] - values[i]);
    for (double& value : values) value *= 1.0 - place.fault_of("kept");
    if (const double factor = place.control_is("over-removed") ? 1.3
                              : place.control_is("added")      ? -0.3
                                                               : 0.0;
        factor != 0.0)
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] += place.fault * (factor * result.observed[i] - values[i]);
    result.vectors = block.vectors(spikes);
    result.signal = block.denoised(values);
    const auto moved_to = [&](const arma::mat& wrong) {
        result.signal = (1.0 - place.fault) * result.signal + place.fault * wrong;
    };
    if (place.control_is("all")) moved_to(result.sample.observed);
    if (place.control_is("true-vectors"))
        moved_to(result.sample.left * arma::diagmat(arma::vec(values)) * result.sample.right.t());
    result.residual = result.sample.observed - result.signal;
    if (place.control_is("one-direction"))
        result.sample.noise = result.vectors.left.col(0).t() * result.sample.noise * result.vectors.right.col(0);
    return result;
}

}  // namespace spiked::validation
