#include "validation/study.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "sim/text_file.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"
#include "validation/claims.hpp"
#include "validation/kv_measurement.hpp"
#include "validation/study_models.hpp"

namespace spiked::validation {
namespace {

constexpr std::uint64_t most_bytes = 1 << 20;  // of a study file
constexpr std::size_t deepest_key = 64;

std::vector<NamedEstimator> read_estimators(Section& root, Mistakes& mistakes) {
    std::vector<NamedEstimator> estimators;
    each_table(root, "estimator", mistakes, "[[estimator]]", [&](const toml::table& table) {
        Section section(table, "[[estimator]]", mistakes);
        section.require("name", "name = \"eoptshrink\"");
        const std::string name = section.text("name", "eoptshrink");
        const std::string loss = section.choice("loss", "frobenius", {"frobenius", "operator", "nuclear"});
        const std::string label = section.text("as", name);
        const bool told = section.choice("law", "unknown", {"unknown", "known"}) == "known";
        section.no_other_keys();
        guarded(table, mistakes, [&] {
            const auto parsed = theory::loss_from(loss).value_or(theory::Loss::frobenius);
            for (const auto& other : estimators)
                if (other.label == label)
                    mistakes.add(table, fmt::format("\"{}\" stands here twice: give one another name with as", label));
            estimators.push_back({label, estimators::spectral_method(name, parsed), parsed, told});
            if (told && !estimators.back().method.takes_noise_law)
                mistakes.add(table,
                             fmt::format("\"{}\" cannot be told the law (only tw-test and whiten+NAME make use of "
                                         "it): leave law out",
                                         name));
        });
    });
    return estimators;
}

std::vector<NamedCodec> read_codecs(Section& root, Mistakes& mistakes) {
    std::vector<NamedCodec> codecs;
    each_table(root, "codec", mistakes, "[[codec]]", [&](const toml::table& table) {
        Section section(table, "[[codec]]", mistakes);
        section.require("name", "name = \"tq-mse\"");
        section.require("bits", "bits = [2, 3]");
        const std::string name = section.text("name", "tq-mse");
        const std::string label = section.text("as", name);
        std::vector<double> bits;
        for (const double value : section.numbers("bits")) {
            if (!(value > 0.0 && value <= 8.0))
                mistakes.add(*table.get("bits"),
                             fmt::format("{} bits are not possible: a quantizer takes 1 to 8", value));
            else
                bits.push_back(value);
        }
        section.no_other_keys();
        guarded(table, mistakes, [&] {
            for (const auto& other : codecs)
                if (other.label == label)
                    mistakes.add(table, fmt::format("\"{}\" stands here twice: give one another name with as", label));
            for (const double b : bits)
                if (std::count(bits.begin(), bits.end(), b) > 1) {
                    mistakes.add(table, fmt::format("{} bits are asked for twice", b));
                    break;
                }
            codecs.push_back({label, estimators::parse_method(name), bits});
            for (const double b : bits) estimators::check_bits(codecs.back().method, b);
        });
    });
    return codecs;
}

std::vector<std::pair<Check, const toml::table*>> read_checks(Section& root, Mistakes& mistakes) {
    std::vector<std::pair<Check, const toml::table*>> checks;
    each_table(root, "check", mistakes, "[[check]]", [&](const toml::table& table) {
        Section section(table, "[[check]]", mistakes);
        section.require("claim", "claim = \"overlap.left\"");
        section.require("margin", "margin = { abs = 0.02, rate = \"n^-1/2\" }");
        Check check;
        check.claim = section.text("claim", "");
        check.name = section.text("name", check.claim);
        for (const auto& [other, place] : checks)
            if (other.name == check.name)
                mistakes.add(table,
                             fmt::format("check \"{}\" stands here twice (first in line {}): give one another name",
                                         check.name, place->source().begin.line));
        const Claim* claim = find_claim(check.claim);
        if (table.get("claim") != nullptr && (claim == nullptr || !claim->in_study)) {
            std::vector<std::string> names;
            for (const auto& one : claims())
                if (one.in_study) names.push_back(one.id);
            mistakes.add(
                *table.get("claim"),
                claim == nullptr
                    ? fmt::format("unknown claim \"{}\"{}", check.claim, suggestion(check.claim, names))
                    : fmt::format("claim \"{0}\" is no check of a study (its trials are its own): judge it with "
                                  "spiked validate --claim {0}; studies check {1}",
                                  check.claim, fmt::join(names, ", ")));
        }
        if (const toml::table* margin = section.table("margin", "{ rel = 0.05 }")) {
            Section inside(*margin, "margin", mistakes);
            check.margin_absolute = inside.number("abs", 0.0, 0.0, 1e6);
            check.margin_relative = inside.number("rel", 0.0, 0.0, 1.0);
            const std::vector<std::string> rates = {"1", "n^-1/3", "n^-1/2", "n^-2/3", "n^-1"};
            const double exponents[] = {0.0, -1.0 / 3.0, -0.5, -2.0 / 3.0, -1.0};
            const std::string rate = inside.choice("rate", "1", rates);
            const auto at = std::find(rates.begin(), rates.end(), rate);
            if (at != rates.end()) check.rate_exponent = exponents[at - rates.begin()];
            inside.no_other_keys();
            if (check.margin_absolute + check.margin_relative <= 0.0)
                mistakes.add(*margin,
                             "a margin needs abs or rel above 0 (limits are never exactly true at finite size)");
        }
        if (const toml::table* where = section.table("where", "{ n = { ge = 128 } }"))
            for (const auto& [factor, condition] : *where) {
                const toml::table* comparisons = condition.as_table();
                if (comparisons == nullptr) {
                    if (condition.is_number())
                        check.where.push_back({std::string(factor.str()), "eq", *condition.value<double>(), ""});
                    else if (const auto text = condition.value_exact<std::string>())
                        check.where.push_back({std::string(factor.str()), "is", 0.0, *text});
                    else
                        mistakes.add(condition, "a condition is a number, a text or a table such as { ge = 1.2 }");
                    continue;
                }
                for (const auto& [comparison, number] : read_comparisons(*comparisons, mistakes))
                    check.where.push_back({std::string(factor.str()), comparison, number, ""});
            }
        section.no_other_keys();
        checks.emplace_back(std::move(check), &table);
    });
    return checks;
}

/// Every dot of a key is a table in a table, and the TOML library frees and searches them one in the other.
void refuse_deep_keys(const std::string& text, const std::string& name) {
    std::size_t dots = 0;
    char quote = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quote != 0) {
            if (c == '\\' && quote == '"') ++i;
            if (c == quote || c == '\n') quote = 0;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '#') {
            i = std::min(text.find('\n', i), text.size());
            dots = 0;
        } else if (c == '.') {
            if (++dots > deepest_key)
                throw usage_error("{}: a key of more than {} parts (near byte {}): no study has one", name, deepest_key,
                                  i);
        } else if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) {
            dots = 0;
        }
    }
}

