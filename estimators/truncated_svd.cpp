#include "estimators/truncated_svd.hpp"

#include "estimators/rate_distortion_rank.hpp"
#include "estimators/relative_spectrum.hpp"

namespace spiked::estimators {

SpectralFamily truncated_svd_family() {
    return {{"svd",
             "truncated SVD at the given rank, values kept as they are; rd: components that pay for their stored bits",
             {":R (rank) or :rd (by rate-distortion), required",
              "bits=N (with rd: of a stored entry, 1-8 or 16, default 4)"},
             "Eckart & Young 1936; rd: ours, after Gish & Pierce 1968"},
            [](const ParsedName& parsed, theory::Loss, const KnownLaw&) -> SpectralEstimator {
                if (parsed.values == std::vector<std::string>{"rd"}) {
                    const unsigned bits = stored_entry_bits(NameOptions(parsed, {"bits"}, {"rd"}));
                    return {parsed.text, [bits](std::span<const double> singular_values, Shape shape) {
                                const RelativeSpectrum spectrum(singular_values, shape);
                                if (spectrum.unit == 0.0) return nothing_found("the block is zero or empty");
                                return spectrum.truncated(rate_distortion_rank(spectrum, bits));
                            }};
                }
                const std::size_t wanted = required_whole(parsed, "its rank", "svd:1");
                const NameOptions options(parsed, {}, parsed.values);
                return {parsed.text,
                        [wanted](std::span<const double> singular_values, Shape shape) {
                            const RelativeSpectrum spectrum(singular_values, shape);
                            if (spectrum.unit == 0.0) return nothing_found("the block is zero or empty");
                            return spectrum.truncated(wanted);
                        },
                        wanted};
            }};
}

}  // namespace spiked::estimators
