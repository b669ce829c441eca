// A few of the largest singular values: against LAPACK, with the bounds that are stated for them, which hold also where
// the iteration is cut short.
#include "estimators/svd/leading/leading_part.hpp"

#include <gtest/gtest.h>

#include "core/runtime/error.hpp"
#include "core/runtime/stop_point.hpp"
#include "estimators/svd/batch_decomposition.hpp"
#include "estimators/svd/leading/convergence.hpp"
#include "estimators/svd/tests/random_blocks.hpp"
#include "estimators/tests/stop_questions.hpp"

namespace spiked::estimators {
namespace {

using namespace random_blocks;

double distance_to_nearest(double value, const std::vector<double>& all) {
    double least = std::abs(value);  // values below their bounds may belong to none
    for (const double one : all) least = std::min(least, std::abs(value - one));
    return least;
}

/// What leading_part.hpp states of any part, converged or not.
void expect_as_stated(const LeadingPart& part, const arma::mat& block, const std::vector<double>& expected) {
    const double rounding = 1e-12 * expected[0];
    ASSERT_EQ(part.bounds.size(), part.values.size());
    for (std::size_t i = 0; i < part.values.size(); ++i) {
        EXPECT_LE(distance_to_nearest(part.values[i], expected), part.bounds[i]) << i;
        EXPECT_LE(part.values[i], expected[i] + rounding) << i;
        EXPECT_LE(part.values[i], part.values[i - std::min<std::size_t>(i, 1)]);
        const double left = arma::norm(block * part.vectors.right.col(i) - part.values[i] * part.vectors.left.col(i));
        EXPECT_LE(left, 2.0 * part.bounds[i]) << i;
    }
    const Errors errors = vector_errors(block, part.values, part.vectors.left, part.vectors.right);
    EXPECT_LE(errors.orthogonality, 1e-12);
}

/// A part that converged has the value of every place besides.
void expect_converged(const LeadingPart& part, const std::vector<double>& expected) {
    ASSERT_TRUE(part.converged);
    for (std::size_t i = 0; i < part.values.size(); ++i) {
        EXPECT_LE(std::abs(part.values[i] - expected[i]), part.bounds[i]) << i;
        EXPECT_LE(part.bounds[i], 2e-8 * part.values[i] + 1e-11 * expected[0]) << i;
    }
}

TEST(LeadingPart, ValuesOfEveryKindOfBlockAgreeWithLapackWithinTheirBounds) {
    Random random(49);
    for (const auto& [kind, make] : kinds)
        for (int repetition = 0; repetition < 8; ++repetition) {
            const std::size_t rows = any_of(random, 24, 120);
            const std::size_t columns = any_of(random, 24, 120);
            const std::size_t count = any_of(random, 1, 11);
            SCOPED_TRACE(fmt::format("{}, {} x {}, {} values", kind, rows, columns, count));
            const arma::mat block = make(random, rows, columns);
            const std::vector<double> expected = singular_values(block);
            const LeadingPart part = iterated_part(block, count, std::min(rows, columns));
            ASSERT_EQ(part.values.size(), count);
            expect_as_stated(part, block, expected);
            if (part.converged) expect_converged(part, expected);
            // The space of all right vectors has all values.
            const bool whole = columns <= rows && columns % ((count + 7) / 8 * 8) == 0;
            EXPECT_TRUE(part.converged || !whole);
        }
}

TEST(LeadingPart, GapsClustersAndRankDeficiencyConvergeEarly) {
    Random random(50);
    arma::vec gaps(300, arma::fill::value(0.1));
    gaps.head(6) = arma::vec{9.0, 7.0, 6.5, 3.0, 2.0, 1.0};
    arma::vec clusters(300, arma::fill::value(0.5));
    clusters.head(6) = arma::vec{1.0, 1.0, 1.0, 1.0 - 1e-13, 1.0 - 1e-9, 0.9};
    arma::vec low_rank(300);
    low_rank.head(3) = arma::vec{4.0, 4.0, 1e-3};
    const arma::vec equal(300, arma::fill::ones);
    for (const auto& [name, spectrum] :
         {std::pair{"gaps", gaps}, {"clusters", clusters}, {"rank", low_rank}, {"equal", equal}})
        for (const auto& [rows, columns] : {std::pair{300, 300}, {900, 300}, {300, 500}}) {
            SCOPED_TRACE(fmt::format("{}, {} x {}", name, rows, columns));
            const arma::mat block = with_spectrum(random, rows, columns, spectrum);
            const LeadingPart part = iterated_part(block, 6, 64);
            const std::vector<double> expected = singular_values(block);
            expect_as_stated(part, block, expected);
            expect_converged(part, expected);
            EXPECT_LE(part.dimension, 32u);
        }
}

/// The control: after too few steps the bounds are large, and they still hold.
TEST(LeadingPart, AnIterationThatIsCutShortHasLargeBounds) {
    Random random(51);
    const arma::mat block = random_gaussian(random, 500, 400);
    const std::vector<double> expected = singular_values(block);
    const LeadingPart cut = iterated_part(block, 8, 24);
    EXPECT_EQ(cut.dimension, 24u);
    EXPECT_FALSE(cut.converged);
    expect_as_stated(cut, block, expected);
    EXPECT_GE(cut.bounds[7], 1e-2 * expected[0]);
    EXPECT_GE(std::abs(cut.values[7] - expected[7]), 1e-2 * expected[0]);  // the value itself is not good
    double before = INFINITY;
    for (const std::size_t dimension : {8u, 48u, 120u, 300u}) {
        const LeadingPart part = iterated_part(block, 8, dimension);
        expect_as_stated(part, block, expected);
        EXPECT_LT(part.bounds[7], before);
        before = part.bounds[7];
    }
    EXPECT_LE(before, 1e-7 * expected[0]);
}

TEST(LeadingPart, TheBitsAreTheSameForAnyNumberOfThreadsAndInEveryRun) {
    Random random(52);
    const arma::mat block = kinds[1].second(random, 700, 500);
    const LeadingPart one = iterated_part(block, 5, 500);
    for (const std::size_t threads : {1u, 2u, 3u}) {
        const LeadingPart part = iterated_part(block, 5, 500, threads);
        EXPECT_EQ(part.values, one.values);
        EXPECT_EQ(part.bounds, one.bounds);
        EXPECT_TRUE(arma::approx_equal(part.vectors.left, one.vectors.left, "absdiff", 0.0));
        EXPECT_TRUE(arma::approx_equal(part.vectors.right, one.vectors.right, "absdiff", 0.0));
    }
}

TEST(LeadingPart, ScalesOfDoubleDoNotMatter) {
    Random random(53);
    const arma::mat block = kinds[1].second(random, 60, 56);
    const LeadingPart plain = iterated_part(block, 4, 56);
    for (const double scale : {0x1p-900, 0x1p900}) {
        const LeadingPart part = iterated_part(scale * block, 4, 56);
        ASSERT_TRUE(part.converged);
        for (std::size_t i = 0; i < 4; ++i) {
            EXPECT_NEAR(part.values[i] / scale, plain.values[i], 1e-12 * plain.values[0]);
            EXPECT_NEAR(part.bounds[i] / scale, plain.bounds[i], 1e-9 * plain.values[0]);
        }
    }
}

TEST(LeadingPart, SmallBlocksAreDecomposed) {
    Random random(54);
    for (const auto& [rows, columns] : {std::pair{1, 40}, {40, 1}, {30, 20}, {1, 1}}) {
        SCOPED_TRACE(fmt::format("{} x {}", rows, columns));
        const arma::mat block = random_gaussian(random, rows, columns);
        const LeadingPart part = leading_part(block, 3);
        EXPECT_EQ(part.dimension, 0u);
        ASSERT_EQ(part.values.size(), std::min<std::size_t>(3, std::min(rows, columns)));
        const std::vector<double> expected = singular_values(block);
        expect_as_stated(part, block, expected);
        expect_converged(part, expected);
    }
    const LeadingPart zero = leading_part(arma::mat(20, 30), 2);
    EXPECT_EQ(zero.values, (std::vector<double>{0.0, 0.0}));
    EXPECT_EQ(zero.bounds, (std::vector<double>{0.0, 0.0}));
    EXPECT_EQ(leading_part(arma::mat(20, 30), 0).vectors.right.n_rows, 30u);
}

TEST(LeadingPart, LargeBlocksAreNotDecomposed) {
    Random random(55);
    arma::mat block = random_gaussian(random, 1100, 1024) / std::sqrt(1024.0);
    block += with_spectrum(random, 1100, 1024, {5.0, 4.0, 4.0, 3.0});
    const LeadingPart part = leading_part(block, 4);
    EXPECT_GT(part.dimension, 0u);
    BatchDecomposition<double> whole({1100, 1024});
    whole.decompose({block.memptr(), block.n_elem});
    const auto values = whole.singular_values(0);
    const std::vector<double> expected(values.begin(), values.end());
    expect_as_stated(part, block, expected);
    expect_converged(part, expected);
    EXPECT_FALSE(leading_part_iterates(1024, 5));
    EXPECT_FALSE(leading_part_iterates(1000, 1));
}

/// Values so close that the iteration needs more than a quarter of the side: the whole is decomposed.
TEST(LeadingPart, SlowConvergenceEndsInADecomposition) {
    Random random(56);
    arma::vec spectrum(1024);
    for (arma::uword i = 0; i < spectrum.n_elem; ++i) spectrum(i) = 1.0 - 1e-6 * static_cast<double>(i);
    arma::mat block(1024, 1024);
    block.diag() = spectrum;
    EXPECT_FALSE(iterated_part(block, 4, 256).converged);
    const LeadingPart part = leading_part(block, 4);
    EXPECT_EQ(part.dimension, 0u);
    const std::vector<double> expected(spectrum.begin(), spectrum.end());
    expect_converged(part, expected);
}

/// Residuals exp(-rate m), and those that fall faster and faster, as measured: the forecast of the second kind is early
/// rather than late.
TEST(LeadingPart, AForecastEndsIterationsThatWouldTakeTooLong) {
    const auto ended_at = [](const std::function<double(double)>& logarithm) {
        ConvergenceForecast forecast(2048);
        for (std::size_t m = 16; m <= forecast.most_dimension(); m += std::max<std::size_t>(8, m / 8)) {
            const double excess = std::exp(logarithm(static_cast<double>(m)));
            if (excess <= 1.0) return std::pair{m, true};
            forecast.add(m, excess);
            if (forecast.too_late()) return std::pair{m, false};
        }
        return std::pair{std::size_t{0}, false};
    };
    const double first = std::log(1e8);
    for (const double end : {100.0, 300.0, 450.0})
        EXPECT_TRUE(ended_at([&](double m) { return first * (1 - m / end); }).second);
    for (const double end : {1400.0, 5000.0, 1e9}) {
        const auto [dimension, converged] = ended_at([&](double m) { return first * (1 - m / end); });
        EXPECT_FALSE(converged);
        EXPECT_LT(dimension, 240u);  // at the first question
    }
    EXPECT_TRUE(ended_at([&](double m) { return first * (1 - std::pow(m / 400, 2)); }).second);
    EXPECT_FALSE(ended_at([&](double m) { return first * (1 - std::pow(m / 1600, 2)); }).second);
    EXPECT_FALSE(
        ended_at([](double m) { return std::min(18.0, 20.0 - 0.06 * std::min(m, 250.0)); }).second);  // stands still
}

TEST(LeadingPart, RejectsBlocksWithoutASpectrumAndStopsWhenAsked) {
    Random random(57);
    arma::mat block = random_gaussian(random, 200, 150);
    const LeadingPart expected = iterated_part(block, 3, 150);
    StopQuestions some{10, 0};
    {
        const StopScope scope(some.question());
        EXPECT_THROW((void)iterated_part(block, 3, 150), Error);
    }
    EXPECT_EQ(iterated_part(block, 3, 150).values, expected.values);
    block(7, 7) = arma::datum::nan;
    EXPECT_THROW((void)iterated_part(block, 3, 150), Error);
    EXPECT_THROW((void)leading_part(block, 3), Error);
    EXPECT_THROW((void)iterated_part(arma::mat(7, 20), 3, 7), Error);
}

}  // namespace
}  // namespace spiked::estimators
