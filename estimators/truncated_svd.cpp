#include "estimators/truncated_svd.hpp"

#include "estimators/relative_spectrum.hpp"

namespace spiked::estimators {

SpectralFamily truncated_svd_family() {
    return {{"svd",
             "truncated SVD at the given rank, values kept as they are",
             {":R (rank, required)"},
             "Eckart & Young 1936"},
            [](const ParsedName& parsed, theory::Loss, const KnownLaw&) -> SpectralEstimator {
                const std::size_t wanted = required_whole(parsed, "its rank", "svd:1");
                const NameOptions options(parsed, {}, parsed.values);
                return {parsed.text, [wanted](std::span<const double> singular_values, Shape shape) {
                            const RelativeSpectrum spectrum(singular_values, shape);
                            if (spectrum.unit == 0.0) return nothing_found("the block is zero or empty");
                            return spectrum.truncated(wanted);
                        }};
            }};
}

}  // namespace spiked::estimators
