// Properties of every spectral estimator: names, defined results for degenerate input, symmetries.
#include "estimators/spectral/spectral_estimator.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/runtime/error.hpp"
#include "core/text/tests/option_limits.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "estimators/spectral/gavish_donoho.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/tests/spectra.hpp"
#include "theory/laws/shrinkers.hpp"

namespace spiked::estimators {
namespace {

TEST(SpectralEstimator, WrongNamesAndOptionsAreRejected) {
    for (const char* name : {"eoptshrnk",
                             "eoptshrink:edge",
                             "eoptshrink:rank=x",
                             "eoptshrink:rank=-1",
                             "eoptshrink:margn=1",
                             "eoptshrink:pilot=q",
                             "eoptshrink:pilot=0",
                             "eoptshrink:impute=k",
                             "eoptshrink:paper:author",
                             "eoptshrink:paper:paper",
                             "eoptshrink:factor=-1",
                             "eoptshrink:power=3",
                             "eoptshrink:rank=1:rank=2",
                             "svd",
                             "svd:x",
                             "svd:1:2",
                             "svd:1:rank=1",
                             "svd:1:bits=4",
                             "svd:rd:bits=9",
                             "eoptshrink:rank=rd:bits=0",
                             "eoptshrink:bits=4",
                             "",
                             "optshrink",
                             "optshrink:-1",
                             "gd-hard:sigma=0",
                             "gd-hard:sigma=x",
                             "gd-shrink:quantil",
                             "gd-shrink:quantile:sigma=1",
                             "screenot",
                             "screenot:4:impute=2",
                             "tw-test:level=0",
                             "tw-test:level=1",
                             "tw-test:level=2",
                             "tw-test:0.01"}) {
        try {
            (void)spectral_estimator(name);
            ADD_FAILURE() << name << " was accepted";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::usage) << name;
        }
    }
}

TEST(SpectralEstimator, OtherValuesOfAnOptionAreRejectedWhenANameIsParsed) {
    std::size_t tried = 0;
    for (const auto& entry : spectral_estimators())
        for (const auto& option : entry.options)
            for (const auto& text : texts_not_accepted(option)) {
                const std::string name = (option.key.empty() ? entry.name : entry.example()) + ":" + text;
                EXPECT_THROW((void)spectral_spec(name), Error) << name;
                ++tried;
            }
    EXPECT_GT(tried, 10U);
}

TEST(SpectralEstimator, TheNearestNameAndOptionAreSuggested) {
    const std::pair<const char*, const char*> cases[] = {
        {"screnot:4", "\"screenot\""},         {"eoptshrink:edgfit", "\"edgefit\""},
        {"gd-shrink:quantle", "\"quantile\""}, {"eoptshrink:imput=j", "\"impute\""},
        {"eoptshrink:edge=fti", "\"fit\""},    {"tw-tset", "\"tw-test\""},
        {"tw-test:levl=0.1", "\"level\""}};
    for (const auto& [written, nearest] : cases) try {
            (void)spectral_estimator(written);
            ADD_FAILURE() << written;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(std::string("did you mean ") + nearest), std::string::npos)
                << error.what();
        }
}

