#include "estimators/ranks/rank_rule.hpp"
#include "estimators/spectral/spectral_family.hpp"
#include "estimators/svd/relative_spectrum.hpp"

namespace spiked::estimators {

/// `svd:R`: the first R singular values unchanged (Eckart and Young 1936). Values within rounding error of 0 are not
/// components. R may be a rank rule, `svd:rd` or `svd:ed` (rank_rule.hpp).
SpectralFamily truncated_svd_family() {
    return {{{"svd",
              "truncated SVD at the given rank, without shrinkage",
              rank_options(),
              "Eckart & Young 1936",
              {"pca", "tsvd"}},
             false,
             "1",
             true},
            [](const NameOptions& named, theory::Loss, const KnownLaw&) -> SpectralEstimator {
                const GivenRank rank = required_rank(named, "svd:1");
                SpectralEstimator estimator{named.text(),
                                            [rank](std::span<const double> singular_values, Shape shape) {
                                                const RelativeSpectrum spectrum(singular_values, shape);
                                                if (spectrum.unit == 0.0)
                                                    return nothing_found("the block is zero or empty");
                                                return truncated(spectrum, rank.of(spectrum));
                                            },
                                            rank.fixed.value_or(0)};
                estimator.needs_all_values = !rank.fixed;
                if (rank.block_rule)
                    estimator.estimate_block = ranked_by_block(
                        rank.block_rule, [](std::span<const double> singular_values, Shape shape, std::size_t found) {
                            return truncated({singular_values, shape}, found);
                        });
                return estimator;
            }};
}

}  // namespace spiked::estimators
