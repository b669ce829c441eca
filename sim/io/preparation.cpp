#include "sim/io/preparation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/runtime/error.hpp"

namespace spiked::sim {
namespace {

bool is_constant(const arma::vec& values) {
    return std::all_of(values.begin(), values.end(), [&](double value) { return value == values[0]; });
}

/// The deviations of the values from their mean; zero where they are all equal.
void center(arma::subview_col<double> column) {
    arma::vec values = column;
    if (is_constant(values)) {
        values.zeros();
    } else {
        values -= arma::mean(values);
        values -= arma::mean(values);  // the first mean was rounded
    }
    column = values;
}

std::string_view line_word(bool rows) { return rows ? "row" : "column"; }

std::string constant_lines(std::size_t count, bool rows) {
    return fmt::format("{} constant {}{}", count, line_word(rows), count == 1 ? "" : "s");
}

std::string zero_lines(std::size_t count, bool rows) {
    return fmt::format("{} zero {}{} counted as data in the centring: if {}, remove {} first", count, line_word(rows),
                       count == 1 ? "" : "s", count == 1 ? "it is padding" : "they are padding",
                       count == 1 ? "it" : "them");
}

std::size_t zero_columns(const arma::mat& matrix) { return arma::accu(arma::all(matrix == 0.0, 0)); }

/// Centres the columns of `data`; returns the number of those that it made zero.
std::size_t center_lines(arma::mat& data, bool rows) {
    if (data.n_rows < 2)
        throw input_error("the {0}s have one entry each (centring leaves nothing of them): leave their centring out",
                          line_word(rows));
    const std::size_t zero_before = zero_columns(data);
    for (arma::uword j = 0; j < data.n_cols; ++j) center(data.col(j));
    return zero_columns(data) - zero_before;
}

/// Divides centred columns by their standard deviations.
void divide_by_deviations(arma::mat& data, bool rows) {
    std::size_t constant = 0;
    arma::uword first = 0;
    const double root = std::sqrt(static_cast<double>(data.n_rows) - 1.0);
    for (arma::uword j = 0; j < data.n_cols; ++j) {
        const double deviation = arma::norm(data.col(j)) / root;
        if (deviation == 0.0) {
            if (constant++ == 0) first = j;
        } else {
            data.col(j) /= deviation;
        }
    }
    if (constant > 0)
        throw input_error(
            "{0} without a standard deviation (the first is {1} {2}, counted from 0): remove {3}, or centre {1}s "
            "without "
            "standardizing them",
            constant_lines(constant, rows), line_word(rows), first, constant == 1 ? "it" : "them");
}

/// 0, 1, 2, ... or 1, 2, 3, ...
template <class Line>
bool counts(const Line& line) {
    if (line.n_elem < 3 || (line[0] != 0.0 && line[0] != 1.0)) return false;
    for (arma::uword i = 1; i < line.n_elem; ++i)
        if (line[i] != line[0] + static_cast<double>(i)) return false;
    return true;
}

std::string counting_note(bool rows, double first) {
    const std::string_view line = line_word(rows);
    return fmt::format("the first {} counts {}, {}, {}, ...: if it is {}, leave it out (x[{}1:])", line, first,
                       first + 1, first + 2, rows ? "a header" : "an index", rows ? "" : ":, ");
}

/// Whether the matrix could be one of covariances; `unit` says whether of correlations.
bool like_covariances(const arma::mat& matrix, bool& unit) {
    if (matrix.n_rows != matrix.n_cols || matrix.n_rows < 3) return false;
    constexpr double rounding = 1e-8;
    const arma::vec diagonal = matrix.diag();
    if (diagonal.min() <= 0.0) return false;
    unit = arma::abs(diagonal - 1.0).max() <= rounding;
    for (arma::uword j = 0; j < matrix.n_cols; ++j)
        for (arma::uword i = 0; i < j; ++i) {
            const double most = std::sqrt(diagonal[i]) * std::sqrt(diagonal[j]);
            if (std::abs(matrix(i, j) - matrix(j, i)) > rounding * most ||
                std::abs(matrix(i, j)) > (1.0 + rounding) * most)
                return false;
        }
    return true;
}

/// The part of the square of the largest singular value that the means of columns make up; 0 where they could be
/// chance.
double part_of_means(const arma::mat& matrix, double largest) {
    const double n = static_cast<double>(matrix.n_rows);
    if (matrix.n_rows < 3 || !(largest > 0.0)) return 0.0;
    const arma::rowvec means = arma::mean(matrix, 0) / largest;
    double within = 0.0;
    for (arma::uword j = 0; j < matrix.n_cols; ++j) {
        const arma::vec centred = matrix.col(j) / largest - means[j];
        within += arma::dot(centred, centred) / (n - 1.0);
    }
    const double energy = n * arma::dot(means, means);
    return energy > 10.0 * within ? energy - within : 0.0;
}

std::string means_note(bool rows, double part) {
    const std::string_view line = line_word(rows);
    return fmt::format(
        "the first singular value is mostly the means of the {0}s ({1:.3g} % of its square): --center {0}s removes "
        "them",
        line, 100.0 * std::min(part, 1.0));
}

Lines side_of(bool rows) { return rows ? Lines::rows : Lines::columns; }

}  // namespace

void Preparation::check() const {
    if (standardize != Lines::none && center != Lines::none && center != standardize)
        throw usage_error(
            "standardizing {0} centres the {0}, which centring {1} as well would undo: leave the latter out",
            enum_name(standardize), center == Lines::both ? "both" : enum_name(center));
}

NotedMatrix prepared(arma::mat matrix, const Preparation& preparation) {
    preparation.check();
    NotedMatrix result{std::move(matrix), {}};
    if (preparation.empty()) return result;
    arma::mat& data = result.matrix;
    // Zero rows matter to the means of columns, zero columns to those of rows.
    for (const bool rows : {true, false}) {
        const std::size_t zero = rows ? zero_columns(data.t()) : zero_columns(data);
        if (zero > 0 && preparation.centers(side_of(!rows))) result.notes.push_back(zero_lines(zero, rows));
    }
    for (const bool rows : {false, true}) {
        if (!preparation.centers(side_of(rows))) continue;
        if (rows) arma::inplace_trans(data);
        const std::size_t constant = center_lines(data, rows);
        if (preparation.standardize != Lines::none)
            divide_by_deviations(data, rows);
        else if (constant > 0 && preparation.centered() != Lines::both)
            result.notes.push_back(fmt::format("{} became zero by centring", constant_lines(constant, rows)));
        if (rows) arma::inplace_trans(data);
    }
    return result;
}

std::vector<std::string> data_notes(const arma::mat& matrix, const NoteContext& context) {
    std::vector<std::string> notes;
    if (!context.of_text && counts(matrix.row(0))) notes.push_back(counting_note(true, matrix(0, 0)));
    if (!context.of_text && counts(matrix.col(0))) notes.push_back(counting_note(false, matrix(0, 0)));
    bool unit = false;
    if (like_covariances(matrix, unit))
        notes.push_back(
            fmt::format("the matrix is symmetric and looks like a {0} matrix: if it is one, say so with "
                        "--covariance SAMPLES (spiked spectrum, spiked pca)",
                        unit ? "correlation" : "covariance"));
    if (!context.largest_value) return notes;
    for (const bool rows : {false, true}) {
        const double part = part_of_means(rows ? arma::mat(matrix.t()) : matrix, *context.largest_value);
        if (part <= 0.5) continue;
        notes.push_back(means_note(rows, part));
        break;
    }
    return notes;
}

}  // namespace spiked::sim
