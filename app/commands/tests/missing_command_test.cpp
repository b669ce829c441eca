// Matrices with missing entries: spectrum, pca, theory and studies.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "app/tests/process.hpp"
#include "estimators/tests/spiked_covariance_samples.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/npy.hpp"

namespace spiked::app {
namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

/// 120 samples of 50 features with two components, of which every third entry or so is missing; `whole` has all.
struct MissingData {
    arma::mat whole = estimators::covariance_samples(120, 50, {40.0, 20.0}, 1.0, "missing command", 0).data;
    arma::mat seen = whole;

    MissingData() {
        arma::arma_rng::set_seed(11);
        const arma::mat draws(120, 50, arma::fill::randu);
        seen.elem(arma::find(draws > 0.7)).fill(no_value);
    }
    [[nodiscard]] double share() const {
        return static_cast<double>(arma::uvec(arma::find_finite(seen)).n_elem) / 6000.0;
    }
    /// Entries seen over their share, the others 0.
    [[nodiscard]] arma::mat weighted() const {
        arma::mat matrix = seen;
        matrix.replace(no_value, 0.0);
        return matrix / share();
    }
};

const MissingData& missing_data() {
    static const MissingData data;
    return data;
}

std::string missing_file(const std::string& name, const arma::mat& matrix) {
    sim::write_npy(scratch(name), matrix);
    return scratch(name);
}

Json answer_of(const std::string& words) {
    const Outcome found = spiked(words + " --json");
    EXPECT_EQ(found.code, 0) << words << found.err;
    return found.json();
}

const Json& first_estimate(const Json& json) { return json.find("estimators")->items()->front(); }

void expect_failure(const std::string& words, int code, const std::string& part) {
    const Outcome found = spiked(words);
    EXPECT_EQ(found.code, code) << words;
    EXPECT_NE(found.err.find(part), std::string::npos) << words << ": " << found.err;
}

TEST(MissingSpectrum, IsThatOfTheWeightedMatrix) {
    const MissingData& data = missing_data();
    const std::string seen = missing_file("seen.npy", data.seen);
    const std::string weighted = missing_file("weighted.npy", data.weighted());
    const Json found = answer_of("spectrum " + seen + " --missing uniform");
    const Json expected = answer_of("spectrum " + weighted);
    for (std::size_t i = 0; i < 50; ++i)
        EXPECT_NEAR(number((*found.find("singular_values")->items())[i]),
                    number((*expected.find("singular_values")->items())[i]), 1e-10);
    EXPECT_EQ(number(first_estimate(found), "rank"), 2.0);
    EXPECT_EQ(*found.find("missing")->string(), "uniform");
    EXPECT_NEAR(number(found, "missing_entries"), 6000.0 * (1.0 - data.share()), 1e-9);
    EXPECT_NEAR(number(found, "share_seen"), data.share(), 1e-15);
    EXPECT_EQ(*expected.find("missing")->string(), "none");
    EXPECT_EQ(number(expected, "share_seen"), 1.0);
    // A table with empty cells has the same answer, and its message gives the option that reads it.
    std::ofstream table(scratch("seen.csv"));
    table.precision(17);
    for (arma::uword i = 0; i < 120; ++i)
        for (arma::uword j = 0; j < 50; ++j) {
            if (std::isfinite(data.seen(i, j)))
                table << data.seen(i, j);
            else
                table << (j % 2 == 0 ? "NA" : "");
            table << (j < 49 ? "," : "\n");
        }
    table.close();
    expect_failure("spectrum " + scratch("seen.csv"), 4, "say --missing uniform if they are missing at random");
    EXPECT_EQ(answer_of("spectrum " + scratch("seen.csv") + " --header no --index no --missing uniform")
                  .find("singular_values")
                  ->text(),
              found.find("singular_values")->text());
}

TEST(MissingSpectrum, EstimatesAllEntriesAndLeavesTheRestOfThoseSeen) {
    const MissingData& data = missing_data();
    const std::string seen = missing_file("seen.npy", data.seen);
    const Json found = answer_of("spectrum " + seen + " --missing uniform --estimator gd-shrink --denoised " +
                                 scratch("clean.npy") + " --residual " + scratch("rest.npy"));
    const arma::mat clean = sim::read_matrix(scratch("clean.npy"));
    const arma::mat rest = sim::read_noted_matrix(scratch("rest.npy"), {.keep_missing = true}).matrix;
    ASSERT_EQ(arma::size(rest), arma::size(data.seen));
    for (arma::uword e = 0; e < rest.n_elem; ++e) {
        EXPECT_EQ(std::isnan(rest[e]), std::isnan(data.seen[e]));
        if (!std::isnan(rest[e])) {
            EXPECT_NEAR(rest[e], data.seen[e] - clean[e], 1e-13);
        }
    }
    // It foresees entries that it has not seen: those of variance 1 + 58 / 50 are left with little more than the noise.
    const arma::uvec unseen = arma::find_nonfinite(data.seen);
    EXPECT_LT(arma::mean(arma::square(arma::vec(data.whole.elem(unseen) - clean.elem(unseen)))), 1.5);
}

TEST(MissingSpectrum, KnowsTheNoiseOfTheEntriesSeen) {
    const std::string seen = missing_file("seen.npy", missing_data().seen);
    const std::string weighted = missing_file("weighted.npy", missing_data().weighted());
    const double share = missing_data().share();
    // Known variances: of the weighted matrix they are those of the whole over the share.
    const arma::vec variances = arma::linspace(1.0, 3.0, 50);
    missing_file("variances.npy", variances);
    missing_file("seen_variances.npy", variances / share);
    const std::string method = " --estimator whiten+gd-shrink --col-spectrum ";
    const Json found = answer_of("spectrum " + seen + " --missing uniform" + method + scratch("variances.npy"));
    const Json expected = answer_of("spectrum " + weighted + method + scratch("seen_variances.npy"));
    ASSERT_EQ(number(first_estimate(found), "rank"), number(first_estimate(expected), "rank"));
    ASSERT_GE(number(first_estimate(found), "rank"), 1.0);
    EXPECT_NEAR(number(first_estimate(found).find("shrunk")->items()->front()),
                number(first_estimate(expected).find("shrunk")->items()->front()), 1e-9);
    expect_failure("spectrum " + seen + " --missing uniform" + method + "ar1:0.5 --row-spectrum ar1:0.3", 2,
                   "not separable");
}

TEST(MissingSpectrum, RejectsWhatItCannotUse) {
    const std::string seen = missing_file("seen.npy", missing_data().seen);
    expect_failure("spectrum " + seen, 4, "say --missing uniform if they are missing at random, or remove");
    expect_failure("spectrum " + seen + " --missing some", 2, "--missing");
    expect_failure("spectrum " + seen + " --missing uniform --covariance 40", 2,
                   "--missing and --covariance exclude each other");
    expect_failure("quantize " + seen + " --method tq-mse --bits 2", 4, "counted from 0): remove or replace");
    arma::mat infinite = missing_data().seen;
    infinite(3, 4) = std::numeric_limits<double>::infinity();
    expect_failure("spectrum " + missing_file("infinite.npy", infinite) + " --missing uniform", 4,
                   "1 infinite value (first at row 3, column 4");
    expect_failure("pca " + seen + " --missing columns", 2, "uniform");
}

/// The notes of an answer, joined.
std::string notes_of(const Json& json) {
    std::string notes;
    for (const auto& note : *json.find("notes")->items()) notes += *note.string() + "\n";
    return notes;
}

TEST(MissingSpectrum, NamesMeansThatMakeUpTheFirstSingularValue) {
    const std::string with_means = missing_file("with_means.npy", missing_data().seen + 20.0);
    const std::string note = "--center columns removes them";
    for (const std::string command : {"spectrum ", "pca --center none "}) {
        EXPECT_NE(notes_of(answer_of(command + with_means + " --missing uniform")).find(note), std::string::npos);
        // Controls: no means, and means that were removed.
        EXPECT_EQ(notes_of(answer_of(command + missing_file("seen.npy", missing_data().seen) + " --missing uniform"))
                      .find(note),
                  std::string::npos);
    }
    for (const std::string command : {"spectrum --center columns ", "pca "})
        EXPECT_EQ(notes_of(answer_of(command + with_means + " --missing uniform")).find(note), std::string::npos);
}

TEST(MissingPca, SaysWhereCosinesAreNotToBeTrusted) {
    const std::string note = "cosines are too high on average";
    arma::mat half = missing_data().seen;
    half.elem(arma::find(arma::mat(arma::size(half), arma::fill::randu) > 0.7)).fill(no_value);
    EXPECT_NE(notes_of(answer_of("pca " + missing_file("half.npy", half) + " --missing uniform")).find(note),
              std::string::npos);
    // Control: a share that is just above the limit.
    ASSERT_GT(missing_data().share(), 0.69);
    arma::mat more = missing_data().seen;
    more.row(0) = missing_data().whole.row(0);
    more.row(1) = missing_data().whole.row(1);
    EXPECT_EQ(notes_of(answer_of("pca " + missing_file("more.npy", more) + " --missing uniform")).find(note),
              std::string::npos);
}

TEST(MissingPca, IsThatOfTheWholeData) {
    const std::string seen = missing_file("seen.npy", missing_data().seen);
    const std::string all = missing_file("whole.npy", missing_data().whole);
    const Json found = answer_of("pca " + seen + " --missing uniform");
    const Json whole = answer_of("pca " + all + " --missing uniform");
    ASSERT_EQ(number(found, "components"), 2.0);
    EXPECT_NEAR(number(found, "noise_level"), number(whole, "noise_level"), 0.25);
    EXPECT_GT(number(found, "weighted_noise_level"), number(found, "noise_level") / missing_data().share());
    EXPECT_EQ(number(whole, "weighted_noise_level"), number(whole, "noise_level"));
    for (std::size_t i = 0; i < 2; ++i) {
        const auto at = [&](const Json& json, const char* key) { return number((*json.find(key)->items())[i]); };
        EXPECT_NEAR(at(found, "debiased"), at(whole, "debiased"), 3.0 * at(found, "debiased_errors"));
    }
    EXPECT_EQ(answer_of("pca " + all).find("debiased")->text(), whole.find("debiased")->text());
}

// White noise, n = d: with a quarter of the entries seen, a strength of 4 counts as 2 does in the whole matrix.
TEST(MissingTheory, PredictsTheLossAgainstTheShareSeen) {
    const Json quarter = answer_of("theory --aspect 1 --strength 4 --seen 0.25");
    const Json whole = answer_of("theory --aspect 1 --strength 2");
    EXPECT_NEAR(number(quarter, "detection_threshold"), 2.0, 1e-12);
    const auto overlap = [](const Json& json) { return number(json.find("spikes")->items()->front(), "overlap_left"); };
    EXPECT_NEAR(overlap(quarter), overlap(whole), 1e-12);
    EXPECT_NEAR(overlap(quarter), 0.75, 1e-12);
    const auto& losses = *quarter.find("losses")->items();
    ASSERT_EQ(losses.size(), 11U);
    EXPECT_EQ(number(losses[0], "share"), 1.0);
    EXPECT_NEAR(number(losses[0], "relative_error"), 1.0 - 0.9375 * 0.9375, 1e-12);
    EXPECT_EQ(number(losses[8], "share"), 0.25);
    EXPECT_NEAR(number(losses[8], "relative_error"), 1.0 - 0.75 * 0.75, 1e-12);
    EXPECT_FALSE(whole.find("losses"));
    EXPECT_NE(spiked("theory --aspect 1 --strength 4 --seen 0.25").out.find("\n0.25 "), std::string::npos);
    expect_failure("theory --aspect 1 --strength 4 --seen 0.5 --row-spectrum ar1:0.5 --col-spectrum ar1:0.5", 2,
                   "not separable");
    expect_failure("theory --aspect 1 --strength 4 --seen 0", 2, "--seen");
}

TEST(MissingStudy, SweepsTheShareSeenAndReadsMatrices) {
    const std::string folder = folder_with_study("seen", R"(spiked = 1
[study]
name = "seen"
seed = "0x5eed"
[model]
kind = "spiked"
n = 60
d = 80
seen = 0.5
signal = { strength = 2.5, unit = "threshold" }
[sweep]
seen = [0.6, 1.0]
[[estimator]]
name = "gd-shrink"
[run]
reps = { min = 100, batch = 50 }
[[check]]
claim = "overlap.left"
margin = { rel = 0.12 }
[store]
path = "seen.spiked"
)");
    const Outcome run = spiked("run study.toml --threads 1 --no-report --strict", in(folder));
    EXPECT_EQ(run.code, 0) << run.err << run.out;
    const std::string summary = spiked("export seen.spiked --table summary --format csv", in(folder)).out;
    EXPECT_NE(summary.find("0.6"), std::string::npos) << summary;
    // The noise of the entries seen is not separable, and shares are checked.
    const std::string wrong = folder_with_study("wrong", R"(spiked = 1
[study]
name = "wrong"
[model]
kind = "spiked"
n = 20
d = 20
seen = 0.5
noise = { row_cov = { kind = "ar1", rho = 0.5 }, col_cov = { kind = "ar1", rho = 0.5 } }
[[estimator]]
name = "gd-shrink"
)");
    expect_failure("run " + wrong + "/study.toml --dry-run", 2, "not separable");
    expect_failure("run " + wrong + "/study.toml --dry-run --set model.seen=0", 2, "seen");
    // A matrix of a file: the key of the study stands for the option.
    missing_file("study.npy", missing_data().seen);
    const std::string files = folder_with_study("files",
                                                "spiked = 1\n[study]\nname = \"files\"\n[model]\nkind = \"matrix\"\n"
                                                "source = [\"" +
                                                    scratch("study.npy") +
                                                    "\"]\n[[estimator]]\nname = \"gd-shrink\"\n"
                                                    "[run]\nreps = { min = 1 }\n");
    expect_failure("run " + files + "/study.toml --dry-run", 2,
                   "say missing = \"uniform\" if they are missing at random");
    const Outcome read = spiked("run study.toml --no-report --set model.missing=uniform", in(files));
    EXPECT_EQ(read.code, 0) << read.err;
}

}  // namespace
}  // namespace spiked::app
