// `spiked spectrum --values`: the largest singular values alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <armadillo>
#include <cmath>

#include "app/tests/process.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/table.hpp"
#include "sim/random/normal.hpp"

namespace spiked::app {
namespace {

/// White noise of deviation .1 with three components, in a file.
std::string values_matrix(const std::string& name, std::size_t rows, std::size_t columns) {
    const auto normals = [](std::size_t n, std::size_t d, std::uint64_t replicate) {
        arma::mat matrix(n, d);
        const stream::Stream stream({}, "values command", stream::Role::noise, replicate);
        stream::fill_normal(stream, std::span<double>(matrix.memptr(), matrix.n_elem));
        return matrix;
    };
    const double edge = 0.1 * (std::sqrt(static_cast<double>(rows)) + std::sqrt(static_cast<double>(columns)));
    const arma::mat left = arma::normalise(normals(rows, 3, 1)), right = arma::normalise(normals(columns, 3, 2));
    const arma::mat matrix =
        0.1 * normals(rows, columns, 0) + left * arma::diagmat(arma::vec{4.0, 3.0, 2.0} * edge) * right.t();
    sim::write_matrix(scratch(name), matrix);
    return scratch(name);
}

Json values_json(const std::string& words) {
    const Outcome found = spiked("spectrum " + words + " --json");
    EXPECT_EQ(found.code, 0) << found.err;
    return found.json();
}

void expect_values_of(const std::string& path, std::size_t count, bool iterated) {
    const Json all = values_json(path + " --estimator gd-shrink:sigma=.1");
    const Json some = values_json(path + " --estimator gd-shrink:sigma=.1 --values " + std::to_string(count));
    const auto& expected = *all.find("singular_values")->items();
    const auto& found = *some.find("singular_values")->items();
    const auto& bounds = *some.find("value_bounds")->items();
    ASSERT_EQ(found.size(), count);
    ASSERT_EQ(bounds.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
        EXPECT_LE(std::abs(number(found[i]) - number(expected[i])), number(bounds[i]));
        EXPECT_LE(number(bounds[i]), 1e-7 * number(found[i]));
    }
    EXPECT_TRUE(all.find("value_bounds")->is_null());
    EXPECT_EQ(some.find("krylov_dimension")->is_null(), !iterated);
    EXPECT_EQ(some.text().find("block Krylov") == std::string::npos, !iterated);
    const Json& of_all = all.find("estimators")->items()->front();
    const Json& of_some = some.find("estimators")->items()->front();
    EXPECT_EQ(number(of_some, "rank"), 3.0);
    EXPECT_NEAR(number(of_some, "bulk_edge"), number(of_all, "bulk_edge"), 1e-9);
    EXPECT_NEAR(number(of_some, "next_component_p_value"), number(of_all, "next_component_p_value"), 1e-6);
    for (const char* key : {"strengths", "overlap_left", "overlap_right", "shrunk"})
        for (std::size_t i = 0; i < 3; ++i)
            EXPECT_NEAR(number((*of_some.find(key)->items())[i]), number((*of_all.find(key)->items())[i]), 1e-6) << key;
    const auto strength = [](const Json& estimate, std::size_t i) {
        return *(*estimate.find("intervals")->find("strength")->items())[i].items();
    };
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t end = 0; end < 2; ++end)
            EXPECT_NEAR(number(strength(of_some, i)[end]), number(strength(of_all, i)[end]), 1e-6);
}

TEST(ValuesOption, GivesTheLargestOfAllValuesWithTheirBoundsAndTheSameEstimates) {
    expect_values_of(values_matrix("small.npy", 60, 40), 5, false);
    expect_values_of(values_matrix("large.npy", 1400, 1300), 4, true);
}

TEST(ValuesOption, WritesTheSameEstimatedSignal) {
    const std::string path = values_matrix("signal.npy", 1024, 1100);
    const std::string method = " --estimator svd:3 --denoised ";
    ASSERT_EQ(spiked("spectrum " + path + method + scratch("all.npy")).code, 0);
    ASSERT_EQ(
        spiked("spectrum " + path + method + scratch("some.npy") + " --residual " + scratch("rest.npy") + " --values 4")
            .code,
        0);
    const arma::mat some = sim::read_matrix(scratch("some.npy"));
    EXPECT_LE(arma::abs(some - sim::read_matrix(scratch("all.npy"))).max(), 1e-9);
    EXPECT_LE(arma::abs(some + sim::read_matrix(scratch("rest.npy")) - sim::read_matrix(path)).max(), 1e-14);
}

/// Zero rows and columns keep their place in the estimated signal, and --threads changes no bit.
TEST(ValuesOption, KnowsEmptyLinesAndAnyNumberOfThreads) {
    arma::mat matrix = sim::read_matrix(values_matrix("full.npy", 1060, 1050));
    matrix.row(7).zeros();
    matrix.col(1000).zeros();
    sim::write_matrix(scratch("holes.npy"), matrix);
    const std::string words = "spectrum " + scratch("holes.npy") + " --values 3 --estimator svd:2 --json --denoised ";
    const Outcome one = spiked(words + scratch("one.npy") + " --threads 1");
    const Outcome two = spiked(words + scratch("two.npy") + " --threads 2");
    ASSERT_EQ(one.code, 0) << one.err;
    EXPECT_EQ(one.out, two.out);
    EXPECT_EQ(contents(scratch("one.npy")), contents(scratch("two.npy")));
    const arma::mat clean = sim::read_matrix(scratch("one.npy"));
    EXPECT_EQ(arma::abs(clean.row(7)).max(), 0.0);
    EXPECT_EQ(arma::abs(clean.col(1000)).max(), 0.0);
    EXPECT_GT(arma::abs(clean.row(8)).max(), 0.0);
}

TEST(ValuesOption, PrintsEachValueWithItsBoundAndNeedsNoEstimator) {
    const std::string path = values_matrix("plain.npy", 50, 30);
    const Outcome found = spiked("spectrum " + path + " --values 2");
    ASSERT_EQ(found.code, 0) << found.err;
    EXPECT_NE(found.out.find("the 2 largest of 30 singular values"), std::string::npos) << found.out;
    EXPECT_NE(found.out.find("bound"), std::string::npos);
    EXPECT_EQ(found.out.find("rank"), std::string::npos);
    const Json all = values_json(path + " --values 100");
    EXPECT_EQ(all.find("singular_values")->items()->size(), 30u);
    EXPECT_TRUE(all.find("estimators")->items()->empty());
}

TEST(ValuesOption, RejectsWhatNeedsTheOtherValuesAndSaysWhy) {
    const std::string path = values_matrix("rejected.npy", 50, 30);
    const auto rejected = [&](const std::string& words, const std::string& part) {
        const Outcome found = spiked("spectrum " + path + " --values 4 " + words);
        EXPECT_EQ(found.code, 2) << words;
        EXPECT_NE(found.err.find(part), std::string::npos) << words << ": " << found.err;
        EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), 1) << found.err;
    };
    for (const char* name : {"eoptshrink", "optshrink:2", "gd-shrink", "gd-hard", "gd-shrink:quantile", "screenot:3",
                             "tw-test", "svd:rd", "svd:ed"})
        rejected(fmt::format("--estimator {}", name), "needs all singular values (it learns from those behind");
    rejected("--estimator svd:pa", "its rank comes from the whole matrix");
    rejected("--estimator tw-test:null=signflip", "its rank comes from the whole matrix");
    rejected("--estimator whiten+gd-shrink:sigma=1", "another matrix than the given one");
    rejected("--estimator svd:5", "svd:5 needs 5 singular values (--values asks for 4)");
    rejected("--estimator gd-shrink:sigma=.001", "counts all 4 values as components (there may be more)");
    rejected("--plot x.svg", "--plot and --values exclude each other (the picture shows all");
    rejected("--covariance 60", "--values and --covariance exclude each other");
    rejected("--denoised x.npy", "needs an estimator");
    for (const char* name :
         {"svd:4", "gd-hard:sigma=.1", "tw-test:sigma=.1", "tw-test --row-spectrum ar1:0.5 --col-spectrum identity"})
        EXPECT_EQ(spiked(fmt::format("spectrum {} --values 30 --estimator {}", path, name)).code, 0) << name;
}

