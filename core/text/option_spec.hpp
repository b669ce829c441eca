#pragma once
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/text/enum_names.hpp"
#include "core/text/names.hpp"

namespace spiked {

/// The finite numbers that an option accepts.
struct NumberRange {
    std::optional<double> least = {};
    std::optional<double> above = {};  ///< not accepted itself
    std::optional<double> most = {};
    std::optional<double> below = {};  ///< not accepted itself
};

/// The values that an option accepts.
struct ValueSpec {
    enum class Kind {
        none,    ///< the option is a switch and has no value
        text,    ///< any text
        whole,   ///< a whole number from `least` to `most`
        number,  ///< a finite number in `range`
        choice,  ///< one of `choices`, or where `open` a value of the kind `others`
    };
    Kind kind = Kind::none;
    std::string shown = {};                  ///< as the help writes it: `B`, `quick|full`, `L[,L...]`
    std::vector<std::string> choices = {};   ///< names that are accepted
    Aliases aliases = {};                    ///< names of the choices in other programs
    bool open = false;                       ///< other values than the choices are accepted too
    Kind others = Kind::text;                ///< what the other values are
    bool list = false;                       ///< several values, separated by commas
    std::vector<std::string> suffixes = {};  ///< of the files that are accepted; none if any file is
    std::vector<std::string> topics = {};    ///< lists of `spiked list` whose names complete the value
    std::int64_t least = 0;
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
    NumberRange range = {};
};

/// Other options of the same command, and why it matters whether they are given: a phrase for messages.
struct OtherOptions {
    std::vector<std::string> keys = {};  ///< `--bits`; a word without dashes, `DUMP`, means positional arguments
    std::string why = {};
};

/// An option of something that users choose by name, as data: `margin=M` of the estimator eoptshrink, `--bits B` of a
/// command. Parsers, error messages, help, `spiked list`, completion, the manual page and the reference are generated
/// from these specs; no help text is ever parsed.
struct OptionSpec {
    std::string key;               ///< `margin`; for a command with dashes, `--bits` or `-o,--output`
    ValueSpec value;               ///< none: a switch of a command, or a bare word of a name, `:paper`
    std::string help = {};         ///< a phrase without a full stop
    std::string fallback = {};     ///< the default, as the help shows it
    bool repeatable = false;       ///< for a command: may be given more than once
    std::string also_option = {};  ///< for a name: the option of commands with the same meaning, `--group`
    std::string neutral = {};      ///< for a command: the value that changes nothing, whatever it is applied to
    std::string group = {};        ///< for a command: the heading under which its help lists the option
    OtherOptions needs = {};       ///< for a command: the options without all of which this one has no effect
    OtherOptions excludes = {};    ///< for a command: the options that cannot be given beside this one
};

// Functions that make a ValueSpec.

[[nodiscard]] ValueSpec any_text(std::string shown);
[[nodiscard]] ValueSpec whole(std::string shown, std::int64_t least = 0,
                              std::int64_t most = std::numeric_limits<std::int64_t>::max());
[[nodiscard]] ValueSpec number(std::string shown, NumberRange range = {});
[[nodiscard]] ValueSpec one_of(std::vector<std::string> choices, Aliases aliases = {});
/// One of the names of an enumeration.
template <class E>
[[nodiscard]] ValueSpec one_of() {
    return one_of(names_of<E>(), aliases_of<E>());
}
/// One of these enumerators, by their names.
template <class E>
requires std::is_enum_v<E>
[[nodiscard]] ValueSpec one_of(std::initializer_list<E> some) {
    std::vector<std::string> names;
    for (const E value : some) names.emplace_back(enum_name(value));
    return one_of(std::move(names));
}
/// One of the choices or another text: `fresh|HEX`. The code that uses the value checks the meaning of `others`.
[[nodiscard]] ValueSpec one_of_or(std::vector<std::string> choices, const std::string& others);
/// One of the choices or a number, which is shown as the number alone: a rule or `R`.
[[nodiscard]] ValueSpec one_of_or(std::vector<std::string> choices, ValueSpec number);
/// Several values, separated by commas: `L[,L...]`, `svg|pdf[,...]`.
[[nodiscard]] ValueSpec several(ValueSpec value, std::string shown = {});
/// One or several names from these lists of `spiked list`.
[[nodiscard]] ValueSpec names_from(std::vector<std::string> topics, ValueSpec value);
/// A file with one of these suffixes; the help shows `FILE` with the first suffix, or `shown`.
[[nodiscard]] ValueSpec file_with(std::vector<std::string> suffixes, std::string shown = {});

/// The options under this heading in the help, behind those without one.
[[nodiscard]] std::vector<OptionSpec> in_group(const std::string& heading, std::vector<OptionSpec> options);

/// Whether the number is within the limits.
[[nodiscard]] bool contains(const NumberRange& range, double number);

/// Whether the text is one value that is accepted: a choice, a number within the limits, or any text where the kind is
/// text. A switch accepts none.
[[nodiscard]] bool accepts(const ValueSpec& value, std::string_view text);
/// Throws usage_error, which names the option and what it accepts, for a text that it does not accept. The message
/// begins with `place`, such as `"kivi:group=0": `.
void require_accepted(const OptionSpec& option, std::string_view text, std::string_view place = {});

/// The option with its dashes and without the short form: `--output` of `-o,--output`.
[[nodiscard]] std::string long_name(const OptionSpec& option);

/// The key of the option in JSON: `factor_bits` of `--factor-bits`.
[[nodiscard]] std::string json_key(const OptionSpec& option);

/// Whether the list has this option of commands, or one with the same meaning.
[[nodiscard]] bool has_option(const std::vector<OptionSpec>& options, std::string_view name);

/// One phrase for lists: `margin=M (default p^(-1/3))`, `:paper (the text taken literally)`, `group=G or --group G`.
[[nodiscard]] std::string described(const OptionSpec& option);

}  // namespace spiked
