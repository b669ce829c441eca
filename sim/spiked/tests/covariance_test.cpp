#include "sim/spiked/covariance.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/files/tests/scratch.hpp"
#include "sim/random/haar.hpp"
#include "sim/spiked/spiked_sampler.hpp"

namespace spiked::sim {
namespace {

// The square of the root is the covariance, entry by entry, on either side, and its eigenvalues are the spectrum that
// theory uses.
TEST(Covariance, SquaredRootIsTheMatrixAndHasItsSpectrum) {
    for (const std::size_t size : {1, 5, 30}) {
        arma::mat toeplitz(size, size);
        arma::mat diagonal(size, size);
        for (arma::uword i = 0; i < size; ++i) {
            diagonal(i, i) = std::exp(-2.0 * (static_cast<double>(i) + 0.5) / static_cast<double>(size));
            for (arma::uword j = 0; j < size; ++j)
                toeplitz(i, j) = std::pow(-0.6, std::abs(static_cast<double>(i) - static_cast<double>(j)));
        }
        const std::pair<Covariance, arma::mat> cases[] = {{Covariance::identity(size), arma::eye(size, size)},
                                                          {Covariance::ar1(-0.6, size), toeplitz},
                                                          {Covariance::exponential(2.0, size), diagonal}};
        for (const auto& [covariance, matrix] : cases) {
            const arma::mat one = arma::eye(size, size);
            EXPECT_LT(arma::abs(covariance.root_times(covariance.root_times(one)) - matrix).max(), 1e-13);
            EXPECT_LT(arma::abs(covariance.times_root(covariance.times_root(one)) - matrix).max(), 1e-13);
            double mean = 0.0;
            double mean_square = 0.0;
            for (const double value : arma::eig_sym(matrix)) {
                mean += value / static_cast<double>(size);
                mean_square += value * value / static_cast<double>(size);
            }
            EXPECT_NEAR(covariance.spectrum().mean(), mean, 1e-12);
            EXPECT_NEAR(covariance.spectrum().mean_square(), mean_square, 1e-12);
            EXPECT_NEAR(covariance.spectrum().largest(), arma::eig_sym(matrix).max(), 1e-12);
        }
    }
}

/// One covariance of every factory function.
std::vector<Covariance> examples(std::size_t size) {
    arma::vec values(size);
    for (arma::uword j = 0; j < size; ++j) values(j) = 3.0 / static_cast<double>(j + 1);
    const stream::Stream stream(stream::StudySeed::parse("0x7"), "basis", stream::Role::row_basis, 0);
    return {Covariance::identity(size),         Covariance::ar1(0.7, size),
            Covariance::ar1(-0.3, size),        Covariance::ar1(0.0, size),
            Covariance::exponential(2.0, size), Covariance::exponential(-2.0, size),
            Covariance::diagonal(values),       Covariance::on_basis(values, stream::haar_frame(stream, size, size))};
}

TEST(Covariance, EigenvaluesAndBasisReproduceTheSquaredRoot) {
    for (const std::size_t size : {1, 2, 25})
        for (const Covariance& covariance : examples(size)) {
            const arma::mat one = arma::eye(size, size);
            const arma::mat matrix = covariance.root_times(covariance.root_times(one));
            const arma::mat basis = covariance.basis();
            EXPECT_LT(arma::abs(basis.t() * basis - one).max(), 1e-13);
            EXPECT_LT(arma::abs(basis * arma::diagmat(covariance.eigenvalues()) * basis.t() - matrix).max(), 1e-13);
            const arma::vec sorted = arma::sort(covariance.eigenvalues(), "descend");
            EXPECT_LT(arma::abs(sorted - expand(covariance.spectrum(), size)).max(), 1e-14);
            EXPECT_TRUE(!covariance.is_diagonal() || arma::abs(basis - one).max() == 0.0);

            const Covariance inside = covariance.in_eigenbasis();
            EXPECT_TRUE(inside.is_diagonal());
            EXPECT_EQ(arma::abs(inside.eigenvalues() - covariance.eigenvalues()).max(), 0.0);
            EXPECT_LT(
                arma::abs(inside.root_times(inside.times_root(one)) - arma::diagmat(covariance.eigenvalues())).max(),
                1e-14);
            EXPECT_LT(arma::abs(covariance.to_eigenbasis(basis) - one).max(), 1e-13);

            const arma::mat all = covariance.eigenvectors(1, size);
            EXPECT_LT(arma::abs(matrix * all - all * arma::diagmat(sorted)).max(), 1e-13);
            EXPECT_EQ(arma::abs(covariance.eigenvectors(size, 1) - all.tail_cols(1)).max(), 0.0);
        }
}

TEST(CovarianceStability, RootOfAr1EqualsThatOfArmadillo) {
    for (const double rho : {0.5, -0.8}) {
        arma::mat matrix(40, 40);
        for (arma::uword i = 0; i < 40; ++i)
            for (arma::uword j = 0; j < 40; ++j)
                matrix(i, j) = std::pow(rho, static_cast<double>(i > j ? i - j : j - i));
        const arma::mat root = arma::sqrtmat_sympd(matrix);
        const arma::mat one = arma::eye(40, 40);
        EXPECT_EQ(arma::abs(Covariance::ar1(rho, 40).root_times(one) - root * one).max(), 0.0);
    }
}

TEST(Covariance, BasesThatAreNotOrthonormalAreBugs) {
    const arma::vec values(3, arma::fill::ones);
    expect_error(ErrorKind::internal, [&] { (void)Covariance::on_basis(values, arma::mat(3, 3, arma::fill::ones)); },
                 {"size 3 is not orthonormal"});
    expect_error(ErrorKind::internal, [&] { (void)Covariance::on_basis(values, arma::mat(4, 3, arma::fill::eye)); },
                 {"4 x 3 for 3 eigenvalues"});
    expect_error(ErrorKind::internal, [&] { (void)Covariance::identity(3).eigenvectors(2, 3); },
                 {"3 eigenvectors from number 2"});
    expect_error(ErrorKind::usage, [&] { (void)Covariance::diagonal({1.0, -1.0}); }, {"-1"});
}

/// The number of eigenvalues, of `size`, that each atom receives, from the largest value down.
std::vector<std::size_t> counts(const theory::Spectrum& spectrum, std::size_t size) {
    const arma::vec values = expand(spectrum, size);
    EXPECT_EQ(values.n_elem, size);
    std::vector<std::size_t> found;
    for (const auto& atom : spectrum.atoms())
        found.push_back(static_cast<std::size_t>(arma::accu(values == atom.value)));
    return found;
}

TEST(Expand, WeightsThatAreMultiplesOfOneEigenvalueAreMetExactly) {
    using Counts = std::vector<std::size_t>;
    EXPECT_EQ(counts(theory::two_atom_spectrum(1.0, 5.0, 0.25), 64), (Counts{16, 48}));
    EXPECT_EQ(counts(theory::two_atom_spectrum(1.0, 5.0, 0.3), 10), (Counts{3, 7}));
    EXPECT_EQ(counts(theory::two_atom_spectrum(1.0, 5.0, 0.3), 5), (Counts{2, 3}));  // a tie goes up
    EXPECT_EQ(counts(theory::Spectrum({{1.0, 0.2}, {2.0, 0.3}, {3.0, 0.5}}), 10), (Counts{5, 3, 2}));
    EXPECT_EQ(counts(theory::Spectrum({{1.0, 1.0 / 3}, {2.0, 1.0 / 3}, {3.0, 1.0 / 3}}), 64), (Counts{21, 22, 21}));
    EXPECT_EQ(counts(theory::identity_spectrum(), 7), (Counts{7}));
    for (const std::size_t size : {1, 3, 64, 1000, 4097}) {
        const auto same = theory::uniform_spectrum(1.0, 2.0, size);
        EXPECT_EQ(counts(same, size), Counts(size, 1));
    }
}

TEST(Expand, CountsDifferByLessThanOneAndCumulativelyByAtMostHalf) {
    for (std::size_t atoms = 1; atoms <= 40; ++atoms)
        for (const std::size_t size : {1, 2, 7, 40, 333}) {
            std::vector<theory::Atom> list;
            double sum = 0.0;
            for (std::size_t i = 0; i < atoms; ++i) {
                list.push_back({static_cast<double>(i + 1), 1.0 + std::sin(static_cast<double>(7 * i + atoms))});
                sum += list.back().weight;
            }
            for (auto& atom : list) atom.weight /= sum;
            const theory::Spectrum spectrum(list);
            const auto found = counts(spectrum, size);
            double cumulative = 0.0;
            double used = 0.0;
            for (std::size_t i = 0; i < atoms; ++i) {
                const double quota = spectrum.atoms()[i].weight * static_cast<double>(size);
                EXPECT_LT(std::abs(static_cast<double>(found[i]) - quota), 1.0);
                cumulative += quota;
                used += static_cast<double>(found[i]);
                EXPECT_LE(std::abs(used - cumulative), 0.5 + 1e-9 * static_cast<double>(size));
            }
            EXPECT_EQ(used, static_cast<double>(size));
        }
}

TEST(SpikedSampler, SignalAndNoiseSumToTheSampleAndDependOnTheAddressOnly) {
    const SpikedModel model{Covariance::ar1(0.5, 20), Covariance::exponential(1.0, 12), {{3.0}, {2.0}}};
    const auto seed = stream::StudySeed::parse("0x7");
    const SpikedSample first = sample(model, seed, "cell", 4);
    const SpikedSample again = sample(model, seed, "cell", 4);
    EXPECT_TRUE(arma::approx_equal(first.observed, again.observed, "absdiff", 0.0));
    EXPECT_LT(arma::abs(first.signal + first.noise - first.observed).max(), 1e-15);
    EXPECT_LT(arma::abs(arma::svd(first.signal).head(3) - arma::vec{3.0, 2.0, 0.0}).max(), 1e-13);
    EXPECT_LT(arma::abs(first.left.t() * first.left - arma::eye(2, 2)).max(), 1e-14);
    EXPECT_GT(arma::abs(sample(model, seed, "cell", 5).noise - first.noise).max(), 0.1);
    EXPECT_GT(arma::abs(sample(model, seed, "other", 4).noise - first.noise).max(), 0.1);
    SpikedModel stronger = model;
    stronger.strengths[0] = {9.0};
    EXPECT_TRUE(arma::approx_equal(sample(stronger, seed, "cell", 4).noise, first.noise, "absdiff", 0.0));
}

}  // namespace
}  // namespace spiked::sim
