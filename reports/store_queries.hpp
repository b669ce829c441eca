#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "validation/moments.hpp"
#include "validation/sqlite.hpp"

namespace spiked::reports {

/// Whether a study's cells are heads of dumps, or documents and prompts of a model: tables by side, clustered.
[[nodiscard]] bool is_dump_study(validation::Database& store);
/// Of all batches of one quantity.
[[nodiscard]] validation::Moments pooled_moments(validation::Database& store, std::int64_t cell, std::int64_t method,
                                                 std::int64_t metric, std::int64_t k);

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

struct CheckCounts {
    std::size_t passed = 0;
    std::size_t failed = 0;
    std::size_t inconclusive = 0;
};
[[nodiscard]] CheckCounts count_checks(const std::vector<CheckRow>& checks);

/// `2 passed, 0 failed, 1 inconclusive`
[[nodiscard]] std::string counts_text(const CheckCounts& counts);

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