TEST(SpectrumInFloat, IsWithinTheBoundThatItsNoteStates) {
    const std::string path = values_matrix("in-float.npy", 300, 200);
    const Json exact = values_json(path);
    const Json rough = values_json(path + " --precision float");
    EXPECT_EQ(*exact.find("precision")->string(), "double");
    EXPECT_EQ(*rough.find("precision")->string(), "float");
    const auto& expected = *exact.find("singular_values")->items();
    const auto& found = *rough.find("singular_values")->items();
    ASSERT_EQ(found.size(), expected.size());
    const double bound = (1e-6 + 4e-9 * 300) * number(expected.front());
    double largest = 0.0;
    for (std::size_t i = 0; i < found.size(); ++i)
        largest = std::max(largest, std::abs(number(found[i]) - number(expected[i])));
    EXPECT_LE(largest, bound);
    EXPECT_GT(largest, 1e-12 * number(expected.front()));  // it was not computed in double
    EXPECT_NE(rough.text().find("decomposed in float: singular values are within 2e-06 of the largest"),
              std::string::npos);
    EXPECT_EQ(exact.text().find("decomposed in float"), std::string::npos);
    const Json& of_exact = exact.find("estimators")->items()->front();
    const Json& of_rough = rough.find("estimators")->items()->front();
    EXPECT_EQ(number(of_rough, "rank"), number(of_exact, "rank"));
    EXPECT_NEAR(number(of_rough, "bulk_edge") / number(of_exact, "bulk_edge"), 1.0, 1e-4);

    // A value beside which the others are below that bound.
    arma::mat wide(40, 30, arma::fill::zeros);
    wide.diag().fill(1e-8);
    wide(0, 0) = 1.0;
    sim::write_matrix(scratch("wide.npy"), wide);
    const std::string words = "spectrum " + scratch("wide.npy") + " --estimator svd:2";
    EXPECT_NE(spiked(words).out.find("1.000 1.000e-08"), std::string::npos) << spiked(words).out;
    EXPECT_NE(spiked(words + " --precision float").out.find("1.000 0 0"), std::string::npos);
    for (const std::string other : {"--values 4", "--covariance 300"}) {
        const Outcome rejected = spiked("spectrum " + path + " --precision float " + other);
        EXPECT_EQ(rejected.code, 2);
        EXPECT_NE(rejected.err.find(other.substr(0, other.find(' ')) + " and --precision exclude each other"),
                  std::string::npos)
            << rejected.err;
    }
}

}  // namespace
}  // namespace spiked::app