void apply_overrides(toml::table& root, const StudyOverrides& overrides) {
    for (const auto& [key, value] : overrides.set) {
        refuse_deep_keys(key, "--set");
        refuse_deep_keys(value, "--set");
        toml::table parsed;
        try {
            parsed = toml::parse("value = " + value);
        } catch (const toml::parse_error&) {
            try {
                parsed = toml::parse("value = \"" + value + "\"");
            } catch (const toml::parse_error&) {
                throw usage_error("--set {}={}: the value is not TOML: quote texts", key, value);
            }
        }
        if (!put(root, key, *parsed.get("value")))
            throw usage_error("--set {}: {} is not a table of the study", key, key);
    }
}

/// What a sweep sets in every cell cannot be set for the model.
void refuse_swept(const StudyOverrides& overrides, const toml::table* sweep, Mistakes& mistakes) {
    if (sweep == nullptr) return;
    for (const auto& [key, value] : overrides.set)
        for (const auto& [factor, values] : *sweep)
            if (key == "model." + std::string(factor.str())) {
                const bool dotted = factor.str().find('.') != std::string_view::npos;
                mistakes.add(toml::source_region{},
                             fmt::format("--set {0} has no effect ([sweep] sets {1} in every cell): write --set "
                                         "'sweep.{2}{1}{2}=[{3}]'",
                                         key, factor.str(), dotted ? "\"" : "", value));
            }
}

/// Sources that are not found from the current folder but beside the study file become paths from the current folder:
/// the list as TOML where one did, for a store that is read from elsewhere.
std::string find_sources_beside(toml::table& root, const std::string& folder) {
    toml::array* list = root.at_path("model.source").as_array();
    if (list == nullptr || folder.empty()) return "";
    bool found = false;
    for (auto& node : *list) {
        auto* pattern = node.as_string();
        if (pattern == nullptr || !expand_pattern(pattern->get()).empty()) continue;
        const std::string beside = (std::filesystem::path(folder) / pattern->get()).lexically_normal().string();
        if (expand_pattern(beside).empty()) continue;
        *pattern = beside;
        found = true;
    }
    std::ostringstream text;
    if (found) text << *list;
    return text.str();
}

