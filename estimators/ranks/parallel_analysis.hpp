#pragma once
#include <cstddef>

#include "estimators/svd/analysed_block.hpp"

namespace spiked::estimators {

/// The copies of a residual that contain no component: every entry with a random sign, or the entries of every column,
/// less their mean, in a random order of their own.
enum class ResidualCopies { signs, permutations };

/// Whether a component stands out of noise, judged by copies of the data that have none: the largest singular value of
/// the residual behind the components before it is compared with those of `draws` copies of this residual. It is
/// significant when (1 + number of copies that are as large) / (draws + 1) <= level. The components before it are taken
/// out first (deflation), so that strong ones do not hide weak ones.
///
/// Error rate, signs: of the first component, P(significant) <= level exactly where the block is noise with independent
/// entries of symmetric distributions, whatever these are and however they differ (heavy tails, any variance profile),
/// because the block and its copies are then exchangeable; it equals floor((draws + 1) level) / (draws + 1) for
/// continuous entries. It is nominal for skewed distributions, whose copies have another largest value, and for later
/// components, because the residual behind r estimated components is not independent of them: it has the edge of a
/// block with r fewer rows and columns, while its copies spread the energy over all. So every copy is multiplied by
///   (sqrt(n - r) + sqrt(d - r)) / (sqrt n + sqrt d) sqrt(n d / ((n - r) (d - r))),
/// which makes the edges of white noise equal; without it a fifth component is found behind four in 36 % of 30 x 40
/// blocks at level .05. It does not hold for correlated noise: whiten that first. A signal adds its energy to the
/// copies, so that weak components beside strong ones are found less often than at a known noise level. Measured for
/// the first component at level .01, white 128 x 128, 2500 blocks (standard error .002): gaussian .008, laplace .009,
/// student:5 .012, sparse:0.05 .008, two-point:0.05 .009. Behind four spikes of 3 to 6 thresholds at level .05, white,
/// 2000 blocks (standard error .005): 40 x 60 .030, 30 x 100 .028.
///
/// Permutations: a copy of the columns as they are would keep their means, and with them hide every component below
/// that of the means. Copies are therefore of centred columns. Where those of the block are not centred, every column of
/// a copy gets a mean that is drawn anew, that of its entries with random signs, so that the column means of the block
/// are a component if they are larger than chance makes them. Centre the block first where they should not be; centred
/// columns are recognised, and have one row fewer in the factor above. The level of the first component is then exact
/// where the rows of the noise are exchangeable within each column, and the columns are independent: columns of any
/// distributions and variances, skewed ones too, but no rows of different variances, which signs allow. For columns that
/// are not centred, and for later components, it is nominal: measured at .05 (1000 blocks, standard error .007) .049 for
/// white 40 x 60 and 100 x 30, .038 to .059 where columns have log-normal deviations (30 x 60 to 200 x 20), one of 30
/// times the others (100 x 50), or skewed entries (exponential, log-normal); .044 behind one spike and .043 to .048
/// behind four. Neither holds for correlated noise.
///
/// The rank is so a lower confidence limit, at confidence 1 - level, for the number of components. There is no upper
/// one without a bound on their strength, because a component can be as weak as one likes.
///
/// The copies are a function of the block alone: the same block gives the same answer, and equal blocks give equal
/// copies. Source: Horn 1965, Buja and Eyuboglu 1992 (permutations); Hong, Sheng and Dobriban 2020 (signs); Dobriban
/// and Owen 2019 for the deflation; the p-value of Phipson and Smyth 2010. Cost: a copy takes one Gram matrix and one
/// Cholesky factorisation of the short side, p^2 q + p^3 / 3 operations; noise is rejected after one or two copies on
/// average, a signal takes all of them.
class ParallelAnalysis {
public:
    /// Keeps a reference to the block. Throws usage_error when level (draws + 1) < 1: nothing could be significant.
    ParallelAnalysis(AnalysedBlock& block, double level, std::size_t draws,
                     ResidualCopies copies = ResidualCopies::signs);

    /// Whether component rank + 1 stands out behind the first `rank` ones.
    [[nodiscard]] bool significant(std::size_t rank) const;
    /// The number of components until the first that does not stand out, at most half the short side.
    [[nodiscard]] std::size_t rank() const;

    static constexpr std::size_t most_draws = 65535;
    /// The fewest draws at which a component can be significant.
    [[nodiscard]] static std::size_t least_draws(double level);

private:
    AnalysedBlock& block_;
    std::size_t draws_;
    ResidualCopies copies_;
    std::size_t as_large_;  ///< the number of copies that may be as large
};

}  // namespace spiked::estimators
