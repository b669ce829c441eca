// Symmetric matrices: the spiked Wigner model has the limits of a square matrix of independent entries, and other
// fluctuations, which a note says.
#include <gtest/gtest.h>

#include <armadillo>
#include <cmath>

#include "app/tests/process.hpp"
#include "sim/io/npy.hpp"
#include "sim/random/haar.hpp"
#include "sim/random/normal.hpp"
#include "sim/random/tests/statistics.hpp"

namespace spiked::app {
namespace {

constexpr arma::uword size = 64;
constexpr double strength = 2.0;
constexpr double outlier = 2.5;   // strength + 1 / strength
constexpr double overlap = 0.75;  // 1 - 1 / strength^2

/// strength v v^T plus a symmetric Gaussian matrix with entries of variance 1/n (2/n on the diagonal).
struct Symmetric {
    arma::mat matrix;
    arma::vec vector;
};

Symmetric spiked_wigner(std::uint64_t replicate) {
    using stream::Role;
    using stream::Stream;
    arma::mat white(size, size);
    stream::fill_normal(Stream(stream::test_seed, "wigner", Role::noise, replicate), {white.memptr(), white.n_elem});
    const arma::vec vector =
        stream::haar_frame(Stream(stream::test_seed, "wigner", Role::left_vectors, replicate), size, 1);
    return {(white + white.t()) / std::sqrt(2.0 * size) + strength * vector * vector.t(), vector};
}

TEST(SpikedWignerLaw, HasTheLimitsOfIndependentEntriesAndTwiceTheVariance) {
    constexpr int count = 400;
    double mean = 0.0, square = 0.0, cosine = 0.0, cosine_square = 0.0;
    for (int r = 0; r < count; ++r) {
        const Symmetric drawn = spiked_wigner(static_cast<std::uint64_t>(r));
        arma::vec values;
        arma::mat vectors;
        ASSERT_TRUE(arma::eig_sym(values, vectors, drawn.matrix));
        const double squared = std::pow(arma::dot(vectors.tail_cols(1), drawn.vector), 2);
        mean += values.back() / count;
        square += std::pow(values.back() - outlier, 2) / count;
        cosine += squared / count;
        cosine_square += squared * squared / count;
    }
    // Three comparisons; 1.5 / n is what finite size may add, which is of that order.
    const double z = stream::two_sided_z(3.0);
    const double variance = 2.0 * overlap / size;
    const double room = 1.5 / size + z * std::sqrt(variance / count);
    EXPECT_LT(std::abs(mean - outlier), room) << "detectable is " << 2.0 * room;
    EXPECT_LT(std::abs(cosine - overlap), 1.5 / size + z * std::sqrt((cosine_square - cosine * cosine) / count));
    // A mean of squares of normal variables has the relative deviation sqrt(2 / count); a tenth is for finite size.
    const double spread = 0.1 + z * std::sqrt(2.0 / count);
    EXPECT_LT(std::abs(square / variance - 1.0), spread);
    // Controls: the outlier of a strength 10 % larger, and the variance of independent entries.
    EXPECT_GT(std::abs(mean - (1.1 * strength + 1.0 / (1.1 * strength))), room);
    EXPECT_GT(std::abs(square / (0.5 * variance) - 1.0), spread);
}

TEST(SymmetricMatrices, AreEstimatedByTheseLimitsWithANote) {
    const Symmetric drawn = spiked_wigner(0);
    const std::string file = scratch("symmetric.npy");
    sim::write_npy(file, drawn.matrix);
    const Outcome found = spiked("spectrum " + file + " --estimator gd-shrink:sigma=0.125 --json");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json json = found.json();
    ASSERT_EQ(json.find("notes")->items()->size(), 1U);
    EXPECT_NE(json.find("notes")->items()->front().string()->find("the matrix is symmetric: strengths and overlaps"),
              std::string::npos);
    // The inverse of the outlier, and both overlaps, are those of the symmetric model. Eigenvalues of noise at either
    // end may lie above the edge too.
    const Json& estimate = json.find("estimators")->items()->front();
    ASSERT_GE(estimate.find("strengths")->items()->size(), 1U);
    const double value = arma::eig_sym(drawn.matrix).eval().back();
    const double inverse = 0.5 * (value + std::sqrt(value * value - 4.0));
    EXPECT_NEAR(*estimate.find("strengths")->items()->front().real(), inverse, 1e-9);
    for (const char* side : {"overlap_left", "overlap_right"})
        EXPECT_NEAR(*estimate.find(side)->items()->front().real(), 1.0 - 1.0 / (inverse * inverse), 1e-9);

    arma::mat other = drawn.matrix;
    other(0, 1) += 0.01;
    sim::write_npy(file, other);
    EXPECT_EQ(spiked("spectrum " + file + " --json").json().find("notes")->items()->size(), 0U);
}

}  // namespace
}  // namespace spiked::app
