#include "validation/study/study.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/files/text_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "validation/claims/claims.hpp"
#include "validation/kv/kv_measurement.hpp"
#include "validation/study/study_models.hpp"
#include "validation/study/study_tables.hpp"

namespace spiked::validation {
namespace {

constexpr std::uint64_t most_bytes = 1 << 20;  // of a study file
constexpr std::size_t deepest_key = 200;

/// Rejects keys with very many dots: each dot makes a nested table, and the TOML library searches and frees nested
/// tables recursively. Dots inside texts count too, because only a full parser can recognise texts.
void reject_deep_keys(const std::string& text, const std::string& name) {
    std::size_t dots = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '.') {
            if (++dots > deepest_key)
                throw usage_error(
                    "{}: a key of more than {} parts, or as many dots in a text (near byte {}; no study needs so "
                    "many): shorten it",
                    name, deepest_key, i);
        } else if (std::string_view("=,[]{}\n").find(text[i]) != std::string_view::npos) {
            dots = 0;
        }
    }
}

void apply_overrides(toml::table& root, const StudyOverrides& overrides) {
    for (const auto& [key, value] : overrides.set) {
        reject_deep_keys(key, "--set");
        reject_deep_keys(value, "--set");
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
        if (parsed.size() != 1)
            throw usage_error("--set {}: another key follows its value: write one --set for each key", key);
        if (key.find('.') == std::string::npos && !root.contains(key))
            for (const auto& [name, node] : root)
                if (node.is_table() && node.as_table()->contains(key))
                    throw usage_error("--set {1}: is a key of [{0}]: write --set {0}.{1}={2}", name.str(), key, value);
        if (!put(root, key, *parsed.get("value")))
            throw usage_error("--set {}: {} is not a table of the study: name one, as in --set run.reps.min=1000", key,
                              key);
    }
}

/// Limits the number of pairs of a method and a cell, because each pair takes memory before anything is computed.
void reject_pairs(std::size_t cells, const std::vector<NamedEstimator>& estimators,
                  const std::vector<NamedCodec>& codecs, const toml::node& at, Diagnostics& diagnostics) {
    constexpr std::size_t most_pairs = 500'000;
    std::size_t methods = estimators.size();
    for (const auto& codec : codecs) methods += codec.bits.size();
    if (methods * cells > most_pairs)
        diagnostics.add(at, fmt::format("{} methods in {} cells are too many (at most {} pairs): split the study",
                                        methods, cells, most_pairs));
}

/// Rejects --set for a key of the model that the sweep sets in every cell.
void reject_swept(const StudyOverrides& overrides, const toml::table* sweep, Diagnostics& diagnostics) {
    if (sweep == nullptr) return;
    for (const auto& [key, value] : overrides.set)
        for (const auto& [factor, values] : *sweep)
            if (key == "model." + std::string(factor.str())) {
                const bool dotted = factor.str().find('.') != std::string_view::npos;
                diagnostics.add(toml::source_region{},
                                fmt::format("--set {0} has no effect ([sweep] sets {1} in every cell): write --set "
                                            "'sweep.{2}{1}{2}=[{3}]'",
                                            key, factor.str(), dotted ? "\"" : "", value));
            }
}

/// Replaces sources that are found in the folder of the study file but not in the current folder by paths from the
/// current folder. Returns the changed list as TOML, for the store, or an empty text when nothing changed.
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

/// The names of the factors that distinguish cells. They are known before the cells are made, so that errors in them
/// are reported together with all others.
std::vector<std::string> factors_of(ModelKind kind, const toml::table* sweep) {
    std::vector<std::string> factors = {"n", "d"};
    if (kind == ModelKind::kv_dump)
        factors = {"file", "input", "model", "prompt", "layer", "side", "head", "cluster", "cluster_by"};
    else if (kind == ModelKind::matrix)
        factors.emplace_back("file");
    else if (sweep != nullptr)
        for (const auto& [key, value] : *sweep)
            if (key != "mode" && key != "skip" && key != "n" && key != "d") factors.emplace_back(key.str());
    return factors;
}

