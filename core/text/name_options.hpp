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
    /// Rejects keys and bare words that `specs` do not contain, those that are given twice, and values that their specs
    /// do not accept. A spec without a key is that of a value directly after the name, `svd:R`.
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

    /// Whether the specs contain this key.
    [[nodiscard]] bool takes(const std::string& key) const;

    // The value of an option, which its spec accepts; nothing where the name does not give it.

    [[nodiscard]] std::optional<std::size_t> whole(const std::string& key) const;
    [[nodiscard]] std::optional<double> number(const std::string& key) const;
    [[nodiscard]] std::optional<std::string> choice(const std::string& key) const { return parsed_.option(key); }
    /// The enumerator with the name of this choice.
    template <class E>
    [[nodiscard]] std::optional<E> choice(const std::string& key) const {
        const auto name = choice(key);
        return name ? std::optional(enum_named<E>(*name, key)) : std::nullopt;
    }

    // The same, or the default of the spec. Throw precondition_error where the default is a text of another type, such
    // as `p^(-1/3)`.

    [[nodiscard]] std::size_t whole_or_default(const std::string& key) const;
    [[nodiscard]] double number_or_default(const std::string& key) const;
    [[nodiscard]] std::string choice_or_default(const std::string& key) const;
    template <class E>
    [[nodiscard]] E choice_or_default(const std::string& key) const {
        return enum_named<E>(choice_or_default(key), key);
    }

private:
    ParsedName parsed_;
    std::vector<OptionSpec> specs_;
};

/// How an error proposes the options of which the text is a value, `; did you mean "rank=ed"?`; empty without one.
[[nodiscard]] std::string suggested_option(std::string_view value, const std::vector<OptionSpec>& specs);

/// The whole number that must be the only value of a name, `screenot:10`; `example` completes the error message.
[[nodiscard]] std::size_t required_whole(const NameOptions& named, const std::string& what, const std::string& example);

}  // namespace spiked