TEST(SpectralEstimator, CarriesTheOptionsOfItsName) {
    const SpectralEstimator estimator = spectral_estimator(
        "eoptshrink:edge=fit:power=2:impute=2r:mass=side:clip=no:cap=7:pilot=d", theory::Loss::nuclear);
    const EOptShrinkOptions* options = eoptshrink_options(estimator);
    ASSERT_NE(options, nullptr);
    EXPECT_EQ(options->loss, theory::Loss::nuclear);
    EXPECT_EQ(options->edge, EdgeRule::fit);
    EXPECT_EQ(options->power, 2);
    EXPECT_EQ(options->imputation, Imputation::twice_rank);
    EXPECT_FALSE(options->mass_of_rest);
    EXPECT_FALSE(options->clip);
    EXPECT_EQ(options->cap, 7U);
    EXPECT_TRUE(options->pilot_from_columns);
    const SpectralEstimator other = spectral_estimator("eoptshrink:author:power=1:mass=rest:clip=yes");
    options = eoptshrink_options(other);
    ASSERT_NE(options, nullptr);
    EXPECT_EQ(options->power, 1);
    EXPECT_TRUE(options->mass_of_rest);
    EXPECT_TRUE(options->clip);

    const Shape shape{20, 40};
    const auto shrink = white_rule(spectral_estimator("gd-shrink:sigma=0.5", theory::Loss::operator_norm), shape);
    ASSERT_TRUE(shrink);
    EXPECT_FALSE(shrink->hard);
    EXPECT_EQ(shrink->loss, theory::Loss::operator_norm);
    EXPECT_EQ(shrink->level, 0.5);
    const auto hard = white_rule(spectral_estimator("gd-hard"), shape);
    ASSERT_TRUE(hard);
    EXPECT_TRUE(hard->hard);
    EXPECT_FALSE(white_rule(spectral_estimator("gd-shrink:quantile"), shape));
    EXPECT_FALSE(white_rule(estimator, shape));
    for (const auto& entry : spectral_estimators())
        EXPECT_EQ(eoptshrink_options(spectral_estimator(entry.example())) != nullptr, entry.name == "eoptshrink")
            << entry.name;
}

TEST(TruncatedSvd, KeepsTheFirstValuesAndEstimatesNothingElse) {
    const Shrinkage found = spectral_estimator("svd:3").estimate(point_a(), {12, 12});
    ASSERT_EQ(found.rank, 3U);
    EXPECT_DOUBLE_EQ(found.shrunk[2], std::sqrt(6.0));
    EXPECT_TRUE(std::isnan(found.overlap_left[0]));
    EXPECT_FALSE(found.bulk_edge.has_value());
    EXPECT_EQ(spectral_estimator("svd:99").estimate(point_a(), {12, 12}).rank, 12U);
}

/// All families of the table, and variants of some: a new family is tested automatically.
std::vector<std::string> every_name() {
    std::vector<std::string> names = {"eoptshrink",
                                      "eoptshrink:paper",
                                      "eoptshrink:author",
                                      "eoptshrink:edgefit",
                                      "eoptshrink:impute=none",
                                      "eoptshrink:rank=2",
                                      "eoptshrink:rank=ed",
                                      "optshrink:2",
                                      "optshrink:ed",
                                      "svd:2",
                                      "svd:ed",
                                      "gd-hard",
                                      "gd-hard:quantile",
                                      "gd-shrink",
                                      "gd-shrink:quantile",
                                      "screenot:4",
                                      "screenot:4:impute=w",
                                      "screenot:4:impute=0",
                                      "tw-test"};
    for (const auto& entry : spectral_estimators())
        if (std::none_of(names.begin(), names.end(),
                         [&](const auto& name) { return parse_name(name).name == entry.name; }))
            names.push_back(entry.example());
    return names;
}

TEST(SpectralEstimator, EveryEntryHasASummaryAndASource) {
    for (const auto& entry : spectral_estimators()) {
        EXPECT_NE(entry.summary, "");
        EXPECT_NE(entry.source, "");
    }
}

class EveryEstimator : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] Shrinkage estimate(const std::vector<double>& s, Shape shape, theory::Loss loss = {}) const {
        const Shrinkage found = spectral_estimator(GetParam(), loss).estimate(s, shape);
        expect_sound(found, s);
        return found;
    }
    [[nodiscard]] static bool is(const char* name) { return GetParam() == name; }

