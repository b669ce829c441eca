#include "app/options/matrix_options.hpp"

#include "core/runtime/error.hpp"
#include "sim/spiked/covariance_spec.hpp"

namespace spiked::app {
namespace {

ValueSpec character_value(const sim::CharacterNames& names) {
    std::vector<std::string> words;
    for (const auto& [word, character] : names) words.push_back(word);
    ValueSpec value = one_of(std::move(words));
    value.open = true;
    return value;
}

std::optional<char> read_character(const Arguments& arguments, const std::string& option,
                                   const sim::CharacterNames& names) {
    if (!arguments.has(option)) return std::nullopt;
    return sim::named_character(option, arguments.text(option), names);
}

std::optional<bool> read_yes_or_no(const Arguments& arguments, const std::string& option) {
    if (!arguments.has(option)) return std::nullopt;
    return arguments.text(option) == "yes";
}

}  // namespace

const std::vector<OptionSpec>& matrix_options() {
    static const std::vector<OptionSpec> options = in_group(
        "How a file is read",
        {
            {"--delimiter", character_value(sim::delimiter_names()),
             "what separates the cells of a table; blank: any number"},
            {"--decimal", character_value(sim::decimal_names()), "decimal mark of a table"},
            {"--header", one_of({"yes", "no"}), "whether the first line of a table names its columns"},
            {"--index", one_of({"yes", "no"}), "whether the first column of a table names or counts its rows"},
            {"--layout", any_text("head,token,dim"), "order of the axes of a tensor, if the file does not say"},
        });
    return options;
}

sim::MatrixReading read_matrix_options(const Arguments& arguments) {
    return {.layout = arguments.text("--layout"),
            .table = {.delimiter = read_character(arguments, "--delimiter", sim::delimiter_names()),
                      .decimal = read_character(arguments, "--decimal", sim::decimal_names()),
                      .header = read_yes_or_no(arguments, "--header"),
                      .index = read_yes_or_no(arguments, "--index")}};
}

const std::vector<OptionSpec>& preparation_options() {
    static const std::vector<OptionSpec> options = {
        {"--center", one_of<sim::Lines>(),
         "subtract the means of rows, of columns or of both; by default nothing is centred",
         std::string(enum_name(sim::Lines::none))},
        {"--standardize", one_of({sim::Lines::rows, sim::Lines::columns}),
         "centre them and divide each by its standard deviation (n - 1 in its denominator)"},
    };
    return options;
}

sim::Preparation read_preparation(const Arguments& arguments) {
    sim::Preparation preparation;
    preparation.center = enum_named<sim::Lines>(arguments.text("--center"), "--center");
    if (arguments.has("--standardize"))
        preparation.standardize = enum_named<sim::Lines>(arguments.text("--standardize"), "--standardize");
    if (arguments.has("--center") && preparation.standardize != sim::Lines::none &&
        preparation.center == sim::Lines::none)
        throw usage_error("--standardize {0} centres the {0} and --center none centres nothing: leave --center out",
                          enum_name(preparation.standardize));
    if (arguments.has("--missing"))
        preparation.missing = enum_named<sim::Missing>(arguments.text("--missing"), "--missing");
    preparation.check();
    return preparation;
}

OptionSpec missing_option(const std::vector<sim::Missing>& kinds) {
    std::vector<std::string> names;
    for (const sim::Missing kind : kinds) names.emplace_back(enum_name(kind));
    return {"--missing", one_of(std::move(names)),
            kinds.size() > 2
                ? "accept missing entries (NaN, NA, empty cells), seen at random: entries seen are divided by the "
                  "probability that they are seen, the same for all (uniform), of each row, each column, or both; "
                  "none: missing entries are an error"
                : "accept missing entries (NaN, NA, empty cells), each seen at random with the same probability, by "
                  "which entries seen are divided; none: missing entries are an error",
            std::string(enum_name(sim::Missing::none))};
}

sim::MatrixReading read_matrix_options(const Arguments& arguments, const sim::Preparation& preparation) {
    sim::MatrixReading reading = read_matrix_options(arguments);
    reading.keep_missing = preparation.missing != sim::Missing::none;
    reading.missing_option = "--missing uniform";
    return reading;
}

std::optional<arma::mat> known_covariance(const std::string& spec, std::size_t size) {
    if (spec.empty()) return std::nullopt;
    return sim::covariance_matrix(spec, size);
}

}  // namespace spiked::app
