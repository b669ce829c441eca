#include "estimators/transforms/whitening.hpp"

#include "core/runtime/error.hpp"
#include "estimators/spectral/eoptshrink.hpp"

namespace spiked::estimators {
namespace {

WhiteCoordinates in_white(const arma::mat& block, NoiseCovariance left, NoiseCovariance right, double unit) {
    const arma::mat half = left.inverse_root_times(block / unit);
    return {right.inverse_root_times(half.t()).t(), std::move(left), std::move(right), unit, ""};
}

/// Maximum-likelihood variances of the rows for given variances of the columns.
arma::vec row_variances(const arma::mat& squares, const arma::vec& columns) {
    arma::vec rows = squares * (1.0 / columns) / static_cast<double>(squares.n_cols);
    // The floor is for rows without noise, which would get infinite weight.
    return arma::clamp(rows, 1e-12 * rows.max(), rows.max());
}

struct Variances {
    arma::vec rows;
    arma::vec columns;
};

Variances diagonal_variances(const arma::mat& noise) {
    const arma::mat squares = arma::square(noise);
    Variances found{arma::vec(noise.n_rows, arma::fill::ones), arma::vec(noise.n_cols, arma::fill::ones)};
    for (int round = 0; round < 100; ++round) {
        const arma::vec before = found.rows;
        found.columns = row_variances(squares.t(), found.rows);
        found.rows = row_variances(squares, found.columns);
        found.rows /= arma::mean(found.rows);
        if (arma::abs(found.rows / before - 1.0).max() < 1e-10) break;
    }
    return found;
}

}  // namespace

NoiseCovariance shrunk_covariance(const arma::mat& samples) {
    const double count = static_cast<double>(samples.n_cols);
    const double n = static_cast<double>(samples.n_rows);
    arma::mat covariance = samples * samples.t() / count;
    const double trace = arma::trace(covariance);
    const double square = arma::accu(arma::square(covariance));
    const double above = (1.0 - 2.0 / n) * square + trace * trace;
    const double below = (count + 1.0 - 2.0 / n) * (square - trace * trace / n);
    const double weight = below > 0.0 ? std::min(1.0, above / below) : 1.0;
    covariance *= 1.0 - weight;
    covariance.diag() += weight * trace / n;
    return NoiseCovariance::full(covariance);
}

WhiteCoordinates whiten_known(AnalysedBlock& block, const KnownNoise& known) {
    const arma::mat core = block.core();
    const auto checked = [](const std::optional<NoiseCovariance>& covariance, arma::uword size, const char* side) {
        if (!covariance) return NoiseCovariance::identity(size);
        if (covariance->size() != size)
            throw input_error("the {0} covariance has size {1} (the block has {2} {0}s): give one that fits", side,
                              covariance->size(), size);
        return *covariance;
    };
    return in_white(core, checked(known.row, core.n_rows, "row"), checked(known.column, core.n_cols, "column"), 1.0);
}

WhiteCoordinates whiten_estimated(AnalysedBlock& block, bool full) {
    const arma::mat core = block.core();
    const auto unchanged = [&] {
        return WhiteCoordinates{core, NoiseCovariance::identity(core.n_rows), NoiseCovariance::identity(core.n_cols),
                                1.0, "no noise to estimate variances from"};
    };
    const double unit = core.is_empty() ? 0.0 : arma::abs(core).max();
    if (!core.is_finite())
        throw input_error("a block holds NaN or infinity (no variances exist): clean the data first");
    if (unit == 0.0) return unchanged();
    const double columns = static_cast<double>(core.n_cols);
    const auto by_variances = [&](const arma::mat& noise) {
        Variances found = diagonal_variances(noise);
        return in_white(core, NoiseCovariance::diagonal(std::move(found.rows)),
                        NoiseCovariance::diagonal(found.columns * columns), unit);
    };
    // Uneven noise hides signals, so the signals are estimated after whitening by the variances found so far.
    arma::mat noise = core / unit;
    const double floor = static_cast<double>(block.shape().long_side()) * 1e-15;
    std::string note;
    for (int round = 0; round < 3; ++round) {
        WhiteCoordinates white = by_variances(noise);
        AnalysedBlock inner(std::move(white.block), AnalysedBlock::EmptyLines::keep);
        const Shrinkage signal = eoptshrink(inner.singular_values(), inner.shape(), EOptShrinkOptions::edge_fit());
        note = signal.note.empty() ? "" : "while whitening, " + signal.note;
        const arma::mat half = white.left.root_times(inner.residual(signal.shrunk));
        noise = white.right.root_times(half.t()).t();
        if (arma::abs(noise).max() <= floor) return unchanged();
    }
    if (!full) {
        WhiteCoordinates found = by_variances(noise);
        found.note = note;
        return found;
    }
    NoiseCovariance right = NoiseCovariance::identity(core.n_cols);
    NoiseCovariance left = NoiseCovariance::identity(core.n_rows);
    for (int round = 0; round < 2; ++round) {
        left = shrunk_covariance(right.inverse_root_times(noise.t()).t());
        right = shrunk_covariance(left.inverse_root_times(noise).t());
    }
    // `right` now contains the variance of an entry; the convention is 1/d.
    WhiteCoordinates found = in_white(core, std::move(left), std::move(right), unit * std::sqrt(columns));
    found.note = note;
    return found;
}

}  // namespace spiked::estimators
