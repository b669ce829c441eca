#include "sim/spiked/spiked_sampler.hpp"

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <cmath>

#include "core/files/tests/scratch.hpp"
#include "sim/random/haar.hpp"
#include "sim/random/normal.hpp"
#include "sim/random/tests/statistics.hpp"

namespace spiked::sim {
namespace {

using stream::kolmogorov_distance;
using stream::kolmogorov_limit;
using stream::kolmogorov_limit_of_two;
using stream::two_sided_z;

using stream::Role;
using stream::Stream;

arma::mat matrix_of(const Covariance& covariance) {
    return covariance.root_times(
        covariance.root_times(arma::mat(covariance.size(), covariance.size(), arma::fill::eye)));
}

Covariance haar_covariance(std::size_t size) {
    arma::vec values(size);
    for (arma::uword j = 0; j < size; ++j) values(j) = 2.0 / static_cast<double>(j + 1);
    return Covariance::on_basis(
        values, stream::haar_frame(Stream(stream::test_seed, "basis", Role::column_basis, 0), size, size));
}

// By default a study draws Gaussian entries, dense colouring and Haar vectors, by these operations since the first
// version.
TEST(SpikedSamplerStability, DefaultDrawsNeverChange) {
    const SpikedModel model{Covariance::ar1(0.5, 9), Covariance::exponential(1.0, 7), {{3.0}, {2.0}}};
    const SpikedSample found = sample(model, stream::test_seed, "cell", 4);
    arma::mat white(9, 7);
    stream::fill_normal(Stream(stream::test_seed, "cell", Role::noise, 4), {white.memptr(), white.n_elem});
    white /= std::sqrt(7.0);
    EXPECT_EQ(arma::abs(found.noise - model.column.times_root(model.row.root_times(white))).max(), 0.0);
    EXPECT_EQ(arma::abs(found.left - stream::haar_frame(Stream(stream::test_seed, "cell", Role::left_vectors, 4), 9, 2))
                  .max(),
              0.0);
    EXPECT_EQ(
        arma::abs(found.right - stream::haar_frame(Stream(stream::test_seed, "cell", Role::right_vectors, 4), 7, 2))
            .max(),
        0.0);
    EXPECT_LT(arma::abs(found.signal - found.left * arma::diagmat(arma::vec{3.0, 2.0}) * found.right.t()).max(), 1e-15);
    EXPECT_EQ(arma::abs(found.observed - found.signal - found.noise).max() < 1e-15, true);
}

TEST(SymmetricBlocks, HaveSymmetricNoiseOfTheOrthogonalEnsembleAndSignedSpikes) {
    constexpr arma::uword n = 300;
    SpikedModel model{Covariance::identity(n), Covariance::identity(n), {{3.0}, {-2.0}}};
    model.symmetric = true;
    const SpikedSample found = sample(model, stream::test_seed, "symmetric", 0);
    EXPECT_EQ(arma::abs(found.observed - found.observed.t()).max(), 0.0);
    EXPECT_LT(arma::abs(found.signal - found.left * arma::diagmat(arma::vec{3.0, -2.0}) * found.left.t()).max(), 1e-14);
    EXPECT_EQ(arma::abs(found.right.col(1) + found.left.col(1)).max(), 0.0);
    // Sums of squares over their variances are chi-square variables.
    const arma::mat lower = arma::trimatl(found.noise, -1);
    const double pairs = 0.5 * n * (n - 1.0);
    const double z = two_sided_z(2.0);
    EXPECT_NEAR(arma::accu(arma::square(lower)) * n / pairs, 1.0, z * std::sqrt(2.0 / pairs));
    const double diagonal = arma::accu(arma::square(found.noise.diag())) / 2.0;
    EXPECT_NEAR(diagonal, 1.0, z * std::sqrt(2.0 / n));
    EXPECT_GT(std::abs(2.0 * diagonal - 1.0), z * std::sqrt(2.0 / n)) << "control: the variance of the other entries";

    const auto impossible = [&](const auto& change) {
        SpikedModel other = model;
        change(other);
        EXPECT_THROW(require_possible(other), Error);
    };
    impossible([](SpikedModel& m) { m.symmetric = false; });
    impossible([](SpikedModel& m) { m.column = Covariance::identity(n + 1); });
    impossible([](SpikedModel& m) { m.row = Covariance::ar1(0.5, n); });
    impossible([](SpikedModel& m) { m.seen = 0.5; });
    impossible([](SpikedModel& m) { m.left_vectors = VectorLaw::parse("scores:gaussian", MatrixSide::row); });
}

TEST(SameBlocks, HoldsForModelsThatDrawTheSameBlocksOnly) {
    const auto model = [] {
        return SpikedModel{Covariance::ar1(0.5, 9), Covariance::exponential(1.0, 7), {{3.0}, {2.0}}};
    };
    EXPECT_TRUE(same_blocks(model(), model()));
    const auto changed = [&](const auto& change) {
        SpikedModel other = model();
        change(other);
        return same_blocks(model(), other) || same_blocks(other, model());
    };
    EXPECT_FALSE(changed([](SpikedModel& m) { m.row = Covariance::ar1(0.6, 9); }));
    EXPECT_FALSE(changed([](SpikedModel& m) { m.row = Covariance::ar1(0.5, 8); }));
    // The same eigenvalues on another basis.
    EXPECT_FALSE(changed([](SpikedModel& m) { m.row = Covariance::diagonal(m.row.eigenvalues()); }));
    EXPECT_FALSE(changed([](SpikedModel& m) { m.column = Covariance::identity(7); }));
    EXPECT_FALSE(changed([](SpikedModel& m) { m.strengths[1].value = 2.5; }));
    EXPECT_FALSE(changed([](SpikedModel& m) { m.strengths.pop_back(); }));
    EXPECT_FALSE(changed([](SpikedModel& m) { m.entries = EntryLaw::parse("rademacher"); }));
    EXPECT_FALSE(changed([](SpikedModel& m) { m.left_vectors = VectorLaw::parse("localised:1", MatrixSide::row); }));
    EXPECT_FALSE(
        changed([](SpikedModel& m) { m.right_vectors = VectorLaw::parse("localised:1", MatrixSide::column); }));
    EXPECT_FALSE(changed([](SpikedModel& m) { m.colouring = Colouring::eigenbasis; }));
    EXPECT_FALSE(changed([](SpikedModel& m) { m.seen = 0.5; }));
    EXPECT_FALSE(changed([](SpikedModel& m) { m.symmetric = true; }));
    EXPECT_FALSE(changed([](SpikedModel& m) { m.variances.ones(9, 7); }));
}

/// Largest deviation of the means of Z Z^T and Z^T Z over replicates from `row` tr(column) / d and `column` tr(row) /
/// d, relative to its limit. For entries with fourth cumulant k4
///   Var (Z Z^T)_ij = ((A_ii A_jj + A_ij^2) tr B^2 + k4 sum_k (a_ik a_jk)^2 sum_l B_ll^2) / d^2,  a = A^{1/2}.
double worst_covariance(const SpikedModel& model, const arma::mat& row, const arma::mat& column) {
    constexpr int replicates = 4000;
    const std::size_t n = row.n_rows;
    const std::size_t d = column.n_rows;
    const double scale = static_cast<double>(d);
    arma::mat left(n, n, arma::fill::zeros);
    arma::mat right(d, d, arma::fill::zeros);
    for (std::uint64_t r = 0; r < replicates; ++r) {
        const arma::mat noise = sample(model, stream::test_seed, "covariance " + model.entries.text(), r).noise;
        left += noise * noise.t() / replicates;
        right += noise.t() * noise / replicates;
    }
    const double cumulant = model.entries.moments().kurtosis - 3.0;
    const double z = two_sided_z(10.0 * static_cast<double>(n * n + d * d));
    double worst = 0.0;
    const auto compare = [&](const arma::mat& found, const arma::mat& own, const arma::mat& other,
                             const arma::mat& root) {
        for (arma::uword i = 0; i < own.n_rows; ++i)
            for (arma::uword j = 0; j < own.n_rows; ++j) {
                const double variance =
                    ((own(i, i) * own(j, j) + own(i, j) * own(i, j)) * arma::accu(arma::square(other)) +
                     cumulant * arma::accu(arma::square(root.row(i) % root.row(j))) *
                         arma::accu(arma::square(other.diag()))) /
                    (scale * scale);
                const double miss = std::abs(found(i, j) - own(i, j) * arma::trace(other) / scale);
                worst = std::max(worst, miss / (z * std::sqrt(std::max(variance, 0.0) / replicates) + 1e-12));
            }
    };
    compare(left, row, column, model.row.root_times(arma::mat(n, n, arma::fill::eye)));
    compare(right, column, row, model.column.root_times(arma::mat(d, d, arma::fill::eye)));
    return worst;
}

TEST(SpikedSamplerLaw, RowsAndColumnsHaveTheirCovariances) {
    for (const char* entries : {"gaussian", "rademacher", "laplace", "two-point:0.2", "sparse:0.3"}) {
        SpikedModel model{Covariance::ar1(0.6, 5), haar_covariance(7), {}};
        model.entries = EntryLaw::parse(entries);
        EXPECT_LT(worst_covariance(model, matrix_of(model.row), matrix_of(model.column)), 1.0) << entries;
    }
    SpikedModel inside{Covariance::ar1(0.6, 5), haar_covariance(7), {}};
    inside.colouring = Colouring::eigenbasis;
    EXPECT_LT(
        worst_covariance(inside, arma::diagmat(inside.row.eigenvalues()), arma::diagmat(inside.column.eigenvalues())),
        1.0);
}

TEST(SpikedSamplerControl, AWrongCovarianceOrScaleIsDetected) {
    const SpikedModel model{Covariance::ar1(0.6, 5), haar_covariance(7), {}};
    const arma::mat row = matrix_of(model.row);
    const arma::mat column = matrix_of(model.column);
    EXPECT_GT(worst_covariance(model, matrix_of(Covariance::ar1(0.5, 5)), column), 1.0);
    EXPECT_GT(worst_covariance(model, row, arma::diagmat(model.column.eigenvalues())), 1.0);
    EXPECT_GT(worst_covariance(model, row * std::sqrt(7.0 / 5.0), column * std::sqrt(7.0 / 5.0)),
              1.0);  // variance 1/n instead of 1/d
}

// Dense colouring of Q_A X Q_B^T is Q_A (diag a^{1/2} X diag b^{1/2}) Q_B^T, so the eigenbasis sample is, up to the
// rotations, the dense sample of a rotated X, which for Gaussian entries has the law of X.
TEST(EigenbasisReference, EqualsTheDenseSampleOfARotatedMatrix) {
    const SpikedModel dense{Covariance::ar1(0.7, 12), haar_covariance(9), {{3.0}, {2.0}}};
    SpikedModel inside = dense;
    inside.colouring = Colouring::eigenbasis;
    const SpikedSample found = sample(inside, stream::test_seed, "rotated", 2);
    const SpikedSample other = sample(dense, stream::test_seed, "rotated", 2);
    const arma::mat qa = dense.row.basis();
    const arma::mat qb = dense.column.basis();
    arma::mat white(12, 9);
    stream::fill_normal(Stream(stream::test_seed, "rotated", Role::noise, 2), {white.memptr(), white.n_elem});
    const arma::mat rotated = qa * (white / 3.0) * qb.t();
    const arma::mat noise = dense.column.times_root(dense.row.root_times(rotated));
    EXPECT_LT(arma::abs(qa * found.noise * qb.t() - noise).max(), 1e-13);
    EXPECT_LT(arma::abs(qa * found.left - other.left).max(), 1e-13);
    EXPECT_LT(arma::abs(qb * found.right - other.right).max(), 1e-13);
    EXPECT_LT(arma::abs(qa * found.signal * qb.t() - other.signal).max(), 1e-13);
    const arma::mat observed = other.signal + noise;
    EXPECT_LT(arma::abs(arma::svd(found.observed) - arma::svd(observed)).max(), 1e-12);
    arma::mat u, v, u_found, v_found;
    arma::vec s;
    arma::svd_econ(u, s, v, observed);
    arma::svd_econ(u_found, s, v_found, found.observed);
    EXPECT_LT(arma::abs(arma::abs(u.t() * other.left) - arma::abs(u_found.t() * found.left)).max(), 1e-12);
    EXPECT_LT(arma::abs(arma::abs(v.t() * other.right) - arma::abs(v_found.t() * found.right)).max(), 1e-12);
}

TEST(Eigenbasis, EqualsTheDenseSampleForDiagonalCovariances) {
    SpikedModel model{Covariance::identity(8), Covariance::exponential(2.0, 6), {{3.0}}};
    const SpikedSample dense = sample(model, stream::test_seed, "diagonal", 1);
    model.colouring = Colouring::eigenbasis;
    EXPECT_EQ(arma::abs(sample(model, stream::test_seed, "diagonal", 1).observed - dense.observed).max(), 0.0);
}

/// The largest singular value of each of `count` replicates.
std::vector<double> top_values(const SpikedModel& model, std::string_view cell, std::size_t count) {
    std::vector<double> top;
    for (std::uint64_t r = 0; r < count; ++r)
        top.push_back(arma::svd(sample(model, stream::test_seed, cell, r).observed).max());
    return top;
}

// The vectors are fixed coordinates, so the two colourings have the same law only if the vectors are expressed in the
// eigenbases.
TEST(EigenbasisLaw, TopSingularValueHasTheLawOfTheDenseSample) {
    constexpr std::size_t count = 3000;
    SpikedModel model{Covariance::ar1(0.8, 10), haar_covariance(8), {{1.5}}};
    model.left_vectors = VectorLaw::parse("localised:1", MatrixSide::row);
    model.right_vectors = VectorLaw::parse("localised:1", MatrixSide::column);
    SpikedModel inside = model;
    inside.colouring = Colouring::eigenbasis;
    SpikedModel without_rotation{model.row.in_eigenbasis(), model.column.in_eigenbasis(), model.strengths};
    without_rotation.left_vectors = model.left_vectors;
    without_rotation.right_vectors = model.right_vectors;
    const auto dense = top_values(model, "dense", count);
    const double limit = kolmogorov_limit_of_two(count, 1.0);
    EXPECT_LT(kolmogorov_distance(dense, top_values(inside, "inside", count)), limit)
        << "detectable is a distance of " << 2.0 * limit;
    EXPECT_GT(kolmogorov_distance(dense, top_values(without_rotation, "inside", count)), limit);  // negative control
}

TEST(SpikedSampler, EveryMemberOfTheModelIsUsed) {
    SpikedModel model{Covariance::ar1(0.5, 20), Covariance::exponential(1.0, 12), {{3.0}, {2.0}}};
    const SpikedSample plain = sample(model, stream::test_seed, "cell", 0);
    model.entries = EntryLaw::parse("rademacher");
    model.left_vectors = VectorLaw::parse("smooth", MatrixSide::row);
    model.right_vectors = VectorLaw::parse("eigen:col:2", MatrixSide::column);
    const SpikedSample found = sample(model, stream::test_seed, "cell", 0);
    EXPECT_GT(arma::abs(found.noise - plain.noise).max(), 0.1);
    EXPECT_EQ(arma::abs(found.left -
                        model.left_vectors.draw(Stream(stream::test_seed, "cell", Role::left_vectors, 0), model.row, 2))
                  .max(),
              0.0);
    EXPECT_EQ(found.right(1, 0), 1.0);
    EXPECT_EQ(found.right(2, 1), 1.0);
    EXPECT_LT(arma::abs(arma::svd(found.signal).head(3) - arma::vec{3.0, 2.0, 0.0}).max(), 1e-13);
    // Entries and vectors are drawn from different streams.
    model.entries = EntryLaw();
    EXPECT_EQ(arma::abs(sample(model, stream::test_seed, "cell", 0).noise - plain.noise).max(), 0.0);
}

TEST(SpikedSampler, SignalOfScoresHasTrueVectorsOfLengthOne) {
    SpikedModel model{Covariance::identity(20), Covariance::identity(12), {{3.0}, {2.0}}};
    model.left_vectors = VectorLaw::parse("scores:gaussian", MatrixSide::row);
    const SpikedSample found = sample(model, stream::test_seed, "cell", 0);
    const arma::mat scores =
        model.left_vectors.draw(Stream(stream::test_seed, "cell", Role::left_vectors, 0), model.row, 2);
    EXPECT_LT(arma::abs(found.signal - scores * arma::diagmat(arma::vec{3.0, 2.0}) * found.right.t()).max(), 1e-14);
    for (const arma::uword i : {0U, 1U})
        EXPECT_LT(arma::abs(found.left.col(i) - scores.col(i) / arma::norm(scores.col(i))).max(), 1e-14);
    EXPECT_GT(std::abs(arma::norm(scores.col(0)) - 1.0), 1e-3);
}

/// The squared lengths of blocks of one strength of 3 projected on the true right vector, over their mean n l / d.
std::vector<double> projected_squares(const std::string& vectors, std::size_t count) {
    constexpr std::size_t samples = 20;
    constexpr std::size_t features = 6;
    SpikedModel model{Covariance::identity(samples), Covariance::identity(features), {{3.0}}};
    model.left_vectors = VectorLaw::parse(vectors, MatrixSide::row);
    const double population = 1.0 + 9.0 * features / samples;
    std::vector<double> squares;
    for (std::uint64_t r = 0; r < count; ++r) {
        const SpikedSample found = sample(model, stream::test_seed, "scores", r);
        squares.push_back(arma::accu(arma::square(found.observed * found.right.col(0))) * features / population);
    }
    return squares;
}

// Rows are normal of variance l along the true vector, so that n of them have the chi-square law with n degrees of
// freedom. A signal of length 1 has the same mean square and varies less.
TEST(SpikedSamplerLaw, RowsWithGaussianScoresAreSamplesOfASpikedCovariance) {
    constexpr std::size_t count = 1500;
    const boost::math::chi_squared law(20);
    const auto cdf = [&](double x) { return boost::math::cdf(law, x); };
    const double limit = kolmogorov_limit(count, 1.0);
    EXPECT_LT(kolmogorov_distance(projected_squares("scores:gaussian", count), cdf), limit)
        << "detectable is a distance of " << 2.0 * limit;
    EXPECT_GT(kolmogorov_distance(projected_squares("haar", count), cdf), limit);  // negative control
}

TEST(SpikedSampler, DrawsAnyRankUpToTheShortSide) {
    for (const auto& [n, d] : {std::pair<std::size_t, std::size_t>{6, 4}, {4, 6}, {5, 5}}) {
        const std::size_t full = std::min(n, d);
        SpikedModel model{Covariance::identity(n), Covariance::identity(d), {}};
        for (std::size_t rank = 0; rank <= full; ++rank) {
            model.strengths.assign(rank, SignalStrength{2.0});
            const SpikedSample found = sample(model, stream::test_seed, "rank", 0);
            EXPECT_EQ(found.left.n_cols, rank);
            arma::vec expected(full, arma::fill::zeros);
            expected.head(rank).fill(2.0);
            EXPECT_LT(arma::abs(arma::svd(found.signal) - expected).max(), 1e-13);
        }
        model.strengths.assign(full + 1, SignalStrength{2.0});
        expect_error(ErrorKind::usage, [&] { require_possible(model); }, {"a signal of rank", "give at most"});
    }
}

TEST(SpikedSamplerBadInput, ModelsThatCannotBeDrawnAreRejected) {
    SpikedModel model{Covariance::ar1(0.5, 20), Covariance::identity(12), {{3.0}, {2.0}}};
    model.colouring = Colouring::eigenbasis;
    model.entries = EntryLaw::parse("student:5");
    expect_error(ErrorKind::usage, [&] { require_possible(model); },
                 {"eigenbasis of \"student:5\" entries is not possible", "use dense colouring"});
    expect_error(ErrorKind::usage, [&] { (void)sample(model, stream::test_seed, "cell", 0); }, {"eigenbasis"});
    model.colouring = Colouring::dense;
    model.right_vectors = VectorLaw::parse("localised:7", MatrixSide::column);
    expect_error(ErrorKind::usage, [&] { require_possible(model); },
                 {"2 signal vectors \"localised:7\" do not fit into 12 coordinates"});
}

/// The Kolmogorov distance of |x|^2 NU / (NU - 2) over first rows x from Fisher's law with 6 and NU degrees of freedom,
/// which a multivariate t with NU degrees of freedom in 6 columns has, over the limit at the tests' rate.
double distance_from_fisher(const SpikedModel& model, double dof) {
    constexpr std::size_t count = 4000;
    const boost::math::fisher_f law(6.0, dof);
    std::vector<double> values;
    for (std::uint64_t r = 0; r < count; ++r) {
        const arma::rowvec row = sample(model, stream::test_seed, "student rows", r).noise.row(0);
        values.push_back(arma::dot(row, row) * dof / (dof - 2.0));
    }
    return stream::kolmogorov_distance(std::move(values), [&](double x) { return boost::math::cdf(law, x); }) /
           stream::kolmogorov_limit(count, 1.0);
}

TEST(StudentRows, AreRowsOfAMultivariateT) {
    SpikedModel model{Covariance::identity(4), Covariance::identity(6), {}};
    const arma::mat plain = sample(model, stream::test_seed, "student rows", 3).noise;
    model.student_rows = 5.0;
    const SpikedSample found = sample(model, stream::test_seed, "student rows", 3);
    const arma::mat ratio = found.noise / plain;
    for (arma::uword i = 0; i < 4; ++i) EXPECT_LT(arma::range(ratio.row(i)), 1e-12);  // one scale in a row
    EXPECT_GT(arma::range(ratio.col(0)), 0.01);
    EXPECT_FALSE(same_blocks(model, SpikedModel{Covariance::identity(4), Covariance::identity(6), {}}));
    EXPECT_LT(distance_from_fisher(model, 5.0), 1.0);
    // Controls: other degrees of freedom, and independent entries of Student's t.
    SpikedModel other = model;
    other.student_rows = 3.0;
    EXPECT_GT(distance_from_fisher(other, 5.0), 1.0);
    other.student_rows = 0.0;
    other.entries = EntryLaw::parse("student:5");
    EXPECT_GT(distance_from_fisher(other, 5.0), 1.0);
}

TEST(StudentRowsBadInput, DegreesOfFreedomAndColouringThatAreImpossibleAreRejected) {
    SpikedModel model{Covariance::identity(4), Covariance::identity(6), {}};
    for (const double dof : {2.0, -1.0, arma::datum::nan, arma::datum::inf}) {
        model.student_rows = dof;
        expect_error(ErrorKind::usage, [&] { require_possible(model); }, {"student_rows = ", "above 2"});
    }
    model.student_rows = 5.0;
    model.colouring = Colouring::eigenbasis;
    expect_error(ErrorKind::usage, [&] { require_possible(model); }, {"rows of random scale", "dense colouring"});
}

}  // namespace
}  // namespace spiked::sim
