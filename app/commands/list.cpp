#include "app/commands/list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/cli/command.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/option_schema.hpp"
#include "core/text/registry.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/caches/eviction.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/pca/covariance_loss.hpp"
#include "estimators/ranks/rank_rule.hpp"
#include "reports/figures/figures.hpp"
#include "sim/kv/dump_formats.hpp"
#include "sim/spiked/covariance_kinds.hpp"
#include "sim/spiked/covariance_spec.hpp"
#include "sim/spiked/entry_law.hpp"
#include "sim/spiked/signal.hpp"
#include "validation/claims/claims.hpp"
#include "validation/metrics/metric_table.hpp"

namespace spiked::app {
namespace {

/// The printed description of an entry.
struct Line {
    std::string form;  ///< as it is written, with what follows the name: `student:NU`, `whiten+NAME`
    std::string summary;
    std::vector<std::string> options;  ///< phrases for people
    std::string source;
    std::vector<OptionSpec> specs = {};  ///< the options for programs
    std::vector<std::string> aliases = {};
    std::string name = {};  ///< the name alone; empty for a form that many names have
};

Line line_of(const RegistryEntry& entry) {
    Line line{entry.name, entry.summary, {}, entry.source, entry.options, entry.aliases, entry.name};
    for (const auto& option : entry.options) line.options.push_back(described(option));
    return line;
}

/// The line of an entry that describes all names of a form.
Line form_of(const RegistryEntry& entry) {
    Line line = line_of(entry);
    line.name.clear();
    return line;
}

template <class Entries>
std::vector<Line> lines_of(const Entries& entries) {
    std::vector<Line> lines;
    for (const auto& entry : entries) lines.push_back(line_of(entry_of(entry)));
    return lines;
}

/// The same, where the values that follow a name are printed as a part of it: `student:NU`.
std::vector<Line> lines_in_form(const std::vector<RegistryEntry>& entries) {
    std::vector<Line> lines = lines_of(entries);
    for (std::size_t i = 0; i < entries.size(); ++i) lines[i].form = written_form(entries[i]);
    return lines;
}

struct Topic {
    std::string name;
    std::vector<Line> (*lines)();
};

std::vector<Line> estimator_lines() {
    std::vector<Line> lines = lines_of(estimators::spectral_estimators());
    for (Line line : lines_of(estimators::transforms())) {
        line.form += "+NAME";
        lines.push_back(std::move(line));
    }
    return lines;
}

std::vector<Line> pca_loss_lines() { return lines_of(estimators::covariance_losses()); }
std::vector<Line> rank_lines() { return lines_of(estimators::rank_rules()); }

/// The option --bits as this quantizer understands it.
OptionSpec bits_of(const estimators::QuantizerEntry& entry) {
    std::vector<std::string> widths;
    for (const unsigned width : entry.widths) widths.push_back(std::to_string(width));
    OptionSpec bits{"--bits", entry.fractions ? number("B", {.least = 0.25, .most = 8.0}) : one_of(std::move(widths)),
                    entry.bits_mean};
    bits.value.shown = "B";
    return bits;
}

std::vector<Line> with_bits(const std::vector<estimators::QuantizerEntry>& entries) {
    std::vector<Line> lines = lines_of(entries);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        lines[i].options.insert(lines[i].options.begin(), "--bits B: " + entries[i].bits_mean);
        lines[i].specs.insert(lines[i].specs.begin(), bits_of(entries[i]));
    }
    return lines;
}

std::vector<Line> quantizer_lines() {
    std::vector<Line> lines = with_bits(estimators::row_quantizers());
    lines.push_back(form_of(estimators::composition_entry()));
    lines.push_back(
        {"svd:rd+tcq",
         "recommended for values from about 2.4 stored bits on, and with unrope+ for keys with a rotary embedding",
         {},
         "measured: docs/METHODS.md, which method at 2.5 bits"});
    for (const auto& [alias, meaning] : estimators::method_aliases())
        lines.push_back(line_of({alias, "the paper's name of " + meaning, {}, "paper"}));
    return lines;
}

std::vector<Line> cache_lines() { return with_bits(estimators::cache_methods()); }

std::vector<Line> eviction_lines() {
    std::vector<Line> lines = lines_of(estimators::evictions());
    lines.push_back(
        {"EVICTION+METHOD", "codes the kept tokens by a method; the budget counts all their bytes", {}, ""});
    return lines;
}

std::vector<Line> format_lines() {
    std::vector<Line> lines;
    for (const auto& format : sim::dump_formats())
        lines.push_back({format.name,
                         "a dump of " + format.writer,
                         {fmt::format("tensors: {}", fmt::join(format.patterns, ", ")),
                          fmt::format("axes: {}", fmt::join(format.layouts, "; "))},
                         "",
                         {},
                         {},
                         format.name});
    return lines;
}

std::vector<Line> covariance_lines() {
    std::vector<Line> lines;
    for (const auto& kind : sim::covariance_kinds()) {
        Line line = line_of(kind.entry);
        line.form = kind.spec_form();
        line.options = {"in a study: " + kind.table_form()};
        if (const OptionSpec* size = kind.size(); size != nullptr && !size->fallback.empty())
            line.options.push_back(fmt::format("in an option: {} (default {})", size->key, size->fallback));
        lines.push_back(std::move(line));
    }
    return lines;
}

std::vector<Line> entry_lines() { return lines_in_form(sim::entry_laws()); }
std::vector<Line> basis_lines() { return lines_of(sim::covariance_bases()); }
std::vector<Line> vector_lines() { return lines_in_form(sim::vector_laws()); }

std::vector<Line> metric_lines() {
    std::vector<Line> lines;
    for (const auto& metric : validation::metrics())
        lines.push_back({metric.name,
                         metric.definition,
                         {metric.unit, "better: " + metric.better, "of: " + metric.of},
                         "",
                         {},
                         {},
                         metric.name});
    return lines;
}

std::vector<Line> claim_lines() {
    std::vector<Line> lines;
    for (const auto& claim : validation::claims()) {
        Line line = line_of(entry_of(claim));
        if (!claim.corrected.empty()) line.options.push_back("corrected: " + claim.corrected);
        if (claim.in_study)
            line.options.push_back(
                "in studies: metric " + claim.in_study->metric +
                (claim.in_study->of_clusters.empty() ? "" : ", of close spikes " + claim.in_study->of_clusters) +
                (claim.in_study->in_gaps.metric.empty() ? ""
                                                        : ", in gaps of the noise " + claim.in_study->in_gaps.metric) +
                ", control: " + claim.in_study->control);
        lines.push_back(std::move(line));
    }
    return lines;
}

std::vector<Line> figure_lines() {
    std::vector<Line> lines;
    for (const auto& kind : reports::figure_kinds()) {
        Line line = line_of(kind.entry);
        line.specs = kind.options();
        std::vector<std::string> keys;
        for (const auto& spec : line.specs) keys.push_back(spec.key);
        line.options = {fmt::format("keys: {}", fmt::join(keys, ", "))};
        lines.push_back(std::move(line));
    }
    return lines;
}

std::vector<Line> convention_lines() {
    return {{"block", "n rows (tokens) by d columns (features)", {}, ""},
            {"noise", "Z = A^(1/2) X B^(1/2), entries of X have variance 1/d", {}, "paper Assumption 1"},
            {"aspect ratio", "n/d", {}, ""},
            {"eigenvalue", "of Z Z^T, the square of a singular value; bulk edges and outliers are eigenvalues", {}, ""},
            {"strength", "singular value of the clean signal; thresholds are on this scale", {}, ""},
            {"overlap", "squared inner product of true and observed singular vector", {}, ""},
            {"bits", "every stored bit: indices, norms, factors, singular values, ranks, padding", {}, ""},
            {"v(e)", "a value with its standard error in units of the last digits", {}, ""},
            {"df",
             "degrees of freedom of the standard errors of a row (mcse_...) over clusters, documents or prompts, the "
             "fewest where they differ: 95 % limits by Student's law, nominal",
             {},
             "Bell and McCaffrey 2002"}};
}

const std::vector<Topic>& topics() {
    static const std::vector<Topic> table = {
        {"estimators", estimator_lines},   {"ranks", rank_lines},         {"quantizers", quantizer_lines},
        {"caches", cache_lines},           {"evictions", eviction_lines}, {"entries", entry_lines},
        {"covariances", covariance_lines}, {"bases", basis_lines},        {"vectors", vector_lines},
        {"pca-losses", pca_loss_lines},    {"formats", format_lines},     {"metrics", metric_lines},
        {"claims", claim_lines},           {"figures", figure_lines},     {"conventions", convention_lines}};
    return table;
}

/// The topics to show: all, one with all its entries, or those with entries of the given name.
std::vector<std::pair<std::string, std::vector<Line>>> chosen_lines(const std::vector<std::string>& words) {
    std::vector<std::pair<std::string, std::vector<Line>>> chosen;
    std::vector<std::string> known;
    for (const auto& topic : topics()) {
        if (words.empty() || words.front() == topic.name) chosen.emplace_back(topic.name, topic.lines());
        known.push_back(topic.name);
    }
    if (!chosen.empty()) return chosen;
    // A method is shown by its parts: snapkv+tq-mse:group=8 by two entries. A name has its options behind a colon, and
    // some names have a second part there, eigen:row.
    const std::vector<std::string> parts = split(words.front(), '+');
    const auto matches = [&](const Line& line) {
        return line.form == words.front() ||
               (!line.name.empty() && std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
                   return (part + ":").starts_with(line.name + ":") || (line.name + ":").starts_with(part + ":");
               }));
    };
    for (const auto& topic : topics()) {
        std::vector<Line> named;
        for (auto& line : topic.lines()) {
            known.push_back(line.form);
            if (matches(line)) named.push_back(std::move(line));
        }
        if (!named.empty()) chosen.emplace_back(topic.name, std::move(named));
    }
    if (!chosen.empty()) return chosen;
    const auto near = nearest(words.front(), known);
    known.resize(topics().size());
    throw usage_error("list: unknown name \"{}\"{}", words.front(),
                      near ? fmt::format("; did you mean \"{}\"?", *near) : suggestion("", known));
}

