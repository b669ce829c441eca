#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spiked::reports {

/// A table with aligned columns for a terminal. The first `left_aligned` columns and those given to align_left are
/// aligned to the left, the others to the right. Every cell is made one_line, so it cannot break the table.
class TextTable {
public:
    explicit TextTable(std::vector<std::string> header, std::size_t left_aligned = 1) : left_aligned_(left_aligned) {
        add(std::move(header));
    }
    void align_left(std::size_t column) { left_columns_.insert(column); }
    void add(std::vector<std::string> row);
    /// The table in lines of at most `columns` characters where possible, or in one piece when `columns` is 0. A wider
    /// table is folded, twenty rows at a time, into parts with the same rows, each under a line that says so. Every
    /// part begins with the first columns that tell the rows apart, or with their numbers where these take over half
    /// the width; a cell of a left-aligned column that is wider than a part continues on further lines.
    [[nodiscard]] std::string text(std::size_t columns) const;
    /// The same with the columns of set_table_columns: the program folds for a terminal, not for files and pipes.
    [[nodiscard]] std::string text() const;

private:
    [[nodiscard]] bool left(std::size_t column) const;
    std::vector<std::vector<std::string>> rows_;
    std::size_t left_aligned_;
    std::set<std::size_t> left_columns_;
};

/// `10 rows` or `1 row`.
[[nodiscard]] std::string counted(std::size_t count, std::string_view one);

/// `0.7525(22)`: the value with its standard error in units of the last digit, rounded to two digits. Where the error
/// is NaN, zero or within the rounding of the value, the value stands alone with `digits` significant digits. A value
/// of NaN is shown as `-`. Where value and error are below rounding_level times `scale`, the usual size of such a
/// number, they are rounding errors, shown as `0`; without a scale nothing is. Where the larger of the two is 1e9 or
/// more, both have a common power of ten: `1.234(56)e+12`.
[[nodiscard]] std::string with_error(double value, double standard_error, int digits = 4, double scale = 0.0);
inline constexpr double rounding_level = 1e-12;

/// A probability below 1 in per cent, with as many digits as keep it below 100: 95, 99.99.
[[nodiscard]] std::string percentage(double probability);
/// A number with `digits` significant digits; NaN is shown as `-`.
[[nodiscard]] std::string number(double value, int digits = 4);
/// `3.2 standard errors`, or `more than 100 standard errors` where the digits would be meaningless.
[[nodiscard]] std::string standard_errors(double count);
/// `3 degrees of freedom: 95 % limits 3.18 standard errors away`, or a range such as `1.8 to 3 degrees`; empty without
/// a number.
[[nodiscard]] std::string limits_text(double fewest, double most);
/// A sentence on what is random and what is fixed in errors over clusters: `head`, `prompt` or `document`, each with
/// its own draws of `drawn`. Empty for other texts.
[[nodiscard]] std::string errors_sentence(std::string_view cluster, std::string_view drawn = "rotations");
/// The name of a method with the budget of an eviction: `snapkv at 0.1`.
[[nodiscard]] std::string method_at(const std::string& method, const std::optional<double>& budget);
/// A number with `digits` significant digits, trailing zeros included, to stand beside others of its kind: 0.7500.
/// Numbers below ten million are written to the unit where that takes more digits: 336838. NaN is shown as `-`.
[[nodiscard]] std::string with_digits(double value, int digits);
/// The same with four digits.
[[nodiscard]] std::string four_digits(double value);

}  // namespace spiked::reports
