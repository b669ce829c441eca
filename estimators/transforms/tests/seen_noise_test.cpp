#include "estimators/transforms/seen_noise.hpp"

#include <gtest/gtest.h>

#include "core/runtime/error.hpp"

namespace spiked::estimators {
namespace {

const arma::mat& correlated() {
    static const arma::mat matrix = {{2.0, 0.5, -0.3}, {0.5, 1.0, 0.2}, {-0.3, 0.2, 4.0}};
    return matrix;
}
const arma::mat known_variances = arma::vec{0.5, 2.0, 3.0};

arma::mat as_matrix(const std::optional<arma::mat>& covariance) {
    if (!covariance) return arma::mat(3, 3, arma::fill::eye);
    return covariance->n_cols == 1 ? arma::mat(arma::diagmat(arma::vec(*covariance))) : *covariance;
}

/// The covariances of all pairs of entries: A_ij B_kl, and the variances times the weights of their entry.
void expect_covariances(const KnownCovariances& whole, const arma::vec& u, const arma::vec& w) {
    const KnownCovariances seen = noise_of_seen(whole, u, w);
    const arma::mat a = as_matrix(whole.row), b = as_matrix(whole.column);
    const arma::mat r = as_matrix(seen.row), c = as_matrix(seen.column);
    for (arma::uword i = 0; i < 3; ++i)
        for (arma::uword j = 0; j < 3; ++j)
            for (arma::uword k = 0; k < 3; ++k)
                for (arma::uword l = 0; l < 3; ++l) {
                    const double weight = i == j && k == l ? u[i] * w[k] : 1.0;
                    EXPECT_NEAR(r(i, j) * c(k, l), a(i, j) * b(k, l) * weight, 1e-14) << i << j << k << l;
                }
}

TEST(SeenNoiseReference, HasTheCovariancesOfEveryPairOfEntries) {
    const arma::vec one(3, arma::fill::ones), equal = {2.5, 2.5, 2.5}, other = {1.5, 4.0, 2.0};
    for (const auto& [u, w] : {std::pair(one, equal), std::pair(equal, one), std::pair(other, other)}) {
        expect_covariances({known_variances, known_variances}, u, w);
        expect_covariances({std::nullopt, known_variances}, u, w);
        expect_covariances({known_variances, std::nullopt}, u, w);
    }
    for (const auto& known : {std::optional<arma::mat>(known_variances), std::optional<arma::mat>()}) {
        expect_covariances({known, correlated()}, one, equal);
        expect_covariances({known, correlated()}, equal, other);
        expect_covariances({correlated(), known}, one, equal);
        expect_covariances({correlated(), known}, other, equal);
    }
}

TEST(SeenNoise, LeavesASideUnknownThatNeedsNothing) {
    const arma::vec one(3, arma::fill::ones), equal = {2.5, 2.5, 2.5};
    EXPECT_FALSE(noise_of_seen({known_variances, std::nullopt}, one, equal).column);
    EXPECT_FALSE(noise_of_seen({std::nullopt, correlated()}, one, equal).row);
    EXPECT_FALSE(noise_of_seen({}, equal, {1.0, 2.0, 3.0}).row);
    EXPECT_TRUE(arma::approx_equal(*noise_of_seen({known_variances, correlated()}, {}, {}).row, known_variances,
                                   "absdiff", 0.0))
        << "without weights all entries are seen";
    // Columns of which nothing is seen keep their variances.
    const auto seen = noise_of_seen({std::nullopt, known_variances}, one, {2.0, 0.0, 2.0});
    EXPECT_EQ((*seen.column)(1), 2.0);
    EXPECT_EQ((*seen.column)(2), 6.0);
}

TEST(SeenNoise, RejectsNoiseThatIsNotSeparable) {
    const arma::vec one(3, arma::fill::ones), equal = {2.5, 2.5, 2.5}, other = {1.5, 4.0, 2.0};
    EXPECT_THROW((void)noise_of_seen({correlated(), correlated()}, one, equal), Error);
    EXPECT_THROW((void)noise_of_seen({correlated(), known_variances}, one, other), Error);
    EXPECT_THROW((void)noise_of_seen({std::nullopt, correlated()}, other, one), Error);
}

TEST(SeenNoise, RejectsTheVariancesOfWholeCounts) {
    const auto message = [](const char* name) -> std::string {
        try {
            reject_whole_counts(spectral_method(name), 0.5);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_NE(message("biwhiten+tw-test").find("biwhiten:b=2:c=1"), std::string::npos);
    EXPECT_NE(message("clip+biwhiten+tw-test"), "");
    for (const char* name : {"biwhiten:fit+tw-test", "biwhiten:b=2:c=1+tw-test", "dyson+tw-test", "tw-test"})
        EXPECT_EQ(message(name), "") << name;
}

TEST(SeenNoise, AKnownLevelIsThatOfWeightedEntries) {
    EXPECT_NE(note_on_known_level(spectral_method("gd-shrink:sigma=2"), 0.25).find("give sigma=4,"), std::string::npos);
    EXPECT_EQ(note_on_known_level(spectral_method("gd-shrink"), 0.25), "");
}

}  // namespace
}  // namespace spiked::estimators
