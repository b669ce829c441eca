#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/text/json.hpp"
#include "validation/engine/judge.hpp"
#include "validation/engine/sqlite.hpp"
#include "validation/statistics/moments.hpp"

namespace spiked::reports {

/// Whether a study's cells are heads of dumps, or documents and prompts of a model: tables by side, clustered.
[[nodiscard]] bool is_dump_study(validation::Database& store);
/// What one replicate of a study is: `block` of a dump, `document` or `prompt` of a model, else `replicate`.
[[nodiscard]] std::string replicate_word(validation::Database& store);
/// What a frontier of the store is about: `y` of its first such figure, without one the first of frontier_metrics that
/// it has means of; relative_l2 while there are none.
[[nodiscard]] std::string frontier_metric(validation::Database& store);
[[nodiscard]] bool has_means(validation::Database& store, const std::string& metric);
/// What the first check of a quantity expects, as a table (cell_id, method_id, metric, k, expected, first): joined,
/// SQLite makes an index of it; asked for each row it would walk all verdicts.
inline constexpr const char* first_expectations =
    "(SELECT cell_id, method_id, metric, k, expected, min(verdict_id) AS first FROM verdict GROUP BY cell_id, "
    "method_id, "
    "metric, k)";
/// Of all batches of one quantity.
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
    std::string cell;
    std::string method;
    std::string metric;
    std::int64_t k = 0;
    double estimate = 0.0;
    double standard_error = 0.0;
    double expected = 0.0;
    double margin = 0.0;
    double low = 0.0;
    double high = 0.0;
    double detectable = 0.0;
    std::int64_t n = 0;
    std::int64_t needed = 0;  ///< 0: not known
    double control_expected = 0.0;
    std::string control;  ///< pass | fail | inconclusive
    std::string verdict;
    std::string reason;
};

/// Failures first, then inconclusive checks, each by how far they are off in units of their margin; then passes in the
/// order of the store.
[[nodiscard]] std::vector<CheckRow> read_checks(validation::Database& store);
/// The order of those that did not pass, also of several stores: a worse verdict, then farther off in margins.
[[nodiscard]] bool farther_off(const CheckRow& a, const CheckRow& b);

[[nodiscard]] validation::VerdictCounts count_checks(const std::vector<CheckRow>& checks);

/// `2 passed, 0 failed, 1 inconclusive`
[[nodiscard]] std::string counts_text(const validation::VerdictCounts& counts);
/// The same as members of an object.
[[nodiscard]] Json counts_json(const validation::VerdictCounts& counts);

/// What a cell is, factor by factor.
struct FactorValue {
    double number = 0.0;  ///< NaN where it is no number
    std::string text;
};
struct CellRow {
    std::int64_t id = 0;
    std::string label;
    std::int64_t n = 0;
    std::int64_t d = 0;
    std::map<std::string, FactorValue> factors;
};
/// By cell_id.
[[nodiscard]] std::vector<CellRow> read_cells(validation::Database& store);
/// Among cells in the order of read_cells; null where it is not.
[[nodiscard]] const CellRow* cell_of(const std::vector<CellRow>& cells, std::int64_t id);

/// A factor without the section of the model it is in.
[[nodiscard]] std::string short_factor(const std::string& factor);

/// Numbers of a text with six places or more to four digits, for names in pictures.
[[nodiscard]] std::string short_numbers(const std::string& text);

/// What tells cells apart, in few words: their side, then the factors that part most of those still alike. By cell_id;
/// empty names where there is one cell.
[[nodiscard]] std::map<std::int64_t, std::string> short_names(const std::vector<CellRow>& cells);

/// Cells worth showing when not all fit: those with the worst verdicts first, then those farthest from the expected
/// value in units of their margin, then those with the largest relative error. At most `limit`, by cell_id.
[[nodiscard]] std::vector<std::int64_t> worst_cells(validation::Database& store, const std::vector<CheckRow>& checks,
                                                    std::size_t limit);

}  // namespace spiked::reports
