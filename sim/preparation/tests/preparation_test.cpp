#include "sim/preparation/preparation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/runtime/error.hpp"

namespace spiked::sim {
namespace {

const arma::mat& data() {
    static const arma::mat matrix = {{1.5, -2.0, 0.25, 7.0}, {3.0, 4.0, -1.5, 7.5}, {-0.5, 10.0, 2.0, 6.0}};
    return matrix;
}

void expect_near(const arma::mat& found, const arma::mat& expected, double tolerance = 1e-14) {
    ASSERT_EQ(arma::size(found), arma::size(expected));
    EXPECT_LE(arma::abs(found - expected).max(), tolerance) << found;
}

/// The message of the error of this kind that the function throws.
template <class F>
std::string message_of(ErrorKind kind, F&& function) {
    try {
        function();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), kind);
        return error.what();
    }
    return "no such error";
}

// Expected matrices: NumPy, x - x.mean(0), x - x.mean(1, keepdims=True), both with + x.mean(), and
// (x - x.mean(0)) / x.std(0, ddof=1).
TEST(PreparationReference, CentresAndStandardizesAsNumpyDoes) {
    expect_near(prepared(data(), {.center = Lines::columns}).matrix,
                {{0.16666666666666674, -6.0, 0.0, 0.16666666666666696},
                 {1.6666666666666667, 0.0, -1.75, 0.666666666666667},
                 {-1.8333333333333333, 6.0, 1.75, -0.833333333333333}});
    expect_near(prepared(data(), {.center = Lines::rows}).matrix,
                {{-0.1875, -3.6875, -1.4375, 5.3125}, {-0.25, 0.75, -4.75, 4.25}, {-4.875, 5.625, -2.375, 1.625}});
    expect_near(prepared(data(), {.center = Lines::both}).matrix,
                {{1.5833333333333335, -4.583333333333333, 1.4166666666666667, 1.5833333333333337},
                 {1.5208333333333337, -0.14583333333333304, -1.8958333333333333, 0.5208333333333337},
                 {-3.104166666666667, 4.729166666666667, 0.47916666666666696, -2.104166666666667}},
                1e-13);
    expect_near(prepared(data(), {.standardize = Lines::columns}).matrix,
                {{0.09491579957524984, -1.0, 0.0, 0.21821789023599275},
                 {0.9491579957524989, 0.0, -1.0, 0.8728715609439697},
                 {-1.0440737953277488, 1.0, 1.0, -1.0910894511799618}});
    const arma::mat transposed = data().t();
    expect_near(prepared(transposed, {.standardize = Lines::rows}).matrix,
                prepared(data(), {.standardize = Lines::columns}).matrix.t(), 0.0);
}

TEST(Preparation, DoesNothingByDefault) { expect_near(prepared(data(), {}).matrix, data(), 0.0); }

TEST(Preparation, IsAsAccurateFarFromZero) {
    const arma::mat far = data() + 1e9;  // its entries are multiples of 1/4: no rounding
    expect_near(prepared(far, {.center = Lines::columns}).matrix, prepared(data(), {.center = Lines::columns}).matrix,
                1e-13);
    expect_near(prepared(data() * 1e200, {.standardize = Lines::columns}).matrix,
                prepared(data(), {.standardize = Lines::columns}).matrix, 1e-13);
}