StopRule read_stop_rule(const toml::table& table, Mistakes& mistakes) {
    Section section(table, "run.until", mistakes);
    section.require("metric", "metric = \"relative_l2\"");
    std::vector<std::string> names;
    for (const auto& metric : metrics()) names.push_back(metric.name);
    StopRule rule;
    const std::string name = section.choice("metric", names.front(), names);
    if (std::find(names.begin(), names.end(), name) != names.end()) rule.metric = metric_index(name);
    rule.relative = section.number("mcse_rel", 0.0, 0.0, 1e9);
    rule.absolute = section.number("mcse_abs", 0.0, 0.0, 1e300);
    section.no_other_keys();
    if (rule.relative <= 0.0 && rule.absolute <= 0.0)
        mistakes.add(table, "a stop rule needs mcse_rel or mcse_abs above 0");
    return rule;
}

/// Conditions of checks name what cells are told apart by.
void check_conditions(const std::vector<std::pair<Check, const toml::table*>>& checks,
                      const std::vector<std::string>& factors, Mistakes& mistakes) {
    for (const auto& [check, table] : checks)
        if (const toml::table* where = (*table)["where"].as_table())
            for (const auto& [key, value] : *where)
                if (std::find(factors.begin(), factors.end(), key.str()) == factors.end())
                    mistakes.add(key.source(), fmt::format("where: no cell has a factor \"{}\"{}", key.str(),
                                                           suggestion(key.str(), factors)));
}

/// Words of figures; a list of them counts word by word.
void check_words(const toml::node* node, const std::string& what, const std::vector<std::string>& legal,
                 Mistakes& mistakes) {
    const auto check = [&](const toml::node& one) {
        const auto word = one.value_exact<std::string>();
        if (!word || std::find(legal.begin(), legal.end(), *word) == legal.end())
            mistakes.add(one, fmt::format("{} of a [[figure]] is not \"{}\"{}", what, word.value_or(""),
                                          suggestion(word.value_or(""), legal)));
    };
    if (node == nullptr) return;
    if (const toml::array* list = node->as_array())
        for (const auto& one : *list) check(one);
    else
        check(*node);
}

void check_figures(bool dumps, const std::vector<std::string>& factors, const std::vector<const toml::table*>& tables,
                   const std::vector<FigureWords>& kinds, Mistakes& mistakes) {
    if (kinds.empty()) return;
    std::vector<std::string> names;
    for (const auto& kind : kinds)
        if (dumps ? kind.of_dumps : kind.of_blocks) names.push_back(kind.kind);
    std::vector<std::string> metric_names;
    for (const auto& metric : metrics()) metric_names.push_back(metric.name);
    std::set<std::string> told(factors.begin(), factors.end());
    told.insert("cell");  // every cell by itself
    const std::vector<std::string> axes(told.begin(), told.end());
    for (const toml::table* table : tables) {
        check_words(table->get("kind"), "kind", names, mistakes);
        check_words(table->get("x"), "x", axes, mistakes);
        check_words(table->get("by"), "by", factors, mistakes);
        check_words(table->get("y"), "y", metric_names, mistakes);
        const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const FigureWords& kind) {
            return (*table)["kind"].value<std::string>() == kind.kind;
        });
        if (found == kinds.end()) continue;
        std::vector<std::string> keys = {"kind", "title"};
        keys.insert(keys.end(), found->keys.begin(), found->keys.end());
        for (const auto& [key, value] : *table)
            if (std::find(keys.begin(), keys.end(), key.str()) == keys.end())
                mistakes.add(key.source(), fmt::format("unknown key \"{}\" in a [[figure]] of kind {}{}", key.str(),
                                                       found->kind, suggestion(key.str(), keys)));
    }
}

}  // namespace

