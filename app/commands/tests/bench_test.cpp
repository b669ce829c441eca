#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "app/tests/process.hpp"
#include "estimators/coding/scalar_quantizer.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "estimators/svd/bench/lapack_routes.hpp"
#include "validation/trials/bench/trial.hpp"
#include "validation/trials/bench/trial_in_numpy.hpp"

namespace spiked::app {
namespace {

using sim::Colouring;
using validation::TrialOutcome;
using validation::Trials;

double relative_difference(double a, double b) { return std::abs(a - b) / std::abs(b); }

/// Largest relative difference of shrunk values and mean squared error; infinite where the ranks differ.
double difference(const TrialOutcome& found, const TrialOutcome& expected) {
    if (found.rank != expected.rank || found.shrunk.size() != expected.shrunk.size()) return HUGE_VAL;
    double largest = relative_difference(found.mean_squared_error, expected.mean_squared_error);
    for (std::size_t i = 0; i < found.shrunk.size(); ++i)
        largest = std::max(largest, relative_difference(found.shrunk[i], expected.shrunk[i]));
    return largest;
}

TEST(BenchCommand, TrialTimesEveryProgramAndReportsTheBlas) {
    const Outcome found = spiked("bench trial --json --seconds 0.1");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json json = found.json();
    EXPECT_EQ(*json.find("schema")->string(), "spiked.bench/1");
    EXPECT_EQ(*json.find("unit")->string(), "us");
    std::set<std::string> names;
    for (const Json& row : *json.find("rows")->items()) {
        names.insert(*row.find("what")->string());
        EXPECT_GT(number(row, "p10"), 0.0);
        EXPECT_GE(number(row, "median"), number(row, "p10"));
    }
    for (const char* name : {"spiked", "spiked-eigenbasis-hadamard", "numpy", "numpy-eigh", "stage:normals",
                             "stage:colour", "stage:decompose", "stage:shrink", "stage:rotate", "stage:quantize"})
        EXPECT_TRUE(names.contains(name)) << name;
    const Json& numpy = *json.find("numpy");
    EXPECT_NE(numpy.find("blas")->string()->find("OpenBLAS"), std::string::npos) << numpy.text();
    EXPECT_EQ(number(numpy, "threads"), 1);
    EXPECT_EQ(json.find("outcomes")->items()->size(), 4U);

    const Outcome text = spiked("bench trial --seconds 0.1");
    EXPECT_NE(text.out.find("times as fast as numpy"), std::string::npos) << text.out << text.err;
    EXPECT_NE(text.out.find("OpenBLAS"), std::string::npos);
}

TEST(BenchCommand, ModelTimesTheSameForwardPass) {
    for (const char* kind : {"untied", "tied"}) {
        const std::string folder = scratch(std::string("bench-") + kind);
        std::filesystem::create_directories(folder);
        const std::string line = "/usr/bin/python3 '" SPIKED_SOURCE_DIR "/sim/llama/tests/llama_in_numpy.py' '" +
                                 folder + "' " + kind + " 200 > '" + folder + "/out'";
        ASSERT_EQ(std::system(line.c_str()), 0);
        double expected = 0.0;
        std::ifstream file(folder + "/out");
        double token = 0.0;
        for (double nats = 0.0; file >> token >> nats;) expected += nats / 199.0;
        const std::string words = "bench model --model '" + folder + "' --tokens '" + folder + "/tokens.npy' ";
        const Outcome found = spiked(words + "--json --seconds 0.1");
        ASSERT_EQ(found.code, 0) << found.err;
        const Json json = found.json();
        EXPECT_NEAR(number(json, "nats"), expected, 1e-5);
        EXPECT_NEAR(number(json, "nats_in_numpy"), expected, 1e-5);
        EXPECT_EQ(json.find("rows")->items()->size(), 3U);
        EXPECT_GT(number(json, "over_gemm_floor"), 0.0);
        EXPECT_NEAR(number(json, "tokens_per_second") * number((*json.find("rows")->items())[0], "p10"), 1e6, 1.0);
        EXPECT_NE(spiked(words + "--seconds 0.1").out.find("tokens a second, numpy"), std::string::npos);
    }
    const std::string folder = scratch("bench-tied");
    const Outcome fraction = spiked("bench model --model '" + folder + "' --tokens '" + folder + "/keys.npy'");
    EXPECT_EQ(fraction.code, 4) << fraction.out;
    EXPECT_NE(fraction.err.find("token 0 of document 0 is"), std::string::npos) << fraction.err;
    EXPECT_EQ(spiked("bench model").code, 2);
    EXPECT_EQ(spiked("bench model --model /no/such --tokens x.npy").code, 4);
}

TEST(BenchCommand, DecomposeTimesTheSameDecomposition) {
    for (const char* precision : {"float", "double"}) {
        const Outcome found = spiked(std::string("bench decompose --json --seconds 0.1 --rows 40 --cols 64 --vectors 5 "
                                                 "--precision ") +
                                     precision);
        ASSERT_EQ(found.code, 0) << found.err;
        const Json json = found.json();
        EXPECT_EQ(*json.find("schema")->string(), "spiked.bench/1");
        std::map<std::string, double> p10;
        for (const Json& row : *json.find("rows")->items()) p10[*row.find("what")->string()] = number(row, "p10");
        for (const char* name :
             {"spiked", "estimate", "armadillo", "lapack-gesdd", "lapack-best", "numpy", "gemm", "gemm-floor"})
            EXPECT_GT(p10[name], 0.0) << name;
        const double n = 40.0;
        const double m = 64.0;
        const double products = (4 * m * n * n - 4 * n * n * n / 3 + 2 * (m + n) * n * 5) / (2 * n * n * n);
        EXPECT_NEAR(p10["gemm-floor"] / p10["gemm"], products, 1e-9);
        EXPECT_EQ(json.find("errors")->items()->size(), 7U);
    }
    EXPECT_EQ(spiked("bench decompose --precision half").code, 2);
    EXPECT_EQ(spiked("bench decompose --threads 1").code, 2);
    EXPECT_EQ(spiked("bench decompose --threads 2 --device emulated").code, 2);
    for (const char* size : {"--rows 24 --cols 16", "--rows 700 --cols 700 --vectors 2 --precision double"}) {
        const Outcome shared = spiked(std::string("bench decompose --threads 2 --json --seconds 0.1 ") + size);
        ASSERT_EQ(shared.code, 0) << shared.err;
        EXPECT_EQ(number(shared.json(), "threads"), 2);
        EXPECT_EQ(shared.json().find("rows")->items()->size(), 2U);
    }
    EXPECT_NE(spiked("bench decompose --threads 2 --seconds 0.1").out.find("2 threads are"), std::string::npos);
    EXPECT_EQ(spiked("bench decompose --rows 1").code, 2);
    const Outcome text = spiked("bench decompose --seconds 0.1 --rows 16 --cols 16");
    EXPECT_NE(text.out.find("times the gemm-floor"), std::string::npos) << text.out << text.err;
}

TEST(BenchCommand, QuantizeTimesEveryMethodBothWays) {
    const Outcome found = spiked("bench quantize --json --seconds 0.1");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json json = found.json();
    EXPECT_EQ(*json.find("schema")->string(), "spiked.bench/1");
    EXPECT_EQ(*json.find("unit")->string(), "us");
    std::map<std::string, double> p10;
    for (const Json& row : *json.find("rows")->items()) {
        p10[*row.find("what")->string()] = number(row, "p10");
        EXPECT_GE(number(row, "median"), number(row, "p10"));
    }
    EXPECT_EQ(p10.size(), 5 * 3 * 2 + 2U);
    for (const std::string method : {"tq-mse", "tq-mse-rht2", "tq-prod", "eden", "kivi"})
        for (const std::string bits : {"2", "3", "4"})
            for (const std::string way : {"encode", "decode"})
                EXPECT_GT(p10[method + ":" + bits + ":" + way], 0.0) << method;
    EXPECT_GT(p10["gemm"], p10["copy"]);
    const Outcome text = spiked("bench quantize --seconds 0.1");
    EXPECT_NE(text.out.find("p10 / gemm"), std::string::npos) << text.out << text.err;
    EXPECT_EQ(spiked("bench quantize --seconds much").code, 2);
}

TEST(BenchCommand, CacheTimesCausalCodesBesideRowQuantizers) {
    const Outcome found = spiked("bench cache --json --seconds 0.1 --heads 2 --dim 8");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json json = found.json();
    std::map<std::string, double> p10;
    for (const Json& row : *json.find("rows")->items()) p10[*row.find("what")->string()] = number(row, "p10");
    EXPECT_EQ(p10.size(), 4 * 3 + 2 + 1U);
    for (const std::string method : {"tq-mse", "tcq", "causal-klt", "causal-klt-joint"})
        for (const std::string way : {"encode", "decode", "read"}) {
            const std::string what = method + ":" + way;
            EXPECT_GT(p10[what], 0.0) << what;
            EXPECT_NEAR(number(*json.find("tokens_per_second"), what.c_str()), 128e6 / p10[what],
                        1e-6 * 128e6 / p10[what]);
        }
    const auto& states = *json.find("states")->items();
    ASSERT_EQ(states.size(), 2U);
    for (const Json& state : states) EXPECT_NEAR(number(state, "bits_per_entry"), 2.0, 0.4);
    // Four matrices of 32 x 32 doubles beside four times four of 8 x 8, and tables that do not depend on the channels.
    EXPECT_GT(number(states[1], "state_bytes"), 8.0 * 4 * 32 * 32);
    EXPECT_GT(number(states[0], "state_bytes"), number(states[1], "state_bytes"));
    const Outcome text = spiked("bench cache --seconds 0.1 --heads 1 --dim 4");
    EXPECT_NE(text.out.find("tokens a second"), std::string::npos) << text.out << text.err;
    EXPECT_EQ(spiked("bench cache --heads 9 --dim 128").code, 2);
    EXPECT_EQ(spiked("bench cache --dim 1").code, 2);
}

template <class Real>
void expect_routes_decompose(estimators::Shape shape, std::size_t wanted, double accuracy) {
    arma::arma_rng::set_seed(7);
    const arma::Mat<Real> block(shape.rows, shape.columns, arma::fill::randn);
    const arma::Mat<Real> tall = shape.rows >= shape.columns ? block : arma::Mat<Real>(block.t());
    const arma::vec expected = arma::svd(arma::conv_to<arma::mat>::from(block));
    for (const auto& name : estimators::lapack_routes()) {
        const auto route = estimators::lapack_route<Real>(name, shape, wanted);
        for (int twice = 0; twice < 2; ++twice) route->run(block.memptr());
        const arma::Mat<Real> u(route->long_vectors().data(), tall.n_rows, wanted);
        const arma::Mat<Real> v(route->short_vectors().data(), tall.n_cols, wanted);
        const arma::Col<Real> s(route->values());
        EXPECT_LT(std::abs(static_cast<double>(s(0)) - expected(0)), accuracy * expected(0)) << name;
        EXPECT_LT(arma::norm(tall * v - u * arma::diagmat(s.head(wanted)), "fro"), accuracy * expected(0)) << name;
        const arma::Mat<Real> one(wanted, wanted, arma::fill::eye);
        EXPECT_LT(arma::norm(u.t() * u - one, "fro"), accuracy) << name;
        EXPECT_LT(arma::norm(v.t() * v - one, "fro"), accuracy) << name;
    }
}

TEST(LapackRoutes, AllDecompose) {
    for (const auto& shape : {estimators::Shape{64, 64}, {96, 40}, {30, 77}}) {
        expect_routes_decompose<double>(shape, 6, 1e-11);
        expect_routes_decompose<float>(shape, 6, 2e-3);
    }
}

TEST(BenchCommand, TheReferenceBlasIsRejected) {
    const std::string folder = "/usr/lib/x86_64-linux-gnu/blas";
    if (!std::filesystem::exists(folder + "/libblas.so.3")) GTEST_SKIP() << "no reference BLAS is installed";
    const Outcome found = spiked("bench trial --seconds 0.1", "LD_LIBRARY_PATH=" + folder);
    EXPECT_EQ(found.code, 4) << found.out;
    EXPECT_NE(found.err.find("instead of OpenBLAS"), std::string::npos) << found.err;
    EXPECT_NE(found.err.find(folder), std::string::npos) << found.err;
    EXPECT_EQ(found.out, "");
}

class TrialReference : public testing::TestWithParam<Colouring> {};

/// The same trial in double by the direct computation: covariances, LAPACK's SVD, one bin at a time.
TrialOutcome reference_trial(const validation::TrialSetup& setup, Colouring colouring, const arma::fmat& normals) {
    const sim::SpikedModel& model = setup.model;
    const arma::uword n = normals.n_rows;
    const arma::uword d = normals.n_cols;
    const arma::mat white = arma::conv_to<arma::mat>::from(normals) / std::sqrt(static_cast<double>(d));
    arma::mat signal = setup.left *
                       arma::diagmat(arma::vec{model.strengths[0].value, model.strengths[1].value,
                                               model.strengths[2].value, model.strengths[3].value}) *
                       setup.right.t();
    arma::mat observed;
    arma::mat rotated;
    if (colouring == Colouring::dense) {
        observed = signal + model.column.times_root(model.row.root_times(white));
    } else {
        observed = model.row.basis().t() * signal * model.column.basis() +
                   model.column.in_eigenbasis().times_root(model.row.in_eigenbasis().root_times(white));
    }
    arma::mat u;
    arma::mat v;
    arma::vec s;
    arma::svd_econ(u, s, v, observed);
    const auto shrinkage = estimators::eoptshrink(std::vector<double>(s.begin(), s.end()), {n, d});
    arma::mat residual = observed;
    for (arma::uword k = 0; k < shrinkage.rank; ++k) residual -= shrinkage.shrunk[k] * u.col(k) * v.col(k).t();
    if (colouring == Colouring::dense)
        residual = residual * setup.rotation.t();
    else
        estimators::HadamardRotation(validation::trial_rotation(), d).rotate(residual);
    double sum = 0.0;
    for (arma::uword i = 0; i < n; ++i) {
        const double scale = arma::norm(residual.row(i)) / std::sqrt(static_cast<double>(d));
        for (const double entry : arma::rowvec(residual.row(i))) {
            const double level = setup.codebook.levels[estimators::cell_of(entry / scale, setup.codebook)];
            sum += std::pow(entry - scale * level, 2);
        }
    }
    return {shrinkage.rank, shrinkage.shrunk, sum / static_cast<double>(n * d)};
}

TEST_P(TrialReference, AgreesWithADirectComputationInDoubleOnTheSameDraws) {
    const auto setup = validation::trial_setup();
    Trials trials(setup, GetParam());
    double largest = 0.0;
    double lost = 0.0;  // fraction of the residual's energy that quantization loses
    const std::vector<TrialOutcome> found = trials.run(0);
    for (std::size_t at = 0; at < found.size(); ++at) {
        EXPECT_EQ(found[at].rank, 4U);
        largest = std::max(largest, difference(found[at], reference_trial(setup, GetParam(), Trials::white(at))));
        lost += found[at].mean_squared_error / found[at].residual_energy / static_cast<double>(found.size());
    }
    RecordProperty("largest_relative_difference", std::to_string(largest));
    EXPECT_LT(largest, 1e-6);  // measured 1.5e-7
    EXPECT_NEAR(lost, setup.codebook.distortion, 0.02 * setup.codebook.distortion);
    // Negative control: other draws differ.
    EXPECT_GT(difference(found[1], found[0]), 1e-3);
    // A trial does not depend on its position in the batch.
    const TrialOutcome first = trials.run(3).front();
    EXPECT_EQ(first.shrunk, found[3].shrunk);
    EXPECT_EQ(first.mean_squared_error, found[3].mean_squared_error);
}

INSTANTIATE_TEST_SUITE_P(Colourings, TrialReference, testing::Values(Colouring::dense, Colouring::eigenbasis),
                         [](const auto& test) { return test.param == Colouring::dense ? "dense" : "eigenbasis"; });

TEST(TrialReference, TheNumPyProgramAgreesOnTheSameDraws) {
    const auto setup = validation::trial_setup();
    Trials trials(setup, Colouring::dense);
    validation::TrialInNumpy numpy(setup);
    const std::vector<TrialOutcome> ours = trials.run(0);
    for (const char* decomposition : {"svd", "eigh"})
        for (std::size_t at = 0; at < 5; ++at)
            EXPECT_LT(difference(numpy.run(decomposition, Trials::white(at)), ours[at]), 1e-5) << decomposition;
    EXPECT_GT(difference(numpy.run("svd", arma::fmat(2.0F * Trials::white(5))), ours[5]), 1e-3);  // control
}

}  // namespace
}  // namespace spiked::app
