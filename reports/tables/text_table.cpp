#include "reports/tables/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text/printable.hpp"
#include "validation/statistics/clustered.hpp"

namespace spiked::reports {

void TextTable::add(std::vector<std::string> row) {
    constexpr std::size_t widest = 1000;  // limits the output: every row is padded to the widest cell
    for (auto& cell : row) {
        cell = one_line(std::move(cell));
        if (cell.size() <= widest) continue;
        cell.resize(widest);
        trim_partial_character(cell);
        cell += "...";
    }
    rows_.push_back(std::move(row));
}

std::string TextTable::text() const {
    std::vector<std::size_t> width(rows_.front().size());
    for (const auto& row : rows_)
        for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
    std::string text;
    for (const auto& row : rows_) {
        std::string line;
        for (std::size_t c = 0; c < row.size(); ++c)
            line += c < left_aligned_ || left_columns_.contains(c) ? fmt::format("{:<{}}  ", row[c], width[c])
                                                                   : fmt::format("{:>{}}  ", row[c], width[c]);
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

std::string counted(std::size_t count, std::string_view one) {
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string with_error(double value, double standard_error, int digits, double scale) {
    if (std::isnan(value)) return "-";
    if (std::abs(value) < rounding_level * scale && !(standard_error >= rounding_level * scale)) return "0";
    constexpr double rounding = 1e-13;
    if (!(standard_error > rounding * std::abs(value)) || !std::isfinite(standard_error))
        return fmt::format("{:.{}g}", value, digits);
    const double size = std::max(std::abs(value), standard_error);
    if (size >= 1e9 && std::isfinite(size)) {
        const int power = static_cast<int>(std::floor(std::log10(size)));
        const auto scaled = [&](double x) { return x / std::pow(10.0, power); };
        return fmt::format("{}e+{}", with_error(scaled(value), scaled(standard_error), digits), power);
    }
    int exponent = static_cast<int>(std::floor(std::log10(standard_error)));
    // An error of 0.0996 rounds to 0.10, so one place fewer leaves two digits.
    if (std::round(standard_error * std::pow(10.0, 1 - exponent)) >= 100.0) ++exponent;
    const int places = std::max(0, 1 - exponent);
    const double units = std::round(standard_error * std::pow(10.0, places));
    return fmt::format("{:.{}f}({:.0f})", value, places, units);
}

std::string percentage(double probability) {
    const double percent = 100.0 * probability;
    for (int digits = 6; digits < 17; ++digits) {
        std::string text = fmt::format("{:.{}g}", percent, digits);
        const bool whole = text == "100" && probability < 1.0;
        if (!whole && std::abs(std::stod(text) - percent) <= 1e-13 * percent) return text;
    }
    return fmt::format("{:.17g}", percent);
}

std::string number(double value, int digits) { return std::isnan(value) ? "-" : fmt::format("{:.{}g}", value, digits); }

std::string standard_errors(double count) {
    return count > 100.0 ? "more than 100 standard errors" : fmt::format("{:.1f} standard errors", count);
}

std::string limits_text(double fewest, double most) {
    if (std::isnan(fewest) || std::isnan(most)) return "";
    const auto range = [](double low, double high) {
        const std::string first = fmt::format("{:.3g}", low);
        const std::string last = fmt::format("{:.3g}", high);
        return first == last ? first : first + " to " + last;
    };
    return fmt::format("{} degree{} of freedom: 95 % limits {} standard errors away", range(fewest, most),
                       most == 1.0 ? "" : "s",
                       range(validation::limits_in_errors(most), validation::limits_in_errors(fewest)));
}

std::string errors_sentence(std::string_view cluster, std::string_view drawn) {
    constexpr std::string_view text = "Random in these errors: {}, with their {}{}. Fixed: the model{}.";
    if (cluster == "head") return fmt::format(text, "layers and heads", "blocks and ", drawn, ", its texts");
    if (cluster == "prompt") return fmt::format(text, "prompts", "", drawn, ", its layers and heads");
    if (cluster == "document") return fmt::format(text, "documents", "", drawn, "");
    return "";
}

std::string method_at(const std::string& method, const std::optional<double>& budget) {
    return budget ? fmt::format("{} at {:g}", method, *budget) : method;
}

std::string predicted(double value) {
    if (std::isnan(value) || value == 0.0) return number(value);
    std::string text = fmt::format("{:#.4g}", value);
    if (text.ends_with('.')) text.pop_back();
    return text;
}

}  // namespace spiked::reports
