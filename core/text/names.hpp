#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spiked {

/// `name[:value][:key=value]...` as users write estimators, quantizers, spectra and laws.
struct ParsedName {
    std::string text;                                          ///< as written
    std::string name;                                          ///< before the first colon
    std::vector<std::string> values;                           ///< the parts without '='
    std::vector<std::pair<std::string, std::string>> options;  ///< the parts with '='

    [[nodiscard]] std::optional<std::string> option(std::string_view key) const;
};

[[nodiscard]] ParsedName parse_name(std::string_view text);

[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

/// The text with the letters A to Z in lower case, in any locale.
[[nodiscard]] std::string lower_case(std::string_view text);

/// The whole text as a finite number or an integer; nothing if it is not one.
[[nodiscard]] std::optional<double> to_number(std::string_view text);
[[nodiscard]] std::optional<std::int64_t> to_integer(std::string_view text);

/// Pairs of a name in papers and other programs and the name here, such as `turboquant` and `tq-mse`.
using Aliases = std::vector<std::pair<std::string, std::string>>;

/// The candidate that was most likely meant: it differs in case or in a few letters, begins with the written name, or
/// has the written name as an alias; nothing when there is none. An alias of a name also stands for candidates with
/// this name in front: an alias of svd stands for `svd:1+tq-mse`.
[[nodiscard]] std::optional<std::string> nearest(std::string_view written, std::span<const std::string> candidates,
                                                 const Aliases& aliases = {});

/// `; did you mean "x"?` for the nearest candidate, otherwise `; one of: a, b, c`.
[[nodiscard]] std::string suggestion(std::string_view written, std::span<const std::string> candidates,
                                     const Aliases& aliases = {});

/// The text in single quotes, so that a shell takes exactly this text.
[[nodiscard]] std::string quoted_for_shell(std::string_view text);
/// The same, but without quotes where a shell needs none.
[[nodiscard]] std::string shell_word(const std::string& word);

}  // namespace spiked