void read_about(Section& root, const StudyOverrides& overrides, Experiment& experiment, Diagnostics& diagnostics) {
    Section about = root.below("study");
    about.require("name", "name = \"my-study\"");
    experiment.name = about.text("name", "study");
    experiment.title = about.text("title", experiment.name);
    for (const auto& [key, text] : {std::pair{"name", &experiment.name}, std::pair{"title", &experiment.title}})
        if (const toml::node* given = about.node(key); given != nullptr && text->size() > longest_statement)
            diagnostics.add(
                *given, fmt::format("{} has {} bytes (at most {}): shorten it", key, text->size(), longest_statement));
    const std::string seed = about.text("seed", "");
    if (overrides.seed == "fresh" || (overrides.seed.empty() && seed.empty())) {
        experiment.seed = stream::StudySeed::fresh();
        experiment.seed_source = "generated";
    } else if (!overrides.seed.empty()) {
        experiment.seed = stream::StudySeed::parse(overrides.seed);
        experiment.seed_source = "cli";
    } else {
        guarded(*about.node("seed"), diagnostics, [&] { experiment.seed = stream::StudySeed::parse(seed); });
    }
    about.no_other_keys();
}

void read_exec(Section& root, Study& study, Diagnostics& diagnostics) {
    Section exec = root.below("exec");
    study.threads = exec.count("threads", 0, 0, 4096);
    study.device = exec.text("device", "");
    if (const toml::node* device = exec.node("device"); device != nullptr && !spiked::cuda::is_device(study.device))
        diagnostics.add(*device, "\"device\" is auto, cpu, cuda:0 and so on, or emulated");
    exec.no_other_keys();
}

toml::table parse_toml(const std::string& text, const std::string& name) {
    reject_deep_keys(text, name);
    try {
        return toml::parse(text, name);
    } catch (const toml::parse_error& error) {
        throw usage_error("{}:{}:{}: {}: correct the syntax there", name, error.source().begin.line,
                          error.source().begin.column, error.description());
    }
}

/// Keeps in the experiment what was changed in the file: by --set, and the paths of sources beside the study file.
void keep_changes(toml::table& file, const StudyOverrides& overrides, Experiment& experiment) {
    const auto keep = [&](const std::string& key, const std::string& value) {
        Json pair = Json::array();
        pair.push(key);
        pair.push(value);
        experiment.config_set.push(std::move(pair));
    };
    for (const auto& [key, value] : overrides.set) keep(key, value);
    if (const std::string source = find_sources_beside(file, overrides.folder); !source.empty())
        keep("model.source", source);
}

void read_version(Section& root, Diagnostics& diagnostics) {
    root.require("spiked", "spiked = 1");
    if (const toml::node* version = root.node("spiked");
        version != nullptr && version->value_exact<std::int64_t>() != 1)
        diagnostics.add(*version,
                        "\"spiked\" is the version of the study file's format, and this program reads 1: spiked = 1");
}

void read_store(Section& root, const toml::table& file, Study& study, Diagnostics& diagnostics) {
    Section store = root.below("store");
    study.store_path = store.text("path", "results/" + study.experiment.name + ".spiked");
    if (study.store_path.empty()) diagnostics.add(file, "[store] path is empty: name a file");
    if (study.store_path == ":memory:")
        diagnostics.add(file,
                        "[store] path \":memory:\" would keep the results in memory only, and lose them: name a file");
    if (study.store_path.find('\0') != std::string::npos)
        diagnostics.add(file, "[store] path holds a zero byte, where a name would end: leave it out");
    if (const toml::node* raw = store.node("raw")) {
        if (const auto number = raw->value_exact<std::int64_t>(); number && *number >= 0)
            study.experiment.raw_per_cell = static_cast<std::size_t>(*number);
        else if (raw->value<std::string>() == "none")
            study.experiment.raw_per_cell = 0;
        else if (raw->value<std::string>() != "all")
            diagnostics.add(*raw, "\"raw\" is \"all\", \"none\" or a number of replicates a cell");
    }
    store.no_other_keys();
}

