#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/enum_names.hpp"
#include "core/text/names.hpp"
#include "core/text/option_spec.hpp"

namespace spiked {

/// The options in a name, `name[:value][:key=value]...`, checked against their specs. Every function throws usage_error
/// with the nearest legal name.
class NameOptions {
public:
    NameOptions() = default;
    /// Rejects keys and bare words that `specs` do not contain, and those that are given twice. A spec without a key is
    /// that of a value directly after the name, `svd:R`; its value is left to the caller.
    NameOptions(const ParsedName& parsed, const std::vector<OptionSpec>& specs);

    [[nodiscard]] const std::string& text() const { return parsed_.text; }
    [[nodiscard]] const std::string& name() const { return parsed_.name; }
    /// Whether a bare word such as `:paper` is given.
    [[nodiscard]] bool has_word(const std::string& word) const;
    [[nodiscard]] bool has_option(const std::string& key) const { return parsed_.option(key).has_value(); }
    /// As written, for options with a meaning of their own.
    [[nodiscard]] std::optional<std::string> text_of(const std::string& key) const { return parsed_.option(key); }
    /// The bare words and the value directly after the name, in the order in which they are written.
    [[nodiscard]] const std::vector<std::string>& words() const { return parsed_.values; }

    /// A whole number within the limits of its spec.
    [[nodiscard]] std::optional<std::size_t> whole(const std::string& key) const;
    /// A finite number of at least 0 (`above_zero`: larger than 0).
    [[nodiscard]] std::optional<double> number(const std::string& key, bool above_zero = false) const;
    /// One of the choices of its spec.
    [[nodiscard]] std::optional<std::string> choice(const std::string& key) const;
    /// The enumerator with the name of this choice.
    template <class E>
    [[nodiscard]] std::optional<E> choice(const std::string& key) const {
        const auto name = choice(key);
        return name ? std::optional(enum_named<E>(*name, key)) : std::nullopt;
    }

private:
    [[nodiscard]] const ValueSpec& value_of(const std::string& key) const;

    ParsedName parsed_;
    std::vector<OptionSpec> specs_;
};

/// The whole number that must be the only value of a name, `screenot:10`; `example` completes the error message.
[[nodiscard]] std::size_t required_whole(const NameOptions& named, const std::string& what, const std::string& example);

}  // namespace spiked