private:
    static void expect_sound(const Shrinkage& found, const std::vector<double>& s) {
        ASSERT_LE(found.rank, s.size());
        ASSERT_EQ(found.shrunk.size(), found.rank);
        ASSERT_EQ(found.strengths.size(), found.rank);
        ASSERT_EQ(found.overlap_left.size(), found.rank);
        ASSERT_EQ(found.overlap_right.size(), found.rank);
        if (found.bulk_edge) {
            EXPECT_TRUE(std::isfinite(found.bulk_edge->value) && found.bulk_edge->value >= 0.0);
        }
        for (std::size_t i = 0; i < found.rank; ++i) {
            ASSERT_TRUE(std::isfinite(found.shrunk[i]));
            ASSERT_GE(found.shrunk[i], 0.0);
            if (is("eoptshrink:author")) continue;
            ASSERT_LE(found.shrunk[i], s[i]);
            for (const double overlap : {found.overlap_left[i], found.overlap_right[i]})
                if (!std::isnan(overlap)) {
                    ASSERT_GE(overlap, 0.0);
                    ASSERT_LE(overlap, 1.0);
                }
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Names, EveryEstimator, testing::ValuesIn(every_name()),
                         [](const testing::TestParamInfo<std::string>& estimator) {
                             std::string name = estimator.param;
                             for (char& letter : name)
                                 if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
                             return name;
                         });

TEST_P(EveryEstimator, GivesRankZeroForZeroAndEmptyBlocks) {
    for (const std::size_t p : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{8}, std::size_t{40}}) {
        const Shrinkage found = estimate(std::vector<double>(p, 0.0), {p, 2 * p});
        EXPECT_EQ(found.rank, 0U);
        EXPECT_NE(found.note, "");
    }
}

TEST_P(EveryEstimator, TinyBlocksHaveDefinedResults) {
    for (std::size_t p = 1; p <= 16; ++p)
        for (const std::size_t q : {p, p + 1, 10 * p}) {
            std::vector<double> s;
            for (std::size_t i = 0; i < p; ++i) s.push_back(1.0 / static_cast<double>(i + 1));
            (void)estimate(s, {p, q});
            (void)estimate(s, {q, p});
        }
}

TEST_P(EveryEstimator, TiedValuesHaveDefinedResults) {
    for (const std::size_t top : {std::size_t{0}, std::size_t{2}, std::size_t{3}, std::size_t{20}}) {
        std::vector<double> s(40, 1.0);
        std::fill_n(s.begin(), top, 5.0);
        const Shrinkage found = estimate(s, {40, 60});
        // A value equal to the first one left out is a pole of the transforms: its shrunk value is 0.
        if (is("optshrink:2") && top == 3) {
            EXPECT_EQ(found.shrunk, (std::vector<double>{0.0, 0.0}));
        }
        // Unless the rank or the level is given, an identity has no component that stands out.
        if (top == 0 && (is("eoptshrink") || is("eoptshrink:edgefit") || is("eoptshrink:paper") || is("gd-hard"))) {
            EXPECT_EQ(found.rank, 0U);
        }
    }
}

TEST_P(EveryEstimator, ExactlyLowRankBlocksAreKeptUnchanged) {
    std::vector<double> s(40, 1e-16);
    s[0] = 5.0;
    s[1] = 2.0;
    const Shrinkage found = estimate(s, {40, 50});
    ASSERT_EQ(found.rank, 2U);
    EXPECT_EQ(found.shrunk, (std::vector<double>{5.0, 2.0}));

    // A constant block: one singular value, and rounding error in the others.
    std::vector<double> constant(40, 3e-15);
    constant[0] = 50.0;
    EXPECT_EQ(estimate(constant, {40, 50}).rank, 1U);
}

TEST_P(EveryEstimator, ScalesWithTheDataOverThreeHundredOrders) {
    const auto s = singular_values(spiked_block(48, 64, {4.0, 3.0}, 5));
    for (const auto loss : {theory::Loss::frobenius, theory::Loss::operator_norm, theory::Loss::nuclear}) {
        const Shrinkage base = estimate(s, {48, 64}, loss);
        EXPECT_EQ(base.rank, 2U);
        for (const double c : {1e-160, 1e-150, 1e-12, 3.0, 1e11, 1e12, 1e150, 1e160}) {
            auto scaled = s;
            for (double& value : scaled) value *= c;
            const Shrinkage found = estimate(scaled, {48, 64}, loss);
            ASSERT_EQ(found.rank, base.rank) << c;
            for (std::size_t i = 0; i < base.rank; ++i)
                EXPECT_NEAR(found.shrunk[i] / c, base.shrunk[i], 1e-11 * base.shrunk[i]) << c;
            if (base.bulk_edge && std::abs(std::log10(c)) < 153) {
                ASSERT_TRUE(found.bulk_edge.has_value()) << c;
                EXPECT_NEAR(std::sqrt(found.bulk_edge->value) / c, std::sqrt(base.bulk_edge->value), 1e-6);
            }
        }
    }
}