// Expected: NumPy, as above, and numpy.linalg.svd(x - x.mean(0)).
TEST(PreparationReference, ZeroRowsAndColumnsAreData) {
    const arma::mat matrix = {{1.5, -2.0, 0.0, 7.0}, {3.0, 4.0, 0.0, 7.5}, {0, 0, 0, 0}, {-0.5, 10.0, 0.0, 6.0}};
    const NotedMatrix columns = prepared(matrix, {.center = Lines::columns});
    expect_near(columns.matrix,
                {{0.5, -5.0, 0.0, 1.875}, {2.0, 1.0, 0.0, 2.375}, {-1.0, -3.0, 0.0, -5.125}, {-1.5, 7.0, 0.0, 0.875}});
    const arma::vec values = arma::svd(columns.matrix);
    EXPECT_LE(arma::abs(values - arma::vec{9.401629147940023, 6.038829819407327, 1.6820831658516298, 0.0}).max(),
              1e-13);
    EXPECT_EQ(columns.notes, std::vector<std::string>{
                                 "1 zero row counted as data in the centring: if it is padding, remove it first"});
    const NotedMatrix rows = prepared(matrix, {.center = Lines::rows});
    expect_near(rows.matrix, {{-0.125, -3.625, -1.625, 5.375},
                              {-0.625, 0.375, -3.625, 3.875},
                              {0.0, 0.0, 0.0, 0.0},
                              {-4.375, 6.125, -3.875, 2.125}});
    EXPECT_EQ(rows.notes, std::vector<std::string>{
                              "1 zero column counted as data in the centring: if it is padding, remove it first"});
    expect_near(prepared(matrix, {.center = Lines::both}).matrix, {{1.15625, -4.34375, 0.65625, 2.53125},
                                                                   {0.65625, -0.34375, -1.34375, 1.03125},
                                                                   {1.28125, -0.71875, 2.28125, -2.84375},
                                                                   {-3.09375, 5.40625, -1.59375, -0.71875}});
    arma::mat narrow = matrix;
    narrow.shed_col(2);
    expect_near(prepared(narrow, {.standardize = Lines::columns}).matrix,
                {{0.31622776601683794, -0.944911182523068, 0.5398618130615209},
                 {1.2649110640673518, 0.1889822365046136, 0.6838249632112599},
                 {-0.6324555320336759, -0.5669467095138409, -1.4756222890348238},
                 {-0.9486832980505138, 1.3228756555322951, 0.2519355127620431}});
    const std::string message =
        message_of(ErrorKind::input, [&] { (void)prepared(matrix, {.standardize = Lines::columns}); });
    EXPECT_TRUE(message.starts_with("1 constant column without a standard deviation (the first is column 2,"))
        << message;
    expect_near(prepared(arma::mat(3, 2), {.center = Lines::columns}).matrix, arma::mat(3, 2), 0.0);
}

TEST(Preparation, ConstantColumnsBecomeExactlyZeroAndCannotBeStandardized) {
    arma::mat matrix = data();
    matrix.col(2).fill(0.1);  // its mean in double is not 0.1
    const NotedMatrix centred = prepared(matrix, {.center = Lines::columns});
    EXPECT_TRUE(centred.matrix.col(2).is_zero());
    EXPECT_EQ(centred.notes, std::vector<std::string>{"1 constant column became zero by centring"});
    EXPECT_EQ(
        message_of(ErrorKind::input, [&] { (void)prepared(matrix, {.standardize = Lines::columns}); }),
        "1 constant column without a standard deviation (the first is column 2, counted from 0): remove it, or centre "
        "columns without standardizing them");
    const arma::mat behind_zeros = arma::join_rows(arma::mat(3, 2), matrix, arma::mat(3, 1, arma::fill::ones));
    const std::string message =
        message_of(ErrorKind::input, [&] { (void)prepared(behind_zeros, {.standardize = Lines::columns}); });
    EXPECT_NE(message.find("4 constant columns"), std::string::npos) << message;
    EXPECT_NE(message.find("column 0, counted"), std::string::npos) << message;
}

TEST(Preparation, RejectsWhatCannotBeDone) {
    const auto centring = [](Lines center, Lines standardize) {
        return message_of(ErrorKind::usage,
                          [&] { (void)prepared(data(), {.center = center, .standardize = standardize}); });
    };
    EXPECT_EQ(
        centring(Lines::rows, Lines::columns),
        "standardizing columns centres the columns, which centring rows as well would undo: leave the latter out");
    EXPECT_NE(centring(Lines::both, Lines::rows), "no such error");
    EXPECT_EQ(centring(Lines::rows, Lines::rows), "no such error");
    const std::string single =
        message_of(ErrorKind::input, [&] { (void)prepared(data().row(0), {.center = Lines::columns}); });
    EXPECT_NE(single.find("one entry"), std::string::npos) << single;
}

TEST(DataNotes, NameWhatCounts) {
    arma::mat matrix = data();
    EXPECT_TRUE(data_notes(matrix).empty());
    matrix.row(0) = {0.0, 1.0, 2.0, 3.0};
    ASSERT_EQ(data_notes(matrix).size(), 1U);
    EXPECT_EQ(data_notes(matrix).front(), "the first row counts 0, 1, 2, ...: if it is a header, leave it out (x[1:])");
    EXPECT_TRUE(data_notes(matrix, {.of_text = true}).empty()) << "the reader of tables says it";
    matrix = data();
    matrix.col(0) = {1.0, 2.0, 3.0};
    ASSERT_EQ(data_notes(matrix).size(), 1U);
    EXPECT_NE(data_notes(matrix).front().find("the first column counts 1, 2, 3"), std::string::npos);
    EXPECT_NE(data_notes(matrix).front().find("(x[:, 1:])"), std::string::npos);
    matrix(2, 0) = 4.0;
    EXPECT_TRUE(data_notes(matrix).empty());
}

