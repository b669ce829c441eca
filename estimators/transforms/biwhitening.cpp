#include "estimators/transforms/biwhitening.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/spectral/noise_level.hpp"
#include "theory/laws/marchenko_pastur.hpp"

namespace spiked::estimators {
namespace {

constexpr double part_of_rank_one = 0.1;

WhiteCoordinates left_as_it_is(const arma::mat& core, std::string note) {
    return {core, NoiseCovariance::identity(core.n_rows), NoiseCovariance::identity(core.n_cols), 1.0, std::move(note)};
}

/// A block divided by its largest entry.
struct ScaledEntries {
    arma::mat entries;
    double unit = 0.0;
};

ScaledEntries scaled_entries(AnalysedBlock& block) {
    ScaledEntries result{block.core(), 0.0};
    if (result.entries.is_empty()) return result;
    if (!result.entries.is_finite())
        throw input_error("a block holds NaN or infinity (no variances exist): clean the data first");
    result.unit = arma::abs(result.entries).max();
    if (result.unit > 0.0) result.entries /= result.unit;
    return result;
}

struct Scaling {
    arma::vec rows;
    arma::vec columns;
};

/// Factors with which every row and every column of diag(rows) V diag(columns) has the mean 1. V is positive, so the
/// iteration of Sinkhorn and Knopp converges geometrically; V is used through its own product and that of its sums.
Scaling equal_means(const arma::mat& variances) {
    const arma::vec row_sums = arma::sum(variances, 1);
    const arma::vec column_sums = arma::sum(variances, 0).t();
    const double total = arma::accu(row_sums);
    const double n = static_cast<double>(variances.n_rows);
    const double d = static_cast<double>(variances.n_cols);
    const auto mixed = [&](const arma::vec& own, const arma::vec& sums, double others) {
        return arma::vec((1.0 - part_of_rank_one) * own + part_of_rank_one * others / total * sums);
    };
    Scaling found{total / row_sums / n, {}};  // exact for rank one
    for (int round = 0; round < 1000; ++round) {
        found.columns = n / mixed(variances.t() * found.rows, column_sums, arma::dot(row_sums, found.rows));
        const arma::vec next = d / mixed(variances * found.columns, row_sums, arma::dot(column_sums, found.columns));
        const double change = arma::abs(next / found.rows - 1.0).max();
        found.rows = next;
        if (change < 1e-12) break;
    }
    return found;
}

/// White coordinates of `scaled` for variances proportional to V, whose size they have.
WhiteCoordinates by_variances_of_entries(const ScaledEntries& scaled, arma::mat variances) {
    const double size = arma::mean(arma::vectorise(variances));
    if (!(size > 0.0)) return left_as_it_is(scaled.entries * scaled.unit, "no noise to estimate variances from");
    variances /= size;
    if (!(arma::sum(variances, 1).min() > 0.0 && arma::sum(variances, 0).min() > 0.0))
        return left_as_it_is(scaled.entries * scaled.unit, "a row or column has no noise variance");
    const Scaling scaling = equal_means(variances);
    const double columns = static_cast<double>(variances.n_cols);
    WhiteCoordinates found{{},
                           NoiseCovariance::diagonal(1.0 / scaling.rows),
                           NoiseCovariance::diagonal(columns / scaling.columns),
                           scaled.unit * std::sqrt(size),
                           ""};
    found.block = scaled.entries / std::sqrt(size);
    found.block.each_col() %= arma::sqrt(scaling.rows);
    found.block.each_row() %= arma::sqrt(scaling.columns.t() / columns);
    return found;
}

/// The largest distance between the eigenvalues of a block in units of its noise level and the Marchenko-Pastur law.
double distance_to_white(std::span<const double> values, Shape shape, double level) {
    const theory::MarchenkoPastur law(AspectRatio::of(shape.short_side(), shape.long_side()));
    const double unit = level * std::sqrt(static_cast<double>(shape.long_side()));
    const double count = static_cast<double>(values.size());
    double largest = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double y = values[i] / unit;
        const double above = law.survival({y * y});
        const double rank = static_cast<double>(i);
        largest = std::max({largest, std::abs(above - rank / count), std::abs(above - (rank + 1.0) / count)});
    }
    return largest;
}

}  // namespace

