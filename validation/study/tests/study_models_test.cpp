#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "core/runtime/error.hpp"
#include "estimators/transforms/spectral_method.hpp"
#include "sim/io/npy.hpp"
#include "sim/random/normal.hpp"
#include "theory/laws/profile_law.hpp"
#include "validation/engine/engine.hpp"
#include "validation/store/open_store.hpp"
#include "validation/study/study.hpp"

// Tests of models, sweeps and skip rules in study files.
namespace spiked::validation {
namespace {

/// Throws when the cell lacks the factor.
const Factor& factor_of(const ExperimentCell& cell, std::string_view name) {
    for (const auto& factor : cell.factors)
        if (factor.name == name) return factor;
    throw precondition_error("{} has no factor {}", cell.label, name);
}

std::string study_of(const std::string& model, const std::string& rest = "") {
    return "spiked = 1\n[study]\nname = \"models\"\nseed = \"0x5eed\"\n[model]\n" + model + "\n" + rest +
           "\n[[estimator]]\nname = \"eoptshrink\"\n[run]\nreps = { min = 4, batch = 2 }\n";
}

Experiment read(const std::string& model, const std::string& rest = "") {
    return parse_study(study_of(model, rest), "models.toml").experiment;
}

std::string error_of_study(const std::string& text) {
    try {
        (void)parse_study(text, "models.toml");
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "accepted: " << text;
    return "";
}

void expect_rejected(const std::string& model, const std::string& part, const std::string& rest = "") {
    const std::string message = error_of_study(study_of(model, rest));
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_EQ(message.find("models.toml:"), 0U) << message;
}

const std::string square = "kind = \"spiked\"\nn = 24\nd = 32\n";

/// The mean of a metric over the replicates of a cell.
double mean_of(const Experiment& experiment, std::size_t cell, std::string_view metric, int k,
               std::size_t replicates = 4) {
    double sum = 0.0;
    const auto worker = experiment.worker(cell, {0, 1});
    for (std::uint64_t r = 0; r < replicates; ++r)
        for (const auto& o : worker(r))
            if (o.metric == metric_index(metric) && o.k == k) sum += o.value;
    return sum / static_cast<double>(replicates);
}

TEST(StudyModels, EveryCovarianceEntryLawAndVectorLawGeneratesBlocks) {
    for (const char* covariance :
         {"{ kind = \"identity\" }", "{ kind = \"ar1\", rho = 0.4 }",
          "{ kind = \"toeplitz\", rho = 0.4, basis = \"haar\" }",
          "{ kind = \"two-atom\", low = 0.5, high = 2.5, weight = 0.25 }",
          "{ kind = \"uniform\", low = 0.5, high = 1.5 }", "{ kind = \"exponential\", c = 2.0 }",
          "{ kind = \"power\", a = 0.5, basis = \"toeplitz\" }", "{ kind = \"wishart\", aspect = 0.5 }"}) {
        const Experiment experiment =
            read(square + "noise = { row_cov = " + covariance + " }\nsignal = { strength = 3.0 }");
        EXPECT_GT(mean_of(experiment, 0, "outlier", 1), 0.0) << covariance;
        EXPECT_GT(mean_of(experiment, 0, "overlap.left", 1), 0.3) << covariance;
    }
    for (const char* entries :
         {"gaussian", "rademacher", "uniform", "laplace", "student:5", "two-point:0.2", "sparse:0.5"})
        EXPECT_GT(mean_of(read(square + "noise = { entries = \"" + entries + "\" }\nsignal = { strength = 3.0 }"), 0,
                          "overlap.right", 1),
                  0.3)
            << entries;
    for (const char* vectors : {"haar", "qr:rademacher", "localised:4", "sparse:3", "eigen:row:1", "smooth"})
        EXPECT_GT(mean_of(read(square + "signal = { strength = [4.0, 3.0], vectors = \"" + vectors + "\" }"), 0,
                          "overlap.left", 1),
                  0.3)
            << vectors;
}

/// The limit of a metric of the cell, or -1.
double limit_of(const ExperimentCell& cell, std::string_view metric, int k) {
    for (const auto& limit : cell.limits)
        if (limit.metric == metric && limit.k == k) return limit.value;
    return -1.0;
}

const std::string profiled = "kind = \"spiked\"\nn = 40\nd = 60\nnoise = { variances = \"blocks:1,4,0.5/9,0.3,2\" }\n";

TEST(StudyModels, AVarianceProfileHasLimitsOfItsOwnLaw) {
    const Experiment experiment = read(profiled + "signal = { strength = [6.0, 3.0, 0.3] }");
    // 20 rows and 20 columns in each class.
    const theory::ProfileLaw law({2, 3, {1.0, 4.0, 0.5, 9.0, 0.3, 2.0}, {}, {}}, AspectRatio(40.0 / 60.0));
    const double threshold = law.detection_threshold().value;
    const ExperimentCell& cell = experiment.cells[0];
    EXPECT_NEAR(limit_of(cell, "bulk_edge", 0), law.bulk_edge().value, 1e-9);
    for (const auto& [k, strength] : {std::pair(1, 6.0), std::pair(2, 3.0)}) {
        const theory::SpikePrediction spike = law.spike({strength * threshold});
        EXPECT_NEAR(limit_of(cell, "outlier", k), spike.outlier.value, 1e-9) << k;
        EXPECT_NEAR(limit_of(cell, "overlap.left", k), spike.overlap_left.value, 1e-9) << k;
        EXPECT_NEAR(limit_of(cell, "strength", k), strength * threshold, 1e-9) << k;
    }
    EXPECT_NEAR(limit_of(cell, "outlier", 3), law.bulk_edge().value, 1e-9);
    EXPECT_EQ(limit_of(cell, "overlap.left", 3), 0.0);
    // The blocks are of that profile, and two of the three spikes are to be found.
    EXPECT_NEAR(mean_of(experiment, 0, "outlier", 1, 20), limit_of(cell, "outlier", 1),
                0.1 * limit_of(cell, "outlier", 1));
    EXPECT_EQ(mean_of(experiment, 0, "rank_false", 0) - mean_of(experiment, 0, "rank_missed", 0),
              mean_of(experiment, 0, "rank", 0) - 2.0);
    // Spikes of two strengths that are close have limits together.
    const Experiment close = read(profiled + "signal = { strength = [4.0, 3.99] }");
    EXPECT_EQ(limit_of(close.cells[0], "outlier", 1), -1.0);
    EXPECT_GT(limit_of(close.cells[0], "subspace_outlier", 1), 0.0);
    // Spikes in a place of their own have none, and the study says so.
    const Experiment local = read(profiled + "signal = { strength = 4.0, right_vectors = \"localised:20\" }");
    EXPECT_TRUE(local.cells[0].limits.empty());
    ASSERT_EQ(local.notes.size(), 1U);
    EXPECT_NE(local.notes[0].find("localised:20 are not spread evenly"), std::string::npos);
    EXPECT_NE(local.cells[0].hash(), read(profiled + "signal = { strength = 4.0 }").cells[0].hash());
}

TEST(StudyModels, AVarianceProfileWithoutALawIsRejected) {
    const auto with = [](const std::string& noise) {
        return square + "noise = { variances = \"blocks:1,2/3,4\"" + noise + " }\nsignal = { strength = 3.0 }";
    };
    expect_rejected(with(", row_cov = { kind = \"ar1\", rho = 0.5 }"), "beside row_cov or col_cov");
    expect_rejected(with(", colouring = \"eigenbasis\""), "no effect on variances");
    expect_rejected(with("") + "\nseen = 0.5", "beside variances");
    expect_rejected(square + "noise = { variances = \"block:1,2\" }", "not of a known kind");
    expect_rejected(square + "noise = { variances = 3 }", "must be a text in quotes");
}

TEST(StudyModels, ScoresInPlaceOfLeftVectorsHaveTheSameLimits) {
    const auto with = [](const std::string& vectors) { return square + "signal = { strength = 3.0" + vectors + " }"; };
    const Experiment fixed = read(with(""));
    const Experiment random = read(with(", left_vectors = \"scores:gaussian\""));
    ASSERT_FALSE(fixed.cells[0].limits.empty());
    EXPECT_EQ(random.cells[0].limits.size(), fixed.cells[0].limits.size());
    EXPECT_NE(random.cells[0].hash(), fixed.cells[0].hash());
    expect_rejected(with(", right_vectors = \"scores:gaussian\""), "are left vectors");
}

TEST(StudyModels, RowsOfRandomScaleHaveNoLimits) {
    const auto with = [](const std::string& noise, const std::string& rest = "") {
        return square + "noise = { " + noise + " }\nsignal = { strength = 3.0 }" + rest;
    };
    const Experiment experiment = read(with("student_rows = 5"));
    EXPECT_TRUE(experiment.cells[0].limits.empty());
    ASSERT_EQ(experiment.notes.size(), 1U);
    EXPECT_NE(experiment.notes[0].find("drawn anew in every block"), std::string::npos);
    EXPECT_NE(experiment.cells[0].hash(), read(with("student_rows = 6")).cells[0].hash());
    EXPECT_EQ(read(with("student_rows = 0")).cells[0].hash(), read(with("")).cells[0].hash());
    expect_rejected(with("student_rows = 2"), "above 2, where rows have a variance");
    expect_rejected(with("student_rows = -1"), "\"student_rows\" must be a number");
    expect_rejected(with("student_rows = 5", "\nseen = 0.5"), "beside student_rows");
    expect_rejected(with("student_rows = 5, colouring = \"eigenbasis\""), "rows of random scale cannot be coloured");
}

TEST(StudyModels, RatesOfMissingEntriesByRowOrColumnHaveNoLimits) {
    const auto with = [](const std::string& rest) { return square + rest + "\nsignal = { strength = 3.0 }"; };
    const Experiment uniform = read(with("seen = 0.5"));
    const Experiment rows = read(with("seen = 0.5\nseen_by = \"rows\"\nseen_spread = 0.5"));
    EXPECT_FALSE(uniform.cells[0].limits.empty());
    EXPECT_EQ(read(with("seen = 0.5\nseen_by = \"uniform\"")).cells[0].hash(), uniform.cells[0].hash());
    EXPECT_TRUE(rows.cells[0].limits.empty());
    ASSERT_EQ(rows.notes.size(), 1U);
    EXPECT_NE(rows.notes[0].find("probabilities of their own to be seen"), std::string::npos);
    EXPECT_NE(rows.cells[0].hash(), uniform.cells[0].hash());
    EXPECT_GT(mean_of(rows, 0, "overlap.left", 1), 0.3);
    EXPECT_EQ(read(with("seen = 0.5\nseen_by = \"both\""), "[sweep]\nseen_spread = [0.0, 0.3]").cells.size(), 2U);
    EXPECT_EQ(read(with("seen_by = \"rows\"")).cells[0].hash(), read(with("")).cells[0].hash());
    expect_rejected(with("seen = 0.5\nseen_spread = 0.2"), "is not possible (probabilities from");
    expect_rejected(with("seen = 0.8\nseen_by = \"both\"\nseen_spread = 0.2"), "is not possible (probabilities from");
    expect_rejected(with("seen = 0.5\nseen_by = \"lines\""), "lines");
}

TEST(StudyModels, CountsHaveTheirMeansAsSignal) {
    const std::string counts = "kind = \"counts\"\nn = 40\nd = 60\n";
    const Experiment experiment = read(counts + "components = 2\nmean = 20.0\nrow_spread = 0.3");
    EXPECT_TRUE(experiment.cells[0].limits.empty());
    EXPECT_GT(mean_of(experiment, 0, "overlap.left", 1), 0.9);
    EXPECT_GT(mean_of(experiment, 0, "overlap.left", 2), 0.3);
    EXPECT_EQ(mean_of(experiment, 0, "rank_false", 0) - mean_of(experiment, 0, "rank_missed", 0),
              mean_of(experiment, 0, "rank", 0) - 2.0);
    const auto hash = [&](const std::string& rest) { return read(counts + rest).cells[0].hash(); };
    EXPECT_EQ(hash(""), hash("components = 1\nmean = 1.0\ndispersion = 0.0"));
    EXPECT_NE(hash(""), hash("dispersion = 0.1"));
    EXPECT_EQ(read(counts, "[sweep]\nmean = [0.5, 2.0]").cells.size(), 2U);
    expect_rejected(counts + "components = 41", "counts of 41 components do not fit a 40 x 60 block");
    expect_rejected(counts + "mean = 0.0", "\"mean\" must be a number");
    expect_rejected(counts + "signal = { strength = 2.0 }", "unknown key \"signal\"");
}

TEST(StudyModels, ExplicitDefaultsGiveTheSameCell) {
    const auto hash = [](const std::string& model) { return read(model).cells[0].hash(); };
    const std::string plain = hash(square + "signal = { strength = 3.0 }");
    EXPECT_EQ(
        hash(square + "noise = { entries = \"gaussian\", colouring = \"dense\", row_cov = { kind = \"identity\" } }\n"
                      "signal = { strength = [3.0], rank = 1, unit = \"threshold\", vectors = \"haar\" }"),
        plain);
    EXPECT_NE(hash(square + "signal = { strength = 3.0, left_vectors = \"sparse:3\" }"), plain);
    EXPECT_NE(hash(square + "noise = { colouring = \"eigenbasis\" }\nsignal = { strength = 3.0 }"), plain);
}

TEST(StudyModels, WhiteningWithAKnownLawUsesTheCovariancesOfTheBlocks) {
    // The covariances from their definitions: rho^|i-j| for the rows, exp(-c (j - 1/2) / d) for the columns.
    const double sigma = 1.0 / std::sqrt(32.0);
    const std::string name = fmt::format("whiten+gd-shrink:sigma={}", sigma);
    const arma::mat rows = arma::toeplitz(arma::exp(arma::regspace(0, 23) * std::log(0.6)));
    const arma::vec columns = arma::exp(-3.0 * (arma::regspace(1, 32) - 0.5) / 32.0);
    for (const char* colouring : {"dense", "eigenbasis"}) {
        const Experiment experiment =
            parse_study("spiked = 1\n[study]\nname = \"known\"\nseed = \"0x5eed\"\n[model]\n" + square +
                            "noise = { row_cov = { kind = \"ar1\", rho = 0.6 }, col_cov = { kind = \"exponential\", c "
                            "= 3.0 }, colouring = \"" +
                            colouring + "\" }\nsignal = { strength = [6.0, 4.0] }\n[[estimator]]\nname = \"" + name +
                            "\"\nlaw = \"known\"\n[[estimator]]\nname = \"" + name +
                            "\"\nas = \"estimated\"\n[run]\nreps = { min = 4, batch = 2 }\n",
                        "known.toml")
                .experiment;
        // In its eigenbasis the row covariance is diagonal, largest eigenvalue first.
        arma::vec eigenvalues = arma::reverse(arma::eig_sym(rows));
        const auto row = colouring == std::string("dense") ? estimators::NoiseCovariance::full(rows)
                                                           : estimators::NoiseCovariance::diagonal(eigenvalues);
        const estimators::SpectralMethod known =
            estimators::spectral_method(name).knowing({row, estimators::NoiseCovariance::diagonal(columns)});
        const auto worker = experiment.worker(0, {0, 4});
        for (std::uint64_t replicate = 0; replicate < 4; ++replicate) {
            estimators::AnalysedBlock block(experiment.block(0, replicate));
            const estimators::Shrinkage expected = known.estimate(block);
            ASSERT_GE(expected.rank, 1U);
            for (const auto& o : worker(replicate)) {
                if (o.metric == metric_index("rank") && o.method == 1) {
                    EXPECT_EQ(o.value, static_cast<double>(expected.rank)) << colouring;
                }
                if (o.metric != metric_index("shrunk") || static_cast<std::size_t>(o.k) > expected.rank) continue;
                const double shrunk = expected.shrunk[static_cast<std::size_t>(o.k) - 1];
                if (o.method == 1) {
                    EXPECT_NEAR(o.value, shrunk, 1e-10) << colouring;
                } else {
                    EXPECT_GT(std::abs(o.value - shrunk), 1e-4) << "negative control: estimated covariances";
                }
            }
        }
    }
}

TEST(StudyModels, SkipRulesLeaveOutPointsOfTheSweep) {
    const std::string model =
        square + "noise = { row_cov = { kind = \"ar1\", rho = 0.0 } }\nsignal = { strength = 3.0 }";
    const std::string sweep =
        "[sweep]\nn = [24, 32]\n\"noise.row_cov.rho\" = [0.0, 0.5, 0.8]\n\"noise.entries\" = [\"gaussian\", "
        "\"laplace\"]\n";
    EXPECT_EQ(read(model, sweep).cells.size(), 12U);
    const Experiment some = read(
        model,
        sweep +
            "skip = [{ n = 24, \"noise.row_cov.rho\" = { gt = 0.4 } }, { \"noise.entries\" = \"laplace\", n = 32 }]");
    ASSERT_EQ(some.cells.size(), 12U - 4U - 3U);
    for (const auto& cell : some.cells) {
        const double n = *factor_of(cell, "n").number;
        EXPECT_FALSE(n == 24 && *factor_of(cell, "noise.row_cov.rho").number > 0.4) << cell.label;
        EXPECT_FALSE(n == 32 && cell.label.find("laplace") != std::string::npos) << cell.label;
    }
    expect_rejected(model, "\"m\" is not swept; did you mean \"n\"?", sweep + "skip = [{ m = 24 }]");
    expect_rejected(model, "skip rules leave no cell", sweep + "skip = [{ n = { ge = 1 } }]");
    expect_rejected(model, "must be a list of tables", sweep + "skip = 3");
    expect_rejected(model, "without conditions", sweep + "skip = [{}]");
}

TEST(StudyModels, ATableOfASweepBecomesAShortNameOfItsCell) {
    const Experiment experiment =
        read(square + "signal = { strength = 3.0 }",
             "[sweep]\n\"noise.row_cov\" = [{ kind = \"identity\" }, { rho = 0.7, kind = \"ar1\" "
             "}]\n\"noise.col_cov\" = [{ kind = \"uniform\", low = 0.1, high = 1.9 }]\n");
    ASSERT_EQ(experiment.cells.size(), 2U);
    EXPECT_EQ(factor_of(experiment.cells[0], "noise.row_cov").text, "identity");
    EXPECT_EQ(factor_of(experiment.cells[1], "noise.row_cov").text, "ar1:rho=0.7");
    EXPECT_EQ(experiment.cells[1].label, "noise.col_cov=uniform:high=1.9,low=0.1 noise.row_cov=ar1:rho=0.7");
}

TEST(StudyModels, AttentionLikeBlocksHaveKeysValuesAndOptionalParts) {
    const Experiment experiment = read("kind = \"kv_like\"\nn = 32\nd = 16\nhidden = 32",
                                       "[sweep]\nside = [\"key\", \"value\"]\nrotary = [false, { base = 500.0 }]");
    ASSERT_EQ(experiment.cells.size(), 4U);
    EXPECT_EQ(experiment.kind, "kv_like");
    EXPECT_TRUE(experiment.cells[0].predictions.empty());
    for (std::size_t c = 0; c < 4; ++c) {
        EXPECT_EQ(experiment.cells[c].rows, 32U);
        EXPECT_EQ(experiment.cells[c].columns, 16U);
        EXPECT_GT(mean_of(experiment, c, "overlap.left", 1), 0.5) << experiment.cells[c].label;
    }
    expect_rejected("kind = \"kv_like\"\nn = 32\nd = 15", "d");
    expect_rejected("kind = \"kv_like\"\nsink = 3", "\"sink\" must be a table or false");
    expect_rejected("kind = \"kv_like\"\ncontext = { rnak = 3 }", "did you mean \"rank\"?");
    expect_rejected("kind = \"kv_like\"\nrotary = { style = \"rotate\" }", "rotate-half");
}

TEST(StudyModels, AMatrixFileIsMeasuredWithADifferentRotationInEachReplicate) {
    arma::mat block(40, 24);
    stream::fill_normal(stream::Stream({}, "study models", stream::Role::noise, 0), {block.memptr(), block.n_elem});
    block.col(0) += 3.0;
    const std::string path = testing::TempDir() + "spiked-study-models.npy";
    sim::write_npy(path, block);
    const Experiment experiment =
        read("kind = \"matrix\"\nsource = [\"" + path + "\"]", "[[codec]]\nname = \"tq-mse\"\nbits = [2]");
    ASSERT_EQ(experiment.cells.size(), 1U);
    EXPECT_EQ(experiment.cells[0].rows, 40U);
    std::vector<double> errors;
    const auto worker = experiment.worker(0, {0, 1});
    for (std::uint64_t r = 0; r < 4; ++r)
        for (const auto& o : worker(r)) {
            EXPECT_NE(experiment.methods[o.method].kind, "sample");  // the true signal is unknown
            EXPECT_NE(o.metric, metric_index("relative_error"));
            if (o.metric == metric_index("relative_l2")) errors.push_back(o.value);
        }
    ASSERT_EQ(errors.size(), 4U);
    EXPECT_NE(errors[0], errors[1]);
    EXPECT_TRUE(arma::approx_equal(experiment.block(0, 3), block, "absdiff", 0.0));
    // Prepared, it is another block and another cell.
    const Experiment centred = read("kind = \"matrix\"\ncenter = \"columns\"\nsource = [\"" + path + "\"]",
                                    "[[codec]]\nname = \"tq-mse\"\nbits = [2]");
    const arma::mat expected = block.each_row() - arma::mean(block, 0);
    EXPECT_TRUE(arma::approx_equal(centred.block(0, 0), expected, "absdiff", 1e-14));
    EXPECT_NE(centred.cells[0].hash(), experiment.cells[0].hash());
    ASSERT_EQ(experiment.notes.size(), 1U);
    EXPECT_NE(experiment.notes[0].find("mostly the means of the columns"), std::string::npos);
    EXPECT_NE(experiment.notes[0].find("center = \"columns\" removes them"), std::string::npos);
    EXPECT_TRUE(centred.notes.empty());
    const std::string of_file = "kind = \"matrix\"\nsource = [\"" + path + "\"]\n";
    expect_rejected(of_file + "center = \"colums\"", "did you mean \"columns\"?");
    expect_rejected(of_file + "standardize = \"both\"", "\"both\" of standardize is not possible");
    expect_rejected(of_file + "center = \"rows\"\nstandardize = \"columns\"", "leave the latter out");
    expect_rejected("kind = \"matrix\"\nsource = [\"" + path + "\"]", "no sweep", "[sweep]\nn = [3]");
    expect_rejected("kind = \"matrix\"\nsource = [\"/nowhere/*.npy\"]", "no file is called");
    std::filesystem::remove(path);
}

TEST(StudyModels, ATableIsReadAsItsKeysSay) {
    const std::string path = testing::TempDir() + "spiked-study-models.csv";
    {
        std::ofstream file(path);
        for (int row = 0; row < 20; ++row)
            file << fmt::format("{};{},5;{},25;{},75\n", row, (7 * row) % 11, (5 * row) % 13, (3 * row) % 17);
    }
    const std::string model = "kind = \"matrix\"\nsource = [\"" + path + "\"]\n";
    const std::string codec = "[[codec]]\nname = \"tq-mse\"\nbits = [2]";
    const Experiment guessed = read(model, codec);
    EXPECT_EQ(guessed.cells[0].columns, 3U);
    std::string notes;
    for (const auto& note : guessed.notes) notes += note + "\n";
    EXPECT_NE(notes.find("index = false reads it as data"), std::string::npos) << notes;
    EXPECT_EQ(notes.find("--"), std::string::npos) << notes;
    EXPECT_EQ(notes.find(path + ": " + path), std::string::npos) << notes;
    const Experiment told =
        read(model + "index = false\nheader = false\ndelimiter = \"semicolon\"\ndecimal = \"comma\"", codec);
    EXPECT_EQ(told.cells[0].columns, 4U);
    EXPECT_EQ(told.cells[0].rows, 20U);
    EXPECT_EQ(told.block(0, 0)(3, 0), 3.0);
    EXPECT_EQ(told.block(0, 0)(1, 1), 7.5);
    expect_rejected(model + "index = \"no\"", "\"index\" must be true or false");
    expect_rejected(model + "delimiter = \"semicolom\"", "did you mean \"semicolon\"?");
    expect_rejected(model + "layout = \"head,token,dim\"", "layout has no effect on a table");
    expect_rejected(model + "covariance = 199", "spiked spectrum --covariance");
    std::filesystem::remove(path);
}

TEST(StudyModels, ImpossibleModelsAreReportedWithTheirPlaces) {
    expect_rejected(square + "noise = { entries = \"laplaze\" }", "did you mean \"laplace\"?");
    expect_rejected(square + "noise = { entries = \"student:2\" }", "student");
    expect_rejected(square + "noise = { row_cov = { kind = \"ar1\", rho = 1.5 } }", "rho");
    expect_rejected(square + "noise = { row_cov = { kind = \"ar1\" } }", "\"rho\" is missing");
    expect_rejected(square + "noise = { row_cov = { kind = \"uniform\", low = 2, high = 1 } }", "uniform spectrum");
    expect_rejected(square + "noise = { row_cov = { kind = \"ar1\", rho = 0.5, basis = \"har\" } }",
                    "did you mean \"haar\"?");
    expect_rejected(square + "noise = { row_cov = { kind = \"ar1\", rho = 0.5, basis = \"orthogonal\" } }",
                    "did you mean \"haar\"?");
    expect_rejected(square + "signal = { strength = 3.0, unit = \"thresold\" }",
                    "\"thresold\" of unit is not possible; did you mean \"threshold\"?");
    expect_rejected(square + "signal = { strength = 3.0, vectors = \"localised:40\" }", "localised");
    expect_rejected(square + "signal = { strength = 3.0, left_vectors = \"eigen:col:1\" }", "eigen");
    expect_rejected(square + "noise = { entries = \"laplace\", colouring = \"eigenbasis\" }",
                    "of \"laplace\" entries is not possible");
    expect_rejected(square + "signal = { strength = [3.0, -1.0] }", "strength -1 is not possible");
}

TEST(StudyModels, AStudyCanBeReadFromItsStore) {
    const std::string path = testing::TempDir() + "spiked-study-again.spiked";
    std::filesystem::remove(path);
    const Study study = parse_study(study_of(square + "signal = { strength = 3.0 }"), "models.toml",
                                    {.set = {{"model.n", "28"}}, .seed = "0x77"});
    {
        Store store(path, study.experiment, "test", 1, Json::object());
        EXPECT_EQ(run_experiment(study.experiment, store, {.threads = 1}), RunOutcome::complete);
    }
    Database store = open_store(path);
    const Study again = stored_study(store);
    EXPECT_EQ(again.experiment.science_hash(), study.experiment.science_hash());
    EXPECT_EQ(again.experiment.seed.text(), study.experiment.seed.text());
    EXPECT_EQ(again.experiment.cells[0].rows, 28U);
    const auto before = study.experiment.worker(0, {2, 1})(2);
    const auto after = again.experiment.worker(0, {2, 1})(2);
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t i = 0; i < before.size(); ++i)
        EXPECT_TRUE(before[i].value == after[i].value || (std::isnan(before[i].value) && std::isnan(after[i].value)));
    std::filesystem::remove(path);
}

// An installed study finds the sample dump from any current folder, and also when it is read from its store, which has
// no folder.
TEST(StudyModels, SourcesAreRelativeToTheCurrentFolderAndThenToTheFolderOfTheStudyFile) {
    const std::filesystem::path folder = testing::TempDir() + "spiked-study-beside";
    std::filesystem::create_directories(folder / "studies");
    std::filesystem::create_directories(folder / "data");
    const arma::mat block(8, 6, arma::fill::ones);
    sim::write_npy((folder / "data" / "block.npy").string(), block);
    const std::string model = "kind = \"matrix\"\nsource = [\"../data/block.npy\"]";
    const std::string file = (folder / "studies" / "study.toml").string();
    std::ofstream(file) << study_of(model);
    expect_rejected(model, "no file is called ../data/block.npy");  // a text without a folder

    const Study study = read_study(file);
    EXPECT_EQ(study.experiment.cells.at(0).rows, 8U);
    const std::string path = (folder / "study.spiked").string();
    std::filesystem::remove(path);
    { Store store(path, study.experiment, "test", 1, Json::object()); }
    Database store = open_store(path);
    EXPECT_EQ(stored_study(store).experiment.science_hash(), study.experiment.science_hash());

    // The current folder has precedence.
    const auto before = std::filesystem::current_path();
    std::filesystem::create_directories(folder / "here" / "inside");
    std::filesystem::create_directories(folder / "here" / "data");
    sim::write_npy((folder / "here" / "data" / "block.npy").string(), arma::mat(5, 6, arma::fill::ones));
    std::filesystem::current_path(folder / "here" / "inside");
    EXPECT_EQ(read_study("../../studies/study.toml").experiment.cells.at(0).rows, 5U);
    std::filesystem::current_path(folder);
    EXPECT_EQ(read_study("studies/study.toml").experiment.cells.at(0).rows, 8U);
    std::filesystem::current_path(before);
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace spiked::validation
