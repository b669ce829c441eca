#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/files/tests/scratch.hpp"
#include "core/runtime/error.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/npy.hpp"
#include "sim/preparation/preparation.hpp"

namespace spiked::sim {
namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
const MatrixReading keeping{.keep_missing = true};

void expect_entries(const arma::mat& found, const arma::mat& expected, double tolerance = 1e-14) {
    ASSERT_EQ(arma::size(found), arma::size(expected));
    for (arma::uword e = 0; e < found.n_elem; ++e) {
        if (std::isnan(expected[e]))
            EXPECT_TRUE(std::isnan(found[e])) << e;
        else
            EXPECT_NEAR(found[e], expected[e], tolerance) << e;
    }
}

TEST(MissingInFiles, AreReadAsNanWhereTheyAreKept) {
    const ScratchFolder scratch;
    const arma::mat expected = {{1.0, no_value, 3.5}, {no_value, 5.0, 6.0}, {7.0, 8.0, no_value}};
    for (const std::string text : {"a,b,c\n1,NA,3.5\n,5,6\n7,8,nan\n", "1,?,3.5\n#N/A,5,6\n7,8,NULL\n",
                                   "x;a;b;c\nr;1;NA;3,5\ns;;5;6\nt;7;8;NaN\n"})
        expect_entries(read_noted_matrix(scratch.write("m.csv", text), keeping).matrix, expected, 0.0);
    write_npy(scratch.path("m.npy"), expected);
    expect_entries(read_noted_matrix(scratch.path("m.npy"), keeping).matrix, expected, 0.0);
    // An empty first cell may be that above an index.
    const auto corner = read_noted_matrix(scratch.write("c.csv", ",1.5\n2.5,1\n"), keeping);
    EXPECT_TRUE(std::isnan(corner.matrix(0, 0)));
    ASSERT_EQ(corner.notes.size(), 1U);
    EXPECT_NE(corner.notes.front().find("its first cell is empty"), std::string::npos);
}

TEST(MissingInFiles, MessagesOfferTheOptionWhereItHelps) {
    const ScratchFolder scratch;
    const MatrixReading offering{.missing_option = "--missing uniform"};
    const auto fails = [](const std::string& path, const MatrixReading& reading,
                          std::initializer_list<std::string_view> parts) {
        expect_error(
            ErrorKind::input, [&] { (void)read_noted_matrix(path, reading); }, parts);
    };
    const std::string table = scratch.write("m.csv", "1,2\n3,NA\n");
    fails(table, offering, {":2:3: 1 missing", "say --missing uniform if they are missing at random, or leave out"});
    fails(table, {}, {"): leave out the rows"});
    write_npy(scratch.path("m.npy"), {{1.0, no_value}, {3.0, 4.0}});
    fails(scratch.path("m.npy"), offering, {"row 0, column 1", "): say --missing uniform", "remove or replace"});
    fails(scratch.path("m.npy"), {}, {"counted from 0): remove or replace"});
    // With infinite values the option does not help, and it does not accept them.
    const std::string infinite = scratch.write("i.csv", "1,NA\n3,-Inf\ninf,2\n");
    fails(infinite, offering, {"3 missing or infinite values", "): leave out the rows"});
    fails(infinite, keeping, {":2:3: 2 infinite values in 3 rows", "\"-Inf\"", "): leave out the rows"});
    const double inf = std::numeric_limits<double>::infinity();
    write_npy(scratch.path("i.npy"), {{1.0, no_value, 2.0}, {3.0, 4.0, inf}, {-inf, 1.0, 2.0}});
    fails(scratch.path("i.npy"), offering, {"3 NaN or infinite values", "0): remove or replace"});
    fails(scratch.path("i.npy"), keeping, {"2 infinite values (first at row 1, column 2, counted from 0)"});
}

// Worked by hand: 5 of 6 entries are seen; by rows 2/3 and 1; by columns 1/2, 1, 1.
TEST(MissingWeights, DivideBySharesSeen) {
    const arma::mat matrix = {{no_value, 2.0, 3.0}, {4.0, 5.0, 6.0}};
    const auto weighted = [&](Missing kind) { return prepared(matrix, {.missing = kind}).matrix; };
    expect_entries(weighted(Missing::uniform), {{0.0, 2.4, 3.6}, {4.8, 6.0, 7.2}});
    expect_entries(weighted(Missing::rows), {{0.0, 3.0, 4.5}, {4.0, 5.0, 6.0}});
    expect_entries(weighted(Missing::columns), {{0.0, 2.0, 3.0}, {8.0, 5.0, 6.0}});
    // (5/6) / (r_i c_j)
    expect_entries(weighted(Missing::both), {{0.0, 2.5, 3.75}, {20.0 / 3.0, 25.0 / 6.0, 5.0}});
    const PreparedMatrix found = prepared(matrix, {.missing = Missing::both});
    EXPECT_EQ(found.entries.missing, 1U);
    EXPECT_NEAR(found.entries.share, 5.0 / 6.0, 1e-15);
    expect_entries(found.entries.unweighted(found.matrix), matrix);
    ASSERT_EQ(found.notes.size(), 1U);
    EXPECT_NE(found.notes.front().find("1 of 6 entries is missing (16.7 %)"), std::string::npos);
}

TEST(MissingWeights, ChangeNothingWhereNothingIsMissing) {
    const arma::mat matrix = {{1.0, 2.0}, {4.0, 8.0}};
    for (const Missing kind : {Missing::uniform, Missing::rows, Missing::columns, Missing::both}) {
        const PreparedMatrix found = prepared(matrix, {.center = Lines::columns, .missing = kind});
        expect_entries(found.matrix, prepared(matrix, {.center = Lines::columns}).matrix, 0.0);
        EXPECT_EQ(found.entries.missing, 0U);
        EXPECT_EQ(found.entries.share, 1.0);
        EXPECT_TRUE(found.notes.empty());
        expect_entries(found.entries.unweighted(found.matrix), found.matrix, 0.0);
    }
}

TEST(MissingWeights, LeaveLinesWithoutAValueOut) {
    const arma::mat matrix = {
        {no_value, no_value, no_value, no_value}, {1.0, no_value, 2.0, no_value}, {3.0, 4.0, 5.0, no_value}};
    const PreparedMatrix found = prepared(matrix, {.missing = Missing::uniform});
    EXPECT_NEAR(found.entries.share, 5.0 / 6.0, 1e-15);
    expect_entries(found.matrix, {{0, 0, 0, 0}, {1.2, 0, 2.4, 0}, {3.6, 4.8, 6.0, 0}});
    ASSERT_EQ(found.notes.size(), 3U);
    EXPECT_EQ(found.notes[1], "1 row without a value");
    EXPECT_EQ(found.notes[2], "1 column without a value");
    arma::mat none(2, 2);
    none.fill(no_value);
    for (const Lines centred : {Lines::none, Lines::columns, Lines::both})
        EXPECT_THROW((void)prepared(none, {.center = centred, .missing = Missing::uniform}), Error);
    // Centring and deviations leave them out too.
    for (const Preparation& preparation : {Preparation{.center = Lines::both, .missing = Missing::both},
                                           Preparation{.center = Lines::columns, .missing = Missing::columns},
                                           Preparation{.standardize = Lines::rows, .missing = Missing::rows}}) {
        const arma::mat ready = prepared(arma::mat(matrix * 1e3), preparation).matrix;
        EXPECT_TRUE(ready.is_finite());
        EXPECT_EQ(arma::abs(ready.row(0)).max(), 0.0);
        EXPECT_EQ(arma::abs(ready.col(3)).max(), 0.0);
        EXPECT_GT(arma::abs(ready).max(), 0.0);
    }
}

// Means and deviations of the values seen, as numpy.nanmean and numpy.nanstd(ddof=1) have them.
TEST(MissingPreparation, CentresAndStandardizesTheEntriesSeen) {
    const arma::mat matrix = {{1.0, 2.0, no_value}, {3.0, no_value, 4.0}, {8.0, 6.0, 10.0}};  // 7 of 9 are seen
    const double w = 9.0 / 7.0;
    expect_entries(prepared(matrix, {.center = Lines::columns, .missing = Missing::uniform}).matrix,
                   {{-3.0 * w, -2.0 * w, 0.0}, {-w, 0.0, -3.0 * w}, {4.0 * w, 2.0 * w, 3.0 * w}});
    expect_entries(prepared(matrix, {.center = Lines::rows, .missing = Missing::uniform}).matrix,
                   {{-0.5 * w, 0.5 * w, 0.0}, {-0.5 * w, 0.0, 0.5 * w}, {0.0, -2.0 * w, 2.0 * w}});
    const double first = std::sqrt(13.0), second = std::sqrt(8.0), third = std::sqrt(18.0);
    expect_entries(prepared(matrix, {.standardize = Lines::columns, .missing = Missing::uniform}).matrix,
                   {{-3.0 * w / first, -2.0 * w / second, 0.0},
                    {-w / first, 0.0, -3.0 * w / third},
                    {4.0 * w / first, 2.0 * w / second, 3.0 * w / third}});
    // One value has no deviation.
    EXPECT_THROW(
        (void)prepared({{1.0, no_value}, {2.0, 3.0}}, {.standardize = Lines::columns, .missing = Missing::uniform}),
        Error);
}

/// The notes on a matrix in a file.
std::string notes_of_file(const arma::mat& matrix, const MatrixReading& reading = {}) {
    const ScratchFolder scratch;
    write_npy(scratch.path("m.npy"), matrix);
    std::string all;
    for (const auto& note : read_noted_matrix(scratch.path("m.npy"), reading).notes) all += note + "\n";
    return all;
}

TEST(MissingInFiles, NumbersThatStandForThemAreNoted) {
    const auto with = [](double value) { return arma::mat{{1.5, value, 3.0}, {2.0, 2.5, value}, {4.0, 1.0, 2.0}}; };
    for (const double value : {-99.0, -999.0, -9999.0, -99.9, -999.9, 999.99, 99999.0, 999999.0, 1e20, 1e30, -1e31,
                               9.969209968386869e36, 1.7e308, 32767.0, -2147483648.0, static_cast<double>(-999.9F)}) {
        const std::string note = notes_of_file(with(value));
        EXPECT_NE(note.find("m.npy: 2 of its numbers are "), std::string::npos) << value;
        EXPECT_NE(note.find("the first at row 0, column 1, counted from 0"), std::string::npos) << note;
    }
    EXPECT_NE(notes_of_file(with(9.969209968386869e36)).find("are 9.96921e+36 ("), std::string::npos);
    EXPECT_NE(
        notes_of_file(with(-999), {.missing_option = "--missing uniform"}).find("NaN in their place, which --missing"),
        std::string::npos);
    // Columns of other units, and magnitudes within which it lies.
    EXPECT_NE(
        notes_of_file({{100000, -5}, {101000, 3}, {99000, -999}, {100500, -999}, {99800, 7}}).find("row 2, column 1"),
        std::string::npos);
    EXPECT_NE(notes_of_file({{100000, 5}, {101, -999}, {99000, 2}, {5, -999}}).find("2 of its numbers"),
              std::string::npos);
}

// Data in which an extreme value repeats: quantized, sparse, clipped, counted.
TEST(MissingInFiles, OrdinaryNumbersThatRepeatAreNotNoted) {
    arma::arma_rng::set_seed(11);
    const arma::mat normal(60, 40, arma::fill::randn);
    const arma::mat uniform(60, 40, arma::fill::randu);
    const std::vector<arma::mat> ordinary = {
        normal,
        arma::round(4.0 * normal),
        arma::clamp(arma::round(40.0 * normal), -128.0, 127.0),
        arma::clamp(30000.0 * normal, -32768.0, 32767.0),
        arma::round(999.0 * uniform),
        arma::clamp(1200.0 * uniform, 0.0, 999.0),
        arma::floor(100.0 * uniform),
        -arma::floor(100.0 * uniform),
        arma::mat(20, 20, arma::fill::eye),
        arma::mat(5, 5, arma::fill::zeros),
        arma::conv_to<arma::mat>::from(uniform > 0.9) * 100.0,
        1e20 * arma::exp(normal),
        {{1.5, -999.0}, {2.0, 2.5}, {4.0, 1.0}},  // once
        {{1.0, 99.0}, {3.0, 4.0}, {99.0, 2.0}, {5.0, 1.0}},
    };
    for (std::size_t i = 0; i < ordinary.size(); ++i) EXPECT_EQ(notes_of_file(ordinary[i]), "") << i;
}

// Double centring leaves what no row and column effects explain: the residuals sum to zero over the entries seen of
// each line, which determines them, and effects alone leave nothing.
TEST(MissingPreparation, CentresBothByLeastSquares) {
    arma::mat matrix = {
        {1.0, 7.0, no_value, 2.0}, {3.0, no_value, 4.0, 5.0}, {8.0, 6.0, 10.0, no_value}, {2.0, 2.5, -1.0, 0.0}};
    const PreparedMatrix found = prepared(matrix, {.center = Lines::both, .missing = Missing::uniform});
    EXPECT_LT(arma::abs(arma::sum(found.matrix, 0)).max(), 1e-12);
    EXPECT_LT(arma::abs(arma::sum(found.matrix, 1)).max(), 1e-12);
    EXPECT_GT(arma::abs(found.matrix).max(), 0.5);
    for (arma::uword i = 0; i < 4; ++i)
        for (arma::uword j = 0; j < 4; ++j)
            if (!std::isnan(matrix(i, j))) matrix(i, j) = 3.0 * static_cast<double>(i * i) - std::exp(j);
    EXPECT_LT(arma::abs(prepared(matrix, {.center = Lines::both, .missing = Missing::uniform}).matrix).max(), 1e-12);
}

TEST(MissingPreparation, NotesUnequalShares) {
    arma::arma_rng::set_seed(7);
    arma::mat matrix(60, 40, arma::fill::randn);
    const arma::mat draws(60, 40, arma::fill::randu);
    arma::mat uniform = matrix, columns = matrix;
    for (arma::uword j = 0; j < 40; ++j)
        for (arma::uword i = 0; i < 60; ++i) {
            if (draws(i, j) > 0.6) uniform(i, j) = no_value;
            if (draws(i, j) > (j < 20 ? 0.4 : 0.8)) columns(i, j) = no_value;
        }
    for (const Missing kind : {Missing::uniform, Missing::rows, Missing::columns, Missing::both})
        EXPECT_EQ(prepared(uniform, {.missing = kind}).notes.size(), 1U) << "control: equal shares";
    const auto notes = [&](const arma::mat& data, Missing kind) { return prepared(data, {.missing = kind}).notes; };
    ASSERT_EQ(notes(columns, Missing::uniform).size(), 2U);
    EXPECT_NE(notes(columns, Missing::uniform).back().find("columns: "), std::string::npos);
    EXPECT_NE(notes(columns, Missing::uniform).back().find("of --missing, columns gives"), std::string::npos);
    EXPECT_NE(notes(columns, Missing::rows).back().find("of --missing, both gives"), std::string::npos);
    EXPECT_EQ(notes(columns, Missing::columns).size(), 1U) << "the advice works";
    EXPECT_NE(notes(columns.t(), Missing::uniform).back().find("of --missing, rows gives"), std::string::npos);
    EXPECT_EQ(notes(columns.t(), Missing::rows).size(), 1U) << "the advice works";
}

}  // namespace
}  // namespace spiked::sim
