#pragma once
#include <optional>
#include <span>
#include <vector>

#include "estimators/spectral/shrinkage.hpp"
#include "estimators/svd/analysed_block.hpp"

namespace spiked::estimators {

/// What the entries behind the components say of the tails of the noise, and how far the observed vectors lie on few
/// rows or columns: all that intervals need of a block beside its singular values.
struct NoiseTails {
    /// k of independent entries behind the components whose variances are products of one number for the row and one
    /// for the column: 0 for normal noise. The mean fourth power is (3 + k) A B, where A and B are the mean squares of
    /// these numbers, computed from the mean squares of rows and columns less what these vary by. It says little where
    /// the noise has no fourth moment, and other patterns of variances raise it too.
    double excess_kurtosis = 0.0;
    double error = 0.0;  ///< the larger one of its standard errors over independent rows and over independent columns
    std::vector<double> left_fourth_powers;  ///< sum of the fourth powers of every observed left unit vector
    std::vector<double> right_fourth_powers;

    /// Whether it exceeds 0 by 2 standard errors, so that intervals allow for it. A negative one would shorten them.
    [[nodiscard]] bool positive() const { return excess_kurtosis > 2.0 * error; }
    /// Whether it exceeds 0 by 4 standard errors and is above 1, less than which moves no rank test much.
    [[nodiscard]] bool heavy() const { return excess_kurtosis > 1.0 && excess_kurtosis > 4.0 * error; }
};

/// The tails behind the components that singular vectors of this block, with zeros for rows and columns that do not
/// count, and values belong to. Nothing where the rest is a rounding error, or has fewer than 8 rows or columns. Cost:
/// two passes over the block and its components, without a copy.
[[nodiscard]] std::optional<NoiseTails> noise_tails(const arma::mat& block, std::span<const double> values,
                                                    const SingularVectors& vectors);

/// Adds a note to an estimate where the noise behind it has heavy tails.
void add_note_on_tails(Shrinkage& found, const NoiseTails& tails);

}  // namespace spiked::estimators
