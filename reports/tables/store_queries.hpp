#pragma once
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/text/json.hpp"
#include "validation/engine/judge.hpp"
#include "validation/statistics/moments.hpp"
#include "validation/statistics/verdict.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::reports {

/// Whether the cells of a study are heads of dumps, or documents or prompts of a model. Its tables are then by side,
/// with clustered standard errors.
[[nodiscard]] bool is_dump_study(validation::Database& store);
/// The name of one replicate of a study: `block` of a dump, `document` or `prompt` of a model, else `replicate`.
[[nodiscard]] std::string replicate_name(validation::Database& store);
/// The error of the frontier of a store: `y` of its first figure of this kind, else the first of frontier_metrics that
/// has means, else relative_l2.
[[nodiscard]] std::string frontier_metric(validation::Database& store);
[[nodiscard]] bool has_means(validation::Database& store, const std::string& metric);
/// A subquery with the expected value of the first check of each quantity: (cell_id, method_id, metric, k, expected,
/// first). It is meant for a join, for which SQLite builds an index; as a query per row it would scan all verdicts.
inline constexpr const char* first_expectations =
    "(SELECT cell_id, method_id, metric, k, expected, min(verdict_id) AS first FROM verdict WHERE exponent_of IS NULL "
    "AND expected IS NOT NULL GROUP BY cell_id, method_id, metric, k)";
using validation::judged_cell;
/// The moments of one quantity over all its batches.
[[nodiscard]] validation::Moments pooled_moments(validation::Database& store, std::int64_t cell, std::int64_t method,
                                                 std::int64_t metric, std::int64_t k);

/// The row of table `study`.
struct StudyRow {
    std::string name, title, kind, config_source, config_resolved, science_hash, seed, seed_source;
    double false_alarm = 0.0;
    std::string backend, status, created;
};
/// Throws input_error for a store without one.
[[nodiscard]] StudyRow read_study(validation::Database& store);

/// One row of table `verdict` with the names it refers to.
struct CheckRow {
    std::int64_t id = 0;
    std::string check;
    std::string claim;
    std::int64_t cell_id = 0;
    std::string cell;  ///< its label, or of an exponent what it is the exponent of
    std::string method;
    std::string metric;
    std::int64_t k = 0;
    double estimate = 0.0;
    double standard_error = 0.0;
    double expected = 0.0;  ///< NaN where the claim states a region only
    double margin = 0.0;    ///< half the width of the region; 0 where that has one end
    double allowed_low = 0.0;
    double allowed_high = 0.0;
    double low = 0.0;
    double high = 0.0;
    double detectable = 0.0;
    std::int64_t n = 0;
    std::int64_t needed = 0;  ///< replicates for a decision; 0 where unknown
    double control_expected = 0.0;
    validation::Verdict control = validation::Verdict::inconclusive;  ///< fail where the check has power
    validation::Verdict verdict = validation::Verdict::inconclusive;
    std::string reason;

    /// The margin; for a region with one end the distance of the control from that.
    [[nodiscard]] double unit() const;
    /// The distance of a number from the middle of the region, in this unit. Where the region has one end: 1 there, 2
    /// at the control, and at least 0.
    [[nodiscard]] double margins_off(double number) const;
};
/// What a verdict on the control says of the check: `fails, as it should`.
[[nodiscard]] std::string_view control_text(validation::Verdict control);
/// `0.2 to 0.4`, `at most 0.4` or `at least 0.2`: bounds as they were stated.
[[nodiscard]] std::string stated_region(double low, double high);
/// The predicted number, `0.7525`, or the region of a claim that has none.
[[nodiscard]] std::string stated(const CheckRow& check);

/// The checks of a store: failures first, then inconclusive ones, each by decreasing deviation in units of their
/// margin, then passes in the order of the store.
[[nodiscard]] std::vector<CheckRow> read_checks(validation::Database& store);
/// Whether `a` comes before `b` in this order, which also holds across stores: a worse verdict, then a larger deviation
/// in units of the margin.
[[nodiscard]] bool farther_off(const CheckRow& a, const CheckRow& b);

[[nodiscard]] validation::VerdictCounts count_checks(const std::vector<CheckRow>& checks);

/// `2 passed, 0 failed, 1 inconclusive`
[[nodiscard]] std::string counts_text(const validation::VerdictCounts& counts);
/// The same counts as a JSON object.
[[nodiscard]] Json counts_json(const validation::VerdictCounts& counts);

/// The value of one factor of a cell.
struct FactorValue {
    double number = 0.0;  ///< NaN where the value is not a number
    std::string text;
};
struct CellRow {
    std::int64_t id = 0;
    std::string label;
    std::int64_t n = 0;
    std::int64_t d = 0;
    std::map<std::string, FactorValue> factors;
};
/// All cells by increasing cell_id.
[[nodiscard]] std::vector<CellRow> read_cells(validation::Database& store);
/// The cell of this id; `cells` are in the order of read_cells. Null when it is not among them.
[[nodiscard]] const CellRow* cell_of(const std::vector<CellRow>& cells, std::int64_t id);

/// The name of a factor without its section of the model: `row_cov.rho` for `noise.row_cov.rho`.
[[nodiscard]] std::string short_factor(const std::string& factor);

/// The text with all numbers of six or more decimal places rounded to four digits, for labels in pictures.
[[nodiscard]] std::string short_numbers(const std::string& text);

/// Short names that distinguish the cells, by cell_id: their side, then greedily the factor that gives the most
/// distinct names. A single cell has an empty name.
[[nodiscard]] std::map<std::int64_t, std::string> short_names(const std::vector<CellRow>& cells);

/// The cells to show when not all fit, at most `limit`, by cell_id. Cells with the worst verdicts are chosen first,
/// then those farthest from the expected value in units of the margin, then those with the largest relative error.
[[nodiscard]] std::vector<std::int64_t> worst_cells(validation::Database& store, const std::vector<CheckRow>& checks,
                                                    std::size_t limit);

}  // namespace spiked::reports
