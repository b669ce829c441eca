// The fallbacks for failures of the vectorised kernels: simulated failures, with results compared to LAPACK.
#include "estimators/svd/bidiagonal_svd.hpp"

#include <gtest/gtest.h>

#include <armadillo>
#include <cmath>

#include "estimators/svd/decomposition.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

constexpr std::size_t size = 40;

struct Entries {
    std::vector<double> diagonal = std::vector<double>(size);
    std::vector<double> off_diagonal = std::vector<double>(size - 1);

    Entries() {
        stream::fill_normal(stream::Stream({}, "bidiagonal", stream::Role::noise, 0), std::span<double>(diagonal));
        stream::fill_normal(stream::Stream({}, "bidiagonal", stream::Role::noise, 1), std::span<double>(off_diagonal));
        diagonal[17] = 0.0;
    }
    [[nodiscard]] Bidiagonal bidiagonal() const { return {diagonal, off_diagonal}; }
    [[nodiscard]] arma::mat matrix() const {
        arma::mat dense(size, size);
        dense.diag() = arma::vec(diagonal);
        dense.diag(1) = arma::vec(off_diagonal);
        return dense;
    }
};

constexpr std::size_t wanted = 8;
int simulated_failures = 0;

template <class Real>
std::pair<arma::mat, arma::mat> vectors(const BidiagonalSvd<Real>& svd) {
    arma::Mat<Real> left(kernels::applied_lanes, size);
    arma::Mat<Real> right(kernels::applied_lanes, size);
    svd.left(0, left.memptr());
    svd.right(0, right.memptr());
    return {arma::conv_to<arma::mat>::from(left.head_rows(wanted).t()),
            arma::conv_to<arma::mat>::from(right.head_rows(wanted).t())};
}

template <class Real>
void judge(const kernels::Kernels<Real>& kernels) {
    const Entries entries;
    const arma::mat matrix = entries.matrix();
    const auto expected = singular_values(matrix);
    BidiagonalSvd<Real> svd(kernels, size);
    std::vector<double> values(size);
    svd.values(std::vector<Bidiagonal>{entries.bidiagonal()}, true, values.data());
    for (std::size_t i = 0; i < size; ++i) EXPECT_NEAR(values[i], expected[i], 1e-13 * expected[0]) << i;
    svd.vectors(entries.bidiagonal(), values, wanted);
    const auto [left, right] = vectors(svd);
    const double limit = sizeof(Real) == 8 ? 1e-12 : 1e-6;
    const arma::rowvec s(values.data(), wanted);
    EXPECT_LT(arma::abs(matrix * right - left.each_row() % s).max(), limit * values[0]);
    EXPECT_LT(arma::abs(matrix.t() * left - right.each_row() % s).max(), limit * values[0]);
    EXPECT_LT(arma::abs(right.t() * right - arma::eye(wanted, wanted)).max(), limit);
}

template <class Real>
void judge_failures() {
    const kernels::Kernels<Real>& working = *kernels::generic<Real>();
    judge(working);

    kernels::Kernels<Real> values_do_not_converge = working;
    values_do_not_converge.eigenvalues = [](kernels::TridiagonalBatch& batch) {
        ++simulated_failures;
        for (bool& converged : batch.converged) converged = false;
        std::fill_n(batch.eigenvalues, batch.size * kernels::value_lanes, NAN);
    };
    simulated_failures = 0;
    judge(values_do_not_converge);
    EXPECT_EQ(simulated_failures, 1);

    kernels::Kernels<Real> residuals_are_large = working;
    residuals_are_large.twisted_vectors = [](const kernels::GolubKahan& matrix, const double*, std::size_t,
                                             double* even, double* odd, double* remainders) {
        ++simulated_failures;
        std::fill_n(matrix.work, 2 * matrix.size * kernels::vector_lanes, NAN);
        std::fill_n(even, kernels::vector_lanes, 1.0);
        std::fill_n(odd, kernels::vector_lanes, 1.0);
        std::fill_n(remainders, kernels::vector_lanes, 1.0);
    };
    simulated_failures = 0;
    judge(residuals_are_large);
    EXPECT_GT(simulated_failures, 0);

    kernels::Kernels<Real> vectors_are_nan = residuals_are_large;
    vectors_are_nan.twisted_vectors = [](const kernels::GolubKahan& matrix, const double*, std::size_t, double* even,
                                         double* odd, double* remainders) {
        ++simulated_failures;
        std::fill_n(matrix.work, 2 * matrix.size * kernels::vector_lanes, NAN);
        for (double* const output : {even, odd, remainders}) std::fill_n(output, kernels::vector_lanes, NAN);
    };
    simulated_failures = 0;
    judge(vectors_are_nan);
    EXPECT_GT(simulated_failures, 0);

    kernels::Kernels<Real> vectors_vanish = working;
    vectors_vanish.orthogonalise = [](double*, std::size_t, std::size_t, std::size_t) {
        ++simulated_failures;
        return 0.25;
    };
    simulated_failures = 0;
    BidiagonalSvd<Real> svd(vectors_vanish, size);
    std::vector<double> values(size);
    const std::vector<double> ones(size, 1.0);
    const std::vector<double> links(size - 1, 1e-4);  // values differ by less than a thousandth
    const Bidiagonal close{ones, links};
    svd.values(std::vector<Bidiagonal>{close}, true, values.data());
    svd.vectors(close, values, wanted);
    EXPECT_GT(simulated_failures, 0);
    const arma::mat right = vectors(svd).second;
    EXPECT_LT(arma::abs(right.t() * right - arma::eye(wanted, wanted)).max(), sizeof(Real) == 8 ? 1e-12 : 1e-6);
}

TEST(BidiagonalSvdReference, SimulatedKernelFailuresAreDetectedAndReplacedByBisectionAndLapack) {
    judge_failures<double>();
    judge_failures<float>();
}

}  // namespace
}  // namespace spiked::estimators
