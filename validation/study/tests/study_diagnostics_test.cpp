#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "validation/engine/tests/fake_study.hpp"
#include "validation/study/study.hpp"

namespace spiked::validation {
namespace {

/// A complete study with `model` behind the sizes in [model] and `rest` at the end.
std::string study_with(const std::string& model, const std::string& rest = "[[estimator]]\nname = \"eoptshrink\"\n") {
    return "spiked = 1\n[study]\nname = \"x\"\nseed = \"0x1\"\n[model]\nkind = \"spiked\"\nn = 24\nd = 32\n" + model +
           "\n" + rest;
}

std::string error_of(const std::string& text, const StudyOverrides& overrides = {}) {
    return message_of([&] { (void)parse_study(text, "x.toml", overrides); }, ErrorKind::usage);
}

void expect_part(const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(StudyDiagnostics, StrengthsMustBeSortedLargestFirst) {
    expect_part(error_of(study_with("signal = { strength = [1.8, 3.0] }")), "largest first");
    EXPECT_NO_THROW((void)parse_study(study_with("signal = { strength = [3.0, 1.8] }"), "x"));
}

/// The predictions of a claim, as metric and component.
std::set<std::string> predictions_of(const Study& study, const std::string& claim) {
    std::set<std::string> found;
    for (const auto& one : study.experiment.cells.at(0).predictions)
        if (one.claim == claim) found.insert(one.metric + " " + std::to_string(one.k));
    return found;
}

std::set<std::string> limits_of(const Study& study, int k) {
    std::set<std::string> found;
    for (const auto& one : study.experiment.cells.at(0).limits)
        if (one.k == k) found.insert(one.metric);
    return found;
}

TEST(StudyDiagnostics, CloseComponentsArePredictedTogetherAndOthersOneByOne) {
    const auto study_of = [](const std::string& strengths) {
        return parse_study(study_with("signal = { strength = " + strengths + " }",
                                      "[[check]]\nclaim = \"overlap.left\"\nmargin = { abs = 0.1 }\n"),
                           "x");
    };
    const Study study = study_of("[12.0, 6.0, 6.0, 3.0, 2.9, 0.5, 0.4]");
    using Predicted = std::set<std::string>;
    EXPECT_EQ(predictions_of(study, "overlap.left"),
              (Predicted{"overlap.left 1", "subspace_overlap.left 2", "subspace_overlap.left 4"}));
    EXPECT_EQ(predictions_of(study, "overlap.right"),
              (Predicted{"overlap.right 1", "subspace_overlap.right 2", "subspace_overlap.right 4"}));
    EXPECT_EQ(predictions_of(study, "outlier.location"),
              (Predicted{"outlier 1", "subspace_outlier 2", "subspace_outlier 4"}));
    EXPECT_EQ(predictions_of(study, "threshold.detection"), Predicted{"outlier 6"})
        << "the second largest noise eigenvalue lies lower";
    const Predicted of_spike = {"outlier", "overlap.left", "overlap.right", "strength", "shrunk"};
    EXPECT_EQ(limits_of(study, 1), of_spike);
    EXPECT_EQ(limits_of(study, 2), (Predicted{"subspace_outlier", "subspace_overlap.left", "subspace_overlap.right",
                                              "subspace_angle.left", "subspace_angle.right"}));
    EXPECT_EQ(limits_of(study, 3), Predicted{});
    EXPECT_EQ(limits_of(study, 7), of_spike) << "outlier at the edge, overlaps 0";
    ASSERT_EQ(study.experiment.notes.size(), 1U);
    expect_part(study.experiment.notes[0], "n=24 d=32: the strengths of components 2 to 3 are closer than 6 standard");
    EXPECT_TRUE(study_of("[12.0, 6.0]").experiment.notes.empty());

    // The mean of the limits of 6 and 5, and of the laws with the planted defect.
    const Study pair = study_of("[6.0, 5.5]");
    const Study high = study_of("[6.0]");
    const Study low = study_of("[5.5]");
    const auto numbers = [](const Study& of, const std::string& claim) {
        for (const auto& one : of.experiment.cells.at(0).predictions)
            if (one.claim == claim) return std::pair{one.value, one.with_fault};
        throw precondition_error("nothing is predicted for {}", claim);
    };
    for (const char* claim : {"outlier.location", "overlap.left", "overlap.right"}) {
        EXPECT_DOUBLE_EQ(numbers(pair, claim).first, (numbers(high, claim).first + numbers(low, claim).first) / 2.0);
        EXPECT_DOUBLE_EQ(numbers(pair, claim).second, (numbers(high, claim).second + numbers(low, claim).second) / 2.0);
    }
}

TEST(StudyDiagnostics, ComponentsCloseToOneBelowTheThresholdHaveNoPredictions) {
    const std::string check = "[[check]]\nclaim = \"overlap.left\"\nmargin = { abs = 0.1 }\n";
    expect_part(error_of(study_with("signal = { strength = [1.5, 0.9] }", check)),
                "says nothing about the cells it matches (wrong side of the threshold, a component too close to one "
                "below the threshold");
    const Study study = parse_study(study_with("signal = { strength = [6.0, 1.5, 0.9] }", check), "x");
    EXPECT_EQ(predictions_of(study, "overlap.left"), std::set<std::string>{"overlap.left 1"});
    ASSERT_EQ(study.experiment.notes.size(), 1U);
    expect_part(study.experiment.notes[0], "components 2 to 3");
    expect_part(study.experiment.notes[0], "compare none of them with the theory");
}

/// A study of one cell of white noise, size x size, with one spike and a check of a claim; strength in thresholds.
Study study_of_entries(const std::string& claim, const std::string& entries, const std::string& size, double strength,
                       const std::string& rows = "identity\"") {
    return parse_study("spiked = 1\n[study]\nname = \"x\"\nseed = \"0x1\"\n[model]\nkind = \"spiked\"\nn = " + size +
                           "\nd = " + size + "\nnoise = { entries = \"" + entries + "\", row_cov = { kind = \"" + rows +
                           " } }\nsignal = { strength = " + std::to_string(strength) +
                           ", unit = \"threshold\" }\n[[check]]\nclaim = \"" + claim + "\"\nmargin = { rel = 0.02 }\n",
                       "x");
}

double predicted_by(const Study& study, const std::string& claim) {
    for (const auto& one : study.experiment.cells.at(0).predictions)
        if (one.claim == claim) return one.value;
    throw precondition_error("nothing is predicted for {}", claim);
}

// Means of the largest eigenvalue from simulations in NumPy, 250 to 3000 blocks, whose standard errors are in brackets.
TEST(StudyDiagnostics, EigenvaluesArePredictedWithTheKurtosisOfTheEntries) {
    struct Measured {
        const char* claim;
        const char* entries;
        const char* size;
        double strength;
        double mean;
    };
    for (const auto& [claim, entries, size, strength, mean] :
         {Measured{"threshold.detection", "rademacher", "64", 0.5, 3.709 /* (4) */},
          Measured{"threshold.detection", "laplace", "128", 0.5, 3.966 /* (10) */},
          Measured{"outlier.location", "laplace", "64", 1.25, 4.292 /* (12) */},
          Measured{"outlier.location", "sparse:0.1", "64", 1.5, 4.799 /* (15) */}}) {
        const Study study = study_of_entries(claim, entries, size, strength);
        EXPECT_NEAR(predicted_by(study, claim) / mean, 1.0, 0.01) << claim << " " << entries;
        EXPECT_TRUE(study.experiment.notes.empty());
        // Control: the law of Gaussian entries is off by more than the margin that one would give.
        EXPECT_GT(std::abs(predicted_by(study_of_entries(claim, "gaussian", size, strength), claim) / mean - 1.0), 0.02)
            << claim << " " << entries;
    }
}

TEST(StudyDiagnostics, WhatTheLawDoesNotKnowAboutACellIsSaid) {
    const std::string claim = "threshold.detection";
    const auto notes_of = [](const Study& study) {
        return study.experiment.notes.empty() ? std::string() : study.experiment.notes.front();
    };
    // Simulated at .75 and .97 thresholds of 64 x 64: 3.833(7) and 3.926(4), where the edge has 3.810.
    EXPECT_EQ(notes_of(study_of_entries(claim, "gaussian", "64", 0.74)), "");
    expect_part(message_of([&] { (void)study_of_entries(claim, "gaussian", "64", 0.76); }, ErrorKind::usage),
                "(within min(n, d)^(-1/3) of the threshold");
    expect_part(message_of([&] { (void)study_of_entries(claim, "sparse:0.1", "64", 0.5); }, ErrorKind::usage),
                "(the kurtosis of the entries moves the eigenvalue by more than the noise does");
    EXPECT_EQ(notes_of(study_of_entries(claim, "sparse:0.1", "1024", 0.5)), "") << "k d^(-1/3) falls";

    // Where the effect of the entries is unknown, the law of Gaussian entries is taken, and said to be.
    for (const std::string& which : {claim, std::string("outlier.location")}) {
        const double strength = which == claim ? 0.5 : 2.0;
        const std::string coloured = "ar1\", rho = 0.5";
        const Study unknown = study_of_entries(which, "laplace", "64", strength, coloured);
        expect_part(notes_of(unknown), "compares with the theory of Gaussian entries (the effect of entries that are");
        EXPECT_EQ(unknown.experiment.notes.size(), 1U);
        const Study gaussian = study_of_entries(which, "gaussian", "64", strength, coloured);
        EXPECT_EQ(predicted_by(unknown, which), predicted_by(gaussian, which));
        EXPECT_EQ(notes_of(gaussian), "");
        expect_part(notes_of(study_of_entries(which, "student:4", "64", strength)), "fourth moment of the entries is");
    }

    // A sweep names its first cell and counts the others; a check of another claim says nothing.
    const auto sweep = [](const std::string& of) {
        return parse_study(study_with("signal = { strength = 0.5, unit = \"threshold\" }",
                                      "[sweep]\n\"signal.strength\" = [0.5, 0.8, 0.9, 2.0]\n[[check]]\nclaim = \"" +
                                          of + "\"\nmargin = { rel = 0.1 }\n"),
                           "x");
    };
    const Study swept = sweep(claim);
    ASSERT_EQ(swept.experiment.notes.size(), 1U);
    expect_part(notes_of(swept),
                "signal.strength=0.8 (and 1 more of the cells): check \"threshold.detection\" leaves a");
    EXPECT_TRUE(sweep("outlier.location").experiment.notes.empty());
}

TEST(StudyDiagnostics, AKeyOfTheSweepCannotBeSetForTheModel) {
    const std::string text = study_with("",
                                        "[[estimator]]\nname = \"eoptshrink\"\n[sweep]\nn = [24, 48]\n"
                                        "\"signal.strength\" = [2.0, 3.0]\n");
    StudyOverrides overrides;
    overrides.set = {{"model.n", "64"}};
    expect_part(error_of(text, overrides),
                "--set model.n has no effect ([sweep] sets n in every cell): write --set 'sweep.n=[64]'");
    overrides.set = {{"model.signal.strength", "2.5"}};
    expect_part(error_of(text, overrides), "'sweep.\"signal.strength\"=[2.5]'");
    overrides.set = {{"sweep.n", "[64]"}, {"model.d", "48"}};
    const Study study = parse_study(text, "x", overrides);
    EXPECT_EQ(study.experiment.cells.size(), 2U);
}

TEST(StudyDiagnostics, AValueOfAnotherTypeGetsAnExample) {
    const auto change = [](std::string text, const std::string& from, const std::string& to) {
        return text.replace(text.find(from), from.size(), to);
    };
    const std::string fine = study_with("");
    expect_part(error_of(change(fine, "seed = \"0x1\"", "seed = 42")), "must be a text in quotes: write seed = \"42\"");
    expect_part(error_of(fine + "[run]\nreps = 200\n"),
                "\"reps\" must be a table: write for example reps = { min = 200 }");
    expect_part(error_of(study_with("noise = { row_cov = \"ar1\" }")), "row_cov = { kind = \"ar1\", rho = 0.5 }");
    expect_part(error_of(study_with("", "[[check]]\nclaim = \"outlier.location\"\nmargin = 0.05\n")),
                "margin = { rel = 0.05 }");
}

TEST(StudyDiagnostics, CodecsNeedRowsThatAreNotMixed) {
    const std::string codec = "[[codec]]\nname = \"tq-mse\"\nbits = [2]\n";
    const auto noise = [](const std::string& row, const std::string& column) {
        return "noise = { colouring = \"eigenbasis\", row_cov = { " + row + " }, col_cov = { " + column + " } }";
    };
    const std::string ar1 = "kind = \"ar1\", rho = 0.5";
    const std::string identity = "kind = \"identity\"";
    const std::string diagonal = "kind = \"exponential\", c = 1.0";
    const std::string message = error_of(study_with(noise(ar1, identity), codec));
    expect_part(message, "x.toml:5:1");
    expect_part(message, "mixes the rows of a block, on which codec \"tq-mse\" acts");
    for (const auto& [row, column] : {std::pair{identity, ar1}, {diagonal, ar1}, {diagonal, diagonal}})
        EXPECT_NO_THROW((void)parse_study(study_with(noise(row, column), codec), "x")) << row;
    EXPECT_NO_THROW((void)parse_study(study_with(noise(ar1, ar1)), "x")) << "estimators use the spectrum only";
    error_of(study_with(noise("kind = \"exponential\", c = 1.0, basis = \"haar\"", identity), codec));
}

TEST(StudyDiagnostics, CovarianceErrorsAreReportedAtTheirPlaceTogetherWithOthers) {
    const std::string message = error_of(
        study_with("noise = { row_cov = { kind = \"wishart\", aspect = -1 }, col_cov = { kind = \"ar1\", rho = 7 } }",
                   "[[estimator]]\nname = \"whiten:full+gd-shrink\"\nlaw = \"known\"\n"
                   "[[estimator]]\nname = \"svd:2\"\nloss = \"operator\"\n[run]\nreps = { min = 10, max = 20 }\n"));
    expect_part(message, "x.toml:9:21: covariance \"wishart\": aspect -1 is not possible");
    expect_part(message, "x.toml:9:66: covariance \"ar1\": rho 7 is not possible");
    expect_part(message, "x.toml:10:1: \"whiten:full\": covariances are known");
    expect_part(message, "x.toml:13:1: loss has no effect on \"svd:2\"");
    expect_part(message, "x.toml:17:8: run.reps: min and max differ");
}

TEST(StudyDiagnostics, SweepErrorsAreReportedTogetherAtTheirValues) {
    const std::string message =
        error_of(study_with("signal = { strength = 2.0 }",
                            "[sweep]\n\"signal.strenght\" = [1.0]\n\"noise.rowcov.rho\" = [0.2]\n"
                            "[[estimator]]\nname = \"svd:1\"\n"));
    expect_part(message, "x.toml:11:22: [sweep] signal.strenght: unknown key \"strenght\"");
    expect_part(message, "x.toml:12:23: [sweep] noise.rowcov.rho: unknown key \"rowcov\"");
    expect_part(error_of(study_with("signal = { strength = 2.0 }",
                                    "[sweep]\nstrength = [1.0]\n[[estimator]]\nname = \"svd:1\"\n")),
                "[sweep] strength: unknown key \"strength\" in [model]; one of: kind, n, d, seen, seen_by, "
                "seen_spread, noise, signal; did you mean "
                "\"signal.strength\"?");
    // One wrong value among correct ones, in two sweeps.
    const std::string one = error_of(study_with(
        "signal = { strength = 2.0 }", "[sweep]\nn = [24, 48]\nd = [32, 1]\n[[estimator]]\nname = \"svd:1\"\n"));
    expect_part(one, "x.toml:12:10: [sweep] at d=1 n=24");
}

TEST(StudyDiagnostics, ASweepCanBeSetByItsQuotedKey) {
    const Study study =
        parse_study(study_with("signal = { strength = 2.0 }",
                               "[sweep]\n\"signal.strength\" = [1.0, 2.0]\n[[estimator]]\nname = \"svd:1\"\n"),
                    "x", {.set = {{"sweep.\"signal.strength\"", "[2.5, 3.0, 3.5]"}}});
    EXPECT_EQ(study.experiment.cells.size(), 3U);
}

TEST(StudyDiagnostics, ChecksMustNameExistingFactors) {
    const auto check = [](const std::string& where) {
        return study_with("signal = { strength = 2.0 }",
                          "[sweep]\n\"noise.entries\" = [\"gaussian\", \"uniform\"]\n"
                          "[[check]]\nclaim = \"overlap.left\"\nmargin = { abs = 0.1 }\nwhere = { " +
                              where + " }\n");
    };
    expect_part(error_of(check("\"noise.entrie\" = \"gaussian\"")), "did you mean \"noise.entries\"");
    const Study study = parse_study(check("\"noise.entries\" = \"gaussian\""), "x");
    EXPECT_TRUE(study.experiment.checks[0].applies_to(study.experiment.cells[0]));
    EXPECT_FALSE(study.experiment.checks[0].applies_to(study.experiment.cells[1]));
}

const FigureKeys line_figure{"line",
                             {{"x", any_text("FACTOR")},
                              {"y", several(any_text("METRIC"))},
                              {"slope", number("SLOPE", {.most = 2.0})},
                              {"of", one_of({"spread", "mean"})}},
                             false,
                             true};

TEST(StudyDiagnostics, ValuesOfFiguresAreCheckedAgainstTheirSpecs) {
    const auto error = [](const std::string& keys) {
        return error_of(study_with("", "[[estimator]]\nname = \"svd:1\"\n[[figure]]\nkind = \"line\"\n" + keys),
                        {.figures = {line_figure}});
    };
    expect_part(error("slope = \"abc\"\n"),
                "x.toml:14:9: [[figure]] of kind line: slope \"abc\" is not a number of at most 2: give one number");
    expect_part(error("slope = 2.5\n"), "slope 2.5 is not possible: choose a number of at most 2");
    expect_part(error("slope = [1, 2]\n"), "slope \"[1, 2]\" is not a number");
    expect_part(error("of = \"sprd\"\n"), "of \"sprd\" is not possible; did you mean \"spread\"?");
    expect_part(error("of = 3\n"), "of \"3\" is not possible");
    EXPECT_NO_THROW((void)parse_study(study_with("",
                                                 "[[estimator]]\nname = \"svd:1\"\n[[figure]]\nkind = \"line\"\n"
                                                 "slope = -1\nof = \"mean\"\ny = [\"outlier\", \"rank\"]\n"),
                                      "x.toml", {.figures = {line_figure}}));
}

TEST(StudyDiagnostics, FigureErrorsAreReportedTogetherAtTheirPlaces) {
    const StudyOverrides overrides{.figures = {line_figure, {"map", {}, true, false}}};
    const std::string estimator = "[[estimator]]\nname = \"svd:1\"\n";
    const std::string message =
        error_of(study_with("", estimator + "[[figure]]\nkind = \"lin\"\nx = \"m\"\n[[figure]]\nkind = \"line\"\n"
                                            "y = [\"outlierr\"]\ncolour = 3\n"),
                 overrides);
    expect_part(message, "x.toml:13:8: kind of a [[figure]] cannot be \"lin\"; did you mean \"line\"?");
    expect_part(message, "x.toml:14:5: x of a [[figure]] cannot be \"m\"");
    expect_part(message, "x.toml:17:6: y of a [[figure]] cannot be \"outlierr\"; did you mean \"outlier\"?");
    expect_part(message, "x.toml:18:1: unknown key \"colour\"");
    expect_part(error_of(study_with("", estimator + "[[figure]]\nkind = \"map\"\n"), overrides), "cannot be \"map\"");
}

TEST(StudyDiagnostics, ConditionAndFigureErrorsAreReportedWithOthers) {
    const std::string message = error_of(
        study_with("signal = { strength = 2.0 }",
                   "[[estimator]]\nname = \"eoptshrnk\"\n[[check]]\nclaim = \"overlap.left\"\nmargin = { abs = 0.1 "
                   "}\nwhere = { m = 3 }\n[[figure]]\nkind = \"lin\"\n"),
        {.figures = {line_figure}});
    expect_part(message, "eoptshrink");
    expect_part(message, "x.toml:15:11: where: no cell has a factor \"m\" (only what cells differ in is one)");
    expect_part(message, "did you mean \"line\"");
}

TEST(StudyDiagnostics, NamesInOtherProgramsAreUnderstood) {
    expect_part(error_of(study_with("", "[[estimator]]\nname = \"eoptshrink\"\nloss = \"spectral\"\n")),
                "\"spectral\" of loss is not possible; did you mean \"operator\"?");
}

TEST(StudyDiagnostics, AWrongNameIsNotAlsoReportedAsMissing) {
    const std::string message = error_of(study_with("", "[[estimator]]\nname = \"eoptshrnk\"\n"));
    expect_part(message, "did you mean \"eoptshrink\"");
    EXPECT_EQ(message.find("computes nothing"), std::string::npos) << message;
    EXPECT_EQ(parse_study(study_with("", "[[estimator]]\nname = \"svd:1\"\n[run]\nreps = { max = 50 }\n"), "x")
                  .experiment.cells[0]
                  .replicates,
              50U);
}

TEST(StudyDiagnostics, AKnownLawNeedsAMethodThatUsesItAndAModelThatHasIt) {
    const auto known = [](const std::string& name) {
        return "[[estimator]]\nname = \"" + name + "\"\nlaw = \"known\"\n";
    };
    for (const char* name : {"eoptshrink", "gd-shrink", "dyson+tw-test", "dyson+whiten+tw-test"})
        expect_part(error_of(study_with("", known(name))), "cannot use a known law");
    for (const char* name : {"tw-test", "whiten+gd-shrink", "whiten+dyson+tw-test"}) {
        EXPECT_NO_THROW((void)parse_study(study_with("", known(name)), "x.toml")) << name;
        expect_part(error_of("spiked = 1\n[study]\nname = \"x\"\n[model]\nkind = \"kv_like\"\n" + known(name)),
                    "but this model has no law");
    }
}

TEST(StudyDiagnostics, ADumpStudyTakesCodecsOnly) {
    const std::string message = error_of(
        "spiked = 1\n[study]\nname = \"x\"\nseed = \"0x1\"\n[model]\nkind = \"kv_dump\"\nsource = [\"" SPIKED_SOURCE_DIR
        "/sim/kv/tests/data/rope-lm-cut.safetensors\"]\n[[codec]]\nname = \"tq-mse\"\nbits = [2]\n"
        "[[estimator]]\nname = \"eoptshrink\"\n[run]\nreps = { min = 3 }\n");
    expect_part(message, "takes no [[estimator]]");
    expect_part(message, "has no reps");
}

TEST(StudyDiagnostics, KeysThatSayHowADumpIsRead) {
    const auto study_of = [](const std::string& tensor) {
        return "spiked = 1\n[study]\nname = \"x\"\nseed = \"0x1\"\n[model]\nkind = \"kv_dump\"\nsource = "
               "[\"" SPIKED_SOURCE_DIR "/sim/kv/tests/data/rope-lm-cut.safetensors\"]\ntensor = { " +
               tensor + " }\n[[codec]]\nname = \"tq-mse\"\nbits = [2]\n";
    };
    expect_part(error_of(study_of("format = \"vlm\"")), "did you mean \"vllm\"");
    expect_part(error_of(study_of("tokens = \"4\"")), "FIRST:LAST");
    expect_part(error_of(study_of("skip_empty = 1")), "must be true or false");
    expect_part(error_of(study_of("name = \"layers.{layer}.{side}\", pattern = \"{side}\"")), "leave one out");
    const auto other = [&] { (void)parse_study(study_of("format = \"lmcache\""), "x.toml"); };
    expect_part(message_of(other, ErrorKind::input), "no tensor is named as lmcache names it");
    // 256 tokens are 2 blocks of 128 a head; without the first 4 there is one.
    const auto all = parse_study(study_of("layout = \"head,token,dim\""), "x.toml").experiment;
    const auto part = parse_study(study_of("tokens = \"4:\""), "x.toml").experiment;
    ASSERT_EQ(all.cells.size(), part.cells.size());
    EXPECT_EQ(all.cells.front().replicates, 2U);
    EXPECT_EQ(part.cells.front().replicates, 1U);
    EXPECT_EQ(*part.science.find("tokens")->string(), "4:");
    EXPECT_EQ(all.science.find("tokens"), nullptr);
}

TEST(StudyDiagnostics, AClaimThatCannotBeDecidedIsAnErrorOfTheFile) {
    const auto error_with = [](const std::string& keys, const std::string& head = "id = \"own\"\n") {
        return error_of(study_with(
            "signal = { strength = [3.0] }",
            "[[estimator]]\nname = \"eoptshrink\"\n[[claim]]\n" + head + "metric = \"overlap.left\"\n" + keys));
    };
    const std::string component = "k = 1\n";
    const std::string rest = component + "equals = 0.5\nmargin = { abs = 0.1 }\ncontrol = 0.9\n";
    const auto says = [&](const std::string& keys, const std::string& part) {
        expect_part(error_with(component + keys), part);
    };
    says("between = [-inf, inf]\ncontrol = 1.0\n", "between allows every number");
    for (const std::string ends : {"[0.0, 1e301]", "[-1.7e308, 1.7e308]", "[-inf, -1e301]"})
        says("between = " + ends + "\ncontrol = 1.0\n", "an end is a number from -1e+300 to 1e+300, or -inf or inf");
    for (const std::string ends : {"[nan, 1.0]", "[1.0, nan]", "[inf, 1.0]", "[inf, inf]"})
        says("between = " + ends + "\ncontrol = 1.0\n", "the smaller first");
    says("between = [-inf, 0.3]\ncontrol = 0.3\n", "the control is the end of the region");
    expect_part(error_with(component + "between = [-inf, 0.0]\n"), "\"control\" is missing");
    says("between = [0.2, 0.3]\nmargin = { abs = 0.1 }\ncontrol = 1.0\n", "between has no margin");
    says("equals = 0.0\nmargin = { rel = 0.1 }\ncontrol = 1.0\n", "a fraction of 0 is a margin of 0: write margin");
    EXPECT_EQ(error_with(component + "between = [0.2, 0.3]\nmargin = { abs = 0.1 }\ncontrol = 1.0\n").find("unknown"),
              std::string::npos);
    expect_part(error_with("k = 5\nequals = 0.5\nmargin = { abs = 0.1 }\ncontrol = 0.9\n"),
                "claim \"own\": cell n=24 d=32 has no component 5 (it has 1): give a smaller k, or leave the cell out");
    expect_part(error_with(rest, "id = \"\"\n"), "\"id\" is empty: give it a name");
    expect_part(error_with(rest + "statement = \"" + std::string(20'001, 's') + "\"\n"),
                "statement has 20001 bytes (at most 20000): shorten it");
    for (const std::string key : {"name", "title"}) {
        std::string text = study_with("", "[[estimator]]\nname = \"eoptshrink\"\n");
        text.replace(text.find("name = \"x\""), 10,
                     (key == "title" ? "name = \"x\"\ntitle = \"" : "name = \"") + std::string(20'001, 's') + "\"");
        expect_part(error_of(text), key + " has 20001 bytes (at most 20000)");
    }
}

}  // namespace
}  // namespace spiked::validation
