#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/enum_names.hpp"
#include "core/text/names.hpp"

namespace spiked {

/// What may be written as the value of an option.
struct ValueSpec {
    enum class Kind {
        none,    ///< the option is a switch and has no value
        text,    ///< any text
        whole,   ///< a whole number of at least 0
        number,  ///< a finite number
        choice,  ///< one of `choices`
    };
    Kind kind = Kind::none;
    std::string shown = {};                  ///< how the help writes it: `B`, `quick|full`, `L[,L...]`
    std::vector<std::string> choices = {};   ///< names that it may be
    Aliases aliases = {};                    ///< what other programs call the choices
    bool open = false;                       ///< something else than the choices is possible as well
    bool list = false;                       ///< several values with commas between them
    std::vector<std::string> suffixes = {};  ///< of the files that it names; none where any file will do
    bool file = false;                     ///< nothing but a file: a name that is plainly another kind of file is wrong
    std::vector<std::string> topics = {};  ///< lists of `spiked list` whose names complete it
};

/// An option of something that users choose by name, as data: `margin=M` of the estimator eoptshrink, `--bits B` of a
/// command. Parsers, error messages, help, `spiked list`, completion, the manual page and the reference are made from
/// these; no program text is ever read to find out what is possible.
struct OptionSpec {
    std::string key;               ///< `margin`; of a command with its dashes, `--bits` or `-o,--output`
    ValueSpec value;               ///< none: a switch of a command, or a bare word of a name, `:paper`
    std::string help = {};         ///< a phrase without a full stop
    std::string fallback = {};     ///< the value where the option is not given, as the help shows it
    bool repeatable = false;       ///< of a command: may be given more than once
    std::string also_option = {};  ///< of a name: the option of commands that means the same, `--group`
};

// Values, in the order in which tables use them.

[[nodiscard]] ValueSpec any_text(std::string shown);
[[nodiscard]] ValueSpec whole(std::string shown);
[[nodiscard]] ValueSpec number(std::string shown);
[[nodiscard]] ValueSpec one_of(std::vector<std::string> choices, Aliases aliases = {});
/// One of the names of an enumeration.
template <class E>
[[nodiscard]] ValueSpec one_of() {
    return one_of(names_of<E>(), aliases_of<E>());
}
/// The same with others: `p|d|K`. What `others` stand for is checked by whoever reads the value.
[[nodiscard]] ValueSpec one_of_or(std::vector<std::string> choices, const std::string& others);
/// Several with commas between them: `L[,L...]`, `svg|pdf[,...]`.
[[nodiscard]] ValueSpec several(ValueSpec value, std::string shown = {});
/// A name, or several, of these lists of `spiked list`.
[[nodiscard]] ValueSpec names_from(std::vector<std::string> topics, ValueSpec value);
/// A file with one of these suffixes, of which the help shows `FILE.npy` or what is given.
[[nodiscard]] ValueSpec file_with(std::vector<std::string> suffixes, std::string shown = {});

/// The option with its dashes and without the short form: `--output` of `-o,--output`.
[[nodiscard]] std::string long_name(const OptionSpec& option);

/// One phrase for lists: `margin=M (default p^(-1/3))`, `:paper (the text taken literally)`, `group=G or --group G`.
[[nodiscard]] std::string described(const OptionSpec& option);

}  // namespace spiked
