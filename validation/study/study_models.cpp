#include "validation/study/study_models.hpp"

#include <cmath>
#include <functional>
#include <set>
#include <sstream>

#include "sim/spiked/covariance_spec.hpp"
#include "validation/engine/dry_run.hpp"
#include "validation/model/model_dumps.hpp"

namespace spiked::validation {
namespace {

sim::CovarianceSpec read_covariance(Section& noise, const std::string& key, Diagnostics& diagnostics) {
    sim::CovarianceSpec spec;
    const std::size_t before = diagnostics.count();
    const toml::table* table = noise.table(key, "{ kind = \"ar1\", rho = 0.5 }");
    if (table == nullptr) return spec;
    Section section(*table, "noise." + key, diagnostics);
    section.require("kind", "kind = \"ar1\"");
    std::vector<std::string> kinds;
    for (const auto& kind : sim::covariance_kinds()) kinds.push_back(kind.name);
    spec.kind = section.choice("kind", "identity", kinds);
    std::vector<std::string> bases{""};
    for (const auto& basis : sim::covariance_bases()) bases.push_back(basis.name);
    spec.basis = section.choice("basis", "", bases);
    for (const auto& kind : sim::covariance_kinds()) {
        if (kind.name != spec.kind) continue;
        for (const auto& parameter : kind.parameters) {
            section.require(parameter, (parameter + " = 0.5").c_str());
            spec.parameters[parameter] = section.number(parameter, 0.5, -1e6, 1e6);
        }
        if (kind.reads_file()) {
            section.require("path", "path = \"eigenvalues.csv\"");
            spec.path = section.text("path", "");
        }
    }
    section.no_other_keys();
    if (diagnostics.count() == before) guarded(*table, diagnostics, [&] { sim::check_covariance(spec); });
    return spec;
}

std::optional<BlockSource> read_spiked(const toml::table& model, Diagnostics& diagnostics) {
    const std::size_t before = diagnostics.count();
    SpikedPoint point;
    Section section(model, "[model]", diagnostics);
    section.text("kind", "");
    section.require("n", "n = 128");
    section.require("d", "d = 128");
    point.rows = section.count("n", 128, 2, 65536);
    point.columns = section.count("d", 128, 2, 65536);
    if (const toml::table* noise = section.table("noise", "{ entries = \"gaussian\" }")) {
        Section inside(*noise, "model.noise", diagnostics);
        point.entries = inside.text("entries", "gaussian");
        guarded(*noise, diagnostics, [&] { (void)sim::EntryLaw::parse(point.entries); });
        point.row = read_covariance(inside, "row_cov", diagnostics);
        point.column = read_covariance(inside, "col_cov", diagnostics);
        if (inside.choice("colouring", "dense", {"dense", "eigenbasis"}) == "eigenbasis")
            point.colouring = sim::Colouring::eigenbasis;
        inside.no_other_keys();
    }
    if (const toml::table* signal = section.table("signal", "{ strength = 2.0 }")) {
        Section inside(*signal, "model.signal", diagnostics);
        point.strengths = inside.numbers("strength");
        point.unit = inside.choice("unit", "threshold", {"threshold", "absolute", "sqrt_n"});
        const std::string both = inside.text("vectors", "haar");
        guarded(*signal, diagnostics, [&] {
            const auto vectors = sim::parse_signal_vectors(both);
            point.left_vectors = inside.text("left_vectors", vectors.left.text());
            point.right_vectors = inside.text("right_vectors", vectors.right.text());
            (void)sim::VectorLaw::parse(point.left_vectors, sim::MatrixSide::row);
            (void)sim::VectorLaw::parse(point.right_vectors, sim::MatrixSide::column);
        });
        const std::size_t rank = inside.count("rank", point.strengths.size(), 0, 65536);
        for (const double strength : point.strengths)
            if (!(strength >= 0.0))
                diagnostics.add(*signal->get("strength"),
                                fmt::format("strength {} is not possible: give a number of at least 0", strength));
        if (rank != point.strengths.size())
            diagnostics.add(*signal->get("rank"),
                            fmt::format("rank is {} but {} strengths are given: give one strength a component", rank,
                                        point.strengths.size()));
        inside.no_other_keys();
    }
    section.no_other_keys();
    std::optional<BlockSource> source;
    if (diagnostics.count() > before) return source;
    reject_beyond_memory(point.rows, point.columns, 1);  // computing the law of such a model alone would take long
    guarded(model, diagnostics, [&] { source = spiked_source(point); });
    return source;
}

std::optional<BlockSource> read_kv_like(const toml::table& model, Diagnostics& diagnostics) {
    const std::size_t before = diagnostics.count();
    KvLikePoint point;
    sim::KvLikeOptions& options = point.options;
    Section section(model, "[model]", diagnostics);
    section.text("kind", "");
    options.tokens = section.count("n", options.tokens, 2, 65536);
    options.head_dim = section.count("d", options.head_dim, 2, 65536);
    options.hidden = section.count("hidden", options.hidden, 1, 65536);
    point.values = section.choice("side", "key", {"key", "value"}) == "value";
    options.fresh_projections = section.flag("fresh_projections", false);
    constexpr double most = 1e9;
    if (const toml::table* table = section.table("context", "{ rank = 3 }")) {
        Section inside(*table, "model.context", diagnostics);
        auto& context = options.context;
        context.rank = inside.count("rank", context.rank, 0, 65536);
        context.decay = inside.number("decay", context.decay, 0.0, 1.0);
        guarded(*table, diagnostics,
                [&] { context.course = sim::parse_context_course(inside.text("course", "smooth")); });
        context.period = inside.number("period", context.period, 0.0, most);
        context.key = inside.number("key", context.key, 0.0, most);
        context.value = inside.number("value", context.value, 0.0, most);
        context.query = inside.number("query", context.query, 0.0, most);
        inside.no_other_keys();
    }
    if (const toml::table* table = section.table("noise", "{ entries = \"gaussian\" }")) {
        Section inside(*table, "model.noise", diagnostics);
        auto& noise = options.noise;
        noise.scale = inside.number("scale", noise.scale, 0.0, most);
        guarded(*table, diagnostics, [&] { noise.entries = sim::EntryLaw::parse(inside.text("entries", "gaussian")); });
        noise.token_correlation = inside.number("token_correlation", noise.token_correlation, -1.0, 1.0);
        noise.hidden_decay = inside.number("hidden_decay", noise.hidden_decay, 0.0, 100.0);
        inside.no_other_keys();
    }
    if (const toml::table* table = section.table("outliers")) {
        Section inside(*table, "model.outliers", diagnostics);
        auto& outliers = options.outliers;
        outliers.channels = inside.count("channels", outliers.channels, 0, 65536);
        outliers.mean = inside.number("mean", outliers.mean, 0.0, most);
        outliers.scale = inside.number("scale", outliers.scale, 0.0, most);
        guarded(*table, diagnostics, [&] { outliers.place = sim::parse_outlier_place(inside.text("place", "slow")); });
        inside.no_other_keys();
    }
    if (const toml::table* table = section.table_or_false("sink")) {
        Section inside(*table, "model.sink", diagnostics);
        auto& sink = *options.sink;
        sink.key = inside.number("key", sink.key, 0.0, most);
        sink.value = inside.number("value", sink.value, 0.0, most);
        sink.token_part = inside.number("token_part", sink.token_part, 0.0, most);
        inside.no_other_keys();
    } else if (model.get("sink") != nullptr) {
        options.sink.reset();
    }
    if (const toml::table* table = section.table_or_false("rotary")) {
        Section inside(*table, "model.rotary", diagnostics);
        auto& rotary = *options.rotary;
        rotary.rope.base = inside.number("base", rotary.rope.base, 1.0, 1e12);
        guarded(*table, diagnostics,
                [&] { rotary.rope.style = sim::parse_rope_style(inside.text("style", "rotate-half")); });
        rotary.position_start = inside.count("position_start", 0, 0, std::size_t{1} << 40);
        inside.no_other_keys();
    } else if (model.get("rotary") != nullptr) {
        options.rotary.reset();
    }
    if (const toml::table* table = section.table("queries")) {
        Section inside(*table, "model.queries", diagnostics);
        auto& queries = options.queries;
        queries.heads = inside.count("heads", queries.heads, 0, 1024);
        queries.mean = inside.number("mean", queries.mean, 0.0, most);
        queries.scale = inside.number("scale", queries.scale, 0.0, most);
        inside.no_other_keys();
    }
    section.no_other_keys();
    std::optional<BlockSource> source;
    if (diagnostics.count() == before) guarded(model, diagnostics, [&] { source = kv_like_source(point); });
    return source;
}

std::string node_text(const toml::node& node) {
    if (node.is_floating_point()) return fmt::format("{}", *node.value<double>());
    if (const auto text = node.value_exact<std::string>()) return *text;
    if (const toml::array* list = node.as_array()) {
        std::vector<std::string> parts;
        for (const auto& one : *list) parts.push_back(node_text(one));
        return fmt::format("[{}]", fmt::join(parts, ", "));
    }
    // { kind = 'ar1', rho = 0.5 } becomes ar1:rho=0.5, a name without spaces that can be used on the command line.
    if (const toml::table* table = node.as_table()) {
        const auto kind = (*table)["kind"].value<std::string>();
        std::string text = kind ? *kind + ":" : "";
        for (const auto& [key, value] : *table)
            if (key.str() != "kind") text += fmt::format("{}={},", key.str(), node_text(value));
        if (text.ends_with(',') || text.ends_with(':')) text.pop_back();
        return text;
    }
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

/// Files of a `source` list, patterns expanded.
std::vector<std::string> read_source(Section& section, Diagnostics& diagnostics) {
    std::vector<std::string> files;
    section.require("source", "source = [\"dumps/*.safetensors\"]");
    const toml::node* source = section.node("source");
    if (source == nullptr) return files;
    const toml::array* list = source->as_array();
    if (list == nullptr)
        diagnostics.add(*source, "\"source\" must be a list of files or patterns: write source = [\"FILE\"]");
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
        const auto pattern = list->get(i)->value<std::string>();
        const auto found = pattern ? expand_pattern(*pattern) : std::vector<std::string>{};
        if (found.empty())
            diagnostics.add(*list->get(i), fmt::format("no file is called {}: correct the path, or name yours with "
                                                       "--set 'model.source=[\"FILE\"]'",
                                                       node_text(*list->get(i))));
        files.insert(files.end(), found.begin(), found.end());
    }
    return files;
}

/// Adds the factors n and d, which figures and checks may use whether they are swept or not, and a label.
void complete(StudyPoint& point) {
    for (const auto& factor : point.factors)
        point.label += fmt::format("{}{}={}", point.label.empty() ? "" : " ", factor.name, factor.text);
    for (const auto& [name, number] : {std::pair{"n", point.source.rows}, std::pair{"d", point.source.columns}})
        if (std::none_of(point.factors.begin(), point.factors.end(),
                         [&name = name](const Factor& f) { return f.name == name; }))
            point.factors.push_back({name, static_cast<double>(number), std::to_string(number)});
    if (point.label.empty()) point.label = fmt::format("n={} d={}", point.source.rows, point.source.columns);
}

std::vector<StudyPoint> read_matrices(const toml::table& model, const toml::table* sweep, Diagnostics& diagnostics) {
    Section section(model, "[model]", diagnostics);
    section.text("kind", "");
    const auto files = read_source(section, diagnostics);
    section.no_other_keys();
    if (sweep != nullptr) diagnostics.add(*sweep, "a study of matrices has no sweep: its cells are the files");
    std::vector<StudyPoint> points;
    for (const auto& file : files)
        guarded(*model.get("source"), diagnostics, [&] {
            StudyPoint point{matrix_source(file), {{"file", std::nullopt, file}}, ""};
            complete(point);
            points.push_back(std::move(point));
        });
    return points;
}

/// Conditions of a skip rule: a point of the sweep is left out where all of them hold.
using SkipRule = std::vector<FactorCondition>;

std::vector<SkipRule> read_skip(const toml::node& node, const std::vector<std::string>& keys,
                                Diagnostics& diagnostics) {
    std::vector<SkipRule> rules;
    const toml::array* list = node.as_array();
    if (list == nullptr || !list->is_homogeneous(toml::node_type::table)) {
        diagnostics.add(
            node,
            "\"skip\" must be a list of tables: write for example skip = [{ n = 64, \"noise.row_cov.rho\" = { "
            "gt = 0.5 } }]");
        return rules;
    }
    for (const auto& one : *list) {
        SkipRule rule;
        for (const auto& [key, value] : *one.as_table()) {
            const std::string name(key.str());
            if (std::find(keys.begin(), keys.end(), name) == keys.end())
                diagnostics.add(key.source(), fmt::format("skip: \"{}\" is not swept{}", name, suggestion(name, keys)));
            if (const toml::table* comparisons = value.as_table()) {
                for (const auto& condition : read_comparisons(*comparisons, diagnostics))
                    rule.push_back({name, condition.comparison, condition.number, ""});
            } else {
                rule.push_back({name, "is", 0.0, node_text(value)});
            }
        }
        if (rule.empty()) diagnostics.add(one, "a skip rule without conditions would leave out everything");
        rules.push_back(std::move(rule));
    }
    return rules;
}

/// A suggestion for a key that lacks the name of its table, such as `signal.strength` for `strength`.
std::string longer_key(const toml::table& model, const std::string& key) {
    if (model.contains(key)) return "";
    for (const auto& [name, below] : model)
        if (const toml::table* table = below.as_table(); table != nullptr && table->contains(key))
            return fmt::format("; did you mean \"{}.{}\"?", name.str(), key);
    return "";
}

using PointReader = std::optional<BlockSource> (*)(const toml::table& model, Diagnostics& diagnostics);

std::vector<StudyPoint> expand(PointReader read, const toml::table& model, const toml::table* sweep_table,
                               Diagnostics& diagnostics) {
    const std::size_t diagnostics_before = diagnostics.count();
    std::vector<Sweep> sweeps;
    bool zip = false;
    if (sweep_table != nullptr)
        for (const auto& [key, value] : *sweep_table) {
            if (key.str() == "mode") {
                const auto mode = value.value<std::string>();
                zip = mode == "zip";
                if (mode != "zip" && mode != "cross") diagnostics.add(value, "mode of [sweep] is \"cross\" or \"zip\"");
                continue;
            }
            if (key.str() == "skip") continue;
            const toml::array* list = value.as_array();
            if (key.str() == "kind") diagnostics.add(value, "the kind of a model cannot be swept");
            if (list == nullptr || list->empty())
                diagnostics.add(value, fmt::format("\"{}\" of [sweep] must be a list of values", key.str()));
            else
                sweeps.push_back({std::string(key.str()), list});
        }
    std::size_t combinations = 1;
    for (const auto& sweep : sweeps) {
        if (zip && sweep.values->size() != sweeps.front().values->size())
            diagnostics.add(*sweep.values, "with mode = \"zip\" every list of [sweep] has the same length");
        combinations = zip ? sweep.values->size() : combinations * sweep.values->size();
        constexpr std::size_t most_cells = 15000;
        if (combinations > most_cells) {
            diagnostics.add(
                *sweep.values,
                fmt::format("the sweep has more than {} cells: make it smaller, or split the study", most_cells));
            return {};
        }
    }
    // The model as written is checked first, because the copies that the sweep changes have no places in the file.
    const std::size_t of_model = diagnostics.problems().size();
    (void)read(model, diagnostics);
    constexpr std::size_t most_problems = 20;  // finding more would read the model for each value
    if (diagnostics.count() - of_model >= most_problems) return {};
    const std::set<std::string> known(diagnostics.problems().begin() + static_cast<std::ptrdiff_t>(of_model),
                                      diagnostics.problems().end());
    std::vector<SkipRule> skip;
    if (const toml::node* rules = sweep_table == nullptr ? nullptr : sweep_table->get("skip")) {
        std::vector<std::string> keys;
        for (const auto& one : sweeps) keys.push_back(one.key);
        skip = read_skip(*rules, keys, diagnostics);
    }
    // The errors of the model with these values of the sweep, without the errors of the model as written.
    const auto problems_with = [&](const std::vector<std::pair<const Sweep*, const toml::node*>>& values) {
        toml::table at = model;
        std::vector<std::string> problems;
        for (const auto& [sweep, value] : values)
            if (!put(at, sweep->key, *value)) problems.push_back("it does not lead to a key of [model]");
        Diagnostics here("", "");
        (void)read(at, here);
        for (const auto& problem : here.problems())
            if (!known.contains(problem)) problems.push_back(problem);
        return problems;
    };
    // A value that is wrong by itself is reported at its place.
    std::set<std::string> reported;
    for (const auto& sweep : sweeps)
        for (const auto& value : *sweep.values) {
            if (reported.size() >= most_problems) break;
            for (const auto& problem : problems_with({{&sweep, &value}}))
                if (reported.size() < most_problems &&
                    (sweeps.size() == 1 || problem.starts_with("unknown key") ||
                     problem.starts_with("it does not lead")) &&
                    reported.insert(sweep.key + problem).second)
                    diagnostics.add(value,
                                    fmt::format("[sweep] {}: {}{}", sweep.key, problem, longer_key(model, sweep.key)));
        }
    if (diagnostics.count() > diagnostics_before) return {};
    std::vector<StudyPoint> points;
    for (std::size_t c = 0; c < combinations; ++c) {
        toml::table at = model;
        std::vector<Factor> factors;
        std::vector<std::pair<const Sweep*, const toml::node*>> values;
        std::size_t rest = c;
        for (const auto& sweep : sweeps) {
            const std::size_t index = zip ? c : rest % sweep.values->size();
            if (!zip) rest /= sweep.values->size();
            const toml::node& value = *sweep.values->get(index);
            (void)put(at, sweep.key, value);
            values.emplace_back(&sweep, &value);
            factors.push_back(factor_of(sweep.key, value));
        }
        if (std::any_of(skip.begin(), skip.end(), [&](const SkipRule& rule) { return hold(rule, factors); })) continue;
        Diagnostics here("", "");
        auto source = read(at, here);
        StudyPoint point{source.value_or(BlockSource{}), std::move(factors), ""};
        complete(point);
        if (here.count() > 0) {
            // The place of the error is the value of this point that is wrong by itself, or else the sweep.
            const toml::node* place = sweep_table;
            for (const auto& value : values)
                if (!problems_with({value}).empty()) place = value.second;
            for (const auto& problem : here.problems())
                if (reported.insert(problem).second)
                    diagnostics.add(*place, fmt::format("[sweep] at {}: {}", point.label, problem));
        }
        if (point.label.size() > longest_label && reported.insert("label").second)
            diagnostics.add(*sweep_table,
                            fmt::format("the values of a cell take {} bytes when written out (at most {}, because "
                                        "every table prints them): sweep shorter ones",
                                        point.label.size(), longest_label));
        points.push_back(std::move(point));
        if (reported.size() >= most_problems) break;
    }
    if (points.empty() && diagnostics.count() == diagnostics_before)
        diagnostics.add(*sweep_table, "the skip rules leave no cell");
    return points;
}

}  // namespace

const std::vector<std::string>& model_kinds() {
    static const std::vector<std::string> kinds = {"spiked", "kv_like", "kv_dump", "matrix"};
    return kinds;
}

std::vector<StudyPoint> read_points(const std::string& kind, const toml::table& model, const toml::table* sweep,
                                    Diagnostics& diagnostics) {
    if (kind == "matrix") return read_matrices(model, sweep, diagnostics);
    return expand(kind == "kv_like" ? read_kv_like : read_spiked, model, sweep, diagnostics);
}

/// Sets a value at a dotted path of a copy of the model.
bool put(toml::table& model, const std::string& path, const toml::node& value) {
    toml::table* at = &model;
    // Quotes protect the dots in a key of a sweep: sweep."signal.strength".
    std::vector<std::string> parts{""};
    bool quoted = false;
    for (const char c : path)
        if (c == '"')
            quoted = !quoted;
        else if (c == '.' && !quoted)
            parts.emplace_back();
        else
            parts.back() += c;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        if (at->get(parts[i]) == nullptr) at->insert(parts[i], toml::table{});
        at = at->get(parts[i])->as_table();
        if (at == nullptr) return false;
    }
    value.visit([&](const auto& concrete) { at->insert_or_assign(parts.back(), concrete); });
    return true;
}