Study parse_study(const std::string& text, const std::string& name, const StudyOverrides& overrides) {
    refuse_deep_keys(text, name);
    toml::table file;
    try {
        file = toml::parse(text, name);
    } catch (const toml::parse_error& error) {
        throw usage_error("{}:{}:{}: {}: mend the syntax there", name, error.source().begin.line,
                          error.source().begin.column, error.description());
    }
    apply_overrides(file, overrides);

    Mistakes mistakes(name, overrides.set.empty() ? "" : " (as changed by --set)");
    Study study;
    Experiment& experiment = study.experiment;
    experiment.config_source = text;
    const auto keep_change = [&](const std::string& key, const std::string& value) {
        Json pair = Json::array();
        pair.push(key);
        pair.push(value);
        experiment.config_set.push(std::move(pair));
    };
    for (const auto& [key, value] : overrides.set) keep_change(key, value);
    if (const std::string source = find_sources_beside(file, overrides.folder); !source.empty())
        keep_change("model.source", source);
    Section root(file, "the study", mistakes);
    root.require("spiked", "spiked = 1");
    if (const toml::node* version = root.node("spiked");
        version != nullptr && version->value_exact<std::int64_t>() != 1)
        mistakes.add(*version,
                     "\"spiked\" is the version of the study file's format, and this program reads 1: spiked = 1");

    Section about(root.table("study") != nullptr ? *file.get("study")->as_table() : empty_table, "[study]", mistakes);
    about.require("name", "name = \"my-study\"");
    experiment.name = about.text("name", "study");
    experiment.title = about.text("title", experiment.name);
    const std::string seed = about.text("seed", "");
    const toml::node* seed_node = about.node("seed");
    guarded(seed_node == nullptr ? file : *seed_node, mistakes, [&] {
        if (overrides.seed == "fresh" || (overrides.seed.empty() && seed.empty())) {
            experiment.seed = stream::StudySeed::fresh();
            experiment.seed_source = "generated";
        } else {
            experiment.seed = stream::StudySeed::parse(overrides.seed.empty() ? seed : overrides.seed);
            experiment.seed_source = overrides.seed.empty() ? "config" : "cli";
        }
    });
    about.no_other_keys();

    Replicates replicates;
    Section run(root.table("run") != nullptr ? *file.get("run")->as_table() : empty_table, "[run]", mistakes);
    if (const toml::table* reps = run.table("reps", "{ min = 200 }")) {
        Section inside(*reps, "run.reps", mistakes);
        constexpr std::size_t most = 1000000000;
        const std::size_t largest = inside.count("max", 0, 1, most);
        replicates.least = inside.count("min", largest == 0 ? 200 : std::min<std::size_t>(200, largest), 1, most);
        replicates.most = largest == 0 ? replicates.least : largest;
        if (replicates.most < replicates.least)
            mistakes.add(*reps->get("max"), fmt::format("max of reps is {}, below min, {}: swap or raise it",
                                                        replicates.most, replicates.least));
        experiment.batch = inside.count("batch", 50, 1, 1000000);
        inside.no_other_keys();
    }
    const std::string until = "until = [{ metric = \"outlier\", mcse_rel = 0.01 }]";
    each_table(run, "until", mistakes, until,
               [&](const toml::table& table) { experiment.until.push_back(read_stop_rule(table, mistakes)); });
    if (replicates.most != replicates.least && experiment.until.empty())
        mistakes.add(
            file, "run.reps: min and max differ but nothing says when to stop: add for example " + until + " to [run]");
    run.refuse("max_time", "give --max-time to spiked run, or stop with Ctrl-C; the same command goes on");
    const std::string precision_name = run.choice("precision", "double", {"double", "float"});
    const auto precision = precision_name == "float" ? estimators::Precision::float32 : estimators::Precision::float64;
    experiment.failure_budget = run.number("failure_budget", 0.01, 0.0, 1.0);
    run.no_other_keys();

    const auto estimators = read_estimators(root, mistakes);
    const auto codecs = read_codecs(root, mistakes);
    const auto checks = read_checks(root, mistakes);
    Section budget(root.table("checks") != nullptr ? *file.get("checks")->as_table() : empty_table, "[checks]",
                   mistakes);
    experiment.false_alarm = budget.number("false_alarm", 1e-6, 1e-300, 0.5);
    budget.no_other_keys();
    std::vector<const toml::table*> figure_tables;
    each_table(root, "figure", mistakes, "[[figure]]", [&](const toml::table& table) {
        figure_tables.push_back(&table);
        Section section(table, "[[figure]]", mistakes);
        section.require("kind", "kind = \"estimate-vs-theory\"");
        if (section.text("kind", "").empty() && table.get("kind") != nullptr)
            mistakes.add(table, "a figure needs a kind");
        experiment.figures.push_back(json_of(table));
    });
    Section exec(root.table("exec") != nullptr ? *file.get("exec")->as_table() : empty_table, "[exec]", mistakes);
    study.threads = exec.count("threads", 0, 0, 4096);
    study.device = exec.text("device", "");
    if (const toml::node* device = exec.node("device"); device != nullptr && !spiked::cuda::is_device(study.device))
        mistakes.add(*device, "\"device\" is auto, cpu, cuda:0 and so on, or emulated");
    exec.no_other_keys();
    Section store(root.table("store") != nullptr ? *file.get("store")->as_table() : empty_table, "[store]", mistakes);
    study.store_path = store.text("path", "results/" + experiment.name + ".spiked");
    if (study.store_path.empty()) mistakes.add(file, "[store] path is empty: name a file");
    if (const toml::node* raw = store.node("raw")) {
        if (const auto number = raw->value_exact<std::int64_t>(); number && *number >= 0)
            experiment.raw_per_cell = static_cast<std::size_t>(*number);
        else if (raw->value<std::string>() == "none")
            experiment.raw_per_cell = 0;
        else if (raw->value<std::string>() != "all")
            mistakes.add(*raw, "\"raw\" is \"all\", \"none\" or a number of replicates a cell");
    }
    store.no_other_keys();

    root.require("model", "[model] with kind = \"spiked\"");
    const toml::table* model = root.table("model");
    const toml::table* sweep = root.table("sweep");
    root.no_other_keys();
    if (model == nullptr) mistakes.throw_if_any();
    Section kind_section(*model, "[model]", mistakes);
    kind_section.require("kind", "kind = \"spiked\"");
    const std::string kind = kind_section.choice("kind", "spiked", model_kinds());
    std::vector<StudyPoint> points;
    KvPlan plan;
    if (kind == "kv_dump") {
        plan = read_dump_model(*model, mistakes);
        if (sweep != nullptr) mistakes.add(*sweep, "a dump study has no sweep: its cells are the heads");
        if (root.raw().get("codec") == nullptr) mistakes.add(*model, "a dump study needs a [[codec]]");
        for (const char* key : {"estimator", "check"})
            if (const toml::node* asked = root.raw().get(key))
                mistakes.add(*asked, fmt::format("a dump study takes no [[{}]] in this version: name codecs "
                                                 "(spiked spectrum estimates blocks of a dump)",
                                                 key));
        for (const char* key : {"reps", "until"})
            if (const toml::node* asked = run.raw().get(key))
                mistakes.add(*asked, fmt::format("a dump study has no {}: its replicates are the blocks", key));
    } else {
        points = read_points(kind, *model, sweep, mistakes);
        if (root.raw().get("estimator") == nullptr && root.raw().get("codec") == nullptr &&
            root.raw().get("check") == nullptr)
            mistakes.add(*model, "nothing is asked: add an [[estimator]], a [[codec]] or a [[check]]");
    }
    // Known before any cell is, so that these mistakes are told with the others.
    std::vector<std::string> factors = {"n", "d"};
    if (kind == "kv_dump")
        factors = {"file", "input", "model", "prompt", "layer", "side", "head", "cluster", "cluster_by"};
    else if (kind == "matrix")
        factors.emplace_back("file");
    else if (sweep != nullptr)
        for (const auto& [key, value] : *sweep)
            if (key.str() != "mode" && key.str() != "skip") factors.emplace_back(key.str());
    refuse_swept(overrides, sweep, mistakes);
    check_conditions(checks, factors, mistakes);
    check_figures(kind == "kv_dump", factors, figure_tables, overrides.figures, mistakes);
    mistakes.throw_if_any();

    experiment.science = Json::object({{"spiked", 1},
                                       {"kind", kind},
                                       {"name", experiment.name},
                                       {"replicates", replicates.most},
                                       {"batch", experiment.batch},
                                       {"precision", precision_name},
                                       {"raw", static_cast<std::int64_t>(experiment.raw_per_cell)}});
    Json methods = Json::array();
    for (const auto& e : estimators) {
        Json method = Json::object({{"estimator", e.method.name}, {"loss", theory::name_of(e.loss)}, {"as", e.label}});
        if (e.told_law) method.set("law", "known");
        methods.push(std::move(method));
    }
    for (const auto& c : codecs) {
        Json bits = Json::array();
        for (const double b : c.bits) bits.push(bits_json(b));
        methods.push(Json::object({{"codec", c.method.text}, {"bits", std::move(bits)}, {"as", c.label}}));
    }
    experiment.science.set("methods", std::move(methods));
    if (!experiment.until.empty()) {
        experiment.science.set("least_replicates", replicates.least);
        experiment.science.set("until", json_of(*file.at_path("run.until").node()));
    }
    if (const toml::node* all = file.get("check")) experiment.science.set("check", json_of(*all));
    experiment.science.set("false_alarm", experiment.false_alarm);
    if (kind == "kv_dump") {
        // Its errors name files, and are those of unusable input.
        plan.quantizer.seed = experiment.seed;
        plan.precision = precision;
        make_dump_experiment(experiment, plan, codecs);
    } else {
        guarded(*model, mistakes, [&] {
            make_block_experiment(experiment, kind, std::move(points), estimators, codecs, replicates, precision);
        });
        mistakes.throw_if_any();
    }

    for (std::size_t i = 0; i < experiment.until.size(); ++i) {
        const Metric& metric = metrics()[experiment.until[i].metric];
        // What is a sample's needs a known signal.
        const bool measured =
            std::any_of(experiment.methods.begin(), experiment.methods.end(), [&](const ExperimentMethod& method) {
                return metric.of.find(method.kind) != std::string::npos &&
                       (method.kind != "sample" || (kind != "matrix" && kind != "kv_dump"));
            });
        if (!measured)
            mistakes.add(*file.at_path(fmt::format("run.until[{}]", i)).node(),
                         fmt::format("nothing in this study measures \"{}\" (it is a metric of: {}): name another "
                                     "metric, or add such a method",
                                     metric.name, metric.of));
    }

    std::set<std::string> hashes;
    for (const auto& cell : experiment.cells)
        if (!hashes.insert(cell.hash()).second)
            mistakes.add(sweep == nullptr ? *model : *sweep,
                         fmt::format("two cells are the same ({}): a value stands twice", cell.label));
    mistakes.throw_if_any();
    for (const auto& [check, table] : checks) {
        bool any = false;
        bool predicted = false;
        for (const auto& cell : experiment.cells) {
            const bool applies = check.applies_to(cell);
            any = any || applies;
            for (const auto& prediction : cell.predictions)
                predicted = predicted || (applies && prediction.claim == check.claim);
        }
        if (!any)
            mistakes.add(*table, fmt::format("check \"{}\" matches no cell: mend its \"where\"", check.name));
        else if (!predicted)
            mistakes.add(
                *table,
                fmt::format(
                    "check \"{}\": the claim says nothing about the cells it matches (wrong side of the threshold, "
                    "components of one strength, or its codec is missing)",
                    check.name));
        experiment.checks.push_back(check);
    }
    mistakes.throw_if_any();
    return study;
}