/// Rejects the tables that a study of dumps cannot have.
void reject_tables_of_samples(Section& root, const toml::table* sweep, Diagnostics& diagnostics) {
    if (sweep != nullptr) diagnostics.add(*sweep, "a dump study has no sweep (its cells are the heads): leave it out");
    for (const char* key : {"estimator", "check", "claim"})
        if (const toml::node* asked = root.raw().get(key))
            diagnostics.add(*asked, fmt::format("a dump study takes no [[{}]]: name codecs "
                                                "(spiked spectrum estimates blocks of a dump)",
                                                key));
    for (const char* key : {"reps", "until"})
        if (const toml::node* asked = root.raw()["run"][key].node())
            diagnostics.add(*asked,
                            fmt::format("a dump study has no {} (its replicates are the blocks): leave it out", key));
}

/// The blocks of a study: points of generated blocks or matrix files, or dumps.
struct StudyBlocks {
    ModelKind kind;
    std::vector<StudyPoint> points;
    KvPlan plan;

    [[nodiscard]] bool of_dumps() const { return kind == ModelKind::kv_dump; }
};

StudyBlocks read_blocks(ModelKind kind, Section& root, const toml::table& model, const toml::table* sweep,
                        Diagnostics& diagnostics) {
    StudyBlocks blocks{kind, {}, {}};
    if (blocks.of_dumps()) {
        blocks.plan = read_dump_model(model, diagnostics);
        reject_tables_of_samples(root, sweep, diagnostics);
        if (root.raw().get("codec") == nullptr) diagnostics.add(model, "a dump study needs a [[codec]]");
        return blocks;
    }
    blocks.points = read_points(blocks.kind, model, sweep, diagnostics);
    if (root.raw().get("estimator") == nullptr && root.raw().get("codec") == nullptr &&
        root.raw().get("check") == nullptr)
        diagnostics.add(model, "the study computes nothing: add an [[estimator]], a [[codec]] or a [[check]]");
    return blocks;
}

void reject_equal_cells(const Experiment& experiment, const toml::table& at, Diagnostics& diagnostics) {
    std::set<std::string> hashes;
    for (const auto& cell : experiment.cells)
        if (!hashes.insert(cell.hash()).second)
            diagnostics.add(
                at, fmt::format("two cells are the same ({}; a value is listed twice): leave one out", cell.label));
}

/// All settings that can change a number, except those of cells and dumps.
Json science_of(const toml::table& file, ModelKind kind, const Experiment& experiment, const RunTable& run,
                const std::vector<NamedEstimator>& estimators, const std::vector<NamedCodec>& codecs) {
    Json science = Json::object({{"spiked", 1},
                                 {"kind", enum_name(kind)},
                                 {"name", experiment.name},
                                 {"replicates", run.replicates.most},
                                 {"batch", experiment.batch},
                                 {"precision", enum_name(run.precision)},
                                 {"raw", static_cast<std::int64_t>(experiment.raw_per_cell)}});
    Json methods = Json::array();
    for (const auto& e : estimators) {
        Json method =
            Json::object({{"estimator", e.method.name}, {"loss", theory::name_of(e.method.loss)}, {"as", e.label}});
        if (e.known_law) method.set("law", "known");
        methods.push(std::move(method));
    }
    for (const auto& c : codecs) {
        Json bits = Json::array();
        for (const double b : c.bits) bits.push(bits_json(b));
        methods.push(Json::object({{"codec", c.method.text}, {"bits", std::move(bits)}, {"as", c.label}}));
    }
    science.set("methods", std::move(methods));
    if (!experiment.until.empty()) {
        science.set("least_replicates", run.replicates.least);
        science.set("until", json_of(*file.at_path("run.until").node()));
    }
    for (const char* key : {"check", "claim"})
        if (const toml::node* all = file.get(key)) science.set(key, json_of(*all));
    science.set("false_alarm", experiment.false_alarm);
    return science;
}

}  // namespace

std::vector<ClaimText> claims_of_studies() {
    std::vector<ClaimText> texts;
    for (const auto& claim : claims())
        if (claim.in_study) texts.push_back({claim.id, claim.place, claim.statement, claim.in_study->control});
    return texts;
}

