// Failures of LAPACK, which few inputs cause: bdsdc and bdsqr are replaced by functions that report a failure on
// request and otherwise call LAPACK.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <armadillo>
#include <cstddef>
#include <string>
#include <vector>

#include "core/runtime/error.hpp"
#include "estimators/svd/batch_decomposition.hpp"
#include "sim/random/normal.hpp"

namespace {

bool bdsdc_fails = false;
bool both_fail = false;
int bdsdc_calls = 0;
int bdsqr_calls = 0;

}  // namespace

extern "C" void dbdsdc_(const char* triangle, const char* vectors, const int* size, double* diagonal,
                        double* off_diagonal, double* left, const int* left_step, double* right, const int* right_step,
                        double* compact, int* compact_integers, double* work, int* integers, int* info, std::size_t a,
                        std::size_t b) {
    ++bdsdc_calls;
    static const auto original = reinterpret_cast<decltype(&dbdsdc_)>(dlsym(RTLD_NEXT, "dbdsdc_"));
    if (bdsdc_fails || both_fail || original == nullptr)
        *info = 1;
    else
        original(triangle, vectors, size, diagonal, off_diagonal, left, left_step, right, right_step, compact,
                 compact_integers, work, integers, info, a, b);
}

extern "C" void dbdsqr_(const char* triangle, const int* size, const int* columns, const int* rows, const int* others,
                        double* diagonal, double* off_diagonal, double* right, const int* right_step, double* left,
                        const int* left_step, double* other, const int* other_step, double* work, int* info,
                        std::size_t a) {
    ++bdsqr_calls;
    static const auto original = reinterpret_cast<decltype(&dbdsqr_)>(dlsym(RTLD_NEXT, "dbdsqr_"));
    if (both_fail || original == nullptr)
        *info = 1;
    else
        original(triangle, size, columns, rows, others, diagonal, off_diagonal, right, right_step, left, left_step,
                 other, other_step, work, info, a);
}

namespace spiked::estimators {
namespace {

template <class Real>
void judge_failure() {
    constexpr std::size_t side = 24;
    constexpr std::size_t wanted = 4;
    constexpr std::size_t equal = 1;  // index of the block whose vectors need LAPACK
    constexpr std::size_t count = 3;
    arma::Cube<Real> blocks(side, side, count, arma::fill::zeros);
    for (std::size_t b = 0; b < count; ++b) {
        arma::mat entries(side, side, arma::fill::eye);
        if (b != equal)
            stream::fill_normal(stream::Stream({}, "lapack failure", stream::Role::noise, b),
                                std::span<double>(entries.memptr(), entries.n_elem));
        blocks.slice(b) = arma::conv_to<arma::Mat<Real>>::from(entries);
    }
    BatchDecomposition<Real> batch({side, side});
    batch.decompose({blocks.memptr(), blocks.n_elem});
    const auto vectors = [&](std::size_t b) {
        arma::Mat<Real> left;
        arma::Mat<Real> right;
        batch.leading_vectors(b, wanted, &left, &right);
        return arma::Mat<Real>(arma::join_rows(left, right));
    };
    std::vector<arma::Mat<Real>> before;
    bdsdc_calls = bdsqr_calls = 0;
    for (std::size_t b = 0; b < count; ++b) before.push_back(vectors(b));
    EXPECT_EQ(bdsdc_calls, 1);

    const int bdsqr_calls_of_bdsdc = bdsqr_calls;
    bdsdc_fails = true;
    const arma::Mat<Real> by_bdsqr = vectors(equal);
    bdsdc_fails = false;
    EXPECT_EQ(bdsqr_calls, bdsqr_calls_of_bdsdc + 1);
    // Left and right vectors of the identity are the same, and orthonormal.
    const arma::Mat<Real> products = by_bdsqr.head_cols(wanted).t() * by_bdsqr.tail_cols(wanted);
    EXPECT_LT(arma::abs(products - arma::eye<arma::Mat<Real>>(wanted, wanted)).max(), 1e-6);

    both_fail = true;
    try {
        static_cast<void>(vectors(equal));
        ADD_FAILURE() << "arrays of a failed LAPACK call were taken for vectors";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::input);
        EXPECT_NE(std::string(error.what()).find("bdsdc and bdsqr failed"), std::string::npos) << error.what();
    }
    for (const std::size_t b : {std::size_t{0}, std::size_t{2}})
        EXPECT_TRUE(arma::all(arma::vectorise(vectors(b) == before[b]))) << b;
    for (const double value : batch.singular_values(equal)) EXPECT_NEAR(value, 1.0, 1e-6);
    both_fail = false;
    EXPECT_EQ(bdsdc_calls, 3);
    EXPECT_TRUE(arma::all(arma::vectorise(vectors(equal) == before[equal])));
}

TEST(LapackFailure, IsAnInputErrorOnlyOfTheBlockWhoseVectorsNeedLapack) {
    judge_failure<float>();
    judge_failure<double>();
}

}  // namespace
}  // namespace spiked::estimators
