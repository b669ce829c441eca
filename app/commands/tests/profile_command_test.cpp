// Noise with a variance profile: spiked theory --variances.
#include <gtest/gtest.h>

#include <cmath>

#include "app/tests/process.hpp"
#include "sim/io/npy.hpp"

namespace spiked::app {
namespace {

// 2 x 3 classes that are far from rank one; their numbers in 40 digits are those of theory/laws/tests/profile_law_test.
const std::string profile_blocks = "blocks:1,4,0.5/9,0.3,2:rows=0.3,0.7:columns=0.2,0.5,0.3";

Json profile_theory(const std::string& words) {
    const Outcome found = spiked("theory --json " + words);
    EXPECT_EQ(found.code, 0) << words << found.err;
    return found.json();
}

const Json& first_spike(const Json& json) { return json.find("spikes")->items()->front(); }

void expect_number(const Json& json, const char* key, double expected, double relative) {
    EXPECT_NEAR(number(json, key), expected, relative * std::abs(expected)) << key;
}

TEST(ProfileTheory, HasTheValuesOfTheIterationInFortyDigits) {
    const Json even =
        profile_theory("--aspect 0.6 --strength 4 --density 4 --stieltjes 3,0.5 --variances " + profile_blocks);
    expect_number(even, "bulk_edge", 11.880656032355794805, 1e-12);
    expect_number(even, "detection_threshold", 2.2560571803637173097, 1e-8);
    expect_number(even, "mean", 0.3 * (0.2 + 2.0 + 0.15) + 0.7 * (1.8 + 0.15 + 0.6), 1e-14);
    expect_number(first_spike(even), "outlier", 20.547314729803172024, 1e-11);
    expect_number(first_spike(even), "overlap_left", 0.87158675310076287154, 1e-11);
    expect_number(first_spike(even), "overlap_right", 0.82165752066207498466, 1e-11);
    EXPECT_NEAR(number(even.find("stieltjes")->find("left")->items()->front()), -0.20814295307986143312, 1e-11);
    const auto& density = *even.find("density")->items();
    ASSERT_EQ(density.size(), 4U);
    expect_number(density[3], "x", 11.880656032355794805, 1e-12);
    EXPECT_EQ(number(density[3], "density"), 0.0);

    const Json local = profile_theory(
        "--aspect 0.6 --strength 4,2.5 --left-squares 1,0 --right-squares 0,0.25,0.75 --variances " + profile_blocks);
    expect_number(local, "detection_threshold", 2.7982597136030919720, 1e-8);
    expect_number(first_spike(local), "outlier", 19.464131968667166206, 1e-11);
    expect_number(first_spike(local), "overlap_right", 0.85629104419503492480, 1e-11);
    EXPECT_EQ(local.find("spikes")->items()->back().find("detectable")->text(), "false");
    EXPECT_NE(spiked("theory --aspect 0.6 --strength 4 --variances " + profile_blocks).out.find("20.547315"),
              std::string::npos);
}

TEST(ProfileTheory, AProfileOfRankOneHasTheNumbersOfItsCovariances) {
    const std::string words = "--size 100x160 --strength 6 ";
    const Json profile = profile_theory(words + "--variances blocks:1,2,2/4,8,8:rows=0.25,0.75:columns=0.5,0.25,0.25");
    const Json separable = profile_theory(words + "--row-spectrum two-atom:1,4,0.75 --col-spectrum two-atom:1,2,0.5");
    for (const char* key : {"aspect", "bulk_edge", "mean"}) expect_number(profile, key, number(separable, key), 1e-11);
    expect_number(profile, "detection_threshold", number(separable, "detection_threshold"), 1e-8);
    for (const char* key : {"outlier", "overlap_left", "overlap_right", "residual", "d_transform_derivative"})
        expect_number(first_spike(profile), key, number(first_spike(separable), key), 1e-9);
    const auto top = [](const Json& json) { return number(*json.find("finite_size"), "top_noise_shift"); };
    EXPECT_NEAR(top(profile), top(separable), 1e-6);
    // Control: other variances with the same means of rows and columns have another law.
    const Json other =
        profile_theory(words + "--variances blocks:2,1,1/3.6667,8.3333,8.3333:rows=0.25,0.75:columns=0.5,0.25,0.25");
    EXPECT_GT(std::abs(number(other, "bulk_edge") - number(separable, "bulk_edge")), 1e-3);
}

TEST(ProfileTheory, AFileGivesTheAspectAndOtherOptionsAreRejected) {
    const std::string path = scratch("variances.npy");
    sim::write_npy(path, arma::mat(20, 40, arma::fill::ones));
    expect_number(profile_theory("--variances file:" + path), "bulk_edge", std::pow(1.0 + std::sqrt(0.5), 2), 1e-12);
    const auto fails = [](const std::string& words, const std::string& part) {
        const Outcome found = spiked("theory " + words);
        EXPECT_EQ(found.code, 2) << words;
        EXPECT_NE(found.err.find(part), std::string::npos) << found.err;
    };
    fails("--variances file:" + path + " --size 40x20", "holds 20 x 40 variances");
    fails("--variances blocks:1,2/3,4", "--aspect is missing");
    fails("--variances blocks:1,2/3,4 --aspect 1 --entries laplace", "--entries and --variances exclude each other");
    fails("--variances blocks:1,2/3,4 --aspect 1 --row-spectrum ar1:0.5", "--row-spectrum and --variances");
    fails("--variances blocks:1,2/3,4 --aspect 1 --stieltjes 20", "is not a point above the real axis");
    fails("--variances blocks:1,-2/3,4 --aspect 1", "it must be a number of at least 0");
    fails("--aspect 1 --left-squares 1,0", "has no effect without --variances");
}

}  // namespace
}  // namespace spiked::app
