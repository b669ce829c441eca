#pragma once
#include <string_view>

// Words with a meaning in tables: values that are missing, names above columns, dates.
namespace spiked::sim {

/// Whether the text stands for a value that is not there or not finite, as programs write it: empty, NA, NaN, ?, Inf.
[[nodiscard]] bool is_missing(std::string_view text);
/// Whether such a text is an infinite number: inf, -Infinity, 1.#INF.
[[nodiscard]] bool is_infinite(std::string_view text);
/// Whether people write the word above a column of names, of numbers of rows, or of places on an axis.
[[nodiscard]] bool names_a_column(std::string_view text);
/// Whether people write the word above the places of an axis, fractions too, or above numbers that identify rows.
[[nodiscard]] bool names_an_axis(std::string_view text);
/// Whether people write the word above a part of a date or a time: year, mm, hour.
[[nodiscard]] bool names_a_time(std::string_view text);
/// Whether people write the word above numbers that are labels or groups of the rows: class, target, sex.
[[nodiscard]] bool names_labels(std::string_view text);
/// Whether people give the name to a row or a column of totals or statistics of the others.
[[nodiscard]] bool names_a_total(std::string_view text);
/// Whether it is a date or a time as people write them: 2024-01-05, 5.1.2024, 05-Jan-24, 10:30:00, 9:05 PM.
[[nodiscard]] bool is_date_or_time(std::string_view text);
/// Whether pandas, or the absence of a name, shows that a column has no name: the cell is empty or "Unnamed: 0".
[[nodiscard]] bool is_unnamed(std::string_view cell);

}  // namespace spiked::sim
