#include "validation/study.hpp"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "theory/base/error.hpp"
#include "theory/base/names.hpp"
#include "validation/claims.hpp"
#include "validation/kv_measurement.hpp"
#include "validation/spiked_study.hpp"

namespace spiked::validation {
namespace {

/// Collects mistakes with their place in the file.
class Mistakes {
public:
    explicit Mistakes(std::string file) : file_(std::move(file)) {}

    void add(const toml::node& at, const std::string& problem) { add(at.source(), problem); }
    void add(const toml::source_region& at, const std::string& problem) {
        order_.push_back(fmt::format("{}:{}:{}: {}", file_, at.begin.line, at.begin.column, problem));
        if (first_.empty()) first_ = problem;
    }
    void throw_if_any() const {
        if (order_.empty()) return;
        std::string text;
        for (std::size_t i = 0; i < std::min<std::size_t>(20, order_.size()); ++i)
            text += (i == 0 ? "" : "\n") + order_[i];
        if (order_.size() > 20) text += fmt::format("\n... and {} more", order_.size() - 20);
        throw Error(ExitCode::usage, text);
    }
    [[nodiscard]] std::size_t count() const { return order_.size(); }
    /// The first problem, without its place.
    [[nodiscard]] const std::string& first() const { return first_; }

private:
    std::string file_;
    std::string first_;
    std::vector<std::string> order_;
};

/// A table being read: remembers which keys were asked for, so that the others can be named as mistakes.
class Section {
public:
    Section(const toml::table& table, std::string name, Mistakes& mistakes)
        : table_(table), name_(std::move(name)), mistakes_(mistakes) {}