WhiteCoordinates biwhiten(AnalysedBlock& block, const VarianceFunction& variance) {
    const ScaledEntries scaled = scaled_entries(block);
    if (!(scaled.unit > 0.0)) return left_as_it_is(scaled.entries, "the block is zero or empty");
    const double constant = variance.constant / scaled.unit / scaled.unit;
    const double linear = variance.linear / scaled.unit;
    arma::mat variances =
        (constant + scaled.entries % (linear + variance.square * scaled.entries)) / (1.0 + variance.square);
    const double rounding = 1e-12 * arma::abs(variances).max();
    const arma::uword least = variances.index_min();
    if (variances(least) < -rounding)
        throw input_error(
            "an entry is {:.6g}, where the variance {:.3g} + {:.3g} y + {:.3g} y^2 is negative: give counts, or the "
            "variance function of these data",
            scaled.entries(least) * scaled.unit, variance.constant, variance.linear, variance.square);
    variances = arma::clamp(variances, 0.0, variances.max());
    return by_variances_of_entries(scaled, std::move(variances));
}

WhiteCoordinates biwhiten_fitted(AnalysedBlock& block) {
    const ScaledEntries scaled = scaled_entries(block);
    if (!(scaled.unit > 0.0)) return left_as_it_is(scaled.entries, "the block is zero or empty");
    const double least = scaled.entries.min();
    if (least < 0.0)
        throw input_error("an entry is {:.6g} (a variance b y + c y^2 is fitted to data of at least 0): give counts",
                          least * scaled.unit);
    const arma::mat squares = arma::square(scaled.entries);
    const double linear_sum = arma::accu(scaled.entries);
    const double square_sum = arma::accu(squares);
    struct Trial {
        double share = 0.0;  ///< of the square in the sum of all variances
        double distance = 0.0;
        double level = 0.0;
        WhiteCoordinates white;
    };
    const auto at = [&](double share) {
        Trial trial{.share = share,
                    .white = by_variances_of_entries(
                        scaled, (1.0 - share) / linear_sum * scaled.entries + share / square_sum * squares)};
        const std::vector<double> values = singular_values(trial.white.block);
        trial.level = white_noise_level(values, block.shape(), NoiseLevelRule::median);
        trial.distance = trial.level > 0.0 ? distance_to_white(values, block.shape(), trial.level) : 1.0;
        return trial;
    };
    Trial poisson = at(0.0);
    Trial best = poisson;
    for (double step = 0.1; step > 1e-3; step *= 0.2) {
        const double middle = best.share;
        const int reach = step == 0.1 ? 10 : 5;
        for (int i = -reach; i <= reach; ++i) {
            const double share = middle + i * step;
            if (i == 0 || !(share >= 0.0 && share <= 1.0)) continue;
            Trial trial = at(share);
            if (trial.distance < best.distance) best = std::move(trial);
        }
    }
    // Two eigenvalues among p move the distance by 2/p, which is no evidence against Poisson counts.
    if (best.distance + 2.0 / static_cast<double>(block.shape().short_side()) > poisson.distance)
        best = std::move(poisson);
    if (!(best.level > 0.0)) return left_as_it_is(scaled.entries * scaled.unit, "no noise to estimate variances from");
    // The level gives the size of V, hence the coefficients of y and y^2 in it: linear and square over 1 + square.
    const double size = best.level * best.level * static_cast<double>(best.white.block.n_cols);
    best.white.block /= std::sqrt(size);
    best.white.unit *= std::sqrt(size);
    const double of_square = size * best.share / square_sum;
    const double of_linear = size * (1.0 - best.share) / linear_sum * scaled.unit;
    best.white.note = of_square < 1.0 ? fmt::format("entries of mean m have the variance {:.3g} m + {:.3g} m^2",
                                                    of_linear / (1.0 - of_square), of_square / (1.0 - of_square))
                                      : "entries vary more than a variance b m + c m^2 allows";
    return best.white;
}

}  // namespace spiked::estimators
