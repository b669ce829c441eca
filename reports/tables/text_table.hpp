#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spiked::reports {

/// Columns aligned for a terminal: the first `left_aligned` and those of words to the left, numbers to the right. Every
/// cell is one_line.
class TextTable {
public:
    explicit TextTable(std::vector<std::string> header, std::size_t left_aligned = 1) : left_aligned_(left_aligned) {
        add(std::move(header));
    }
    void of_words(std::size_t column) { words_.insert(column); }
    void add(std::vector<std::string> row);
    [[nodiscard]] std::string text() const;

private:
    std::vector<std::vector<std::string>> rows_;
    std::size_t left_aligned_;
    std::set<std::size_t> words_;
};

/// `10 rows` or `1 row`.
[[nodiscard]] std::string counted(std::size_t count, std::string_view one);

/// `0.7525(22)`: the value with its standard error in units of the last digits shown, the error rounded to two digits.
/// Without a usable error (NaN, zero, within the rounding of the value) the value alone with `digits` significant
/// digits; NaN is shown as `-`.
[[nodiscard]] std::string with_error(double value, double standard_error, int digits = 4);

/// `digits` significant digits; NaN is shown as `-`.
[[nodiscard]] std::string number(double value, int digits = 4);
/// `3.2 standard errors`; beyond 100, where digits say nothing, `more than 100 standard errors`.
[[nodiscard]] std::string standard_errors(double count);
/// A method and, of an eviction, its budget: `snapkv at 0.1`.
[[nodiscard]] std::string method_at(const std::string& method, const std::optional<double>& budget);
/// What theory says, to as many digits as stand beside it: 0.7500.
[[nodiscard]] std::string predicted(double value);

}  // namespace spiked::reports