TEST_P(EveryEstimator, TranspositionOnlySwapsTheSides) {
    for (const Shape shape : {Shape{40, 40}, Shape{40, 64}, Shape{48, 200}}) {
        const auto s = singular_values(spiked_block(shape.rows, shape.columns, {4.0, 3.0}, 6));
        for (const auto loss : {theory::Loss::frobenius, theory::Loss::operator_norm, theory::Loss::nuclear}) {
            // A rule that takes k and margin from the number of columns is not symmetric; this is the paper's version.
            if (is("eoptshrink:paper") && shape.rows != shape.columns) continue;
            const Shrinkage wide = estimate(s, shape, loss);
            const Shrinkage tall = estimate(s, {shape.columns, shape.rows}, loss);
            ASSERT_EQ(wide.rank, tall.rank);
            for (std::size_t i = 0; i < wide.rank; ++i) {
                EXPECT_NEAR(wide.shrunk[i], tall.shrunk[i], 1e-12);
                if (!std::isnan(wide.overlap_left[i])) {
                    EXPECT_NEAR(wide.overlap_left[i], tall.overlap_right[i], 1e-12);
                }
            }
        }
    }
}

TEST_P(EveryEstimator, FrobeniusAndNuclearNeverExceedTheirBounds) {
    for (std::uint64_t replicate = 0; replicate < 20; ++replicate)
        for (const Shape shape : {Shape{40, 40}, Shape{30, 64}, Shape{64, 30}}) {
            const double spike = 1.0 + 0.2 * static_cast<double>(replicate);
            const auto s = singular_values(spiked_block(shape.rows, shape.columns, {spike + 1.0, spike}, replicate));
            const Shrinkage frobenius = estimate(s, shape, theory::Loss::frobenius);
            const Shrinkage op = estimate(s, shape, theory::Loss::operator_norm);
            const Shrinkage nuclear = estimate(s, shape, theory::Loss::nuclear);
            ASSERT_EQ(frobenius.rank, op.rank);
            ASSERT_EQ(frobenius.rank, nuclear.rank);
            for (std::size_t i = 0; i < op.rank; ++i) {
                EXPECT_LE(frobenius.shrunk[i], op.shrunk[i] * (1.0 + 1e-12));
                // The author's program gives the absolute value where the optimum is 0.
                if (is("eoptshrink:author")) continue;
                EXPECT_LE(nuclear.shrunk[i], frobenius.shrunk[i] * (1.0 + 1e-12));
            }
        }
}

TEST_P(EveryEstimator, PureNoiseHasNoLargeEstimate) {
    // Estimators that choose the rank find at most a value next to the edge; whether shrunk or not, it stays below the
    // noise itself.
    int found = 0;
    for (std::uint64_t replicate = 0; replicate < 20; ++replicate) {
        const Shape shape{64, 96};
        const Shrinkage answer = estimate(singular_values(white_block(64, 96, replicate, "pure noise")), shape);
        found += static_cast<int>(answer.rank);
    }
    const bool known = is("svd:2") || is("optshrink:2") || is("eoptshrink:rank=2");
    if (known) {
        EXPECT_EQ(found, 40);
    } else if (is("eoptshrink") || is("eoptshrink:edgefit") || is("gd-hard") || is("gd-hard:quantile") ||
               is("eoptshrink:impute=none")) {
        EXPECT_EQ(found, 0);
    } else {
        EXPECT_LE(found, 40);
    }
}

TEST_P(EveryEstimator, InvalidSingularValuesAreRejected) {
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -1.0}) {
        std::vector<double> s(20, 1.0);
        s[0] = bad;
        try {
            (void)spectral_estimator(GetParam()).estimate(s, {20, 20});
            ADD_FAILURE() << bad;
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::input);
        }
    }
    EXPECT_THROW((void)spectral_estimator(GetParam()).estimate(std::vector<double>(20, 1.0), {20, 10}), Error);
}

}  // namespace
}  // namespace spiked::estimators
