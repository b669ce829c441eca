// Every closed form against the minimum of its loss, found by trying values.
#include "estimators/pca/covariance_loss.hpp"

#include <gtest/gtest.h>

#include <armadillo>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <functional>
#include <map>

namespace spiked::estimators {
namespace {

using MatrixLoss = std::function<double(const arma::mat& truth, const arma::mat& estimate)>;

double frobenius_norm(const arma::mat& m) { return arma::norm(m, "fro"); }
double operator_norm(const arma::mat& m) { return arma::norm(m, 2); }
double nuclear_norm(const arma::mat& m) { return arma::accu(arma::svd(m)); }

arma::mat relative_to(const arma::mat& truth, const arma::mat& estimate) {
    const arma::mat root = arma::inv(arma::sqrtmat_sympd(truth));
    return root * estimate * root - arma::eye(2, 2);
}

double stein_loss(const arma::mat& truth, const arma::mat& estimate) {
    const arma::mat ratio = arma::inv(truth) * estimate;
    return arma::trace(ratio) - 2.0 - std::log(arma::det(ratio));
}

/// The losses as their definitions say, of whole matrices.
const std::map<std::string, MatrixLoss>& losses_of_matrices() {
    using M = arma::mat;
    const M one = arma::eye(2, 2);
    static const std::map<std::string, MatrixLoss> table = {
        {"frobenius", [](const M& a, const M& b) { return frobenius_norm(b - a); }},
        {"operator", [](const M& a, const M& b) { return operator_norm(b - a); }},
        {"nuclear", [](const M& a, const M& b) { return nuclear_norm(b - a); }},
        {"inverse-frobenius", [](const M& a, const M& b) { return frobenius_norm(arma::inv(b) - arma::inv(a)); }},
        {"inverse-operator", [](const M& a, const M& b) { return operator_norm(arma::inv(b) - arma::inv(a)); }},
        {"inverse-nuclear", [](const M& a, const M& b) { return nuclear_norm(arma::inv(b) - arma::inv(a)); }},
        {"relative-frobenius", [](const M& a, const M& b) { return frobenius_norm(relative_to(a, b)); }},
        {"relative-operator", [](const M& a, const M& b) { return operator_norm(relative_to(a, b)); }},
        {"relative-nuclear", [](const M& a, const M& b) { return nuclear_norm(relative_to(a, b)); }},
        {"ratio-frobenius", [one](const M& a, const M& b) { return frobenius_norm(arma::inv(a) * b - one); }},
        {"ratio-nuclear", [one](const M& a, const M& b) { return nuclear_norm(arma::inv(a) * b - one); }},
        {"reverse-ratio-frobenius", [one](const M& a, const M& b) { return frobenius_norm(arma::inv(b) * a - one); }},
        {"reverse-ratio-nuclear", [one](const M& a, const M& b) { return nuclear_norm(arma::inv(b) * a - one); }},
        {"stein", stein_loss},
        {"entropy", [](const M& a, const M& b) { return stein_loss(b, a); }},
        {"divergence", [](const M& a, const M& b) { return stein_loss(a, b) + stein_loss(b, a); }},
        {"bhattacharyya",
         [](const M& a, const M& b) {
             return std::log(arma::det(0.5 * (a + b))) - 0.5 * std::log(arma::det(a) * arma::det(b));
         }},
        {"root-frobenius",
         [](const M& a, const M& b) { return frobenius_norm(arma::sqrtmat_sympd(b) - arma::sqrtmat_sympd(a)); }}};
    return table;
}

/// The loss of an estimate with the eigenvalue `value` in the direction (c, s), where the truth is diag(spike, 1).
double loss_at(const MatrixLoss& loss, double spike, double squared_cosine, double value) {
    const arma::vec direction = {std::sqrt(squared_cosine), std::sqrt(1.0 - squared_cosine)};
    const arma::mat truth = arma::diagmat(arma::vec({spike, 1.0}));
    return loss(truth, arma::eye(2, 2) + (value - 1.0) * direction * direction.t());
}

/// The value from 1/50 to 100 with the smallest loss: the best of a grid, then Brent's method around it.
double best_value(const std::function<double(double)>& loss) {
    constexpr double step = 0.02;
    double best = 0.0;
    for (double x = std::log(0.02); x < std::log(100.0); x += step)
        if (loss(std::exp(x)) < loss(std::exp(best))) best = x;
    const auto found = boost::math::tools::brent_find_minima([&](double x) { return loss(std::exp(x)); }, best - step,
                                                             best + step, 40);
    return std::exp(found.first);
}

constexpr double spikes_and_cosines[][2] = {{3.0, 0.64},  {1.8, 0.25}, {8.0, 0.9},
                                            {20.0, 0.36}, {2.5, 0.81}, {5.0, 0.09}};

TEST(CovarianceLossReference, IsMinimisedByTheClosedForm) {
    for (const auto& row : covariance_losses()) {
        ASSERT_TRUE(losses_of_matrices().contains(row.entry.name)) << row.entry.name << " has no definition here";
        const MatrixLoss& loss = losses_of_matrices().at(row.entry.name);
        for (const auto& pair : spikes_and_cosines) {
            const double spike = pair[0];
            const double cosine = pair[1];
            const auto at = [&](double value) { return loss_at(loss, spike, cosine, value); };
            const double best = best_value(at);
            const double found = row.shrunk(spike, cosine);
            // A smooth minimum is found to the root of the rounding of its loss; a kink better.
            EXPECT_NEAR(found, best, 2e-6 * best) << row.entry.name << " " << spike << " " << cosine;
            EXPECT_LE(at(found), at(best) * (1.0 + 1e-12)) << row.entry.name << " " << spike << " " << cosine;
            EXPECT_GE(found, 1.0);
            EXPECT_LE(found, spike);
            // Control: a value a tenth farther from the noise loses more.
            EXPECT_GT(at(1.0 + 1.1 * (found - 1.0) + 0.01), at(found)) << row.entry.name;
        }
    }
    EXPECT_EQ(covariance_losses().size(), losses_of_matrices().size());
}

TEST(CovarianceLoss, KeepsAnExactComponentAndDropsAnUnrelatedOne) {
    for (const auto& row : covariance_losses()) {
        EXPECT_NEAR(row.shrunk(7.0, 1.0), 7.0, 1e-14) << row.entry.name;
        // The losses of operator norms do not see that a direction is wrong.
        if (row.entry.name.find("operator") == std::string::npos) {
            EXPECT_NEAR(row.shrunk(7.0, 0.0), 1.0, 1e-14) << row.entry.name;
        }
        EXPECT_NEAR(shrunk_eigenvalue(row, {14.0}, {0.5}, 2.0), 2.0 * row.shrunk(7.0, 0.5), 1e-13);
    }
}

}  // namespace
}  // namespace spiked::estimators
