#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
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
        choice,  ///< one of `choices`
    };
    Kind kind = Kind::none;
    std::string shown = {};                  ///< as the help writes it: `B`, `quick|full`, `L[,L...]`
    std::vector<std::string> choices = {};   ///< names that are accepted
    Aliases aliases = {};                    ///< names of the choices in other programs
    bool open = false;                       ///< other values than the choices are accepted too
    bool list = false;                       ///< several values, separated by commas
    std::vector<std::string> suffixes = {};  ///< of the files that are accepted; none if any file is
    std::vector<std::string> topics = {};    ///< lists of `spiked list` whose names complete the value
    std::int64_t least = 0;
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
    NumberRange range = {};
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
/// One of the choices or another value: `p|d|K`. The code that uses the value checks the meaning of `others`.
[[nodiscard]] ValueSpec one_of_or(std::vector<std::string> choices, const std::string& others);
/// Several values, separated by commas: `L[,L...]`, `svg|pdf[,...]`.
[[nodiscard]] ValueSpec several(ValueSpec value, std::string shown = {});
/// One or several names from these lists of `spiked list`.
[[nodiscard]] ValueSpec names_from(std::vector<std::string> topics, ValueSpec value);
/// A file with one of these suffixes; the help shows `FILE` with the first suffix, or `shown`.
[[nodiscard]] ValueSpec file_with(std::vector<std::string> suffixes, std::string shown = {});

/// Whether the number is within the limits.
[[nodiscard]] bool contains(const NumberRange& range, double number);

/// The option with its dashes and without the short form: `--output` of `-o,--output`.
[[nodiscard]] std::string long_name(const OptionSpec& option);

/// The key of the option in JSON: `factor_bits` of `--factor-bits`.
[[nodiscard]] std::string json_key(const OptionSpec& option);

/// One phrase for lists: `margin=M (default p^(-1/3))`, `:paper (the text taken literally)`, `group=G or --group G`.
[[nodiscard]] std::string described(const OptionSpec& option);

}  // namespace spiked
