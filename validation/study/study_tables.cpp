#include "validation/study/study_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "estimators/caches/method_name.hpp"

namespace spiked::validation {
void reject_long_name(const toml::table& table, const std::string& key, const std::string& name,
                      Diagnostics& diagnostics) {
    constexpr std::size_t longest = 200;
    if (name.size() > longest)
        diagnostics.add(table, fmt::format("{} has {} bytes (every cell stores it, at most {}): shorten it", key,
                                           name.size(), longest));
}

namespace {

StopRule read_stop_rule(const toml::table& table, Diagnostics& diagnostics) {
    Section section(table, "run.until", diagnostics);
    section.require("metric", "metric = \"relative_l2\"");
    const std::vector<std::string> names = metrics().names();
    StopRule rule;
    const std::string name = section.choice("metric", names.front(), names);
    if (const auto known = find_metric(name)) rule.metric = *known;
    rule.relative = section.number("mcse_rel", 0.0, 0.0, 1e9);
    rule.absolute = section.number("mcse_abs", 0.0, 0.0, 1e300);
    section.no_other_keys();
    if (rule.relative <= 0.0 && rule.absolute <= 0.0)
        diagnostics.add(table, "a stop rule needs mcse_rel or mcse_abs above 0");
    return rule;
}

/// Verifies that a value of a [[figure]], or each value of a list, is one of the legal names.
void check_names(const toml::node* node, const std::string& what, const std::vector<std::string>& legal,
                 Diagnostics& diagnostics) {
    const auto check = [&](const toml::node& one) {
        const auto name = one.value_exact<std::string>();
        if (!name || std::find(legal.begin(), legal.end(), *name) == legal.end())
            diagnostics.add(one, fmt::format("{} of a [[figure]] cannot be \"{}\"{}", what, name.value_or(""),
                                             suggestion(name.value_or(""), legal)));
    };
    if (node == nullptr) return;
    if (const toml::array* list = node->as_array())
        for (const auto& one : *list) check(one);
    else
        check(*node);
}

/// Verifies that the option accepts a value of the file, or each value of a list where it takes several.
void check_value(const OptionSpec& option, const toml::node& value, const std::string& place,
                 Diagnostics& diagnostics) {
    const auto check = [&](const toml::node& one) {
        guarded(one, diagnostics, [&] { require_accepted(option, node_text(one), place); });
    };
    if (const toml::array* list = value.as_array(); list != nullptr && option.value.list)
        for (const auto& one : *list) check(one);
    else
        check(value);
}

template <class Methods>
void reject_duplicate(const toml::table& table, const Methods& before, const std::string& label,
                      Diagnostics& diagnostics) {
    if (std::any_of(before.begin(), before.end(), [&](const auto& other) { return other.label == label; }))
        diagnostics.add(table, fmt::format("\"{}\" is defined twice: give one of them another name with as", label));
}

}  // namespace

std::vector<NamedEstimator> read_estimators(Section& root, Diagnostics& diagnostics) {
    std::vector<NamedEstimator> estimators;
    each_table(root, "estimator", diagnostics, "[[estimator]]", [&](const toml::table& table) {
        Section section(table, "[[estimator]]", diagnostics);
        section.require("name", "name = \"eoptshrink\"");
        const std::string name = section.text("name", "eoptshrink");
        const auto loss = section.choice("loss", theory::Loss::frobenius);
        const std::string label = section.text("as", name);
        const bool known = section.second_of("law", "unknown", "known");
        section.no_other_keys();
        reject_long_name(table, table.contains("as") ? "as" : "name", label, diagnostics);
        guarded(table, diagnostics, [&] {
            reject_duplicate(table, estimators, label, diagnostics);
            estimators.push_back({label, estimators::parse_estimator(name, loss), known});
            if (loss != theory::Loss::frobenius && estimators.back().method.estimator.keeps_values)
                diagnostics.add(
                    table,
                    fmt::format("loss has no effect on \"{}\" (it keeps values as they are): leave it out", name));
            // This rejects names that ask to estimate what is known here.
            if (known) (void)estimators.back().method.knowing({estimators::NoiseCovariance::identity(1), std::nullopt});
            if (known && !estimators.back().method.takes_noise_law())
                diagnostics.add(table, fmt::format("\"{}\" cannot use a known law (only {} do): leave law out", name,
                                                   estimators::users_of_noise_law()));
        });
    });
    return estimators;
}

std::vector<NamedCodec> read_codecs(Section& root, Diagnostics& diagnostics) {
    std::vector<NamedCodec> codecs;
    each_table(root, "codec", diagnostics, "[[codec]]", [&](const toml::table& table) {
        Section section(table, "[[codec]]", diagnostics);
        section.require("name", "name = \"tq-mse\"");
        section.require("bits", "bits = [2, 3]");
        const std::string name = section.text("name", "tq-mse");
        const std::string label = section.text("as", name);
        reject_long_name(table, table.contains("as") ? "as" : "name", label, diagnostics);
        std::vector<double> bits;
        for (const double value : section.numbers("bits")) {
            if (!(value > 0.0 && value <= 8.0))
                diagnostics.add(*table.get("bits"),
                                fmt::format("{} bits are not possible: a quantizer takes 1 to 8", value));
            else
                bits.push_back(value);
        }
        section.no_other_keys();
        guarded(table, diagnostics, [&] {
            reject_duplicate(table, codecs, label, diagnostics);
            std::set<double> known;
            const auto twice =
                std::find_if(bits.begin(), bits.end(), [&](double b) { return !known.insert(b).second; });
            if (twice != bits.end()) diagnostics.add(table, fmt::format("{} bits are listed twice", *twice));
            constexpr std::size_t most_widths = 100;
            if (bits.size() > most_widths) {
                diagnostics.add(table, fmt::format("{} bit widths are too many (at most {}): ask for fewer",
                                                   bits.size(), most_widths));
                return;
            }
            codecs.push_back({label, estimators::method_named(name), bits});
            for (const double b : bits) codecs.back().method.quantizer.check_bits(b);
        });
    });
    return codecs;
}

void check_figures(bool dumps, const std::vector<std::string>& factors, const std::vector<const toml::table*>& tables,
                   const std::vector<FigureKeys>& kinds, Diagnostics& diagnostics) {
    if (kinds.empty()) return;
    std::vector<std::string> names;
    for (const auto& kind : kinds)
        if (dumps ? kind.of_dumps : kind.of_blocks) names.push_back(kind.kind);
    std::set<std::string> known(factors.begin(), factors.end());
    known.insert("cell");  // one point per cell
    const std::vector<std::string> axes(known.begin(), known.end());
    for (const toml::table* table : tables) {
        check_names(table->get("kind"), "kind", names, diagnostics);
        check_names(table->get("x"), "x", axes, diagnostics);
        check_names(table->get("by"), "by", factors, diagnostics);
        check_names(table->get("y"), "y", metrics().names(), diagnostics);
        const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const FigureKeys& kind) {
            return (*table)["kind"].value<std::string>() == kind.kind;
        });
        if (found == kinds.end()) continue;
        std::vector<std::string> keys = {"kind"};
        for (const auto& option : found->options) keys.push_back(option.key);
        for (const auto& [key, value] : *table) {
            const auto option = std::find_if(found->options.begin(), found->options.end(),
                                             [name = key.str()](const OptionSpec& one) { return one.key == name; });
            if (option != found->options.end())
                check_value(*option, value, fmt::format("[[figure]] of kind {}: ", found->kind), diagnostics);
            else if (key.str() != "kind")
                diagnostics.add(key.source(), fmt::format("unknown key \"{}\" in a [[figure]] of kind {}{}", key.str(),
                                                          found->kind, suggestion(key.str(), keys)));
        }
    }
}

