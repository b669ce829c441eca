#include "sim/preparation/preparation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/runtime/stop_point.hpp"

namespace spiked::sim {
namespace {

bool is_constant(const arma::vec& values) {
    return std::all_of(values.begin(), values.end(), [&](double value) { return value == values[0]; });
}

/// The deviations of the values from their mean; zero where they are all equal. NaN stays.
void center(arma::subview_col<double> column) {
    arma::vec all = column;
    const arma::uvec seen = arma::find_finite(all);
    arma::vec values = seen.n_elem == all.n_elem ? all : arma::vec(all.elem(seen));
    if (is_constant(values)) {
        values.zeros();
    } else {
        values -= arma::mean(values);
        values -= arma::mean(values);  // the first mean was rounded
    }
    all.elem(seen) = values;
    column = all;
}

std::string_view line_word(bool rows) { return rows ? "row" : "column"; }

/// Centres the entries seen in columns and in rows by turns, which converges to their residuals from the least-squares
/// fit of column and row effects.
void center_both_seen(arma::mat& data) {
    constexpr int most_rounds = 1000;
    const double unit = arma::abs(arma::vec(data.elem(arma::find_finite(data)))).max();
    for (int round = 0; round < most_rounds; ++round) {
        const arma::mat before = data;
        for (const bool rows : {false, true}) {
            if (rows) arma::inplace_trans(data);
            for (arma::uword j = 0; j < data.n_cols; ++j) {
                stop_point();
                center(data.col(j));
            }
            if (rows) arma::inplace_trans(data);
        }
        const arma::mat change = arma::abs(data - before);
        if (!(change.elem(arma::find_finite(change)).eval().max() > 1e-14 * unit)) return;
    }
}

std::string constant_lines(std::size_t count, bool rows) {
    return fmt::format("{} constant {}{}", count, line_word(rows), count == 1 ? "" : "s");
}

std::string zero_lines(std::size_t count, bool rows) {
    return fmt::format("{} zero {}{} counted as data in the centring: if {}, remove {} first", count, line_word(rows),
                       count == 1 ? "" : "s", count == 1 ? "it is padding" : "they are padding",
                       count == 1 ? "it" : "them");
}

/// The number of columns whose values are all zero; those without a value do not count.
std::size_t zero_columns(const arma::mat& matrix) {
    std::size_t count = 0;
    for (arma::uword j = 0; j < matrix.n_cols; ++j) {
        const auto column = matrix.unsafe_col(j);
        bool any = false, zero = true;
        for (arma::uword i = 0; zero && i < matrix.n_rows; ++i) {
            any = any || column[i] == 0.0;
            zero = column[i] == 0.0 || std::isnan(column[i]);
        }
        count += zero && any;
    }
    return count;
}

/// Centres the columns of `data`; returns the number of those that it made zero.
std::size_t center_lines(arma::mat& data, bool rows) {
    if (data.n_rows < 2)
        throw input_error("the {0}s have one entry each (centring leaves nothing of them): leave their centring out",
                          line_word(rows));
    const std::size_t zero_before = zero_columns(data);
    for (arma::uword j = 0; j < data.n_cols; ++j) {
        stop_point();
        center(data.col(j));
    }
    return zero_columns(data) - zero_before;
}

/// Divides centred columns by their standard deviations.
void divide_by_deviations(arma::mat& data, bool rows) {
    std::size_t constant = 0;
    arma::uword first = 0;
    for (arma::uword j = 0; j < data.n_cols; ++j) {
        const arma::vec seen = data(arma::find_finite(data.unsafe_col(j)), arma::uvec{j});
        if (seen.is_empty()) continue;
        const double deviation = arma::norm(seen) / std::sqrt(static_cast<double>(seen.n_elem) - 1.0);
        if (!(deviation > 0.0)) {
            if (constant++ == 0) first = j;
        } else {
            data.col(j) /= deviation;
        }
    }
    if (constant > 0)
        throw input_error(
            "{0} without a standard deviation (the first is {1} {2}, counted from 0): remove {3}, or centre {1}s "
            "without standardizing them",
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
    if (matrix.n_rows != matrix.n_cols || matrix.n_rows < 3 || matrix.has_nan()) return false;
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

/// The part of the square of the largest singular value that the means of rows or columns make up; 0 where they could
/// be chance.
double part_of_means(const arma::mat& matrix, bool rows, double largest) {
    const arma::uword length = rows ? matrix.n_cols : matrix.n_rows;
    if (length < 3 || !(largest > 0.0)) return 0.0;
    const double n = static_cast<double>(length);
    const arma::vec means = (rows ? arma::vec(arma::mean(matrix, 1)) : arma::vec(arma::mean(matrix, 0).t())) / largest;
    double within = 0.0;
    for (arma::uword j = 0; j < matrix.n_cols; ++j) {
        const auto column = matrix.unsafe_col(j);
        double squares = 0.0;
        for (arma::uword i = 0; i < matrix.n_rows; ++i) {
            const double deviation = column[i] / largest - means[rows ? i : j];
            squares += deviation * deviation;
        }
        within += squares / (n - 1.0);
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

void reject_all_missing(const arma::mat& matrix) {
    if (std::all_of(matrix.begin(), matrix.end(), [](double value) { return std::isnan(value); }))
        throw input_error("all {} entries are missing (there is nothing to analyse): give a matrix with values",
                          matrix.n_elem);
}

/// The sums of value(i, j) over each row or each column.
template <class Value>
arma::vec sums_over_lines(const SeenEntries& entries, bool rows, const Value& value) {
    arma::vec sums(rows ? entries.seen.n_rows : entries.seen.n_cols, arma::fill::zeros);
    for (arma::uword j = 0; j < entries.seen.n_cols; ++j)
        for (arma::uword i = 0; i < entries.seen.n_rows; ++i) sums[rows ? i : j] += value(i, j);
    return sums;
}

/// The numbers of entries seen in each row or each column.
arma::vec seen_in(const SeenEntries& entries, bool rows) {
    return sums_over_lines(entries, rows, [&](arma::uword i, arma::uword j) { return entries.seen(i, j); });
}

/// Where the numbers seen in the rows (columns) vary by more than under the probabilities that the weights stand for:
/// the smallest and largest shares and the p-value; otherwise empty.
std::string unequal_lines(const SeenEntries& entries, bool rows) {
    constexpr double level = 1e-4;
    const arma::vec counts = seen_in(entries, rows);
    const auto probability = [&](arma::uword i, arma::uword j) {
        const double weight = entries.row_weights[i] * entries.column_weights[j];  // 0 where nothing is seen
        return weight > 0.0 ? std::min(1.0, 1.0 / weight) : 0.0;
    };
    const arma::vec expected = sums_over_lines(entries, rows, probability);
    const arma::vec variance = sums_over_lines(
        entries, rows, [&](arma::uword i, arma::uword j) { return probability(i, j) * (1.0 - probability(i, j)); });
    const double most = static_cast<double>(rows ? entries.seen.n_cols : entries.seen.n_rows);
    double statistic = 0.0, least = 1.0, largest = 0.0;
    std::size_t lines = 0;
    for (arma::uword i = 0; i < counts.n_elem; ++i) {
        if (!(variance[i] > 0.0)) continue;
        statistic += (counts[i] - expected[i]) * (counts[i] - expected[i]) / variance[i];
        least = std::min(least, counts[i] / most);
        largest = std::max(largest, counts[i] / most);
        ++lines;
    }
    if (lines < 2) return "";
    const boost::math::chi_squared law(static_cast<double>(lines) - 1.0);
    const double p_value = boost::math::cdf(boost::math::complement(law, statistic));
    if (!(p_value < level)) return "";
    return fmt::format("{}s: {:.3g} to {:.3g} % seen, p = {:.2g}", line_word(rows), 100.0 * least, 100.0 * largest,
                       p_value);
}

void note_missing(PreparedMatrix& result, Missing kind) {
    const SeenEntries& entries = result.entries;
    const std::size_t size = result.matrix.n_elem;
    result.notes.push_back(
        fmt::format("{} of {} entries {} missing ({:.3g} %): {} 0, and entries seen are "
                    "divided by their probability of being seen",
                    entries.missing, size, entries.missing == 1 ? "is" : "are",
                    100.0 * static_cast<double>(entries.missing) / static_cast<double>(size),
                    entries.missing == 1 ? "it is" : "they are"));
    for (const bool rows : {true, false}) {
        const std::size_t none =
            rows ? arma::accu(entries.row_weights == 0.0) : arma::accu(entries.column_weights == 0.0);
        if (none > 0)
            result.notes.push_back(fmt::format("{} {}{} without a value", none, line_word(rows), none == 1 ? "" : "s"));
    }
    const bool by_rows = kind == Missing::rows, by_columns = kind == Missing::columns;
    if (kind == Missing::both) return;
    const std::string rows = by_rows ? "" : unequal_lines(entries, true);
    const std::string columns = by_columns ? "" : unequal_lines(entries, false);
    if (rows.empty() && columns.empty()) return;
    const bool other = !rows.empty() && !columns.empty();
    const Missing better = other || by_rows || by_columns ? Missing::both
                           : rows.empty()                 ? Missing::columns
                                                          : Missing::rows;
    result.notes.push_back(
        fmt::format("the shares seen differ by more than chance ({}{}{}), which distorts the signal: of --missing, {} "
                    "gives each its own probability (spiked spectrum)",
                    rows, other ? "; " : "", columns, enum_name(better)));
}

}  // namespace

arma::mat SeenEntries::unweighted(const arma::mat& weighted) const {
    if (seen.is_empty()) return weighted;
    arma::mat entries(weighted.n_rows, weighted.n_cols);
    for (arma::uword j = 0; j < weighted.n_cols; ++j)
        for (arma::uword i = 0; i < weighted.n_rows; ++i)
            entries(i, j) = seen(i, j) != 0 ? weighted(i, j) / (row_weights[i] * column_weights[j])
                                            : std::numeric_limits<double>::quiet_NaN();
    return entries;
}

SeenEntries weight_seen_entries(arma::mat& matrix, Missing kind) {
    SeenEntries entries;
    if (!matrix.has_nan()) return entries;
    entries.seen.set_size(matrix.n_rows, matrix.n_cols);
    for (arma::uword e = 0; e < matrix.n_elem; ++e) {
        entries.seen[e] = !std::isnan(matrix[e]);
        entries.missing += entries.seen[e] == 0;
    }
    reject_all_missing(matrix);
    const arma::vec of_rows = seen_in(entries, true), of_columns = seen_in(entries, false);
    const double rows = static_cast<double>(arma::accu(of_rows > 0.0));
    const double columns = static_cast<double>(arma::accu(of_columns > 0.0));
    entries.share = arma::accu(of_rows) / (rows * columns);
    const bool by_rows = kind == Missing::rows || kind == Missing::both;
    const bool by_columns = kind == Missing::columns || kind == Missing::both;
    const auto weights = [&](const arma::vec& counts, bool own, double whole, double otherwise) {
        arma::vec found = counts;
        found.transform([&](double count) { return count == 0.0 ? 0.0 : own ? whole / count : otherwise; });
        return found;
    };
    // Of `both`, one of the factors takes p; of `uniform`, the columns do.
    entries.row_weights = weights(of_rows, by_rows, columns, 1.0);
    entries.column_weights =
        weights(of_columns, by_columns, by_rows ? rows * entries.share : rows, by_rows ? 1.0 : 1.0 / entries.share).t();
    for (arma::uword j = 0; j < matrix.n_cols; ++j)
        for (arma::uword i = 0; i < matrix.n_rows; ++i)
            matrix(i, j) =
                entries.seen(i, j) != 0 ? matrix(i, j) * (entries.row_weights[i] * entries.column_weights[j]) : 0.0;
    return entries;
}

void Preparation::check() const {
    if (standardize != Lines::none && center != Lines::none && center != standardize)
        throw usage_error(
            "standardizing {0} centres the {0}, which centring {1} as well would undo: leave the latter out",
            enum_name(standardize), center == Lines::both ? "both" : enum_name(center));
}

PreparedMatrix prepared(arma::mat matrix, const Preparation& preparation) {
    preparation.check();
    PreparedMatrix result{{std::move(matrix), {}}};
    if (preparation.empty()) return result;
    arma::mat& data = result.matrix;
    const bool missing = preparation.missing != Missing::none && data.has_nan();
    if (missing) reject_all_missing(data);
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
    if (!missing) return result;
    if (preparation.centered() == Lines::both) center_both_seen(data);
    result.entries = weight_seen_entries(data, preparation.missing);
    note_missing(result, preparation.missing);
    return result;
}

std::vector<std::string> data_notes(const arma::mat& matrix, const NoteContext& context) {
    std::vector<std::string> notes;
    if (!context.of_text && counts(matrix.row(0))) notes.push_back(counting_note(true, matrix(0, 0)));
    if (!context.of_text && counts(matrix.col(0))) notes.push_back(counting_note(false, matrix(0, 0)));
    bool unit = false;
    const bool covariance = like_covariances(matrix, unit);
    if (covariance)
        notes.push_back(
            fmt::format("the matrix is symmetric and looks like a {0} matrix: if it is one, say so with "
                        "--covariance SAMPLES (spiked spectrum, spiked pca)",
                        unit ? "correlation" : "covariance"));
    // The means of a covariance matrix are no offsets.
    if (!context.largest_value || covariance) return notes;
    if (auto note = note_on_means(matrix, *context.largest_value)) notes.push_back(std::move(*note));
    return notes;
}

std::optional<std::string> note_on_means(const arma::mat& matrix, double largest_value) {
    for (const bool rows : {false, true})
        if (const double part = part_of_means(matrix, rows, largest_value); part > 0.5) return means_note(rows, part);
    return std::nullopt;
}

std::optional<std::string> note_on_symmetry(const arma::mat& matrix) {
    constexpr double rounding = 1e-8;
    if (matrix.n_rows != matrix.n_cols || matrix.n_rows < 3 || matrix.diag().min() > 0.0) return std::nullopt;
    const double largest = arma::abs(matrix).max();
    if (!(largest > 0.0)) return std::nullopt;
    for (arma::uword j = 0; j < matrix.n_cols; ++j)
        for (arma::uword i = 0; i < j; ++i)
            if (!(std::abs(matrix(i, j) - matrix(j, i)) <= rounding * largest)) return std::nullopt;
    return "the matrix is symmetric: strengths and overlaps have the limits of independent entries, but vary more, so "
           "that intervals are too short and tests of the rank take noise for components more often than they say; "
           "spiked spectrum --symmetric has the theory of such matrices";
}

double largest_value_of_means(const arma::mat& matrix) {
    constexpr int most_steps = 50;
    constexpr double accuracy = 1e-6;
    const double scale = arma::abs(matrix).max();
    if (!(scale > 0.0)) return 0.0;
    const arma::mat scaled = matrix / scale;
    arma::vec direction = arma::mean(scaled, 0).t() + scaled.t() * arma::mean(scaled, 1);
    double value = 0.0;
    for (int step = 0; step < most_steps; ++step) {
        const double length = arma::norm(direction);
        if (!(length > 0.0)) return value * scale;
        const arma::vec image = scaled * (direction / length);
        const double before = std::exchange(value, arma::norm(image));
        if (value - before <= accuracy * value) break;
        direction = scaled.t() * image;
    }
    return value * scale;
}

}  // namespace spiked::sim