Study reread_study(const std::string& text, const Json& set, const std::string& seed, const std::string& name) {
    StudyOverrides overrides{{}, seed};
    const auto damaged = [&] { return damaged_store(name, "what --set changed is not a list of pairs of texts"); };
    if (set.items() == nullptr) throw damaged();
    for (const Json& pair : *set.items()) {
        const auto* texts = pair.items();
        if (texts == nullptr || texts->size() != 2 || !(*texts)[0].string() || !(*texts)[1].string()) throw damaged();
        overrides.set.emplace_back(*(*texts)[0].string(), *(*texts)[1].string());
    }
    return parse_study(text, name, overrides);
}

Study stored_study(Database& store) {
    Statement row(store, "SELECT config_source, config_set, seed, science_hash FROM study");
    if (!row.step()) throw input_error("{}: the store holds no study: make it again", store.path());
    if (row.text(0).starts_with("spiked kv "))
        throw usage_error("{}: made by a command, not from a study file ({}): run that command again", store.path(),
                          row.text(0));
    Study study = reread_study(row.text(0), Json::parse(row.text(1), store.path() + ": config_set", 8), row.text(2),
                               store.path() + ": study");
    if (study.experiment.science_hash() != row.text(3))
        throw input_error(
            "{}: its study reads differently now (its input files changed, or this program is another "
            "version): bring back the files, or use the version that made it",
            store.path());
    return study;
}

Study read_study(const std::string& path, const StudyOverrides& overrides) {
    if (!std::filesystem::exists(path))
        throw usage_error("{}: the study file cannot be opened: check the path, or make one with spiked init", path);
    std::string text;
    try {
        text = sim::read_text_file(path, most_bytes, "a study file");
    } catch (const Error& error) {
        throw Error(ExitCode::usage, error.what());
    }
    StudyOverrides there = overrides;
    there.folder = std::filesystem::path(path).parent_path().string();
    return parse_study(text, path, there);
}

}  // namespace spiked::validation