TEST(DataNotes, RecognizeCovariances) {
    const arma::mat factor = {{2.0, 0.0, 0.0}, {0.5, 1.0, 0.0}, {-1.0, 0.3, 0.7}};
    const arma::mat covariance = factor * factor.t();
    ASSERT_EQ(data_notes(covariance).size(), 1U);
    EXPECT_NE(data_notes(covariance).front().find("looks like a covariance matrix"), std::string::npos);
    const arma::mat equal = arma::mat(3, 3, arma::fill::ones) + 0.1 * arma::mat(3, 3, arma::fill::eye);
    EXPECT_EQ(data_notes(equal, {.largest_value = 3.1}).size(), 1U) << "its means are no offsets";
    const arma::mat scale = arma::diagmat(1.0 / arma::sqrt(covariance.diag()));
    ASSERT_EQ(data_notes(scale * covariance * scale).size(), 1U);
    EXPECT_NE(data_notes(scale * covariance * scale).front().find("a correlation matrix"), std::string::npos);
    arma::mat other = covariance;
    other(0, 1) += 1e-3;
    EXPECT_TRUE(data_notes(other).empty()) << "not symmetric";
    other = covariance;
    other(0, 1) = other(1, 0) = 100.0;
    EXPECT_TRUE(data_notes(other).empty()) << "beyond a correlation of 1";
    EXPECT_TRUE(data_notes(-covariance).empty());
}

TEST(DataNotes, NameMeansThatMakeUpTheFirstSingularValue) {
    arma::arma_rng::set_seed(5);
    for (int draw = 0; draw < 20; ++draw) {
        const arma::mat noise = arma::randn(100, 50);
        const auto notes = [&](const arma::mat& matrix) {
            return data_notes(matrix, {.largest_value = arma::norm(matrix, 2)});
        };
        EXPECT_TRUE(notes(noise).empty()) << "control: no means";
        EXPECT_TRUE(notes(noise.t()).empty()) << "control: no means";
        ASSERT_EQ(notes(noise + 0.7).size(), 1U);
        EXPECT_NE(notes(noise + 0.7).front().find("--center columns removes them"), std::string::npos);
        arma::mat by_row = noise;
        for (arma::uword i = 0; i < 100; ++i)
            by_row.row(i) += std::cos(std::numbers::pi * (static_cast<double>(i) + 0.5) / 100.0);
        ASSERT_EQ(notes(by_row).size(), 1U);
        EXPECT_NE(notes(by_row).front().find("--center rows removes them"), std::string::npos);
        EXPECT_TRUE(data_notes(noise + 0.7).empty()) << "without the singular value nothing is known";
        const auto quick_notes = [&](const arma::mat& matrix) {
            return data_notes(matrix, {.largest_value = largest_value_of_means(matrix)});
        };
        for (const arma::mat& matrix : {noise, arma::mat(noise.t()), arma::mat(noise + 0.7), by_row})
            EXPECT_EQ(quick_notes(matrix), notes(matrix));
    }
}

TEST(LargestValueOfMeans, IsThatOfTheDecompositionOrBelow) {
    arma::arma_rng::set_seed(6);
    const arma::mat noise = arma::randn(60, 30);
    for (const double offset : {0.3, 1.0, 1e200}) {
        const double exact = arma::norm(noise * (offset > 1e100 ? offset : 1.0) + offset, 2);
        EXPECT_NEAR(largest_value_of_means(noise * (offset > 1e100 ? offset : 1.0) + offset), exact, 1e-4 * exact);
    }
    EXPECT_LE(largest_value_of_means(noise), arma::norm(noise, 2) * (1.0 + 1e-12));
    EXPECT_EQ(largest_value_of_means(arma::mat(3, 4, arma::fill::zeros)), 0.0);
    EXPECT_EQ(largest_value_of_means({{1, -1}, {-1, 1}}), 0.0) << "no means";
    EXPECT_NEAR(largest_value_of_means({{3, 4}}), 5.0, 1e-12);
}

}  // namespace
}  // namespace spiked::sim