std::vector<const toml::table*> read_figures(Section& root, Experiment& experiment, Diagnostics& diagnostics) {
    std::vector<const toml::table*> tables;
    each_table(root, "figure", diagnostics, "[[figure]]", [&](const toml::table& table) {
        tables.push_back(&table);
        Section section(table, "[[figure]]", diagnostics);
        section.require("kind", "kind = \"estimate-vs-theory\"");
        if (section.text("kind", "").empty() && table.get("kind") != nullptr)
            diagnostics.add(table, "a figure needs a kind");
        experiment.figures.push_back(json_of(table));
    });
    return tables;
}

RunTable read_run(Section& root, Experiment& experiment, Diagnostics& diagnostics) {
    RunTable found;
    auto& replicates = found.replicates;
    Section run = root.below("run");
    if (const toml::table* reps = run.table("reps", "{ min = 200 }")) {
        Section inside(*reps, "run.reps", diagnostics);
        constexpr std::size_t most = 1000000000;
        const std::size_t largest = inside.count("max", 0, 1, most);
        replicates.least = inside.count("min", largest == 0 ? 200 : std::min<std::size_t>(200, largest), 1, most);
        replicates.most = largest == 0 ? replicates.least : largest;
        if (replicates.most < replicates.least)
            diagnostics.add(*reps->get("max"), fmt::format("max of reps is {}, below min, {}: swap or raise it",
                                                           replicates.most, replicates.least));
        experiment.batch = inside.count("batch", 50, 1, 1000000);
        inside.no_other_keys();
    }
    const std::string until = "until = [{ metric = \"outlier\", mcse_rel = 0.01 }]";
    each_table(run, "until", diagnostics, until,
               [&](const toml::table& table) { experiment.until.push_back(read_stop_rule(table, diagnostics)); });
    if (replicates.most > replicates.least && experiment.until.empty())
        diagnostics.add(
            *root.raw()["run"]["reps"].node(),
            "run.reps: min and max differ but nothing says when to stop: add for example " + until + " to [run]");
    run.reject("max_time", "give --max-time to spiked run, or stop with Ctrl-C; the same command goes on");
    found.precision = run.choice("precision", found.precision);
    experiment.failure_budget = run.number("failure_budget", 0.01, 0.0, 1.0);
    run.no_other_keys();
    return found;
}

void check_stop_rules(const toml::table& file, const Experiment& experiment, Diagnostics& diagnostics) {
    for (std::size_t i = 0; i < experiment.until.size(); ++i) {
        const Metric& metric = metrics()[experiment.until[i].metric];
        // Metrics of the sample need a known signal.
        const bool measured =
            std::any_of(experiment.methods.begin(), experiment.methods.end(), [&](const ExperimentMethod& method) {
                return metric.is_of(method.kind) &&
                       (method.kind != "sample" || (experiment.kind != "matrix" && experiment.kind != "kv_dump"));
            });
        if (!measured)
            diagnostics.add(*file.at_path(fmt::format("run.until[{}]", i)).node(),
                            fmt::format("nothing in this study measures \"{}\" (it is a metric of: {}): name another "
                                        "metric, or add such a method",
                                        metric.name, metric.of));
    }
}

}  // namespace spiked::validation