/// The options as `a; b; c`, broken into lines.
std::vector<std::string> wrapped_options(const std::vector<std::string>& options) {
    constexpr std::size_t widest = 100;
    std::vector<std::string> lines;
    for (const auto& option : options) {
        if (!lines.empty()) lines.back() += ';';
        if (lines.empty() || lines.back().size() + option.size() + 1 > widest)
            lines.push_back(option);
        else
            lines.back() += ' ' + option;
    }
    return lines;
}

int run_list(const Arguments& arguments) {
    const auto chosen = chosen_lines(arguments.positionals);
    if (arguments.json()) {
        Json document = Json::object({{"schema", "spiked.list/1"}});
        for (const auto& [topic, entries] : chosen) {
            Json lines = Json::array();
            for (const auto& line : entries) {
                Json options = Json::array();
                for (const auto& option : line.options) options.push(option);
                lines.push(Json::object({{"name", line.form},
                                         {"summary", line.summary},
                                         {"options", std::move(options)},
                                         {"source", line.source.empty() ? Json() : Json(line.source)},
                                         {"aliases", Json::Array(line.aliases.begin(), line.aliases.end())},
                                         {"option_schema", option_schema(line.specs)}}));
            }
            document.set(topic, std::move(lines));
        }
        print_json(document);
        return 0;
    }
    std::string text;
    for (const auto& [topic, entries] : chosen) {
        text += (text.empty() ? "" : "\n") + topic + "\n";
        for (const auto& line : entries) {
            text += fmt::format("  {:<28}{}\n", line.form, line.summary);
            for (const auto& options : wrapped_options(line.options))
                text += fmt::format("  {:<28}  {}\n", "", options);
            if (!line.source.empty()) text += fmt::format("  {:<28}  source: {}\n", "", line.source);
        }
    }
    print_text(text);
    return 0;
}

}  // namespace

std::vector<std::string> listed_names(const std::string& topic) {
    std::vector<std::string> names;
    for (const auto& known : topics())
        if (known.name == topic)
            for (auto& line : known.lines())
                if (line.name == line.form) names.push_back(std::move(line.name));
    return names;
}

Command list_command() {
    std::vector<std::string> names;
    for (const auto& topic : topics()) names.push_back(topic.name);
    return {"list",
            "list the names of methods, laws, metrics, claims and figures, with options, defaults and sources",
            {"spiked list", "spiked list estimators", "spiked list tq-mse", "spiked list quantizers --json"},
            one_of_or(std::move(names), "NAME"),
            0,
            1,
            {},
            run_list};
}

}  // namespace spiked::app
