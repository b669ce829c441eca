#include "estimators/transforms/dyson_equalizer.hpp"

namespace spiked::estimators {
namespace {

/// Diagonal of eta (M M^T + eta^2)^(-1) for M = U diag(s) V^T from the left vectors U, which need not be square.
arma::vec resolvent_diagonal(const arma::mat& vectors, const arma::vec& s, double eta) {
    const arma::vec gain = eta / (eta * eta + arma::square(s)) - 1.0 / eta;
    return arma::square(vectors) * gain + 1.0 / eta;
}

}  // namespace

WhiteCoordinates dyson_equalize(AnalysedBlock& block) {
    const arma::mat core = block.core();
    const auto unchanged = [&](const char* note) {
        return WhiteCoordinates{core, NoiseCovariance::identity(core.n_rows), NoiseCovariance::identity(core.n_cols),
                                1.0, note};
    };
    if (core.is_empty()) return unchanged("the block is zero or empty");
    const std::vector<double> values = singular_values(core);
    const double unit = values.front();
    const double floor = static_cast<double>(block.shape().long_side()) * 1e-16;
    if (unit == 0.0 || values[values.size() / 2] <= floor * unit)
        return unchanged("no noise to estimate variances from");
    const SingularVectors vectors = leading_vectors(core, values.size());
    const arma::vec s = arma::vec(values) / unit;
    const double eta = arma::median(s);
    const arma::vec rows = resolvent_diagonal(vectors.left, s, eta);
    const arma::vec columns = resolvent_diagonal(vectors.right, s, eta);
    // Each total is the sum of eta s^2 / (eta^2 + s^2) over the singular values, in a form without cancellation.
    const double total = arma::accu(arma::square(s) / (eta * eta + arma::square(s)));
    const arma::vec x = (1.0 / rows - eta) / std::sqrt(total);
    const arma::vec y = (1.0 / columns - eta) / std::sqrt(total);
    if (!(x.min() > 0.0 && y.min() > 0.0)) return unchanged("a row or column has no noise variance");
    WhiteCoordinates found{
        {}, NoiseCovariance::diagonal(x), NoiseCovariance::diagonal(y * static_cast<double>(core.n_cols)), unit, ""};
    found.block = found.left.inverse_root_times(core / unit);
    found.block = found.right.inverse_root_times(found.block.t()).t();
    return found;
}

}  // namespace spiked::estimators
