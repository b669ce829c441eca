#include "estimators/svd/covariance_spectrum.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/runtime/error.hpp"

namespace spiked::estimators {
namespace {

arma::mat samples_of(arma::uword n, arma::uword p) {
    arma::arma_rng::set_seed(17);
    arma::mat data = arma::randn(n, p);
    data.each_row() -= arma::mean(data, 0);
    return data;
}

void expect_values_of(const CovarianceSpectrum& found, const arma::mat& data) {
    const arma::vec expected = arma::svd(data);
    for (std::size_t i = 0; i < found.singular_values.size(); ++i)
        EXPECT_NEAR(found.singular_values[i], expected[i], 1e-6 * expected[0]) << i;
}

TEST(CovarianceSpectrumReference, IsThatOfTheData) {
    const arma::mat tall = samples_of(40, 12);
    const CovarianceSpectrum found = covariance_spectrum(arma::cov(tall), 39);
    EXPECT_EQ(found.shape.rows, 39U);
    EXPECT_EQ(found.shape.columns, 12U);
    ASSERT_EQ(found.singular_values.size(), 12U);
    expect_values_of(found, tall);
    EXPECT_TRUE(found.notes.empty());

    // Of 15 centred samples of 30 features 14 values are above 0: as many as the divisor.
    const arma::mat wide = samples_of(15, 30);
    const CovarianceSpectrum few = covariance_spectrum(arma::cov(wide), 14);
    ASSERT_EQ(few.singular_values.size(), 14U);
    expect_values_of(few, wide);

    const arma::mat standardized = tall * arma::diagmat(1.0 / arma::stddev(tall, 0));
    expect_values_of(covariance_spectrum(arma::cor(tall), 39), standardized);
}

TEST(CovarianceSpectrum, LeavesOutFeaturesOfZeros) {
    const arma::mat covariance = arma::cov(samples_of(40, 6));
    arma::mat padded(8, 8);
    const arma::uvec kept = {0, 1, 3, 4, 5, 7};
    padded.submat(kept, kept) = covariance;
    const CovarianceSpectrum found = covariance_spectrum(padded, 39);
    EXPECT_EQ(found.shape.columns, 6U);
    EXPECT_EQ(found.singular_values.size(), 6U);
    const CovarianceSpectrum whole = covariance_spectrum(padded, 39, EmptyFeatures::keep);
    EXPECT_EQ(whole.shape.columns, 8U);
    ASSERT_EQ(whole.singular_values.size(), 8U);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(whole.singular_values[i], found.singular_values[i], 1e-7);
    EXPECT_TRUE(covariance_spectrum(arma::mat(3, 3), 10).singular_values.empty());
}

TEST(CovarianceSpectrum, RoundedTablesAreRead) {
    const arma::mat exact = arma::cor(samples_of(15, 30));
    const arma::mat rounded = arma::round(exact * 1000.0) / 1000.0;
    const CovarianceSpectrum found = covariance_spectrum(rounded, 14);
    const CovarianceSpectrum expected = covariance_spectrum(exact, 14);
    ASSERT_EQ(found.singular_values.size(), 14U);
    EXPECT_NEAR(found.singular_values[0], expected.singular_values[0], 1e-2);
    ASSERT_EQ(found.notes.size(), 1U);
    EXPECT_NE(found.notes.front().find("are taken as 0"), std::string::npos);
}

TEST(CovarianceSpectrum, RejectsWhatIsNoCovarianceMatrix) {
    const auto message_of = [](const arma::mat& matrix, std::size_t samples) -> std::string {
        try {
            (void)covariance_spectrum(matrix, samples);
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::input);
            return error.what();
        }
        return "no error";
    };
    EXPECT_NE(message_of(arma::mat(3, 4), 10).find("3 x 4"), std::string::npos);
    arma::mat matrix = {{2.0, 0.5, 0.1}, {0.5, 1.0, 0.2}, {0.3, 0.2, 1.0}};
    EXPECT_NE(message_of(matrix, 10).find("row 0, column 2 is 0.1, row 2, column 0 is 0.3"), std::string::npos);
    matrix = {{1.0, 2.0}, {2.0, 1.0}};
    EXPECT_NE(message_of(matrix, 10).find("no negative eigenvalues (the smallest is -1"), std::string::npos);
    EXPECT_NE(message_of(-arma::mat(3, 3, arma::fill::eye), 10).find("no negative"), std::string::npos);
    EXPECT_NE(message_of(arma::mat(6, 6, arma::fill::eye), 4).find("beyond hold 33.3 %"), std::string::npos);
    EXPECT_EQ(message_of(arma::mat(6, 6, arma::fill::eye), 6), "no error");
}

}  // namespace
}  // namespace spiked::estimators