Study parse_study(const std::string& text, const std::string& name, const StudyOverrides& overrides) {
    toml::table file = parse_toml(text, name);
    apply_overrides(file, overrides);

    Diagnostics diagnostics(name, overrides.set.empty() ? "" : " (as changed by --set)");
    Study study;
    Experiment& experiment = study.experiment;
    experiment.config_source = text;
    experiment.claims = claims_of_studies();
    keep_changes(file, overrides, experiment);
    Section root(file, "the study", diagnostics);
    read_version(root, diagnostics);
    read_about(root, overrides, experiment, diagnostics);
    const RunTable run = read_run(root, experiment, diagnostics);
    const auto estimators = read_estimators(root, diagnostics);
    const auto codecs = read_codecs(root, diagnostics);
    auto checks = read_checks(root, diagnostics);
    const auto claims = read_claims(root, checks, diagnostics);
    Section budget = root.below("checks");
    experiment.false_alarm = budget.number("false_alarm", 1e-6, 1e-300, 0.5);
    budget.no_other_keys();
    const auto figures = read_figures(root, experiment, diagnostics);
    read_exec(root, study, diagnostics);
    read_store(root, file, study, diagnostics);

    root.require("model", "[model] with kind = \"spiked\"");
    const toml::table* model = root.table("model");
    const toml::table* sweep = root.table("sweep");
    root.no_other_keys();
    if (model == nullptr) diagnostics.throw_if_any();
    Section kind_section(*model, "[model]", diagnostics);
    kind_section.require("kind", "kind = \"spiked\"");
    const ModelKind kind = kind_section.choice("kind", ModelKind::spiked);
    const std::size_t before = diagnostics.count();
    StudyBlocks blocks = read_blocks(kind, root, *model, sweep, diagnostics);
    if (!blocks.of_dumps())
        reject_pairs(blocks.points.size(), estimators, codecs, sweep == nullptr ? *model : *sweep, diagnostics);
    const auto factors = factors_of(kind, sweep);
    reject_swept(overrides, sweep, diagnostics);
    // Where [sweep] has an error, conditions and figures that use its factors may still be right.
    if (sweep == nullptr || diagnostics.count() == before) {
        check_conditions(checks, factors, diagnostics);
        check_figures(blocks.of_dumps(), factors, figures, overrides.figures, diagnostics);
    }
    diagnostics.throw_if_any();

    experiment.science = science_of(file, kind, experiment, run, estimators, codecs);
    if (blocks.of_dumps()) {
        // Its errors name files and belong to unusable input, not to the study file.
        blocks.plan.quantizer.seed = experiment.seed;
        blocks.plan.precision = run.precision;
        make_dump_experiment(experiment, blocks.plan, codecs);
    } else {
        guarded(*model, diagnostics, [&] {
            make_block_experiment(experiment, std::string(enum_name(kind)), std::move(blocks.points), estimators,
                                  codecs, run.replicates, run.precision);
        });
        diagnostics.throw_if_any();
    }

    check_stop_rules(file, experiment, diagnostics);
    reject_equal_cells(experiment, sweep == nullptr ? *model : *sweep, diagnostics);
    diagnostics.throw_if_any();
    add_claims(claims, checks, experiment, diagnostics);
    diagnostics.throw_if_any();
    add_checks(checks, experiment, diagnostics);
    diagnostics.throw_if_any();
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
    Study study;
    try {
        study =
            reread_study(row.text(0), Json::parse(row.text(1), store.path() + ": config_set", 8), row.text(2), "study");
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::usage) throw;
        const std::string why = error.what();
        throw damaged_store(store.path(), "its study cannot be read again (" + why.substr(0, why.find('\n')) + ")");
    }
    if (study.experiment.science_hash() != row.text(3))
        throw input_error(
            "{}: its study reads differently now (its input files changed, or this program is another version): bring "
            "back the files, or use the version that made it",
            store.path());
    return study;
}

Study read_study(const std::string& path, const StudyOverrides& overrides) {
    if (!std::filesystem::exists(path))
        throw usage_error("{}: the study file cannot be opened: check the path, or make one with spiked init", path);
    std::string text;
    try {
        text = read_text_file(path, most_bytes, "a study file");
    } catch (const Error& error) {
        throw Error(ErrorKind::usage, error.what());
    }
    StudyOverrides there = overrides;
    there.folder = std::filesystem::path(path).parent_path().string();
    return parse_study(text, path, there);
}

}  // namespace spiked::validation