std::vector<NumberCondition> read_comparisons(const toml::table& table, Diagnostics& diagnostics) {
    std::vector<NumberCondition> conditions;
    const std::vector<std::string> legal = {"ge", "gt", "le", "lt", "eq"};
    for (const auto& [comparison, number] : table) {
        const std::string name(comparison.str());
        if (std::find(legal.begin(), legal.end(), name) == legal.end() || !number.is_number())
            diagnostics.add(comparison.source(),
                            fmt::format("\"{}\" is not a comparison with a number{}", name, suggestion(name, legal)));
        else
            conditions.push_back({name, *number.value<double>()});
    }
    return conditions;
}

Json json_of(const toml::node& node) {
    if (const auto* table = node.as_table()) {
        Json::Object members;
        for (const auto& [key, value] : *table) members.emplace_back(key.str(), json_of(value));
        return Json::object(std::move(members));
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

KvPlan read_dump_model(const toml::table& model, Diagnostics& diagnostics) {
    KvPlan plan;
    const std::size_t before = diagnostics.count();
    Section section(model, "[model]", diagnostics);
    section.text("kind", "");
    if (const toml::node* folder = section.node("model")) {
        const std::string name = section.text("model", "");
        const std::string tokens = section.text("tokens", "");
        std::vector<std::size_t> documents;
        for (const double row : section.numbers("documents")) {
            if (row >= 0.0 && row < 1e9 && row == std::floor(row))
                documents.push_back(static_cast<std::size_t>(row));
            else
                diagnostics.add(*section.node("documents"), fmt::format("document {} is not a row of the tokens", row));
        }
        std::set<std::size_t> known;
        for (const std::size_t row : documents)
            if (!known.insert(row).second) {
                diagnostics.add(*section.node("documents"), fmt::format("document {} is listed twice", row));
                break;
            }
        if (section.node("source") != nullptr)
            diagnostics.add(*folder, "\"model\" and \"source\" are both given: the dumps come from one of them");
        section.require("tokens", "tokens = \"pages.npy\"");
        if (diagnostics.count() == before)
            guarded(*folder, diagnostics, [&] {
                const auto dumps = std::make_shared<const ModelDumps>(name, tokens, documents);
                plan.dumps = dumps->paths();
                plan.names = dumps->names();
                plan.kept = dumps;
            });
    } else {
        plan.dumps = read_source(section, diagnostics);
    }
    if (const toml::table* block = section.table("block")) {
        Section inside(*block, "model.block", diagnostics);
        plan.block_tokens = inside.count("tokens", 128, 1, 1 << 20);
        inside.choice("tail", "skip", {"skip"});
        inside.no_other_keys();
    }
    plan.view.shuffle = section.choice("order", "as-is", {"as-is", "shuffled"}) == "shuffled";
    plan.view.undo_rotary = section.choice("rotary", "as-is", {"as-is", "undone"}) == "undone";
    if (const toml::node* mode = section.node("attention"))
        guarded(*mode, diagnostics, [&] { plan.attention = attention_mode(mode->value_or<std::string>("")); });
    plan.dump.prompt_id_key = section.text("cluster", plan.dump.prompt_id_key);
    if (const toml::table* tensor = section.table("tensor")) {
        Section inside(*tensor, "model.tensor", diagnostics);
        plan.dump.tensor_pattern = inside.text("name", plan.dump.tensor_pattern);
        plan.dump.layout = inside.text("layout", plan.dump.layout);
        inside.no_other_keys();
    }
    section.no_other_keys();
    return plan;
}

}  // namespace spiked::validation
