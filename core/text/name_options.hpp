#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/names.hpp"

namespace spiked {

/// The options of one typed name, `name[:value][:key=value]...`, read with the errors users see: every function throws
/// usage_error with the nearest legal word.
class NameOptions {
public:
    /// Refuses keys that are not in `legal` or stand twice, and values (parts without '=') not in `words`.
    NameOptions(const ParsedName& parsed, std::vector<std::string> legal, std::vector<std::string> words = {});

    [[nodiscard]] const std::string& text() const { return parsed_.text; }
    [[nodiscard]] const std::string& name() const { return parsed_.name; }
    [[nodiscard]] bool has_word(const std::string& word) const;
    [[nodiscard]] bool has_option(const std::string& key) const { return parsed_.option(key).has_value(); }
    [[nodiscard]] const std::vector<std::string>& words() const { return parsed_.values; }

    [[nodiscard]] std::optional<std::size_t> whole(const std::string& key) const;
    /// A finite number of at least 0 (`above_zero`: larger than 0).
    [[nodiscard]] std::optional<double> number(const std::string& key, bool above_zero = false) const;
    /// Position in `choices`.
    [[nodiscard]] std::optional<std::size_t> choice(const std::string& key,
                                                    const std::vector<std::string>& choices) const;

private:
    ParsedName parsed_;
};

/// The keys of options as `spiked list` shows them, `group=G (default 64)`: those that have one and are no options
/// of the command line.
[[nodiscard]] std::vector<std::string> keys_of(const std::vector<std::string>& options);

/// The position of a word among the words for `what`. Throws usage_error with the nearest.
[[nodiscard]] std::size_t position_of(std::string_view word, std::string_view what,
                                      const std::vector<std::string>& words);

/// The whole number that must stand as the one value of a name, `svd:1`; `example` completes the error.
[[nodiscard]] std::size_t required_whole(const ParsedName& parsed, const std::string& what, const std::string& example);

}  // namespace spiked
