#include "estimators/eoptshrink.hpp"

#include <cmath>
#include <limits>

#include "estimators/empirical_law.hpp"
#include "theory/finite_size.hpp"

namespace spiked::estimators {
namespace {

using theory::edge_extrapolation;

/// Eigenvalues that stand in for the k largest noise eigenvalues, followed by the observed ones below them.
std::vector<double> noise_eigenvalues(std::span<const double> lambda, std::size_t rank, std::size_t k,
                                      Imputation imputation) {
    if (imputation == Imputation::none) return {lambda.begin() + static_cast<std::ptrdiff_t>(rank), lambda.end()};
    std::vector<double> mu;
    const double anchor = lambda[rank + k];
    const double reach = (lambda[rank + k] - lambda[rank + 2 * k]) * edge_extrapolation;
    for (std::size_t j = 1; j <= k; ++j) {
        const double index = imputation == Imputation::from_j ? static_cast<double>(j) : static_cast<double>(j - 1);
        mu.push_back(anchor + (1.0 - std::pow(index / static_cast<double>(k), 2.0 / 3.0)) * reach);
    }
    mu.insert(mu.end(), lambda.begin() + static_cast<std::ptrdiff_t>(rank + k), lambda.end());
    return mu;
}

Shrinkage unshrunk(std::span<const double> singular_values, std::size_t rank, std::string note) {
    Shrinkage result;
    result.rank = rank;
    result.bulk_edge = Eigenvalue{0.0};
    result.strengths.assign(singular_values.begin(), singular_values.begin() + static_cast<std::ptrdiff_t>(rank));
    result.shrunk = result.strengths;
    result.overlap_left.assign(rank, 1.0);
    result.overlap_right.assign(rank, 1.0);
    result.note = std::move(note);
    return result;
}

}  // namespace

Shrinkage eoptshrink(std::span<const double> singular_values, Shape shape, const EOptShrinkOptions& options) {
    const std::size_t p = shape.short_side();
    Shrinkage result;
    if (p == 0 || singular_values.size() != p || !(singular_values[0] > 0.0)) {
        result.note = "the block is zero or empty";
        return result;
    }
    // Work in units of the largest singular value, so that squares neither overflow nor vanish.
    const double scale = singular_values[0];
    const double floor = static_cast<double>(shape.long_side()) * std::numeric_limits<double>::epsilon();
    std::vector<double> lambda(p);
    std::size_t above_rounding = 0;
    for (std::size_t i = 0; i < p; ++i) {
        const double s = singular_values[i] / scale;
        lambda[i] = s > floor ? s * s : 0.0;
        if (s > floor) ++above_rounding;
    }

    const std::size_t side = options.pilot_from_columns ? shape.columns : p;
    std::size_t k = theory::pilot_count(side);
    if (2 * k + 1 > p) k = (p - 1) / 2;
    if (k == 0) {
        result.note = "too few singular values for an edge estimate (at least 3 are needed)";
        return result;
    }

    // Step 1: bulk edge and rank.
    const double edge = lambda[k] + (lambda[k] - lambda[2 * k]) * edge_extrapolation;
    if (edge == 0.0)
        return unshrunk(singular_values, std::min(above_rounding, options.rank.value_or(above_rounding)),
                        "the block is exactly of low rank: nothing to shrink");
    result.bulk_edge = Eigenvalue{edge * scale * scale};
    const double margin = options.margin.value_or(std::pow(static_cast<double>(side), -1.0 / 3.0));
    std::size_t rank = 0;
    while (rank < p && lambda[rank] / edge - 1.0 > margin) ++rank;
    if (options.rank) rank = std::min(*options.rank, p);
    const std::size_t needed = options.imputation == Imputation::none ? rank + 1 : rank + 2 * k + 1;
    if (needed > p) {
        // Nothing is said about a block whose noise cannot be seen.
        result.note = fmt::format("rank {} leaves fewer than {} noise eigenvalues: set to 0", rank, needed - rank);
        return result;
    }

    // Step 2: the noise law. Imputed values reach beyond the outliers when the bulk has no square-root edge; then the
    // largest observed noise eigenvalue bounds them.
    std::vector<double> noise = noise_eigenvalues(lambda, rank, k, options.imputation);
    if (rank > 0 && noise[0] >= lambda[rank - 1])
        for (double& mu : noise) mu = std::min(mu, lambda[rank]);

    // Step 3: strengths, overlaps, shrunk values.
    for (std::size_t i = 0; i < rank; ++i) {
        OutlierEstimate outlier;
        if (lambda[i] > noise[0]) outlier = estimate_outlier(noise, shape, Eigenvalue{lambda[i]});
        const double shrunk =
            theory::shrink(outlier.strength, outlier.overlap_left, outlier.overlap_right, options.loss) * scale;
        result.strengths.push_back(outlier.strength * scale);
        result.overlap_left.push_back(outlier.overlap_left);
        result.overlap_right.push_back(outlier.overlap_right);
        result.shrunk.push_back(std::clamp(shrunk, 0.0, singular_values[i]));
    }
    result.rank = rank;
    for (double& mu : noise) mu *= scale * scale;
    result.noise_eigenvalues = std::move(noise);
    return result;
}

}  // namespace spiked::estimators