    const toml::node* node(const std::string& key) {
        known_.push_back(key);
        return table_.get(key);
    }
    const toml::table* table(const std::string& key) {
        const toml::node* found = node(key);
        if (found == nullptr) return nullptr;
        if (!found->is_table()) mistakes_.add(*found, fmt::format("\"{}\" must be a table", key));
        return found->as_table();
    }
    std::string text(const std::string& key, const std::string& fallback) {
        const toml::node* found = node(key);
        if (found == nullptr) return fallback;
        if (const auto value = found->value_exact<std::string>()) return *value;
        mistakes_.add(*found, fmt::format("\"{}\" must be a text in quotes", key));
        return fallback;
    }
    std::string choice(const std::string& key, const std::string& fallback, const std::vector<std::string>& legal) {
        const std::string value = text(key, fallback);
        if (std::find(legal.begin(), legal.end(), value) == legal.end())
            mistakes_.add(*table_.get(key), fmt::format("\"{}\" of {} is not possible in this version{}", value, key,
                                                        suggestion(value, legal)));
        return value;
    }
    double number(const std::string& key, double fallback, double low, double high) {
        const toml::node* found = node(key);
        if (found == nullptr) return fallback;
        const auto value = found->value<double>();
        if (value && found->is_number() && *value >= low && *value <= high) return *value;
        mistakes_.add(*found, fmt::format("\"{}\" must be a number from {} to {}", key, low, high));
        return fallback;
    }
    std::size_t count(const std::string& key, std::size_t fallback, std::size_t low, std::size_t high) {
        const toml::node* found = node(key);
        if (found == nullptr) return fallback;
        const auto value = found->value_exact<std::int64_t>();
        if (value && *value >= static_cast<std::int64_t>(low) && *value <= static_cast<std::int64_t>(high))
            return static_cast<std::size_t>(*value);
        mistakes_.add(*found, fmt::format("\"{}\" must be a whole number from {} to {}", key, low, high));
        return fallback;
    }
    /// A number or a list of numbers.
    std::vector<double> numbers(const std::string& key) {
        const toml::node* found = node(key);
        std::vector<double> values;
        if (found == nullptr) return values;
        const auto add = [&](const toml::node& one) {
            if (one.is_number())
                values.push_back(*one.value<double>());
            else
                mistakes_.add(one, fmt::format("\"{}\" must be a number or a list of numbers", key));
        };
        if (const toml::array* list = found->as_array())
            for (const auto& one : *list) add(one);
        else
            add(*found);
        return values;
    }
    void require(const std::string& key, const char* example) {
        if (table_.get(key) == nullptr)
            mistakes_.add(table_, fmt::format("\"{}\" is missing in {}: add for example {}", key, name_, example));
    }
    void refuse(const std::string& key, const char* why) {
        if (const toml::node* found = node(key))
            mistakes_.add(*found, fmt::format("\"{}\" is not in this version ({})", key, why));
    }
    /// To be called last.
    void no_other_keys() {
        for (const auto& [key, value] : table_)
            if (std::find(known_.begin(), known_.end(), key.str()) == known_.end())
                mistakes_.add(key.source(), fmt::format("unknown key \"{}\" in {}{}", key.str(), name_,
                                                        suggestion(key.str(), known_)));
    }
    [[nodiscard]] Mistakes& mistakes() { return mistakes_; }
    [[nodiscard]] const toml::table& raw() const { return table_; }

private:
    const toml::table& table_;
    std::string name_;
    Mistakes& mistakes_;
    std::vector<std::string> known_;
};

const toml::table empty_table;

CovarianceSpec read_covariance(Section& noise, const std::string& key) {
    CovarianceSpec spec;
    const toml::table* table = noise.table(key);
    if (table == nullptr) return spec;
    Section section(*table, "noise." + key, noise.mistakes());
    section.require("kind", "kind = \"ar1\"");
    spec.kind = section.choice("kind", "identity", {"identity", "ar1", "exponential"});
    if (spec.kind == "ar1") {
        section.require("rho", "rho = 0.4");
        spec.parameter = section.number("rho", 0.0, -0.999, 0.999);
    }
    if (spec.kind == "exponential") {
        section.require("c", "c = 2.0");
        spec.parameter = section.number("c", 0.0, -50.0, 50.0);
    }
    section.no_other_keys();
    return spec;
}

SpikedPoint read_point(const toml::table& model, Mistakes& mistakes) {
    SpikedPoint point;
    Section section(model, "[model]", mistakes);
    section.text("kind", "");
    section.require("n", "n = 128");
    section.require("d", "d = 128");
    point.rows = section.count("n", 128, 2, 65536);
    point.columns = section.count("d", 128, 2, 65536);
    if (const toml::table* noise = section.table("noise")) {
        Section inside(*noise, "model.noise", mistakes);
        inside.choice("entries", "gaussian", {"gaussian"});
        point.row = read_covariance(inside, "row_cov");
        point.column = read_covariance(inside, "col_cov");
        inside.no_other_keys();
    }
    if (const toml::table* signal = section.table("signal")) {
        Section inside(*signal, "model.signal", mistakes);
        point.strengths = inside.numbers("strength");
        point.unit = inside.choice("unit", "threshold", {"threshold", "absolute", "sqrt_n"});
        inside.choice("vectors", "haar", {"haar"});
        const std::size_t rank = inside.count("rank", point.strengths.size(), 0, 65536);
        for (const double strength : point.strengths)
            if (!(strength >= 0.0)) mistakes.add(*signal->get("strength"), "a strength must not be negative");
        if (rank != point.strengths.size())
            mistakes.add(*signal->get("rank"),
                         fmt::format("rank is {} but {} strengths are given: give one strength a component", rank,
                                     point.strengths.size()));
        if (rank > std::min(point.rows, point.columns))
            mistakes.add(*signal,
                         fmt::format("a signal of rank {} does not fit {} x {}", rank, point.rows, point.columns));
        inside.no_other_keys();
    }
    section.no_other_keys();
    return point;
}

/// Puts a value at a dotted path of a copy of the model.
bool put(toml::table& model, const std::string& path, const toml::node& value) {
    toml::table* at = &model;
    const auto parts = split(path, '.');
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        if (at->get(parts[i]) == nullptr) at->insert(parts[i], toml::table{});
        at = at->get(parts[i])->as_table();
        if (at == nullptr) return false;
    }
    value.visit([&](const auto& concrete) { at->insert_or_assign(parts.back(), concrete); });
    return true;
}

std::string node_text(const toml::node& node) {
    if (node.is_floating_point()) return fmt::format("{}", *node.value<double>());
    std::ostringstream text;
    node.visit([&](const auto& concrete) { text << concrete; });
    return text.str();
}

Factor factor_of(const std::string& name, const toml::node& value) {
    Factor factor{name, std::nullopt, node_text(value)};
    if (value.is_number()) factor.number = *value.value<double>();
    if (const toml::array* list = value.as_array(); list != nullptr && !list->empty() && list->get(0)->is_number())
        factor.number = *list->get(0)->value<double>();
    return factor;
}

struct Sweep {
    std::string key;
    const toml::array* values;
};

std::vector<SpikedPoint> expand(const toml::table& model, const toml::table* sweep_table, Mistakes& mistakes) {
    const std::size_t mistakes_before = mistakes.count();
    std::vector<Sweep> sweeps;
    bool zip = false;
    if (sweep_table != nullptr)
        for (const auto& [key, value] : *sweep_table) {
            if (key.str() == "mode") {
                const auto mode = value.value<std::string>();
                zip = mode == "zip";
                if (mode != "zip" && mode != "cross") mistakes.add(value, "mode of [sweep] is \"cross\" or \"zip\"");
                continue;
            }
            if (key.str() == "skip") {
                mistakes.add(value, "\"skip\" is not in this version (no skip rules yet)");
                continue;
            }
            const toml::array* list = value.as_array();
            if (key.str() == "kind") mistakes.add(value, "the kind of a model cannot be swept");
            if (list == nullptr || list->empty())
                mistakes.add(value, fmt::format("\"{}\" of [sweep] must be a list of values", key.str()));
            else
                sweeps.push_back({std::string(key.str()), list});
        }
    std::size_t combinations = 1;
    for (const auto& sweep : sweeps) {
        if (zip && sweep.values->size() != sweeps.front().values->size())
            mistakes.add(*sweep.values, "with mode = \"zip\" every list of [sweep] has the same length");
        combinations = zip ? sweep.values->size() : combinations * sweep.values->size();
        if (combinations > 100000) {
            mistakes.add(*sweep.values, "the sweep has more than 100000 cells: make it smaller");
            return {};
        }
    }
    // The model as written first: copies of it, which the sweep changes, have lost their places in the file.
    (void)read_point(model, mistakes);
    if (mistakes.count() > mistakes_before) return {};
    std::vector<SpikedPoint> points;
    for (std::size_t c = 0; c < combinations; ++c) {
        toml::table at = model;
        std::vector<Factor> factors;
        std::size_t rest = c;
        for (const auto& sweep : sweeps) {
            const std::size_t index = zip ? c : rest % sweep.values->size();
            if (!zip) rest /= sweep.values->size();
            const toml::node& value = *sweep.values->get(index);
            if (!put(at, sweep.key, value))
                mistakes.add(*sweep.values, fmt::format("\"{}\" does not lead to a key of [model]", sweep.key));
            factors.push_back(factor_of(sweep.key, value));
        }
        Mistakes here("");
        SpikedPoint point = read_point(at, here);
        point.factors = std::move(factors);
        for (const auto& factor : point.factors)
            point.label += fmt::format("{}{}={}", point.label.empty() ? "" : " ", factor.name, factor.text);
        if (here.count() > 0) mistakes.add(*sweep_table, fmt::format("[sweep] at {}: {}", point.label, here.first()));
        // What every figure and check may ask for, swept or not.
        for (const auto& [name, number] : {std::pair{"n", point.rows}, std::pair{"d", point.columns}})
            if (std::none_of(point.factors.begin(), point.factors.end(),
                             [&](const Factor& f) { return f.name == name; }))
                point.factors.push_back({name, static_cast<double>(number), std::to_string(number)});
        if (point.label.empty()) point.label = fmt::format("n={} d={}", point.rows, point.columns);
        points.push_back(std::move(point));
        if (mistakes.count() > mistakes_before) break;  // the others would only repeat it
    }
    return points;
}

template <class Make>
void each_table(Section& root, const std::string& key, Mistakes& mistakes, const Make& make) {
    const toml::node* found = root.node(key);
    if (found == nullptr) return;
    const toml::array* list = found->as_array();
    if (list == nullptr || !list->is_homogeneous(toml::node_type::table)) {
        mistakes.add(*found, fmt::format("\"{}\" must be tables: write [[{}]]", key, key));
        return;
    }
    for (const auto& one : *list) make(*one.as_table());
}

/// Runs a parser of names and turns its usage_error into a mistake at the node.
template <class Work>
void guarded(const toml::node& at, Mistakes& mistakes, const Work& work) {
    try {
        work();
    } catch (const Error& error) {
        mistakes.add(at, error.what());
    }
}

std::vector<NamedEstimator> read_estimators(Section& root, Mistakes& mistakes) {
    std::vector<NamedEstimator> estimators;
    each_table(root, "estimator", mistakes, [&](const toml::table& table) {
        Section section(table, "[[estimator]]", mistakes);
        section.require("name", "name = \"eoptshrink\"");
        const std::string name = section.text("name", "eoptshrink");
        const std::string loss = section.choice("loss", "frobenius", {"frobenius", "operator", "nuclear"});
        const std::string label = section.text("as", name);
        section.no_other_keys();
        guarded(table, mistakes, [&] {
            const auto parsed = theory::loss_from(loss).value_or(theory::Loss::frobenius);
            for (const auto& other : estimators)
                if (other.label == label)
                    mistakes.add(table, fmt::format("\"{}\" stands here twice: give one another name with as", label));
            estimators.push_back({label, estimators::spectral_estimator(name, parsed), parsed});
        });
    });
    return estimators;
}

std::vector<NamedCodec> read_codecs(Section& root, Mistakes& mistakes) {
    std::vector<NamedCodec> codecs;
    each_table(root, "codec", mistakes, [&](const toml::table& table) {
        Section section(table, "[[codec]]", mistakes);
        section.require("name", "name = \"tq-mse\"");
        section.require("bits", "bits = [2, 3]");
        const std::string name = section.text("name", "tq-mse");
        const std::string label = section.text("as", name);
        std::vector<unsigned> bits;
        for (const double value : section.numbers("bits")) {
            if (value != std::floor(value) || value < 1.0 || value > 8.0)
                mistakes.add(*table.get("bits"),
                             fmt::format("{} bits are not possible: a quantizer takes 1 to 8", value));
            else
                bits.push_back(static_cast<unsigned>(value));
        }
        section.no_other_keys();
        guarded(table, mistakes, [&] {
            for (const auto& other : codecs)
                if (other.label == label)
                    mistakes.add(table, fmt::format("\"{}\" stands here twice: give one another name with as", label));
            for (const unsigned b : bits)
                if (std::count(bits.begin(), bits.end(), b) > 1) {
                    mistakes.add(table, fmt::format("{} bits are asked for twice", b));
                    break;
                }
            codecs.push_back({label, estimators::parse_method(name), bits});
        });
    });
    return codecs;
}

std::vector<std::pair<Check, const toml::table*>> read_checks(Section& root, Mistakes& mistakes) {
    std::vector<std::pair<Check, const toml::table*>> checks;
    each_table(root, "check", mistakes, [&](const toml::table& table) {
        Section section(table, "[[check]]", mistakes);
        section.require("claim", "claim = \"overlap.left\"");
        section.require("margin", "margin = { abs = 0.02, rate = \"n^-1/2\" }");
        Check check;
        check.claim = section.text("claim", "");
        check.name = section.text("name", check.claim);
        if (table.get("claim") != nullptr && find_claim(check.claim) == nullptr) {
            std::vector<std::string> names;
            for (const auto& claim : claims()) names.push_back(claim.id);
            mistakes.add(*table.get("claim"),
                         fmt::format("unknown claim \"{}\"{}", check.claim, suggestion(check.claim, names)));
        }
        if (const toml::table* margin = section.table("margin")) {
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
        if (const toml::table* where = section.table("where"))
            for (const auto& [factor, condition] : *where) {
                const toml::table* comparisons = condition.as_table();
                if (comparisons == nullptr) {
                    if (const auto number = condition.value<double>())
                        check.where.push_back({std::string(factor.str()), "eq", *number});
                    else
                        mistakes.add(condition, "a condition is a number or a table such as { ge = 1.2 }");
                    continue;
                }
                for (const auto& [comparison, number] : *comparisons) {
                    const std::vector<std::string> legal = {"ge", "gt", "le", "lt", "eq"};
                    const std::string name(comparison.str());
                    if (std::find(legal.begin(), legal.end(), name) == legal.end() || !number.is_number())
                        mistakes.add(comparison.source(), fmt::format("\"{}\" is no comparison with a number{}", name,
                                                                      suggestion(name, legal)));
                    else
                        check.where.push_back({std::string(factor.str()), name, *number.value<double>()});
                }
            }
        section.no_other_keys();
        checks.emplace_back(std::move(check), &table);
    });
    return checks;
}

Json json_of(const toml::node& node) {
    if (const auto* table = node.as_table()) {
        Json object = Json::object();
        for (const auto& [key, value] : *table) object.set(std::string(key.str()), json_of(value));
        return object;
    }
    if (const auto* list = node.as_array()) {
        Json array = Json::array();
        for (const auto& value : *list) array.push(json_of(value));
        return array;
    }
    if (const auto value = node.value_exact<std::string>()) return *value;
    if (const auto value = node.value_exact<bool>()) return *value;
    if (const auto value = node.value_exact<std::int64_t>()) return *value;
    if (const auto value = node.value<double>()) return *value;
    return {};
}

KvPlan read_dump_model(const toml::table& model, Mistakes& mistakes) {
    KvPlan plan;
    Section section(model, "[model]", mistakes);
    section.text("kind", "");
    section.require("source", "source = [\"dumps/*.safetensors\"]");
    if (const toml::node* source = section.node("source")) {
        const toml::array* list = source->as_array();
        for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
            const auto pattern = list->get(i)->value<std::string>();
            const auto files = pattern ? expand_pattern(*pattern) : std::vector<std::string>{};
            if (files.empty())
                mistakes.add(*list->get(i), fmt::format("no file is called {}", node_text(*list->get(i))));
            plan.dumps.insert(plan.dumps.end(), files.begin(), files.end());
        }
        if (list == nullptr) mistakes.add(*source, "\"source\" must be a list of files or patterns");
    }
    if (const toml::table* block = section.table("block")) {
        Section inside(*block, "model.block", mistakes);
        plan.block_tokens = inside.count("tokens", 128, 1, 1 << 20);
        inside.choice("tail", "skip", {"skip"});
        inside.no_other_keys();
    }
    plan.dump.prompt_id_key = section.text("cluster", plan.dump.prompt_id_key);
    if (const toml::table* tensor = section.table("tensor")) {
        Section inside(*tensor, "model.tensor", mistakes);
        plan.dump.tensor_pattern = inside.text("name", plan.dump.tensor_pattern);
        plan.dump.layout = inside.text("layout", plan.dump.layout);
        inside.no_other_keys();
    }
    section.no_other_keys();
    return plan;
}

void apply_overrides(toml::table& root, const StudyOverrides& overrides) {
    for (const auto& [key, value] : overrides.set) {
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

stream::StudySeed fresh_seed() {
    std::random_device source;
    stream::StudySeed seed;
    for (auto& byte : seed.bytes) byte = static_cast<std::uint8_t>(source());
    return seed;
}

}  // namespace

Study parse_study(const std::string& text, const std::string& name, const StudyOverrides& overrides) {
    toml::table file;
    try {
        file = toml::parse(text, name);
    } catch (const toml::parse_error& error) {
        throw usage_error("{}:{}:{}: {}: mend the syntax there", name, error.source().begin.line,
                          error.source().begin.column, error.description());
    }
    apply_overrides(file, overrides);

    Mistakes mistakes(name);
    Study study;
    Experiment& experiment = study.experiment;
    experiment.config_source = text;
    Section root(file, "the study", mistakes);
    root.require("spiked", "spiked = 1");
    root.count("spiked", 1, 1, 1);

    Section about(root.table("study") != nullptr ? *file.get("study")->as_table() : empty_table, "[study]", mistakes);
    about.require("name", "name = \"my-study\"");
    experiment.name = about.text("name", "study");
    experiment.title = about.text("title", experiment.name);
    const std::string seed = about.text("seed", "");
    guarded(file, mistakes, [&] {
        if (overrides.seed == "fresh" || (overrides.seed.empty() && seed.empty())) {
            experiment.seed = fresh_seed();
            experiment.seed_source = "generated";
        } else {
            experiment.seed = stream::StudySeed::parse(overrides.seed.empty() ? seed : overrides.seed);
            experiment.seed_source = overrides.seed.empty() ? "config" : "cli";
        }
    });
    about.no_other_keys();

    std::size_t replicates = 200;
    Section run(root.table("run") != nullptr ? *file.get("run")->as_table() : empty_table, "[run]", mistakes);
    if (const toml::table* reps = run.table("reps")) {
        Section inside(*reps, "run.reps", mistakes);
        replicates = inside.count("min", 200, 2, 10000000);
        const std::size_t most = inside.count("max", replicates, 2, 10000000);
        if (most != replicates)
            mistakes.add(*reps->get("max"),
                         "min and max of reps must agree in this version (adaptive stopping is not here yet)");
        experiment.batch = inside.count("batch", 50, 1, 1000000);
        inside.no_other_keys();
    }
    run.refuse("until", "adaptive stopping is not here yet");
    run.refuse("max_time", "stop with Ctrl-C and run the same command again");
    run.choice("precision", "double", {"double"});
    experiment.failure_budget = run.number("failure_budget", 0.01, 0.0, 1.0);
    run.no_other_keys();

    const auto estimators = read_estimators(root, mistakes);
    const auto codecs = read_codecs(root, mistakes);
    const auto checks = read_checks(root, mistakes);
    Section budget(root.table("checks") != nullptr ? *file.get("checks")->as_table() : empty_table, "[checks]",
                   mistakes);
    experiment.false_alarm = budget.number("false_alarm", 1e-6, 1e-300, 0.5);
    budget.no_other_keys();
    each_table(root, "figure", mistakes, [&](const toml::table& table) {
        Section section(table, "[[figure]]", mistakes);
        section.require("kind", "kind = \"estimate-vs-theory\"");
        if (section.text("kind", "").empty() && table.get("kind") != nullptr)
            mistakes.add(table, "a figure needs a kind");
        experiment.figures.push_back(json_of(table));
    });
    Section exec(root.table("exec") != nullptr ? *file.get("exec")->as_table() : empty_table, "[exec]", mistakes);
    study.threads = exec.count("threads", 0, 0, 4096);
    exec.choice("device", "auto", {"auto", "cpu"});
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
    const std::string kind = kind_section.choice("kind", "spiked", {"spiked", "kv_dump"});
    std::vector<SpikedPoint> points;
    KvPlan plan;
    if (kind == "kv_dump") {
        plan = read_dump_model(*model, mistakes);
        if (sweep != nullptr) mistakes.add(*sweep, "a dump study has no sweep: its cells are the heads");
        if (codecs.empty()) mistakes.add(*model, "a dump study needs a [[codec]]");
    } else {
        points = expand(*model, sweep, mistakes);
        if (estimators.empty() && codecs.empty() && checks.empty())
            mistakes.add(*model, "nothing is asked: add an [[estimator]], a [[codec]] or a [[check]]");
    }
    mistakes.throw_if_any();

    experiment.science = Json::object({{"spiked", 1},
                                       {"kind", kind},
                                       {"name", experiment.name},
                                       {"replicates", replicates},
                                       {"batch", experiment.batch},
                                       {"raw", static_cast<std::int64_t>(experiment.raw_per_cell)}});
    Json methods = Json::array();
    for (const auto& e : estimators)
        methods.push(
            Json::object({{"estimator", e.estimator.name}, {"loss", theory::name_of(e.loss)}, {"as", e.label}}));
    for (const auto& c : codecs) {
        Json bits = Json::array();
        for (const unsigned b : c.bits) bits.push(static_cast<std::int64_t>(b));
        methods.push(Json::object({{"codec", c.method.text}, {"bits", std::move(bits)}, {"as", c.label}}));
    }
    experiment.science.set("methods", std::move(methods));
    if (const toml::node* all = file.get("check")) experiment.science.set("check", json_of(*all));
    experiment.science.set("false_alarm", experiment.false_alarm);
    if (kind == "kv_dump") {
        plan.quantizer.seed = experiment.seed;
        make_dump_experiment(experiment, plan, codecs);
    } else {
        make_spiked_experiment(experiment, points, estimators, codecs, replicates);
    }

    std::set<std::string> hashes;
    for (const auto& cell : experiment.cells)
        if (!hashes.insert(cell.hash()).second)
            mistakes.add(sweep == nullptr ? *model : *sweep,
                         fmt::format("two cells are the same ({}): a value stands twice", cell.label));
    if (kind == "kv_dump")
        for (const auto& [check, table] : checks)
            mistakes.add(
                *table,
                fmt::format("check \"{}\": claims are about synthetic studies in this version, not dumps", check.name));
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
            mistakes.add(
                *table,
                fmt::format("check \"{}\" matches no cell: mend its \"where\" (factors are the sweep keys, n and d)",
                            check.name));
        else if (!predicted)
            mistakes.add(
                *table,
                fmt::format(
                    "check \"{}\": the claim says nothing about the cells it matches (wrong side of the threshold, or "
                    "its codec is missing)",
                    check.name));
        experiment.checks.push_back(check);
    }
    mistakes.throw_if_any();
    return study;
}

Study read_study(const std::string& path, const StudyOverrides& overrides) {
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw usage_error("{}: the study file cannot be opened: check the path, or make one with spiked init", path);
    std::stringstream text;
    text << file.rdbuf();
    return parse_study(text.str(), path, overrides);
}

}  // namespace spiked::validation
