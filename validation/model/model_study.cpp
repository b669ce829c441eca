#include "validation/model/model_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "core/files/sha256.hpp"
#include "core/runtime/error.hpp"
#include "estimators/quantizers/quantizer_options.hpp"

namespace spiked::validation {
namespace {

namespace fs = std::filesystem;

struct Cost {
    double nats = 0.0;
    std::optional<double> wrong_answers = {};  ///< a fraction; no value if there are no questions
};

/// A task of a model, consisting of cases.
struct Task {
    std::string metric, cases;  ///< the metric, in nats; "document" or "prompt"
    sim::LlamaConfig shape;
    std::size_t count = 0;
    std::size_t first_choice = 0;  ///< as in codec::cache_versions
    std::function<Cost(std::size_t number, codec::CompressedCache* cache)> cost;
    /// The attention of its questions; empty if it has none.
    std::function<PromptScore(std::size_t number, codec::CompressedCache* cache)> attention = {};
};

struct Source {
    std::string model, texts;
    const std::vector<codec::CacheRequest>& methods;
    const estimators::QuantizerOptions& quantizer;
    codec::CachePart only;
    std::size_t block_tokens;
    Json settings;  ///< all other settings that can change a result
};

void add_input(Experiment& experiment, const std::string& path, const std::string& model) {
    ExperimentInput input{path, fs::file_size(path), hex(sha256_of_file(path))};
    input.format = format_of(path);
    input.model = model;
    experiment.inputs.push_back(std::move(input));
}

void add_methods(Experiment& experiment, const std::vector<codec::CacheVersion>& versions) {
    experiment.methods.push_back({"sample", "sample", "sample", std::nullopt, Json::object()});
    for (const auto& version : versions) {
        if (!version.cache) continue;
        // Methods that differ only in their budget form one frontier, like those that differ in bits.
        std::string base = version.label;
        std::string name = fmt::format("{} B={}", version.label, version.bits);
        if (version.budget) {
            if (version.cache->codes()) base = name;
            name = fmt::format("{} at {}", version.cache->codes() ? name : version.label, *version.budget);
        }
        for (const auto& other : experiment.methods)
            if (other.name == name) throw usage_error("{} is given twice: name each method once", name);
        Json params = Json::object();
        if (version.budget) params.set("budget", *version.budget);
        experiment.methods.push_back({name, "codec", base, version.bits, std::move(params)});
    }
}

/// Attention in the first prompt under each method, in the head that attends best to its needles in full precision.
std::vector<NamedArray> attention_of(const Task& task, const std::vector<codec::CacheVersion>& versions) {
    std::vector<NamedArray> arrays;
    arma::uword best_layer = 0;
    arma::uword best_head = 0;
    for (std::size_t v = 0; v < versions.size(); ++v) {
        auto cache = versions[v].cache;
        const PromptScore score = task.attention(0, cache ? &*cache : nullptr);
        if (v == 0) {
            const arma::uword at = score.mass.index_max();
            best_layer = at % task.shape.layers;
            best_head = at / task.shape.layers;
            arrays.push_back(
                {0, "needle_head", arma::rowvec{static_cast<double>(best_layer), static_cast<double>(best_head)}});
        }
        arrays.push_back({v, "needle_attention", score.where_of(best_layer, best_head)});
    }
    return arrays;
}

void make_experiment(Experiment& experiment, const Source& source, Task task) {
    experiment.kind = "kv_model";
    const auto versions = std::make_shared<const std::vector<codec::CacheVersion>>(codec::cache_versions(
        task.shape, source.methods, source.quantizer, source.only, source.block_tokens, task.first_choice));
    add_methods(experiment, *versions);
    const std::string name = fs::path(source.model + "/").parent_path().filename().string();
    add_input(experiment, source.texts, name);
    std::vector<std::string> files = sim::weight_files(source.model);
    files.emplace_back("config.json");
    for (const auto& file : files)
        add_input(experiment, (fs::path(source.model) / fs::path(file).filename()).string(), name);
    std::sort(experiment.inputs.begin() + 1, experiment.inputs.end(),
              [](const ExperimentInput& a, const ExperimentInput& b) { return a.path < b.path; });
    Json sums = Json::array();
    for (const auto& input : experiment.inputs) sums.push(input.sha256);

    experiment.science.set("inputs", sums);
    experiment.science.set("settings", source.settings);
    experiment.science.set("rotations", "of each case");
    experiment.science.set("block", source.block_tokens);
    experiment.science.set("quantizer", estimators::quantizer_json(source.quantizer, estimators::options_in_stores));
    experiment.batch = 1;
    experiment.figures.push_back(Json::object({{"kind", "frontier"}, {"y", task.metric}}));
    Json cells = Json::array();
    for (std::size_t number = 0; number < task.count; ++number) {
        ExperimentCell cell;
        cell.label = fmt::format("{} {}", task.cases, number);
        cell.rows = source.block_tokens;
        cell.columns = task.shape.head_dim;
        cell.replicates = 1;
        cell.params = Json::object({{"inputs", sums}, {"settings", source.settings}, {task.cases, number}});
        cell.factors = {
            {"file", std::nullopt, source.texts},  {"input", 1.0, fs::path(source.texts).filename().string()},
            {"model", std::nullopt, name},         {"side", std::nullopt, "cache"},
            {"cluster", std::nullopt, cell.label}, {"cluster_by", std::nullopt, task.cases},
            {"tokens_skipped", 0.0, "0"}};
        cells.push(cell.params);
        experiment.cells.push_back(std::move(cell));
    }
    experiment.science.set("cells", std::move(cells));
    const auto shared = std::make_shared<const Task>(std::move(task));
    if (shared->attention) {
        experiment.figures.push_back(Json::object({{"kind", "needle-attention"}}));
        experiment.arrays = [versions, shared](std::size_t cell) {
            return cell == 0 ? attention_of(*shared, *versions) : std::vector<NamedArray>();
        };
    }
    experiment.worker = [versions, task = shared](std::size_t cell, ReplicateRange) -> Experiment::Worker {
        return [versions, task, cell](std::uint64_t) {
            const double exact = task->cost(cell, nullptr).nats;
            std::vector<Observation> found;
            std::size_t method = 0;
            for (const auto& version : *versions) {
                if (!version.cache) continue;
                codec::CompressedCache cache = *version.cache;
                cache.draw_rotations(cell);
                const Cost cost = task->cost(cell, &cache);
                found.push_back({++method, metric_index(task->metric), 0, cost.nats - exact});
                if (cost.wrong_answers)
                    found.push_back({method, metric_index("wrong_answers"), 0, *cost.wrong_answers});
                found.push_back(
                    {method, metric_index("bits_per_entry"), 0, cache.stored_bits().total() / cache.entries()});
            }
            return found;
        };
    };
}

}  // namespace

void make_perplexity_experiment(Experiment& experiment, const PerplexityPlan& plan) {
    const auto documents = std::make_shared<const Documents>(open_documents(plan));
    const Json settings = Json::object({{"task", "perplexity"}});
    make_experiment(experiment,
                    {plan.model, plan.tokens, plan.methods, plan.quantizer, plan.only, plan.block_tokens, settings},
                    {"added_nats", "document", documents->model.config(), documents->tokens.size(), plan.block_tokens,
                     [documents, block = plan.block_tokens](std::size_t number, codec::CompressedCache* cache) {
                         return Cost{document_nats(*documents, number, block, cache)};
                     }});
}

void make_retrieval_experiment(Experiment& experiment, const RetrievalPlan& plan) {
    const Questions questions = questions_of(plan);
    questions.check({questions.ask(0, nullptr).right});
    const auto& vocabulary = plan.vocabulary;
    const Json settings =
        Json::object({{"task", "retrieval"},
                      {"needles", questions.needles},
                      {"questions", questions.questions},
                      {"context", questions.context},
                      {"vocabulary", Json::Array{vocabulary.bos, vocabulary.ask, vocabulary.first_key,
                                                 vocabulary.last_key, vocabulary.first_value, vocabulary.last_value}},
                      {"last_layer_only", plan.last_layer_only},
                      {"exact_questions", plan.exact_questions},
                      {"at_once", questions.at_once},
                      {"observe_questions", plan.observe_questions}});
    make_experiment(
        experiment,
        {plan.model, plan.filler, plan.methods, plan.quantizer, questions.part(), plan.block_tokens, settings},
        {"retrieval", "prompt", questions.shape, questions.prompts, questions.context,
         [questions](std::size_t number, codec::CompressedCache* cache) {
             const PromptScore score = questions.ask(number, cache);
             return Cost{-score.log_probability, 1.0 - score.right};
         },
         questions.ask});
}

}  // namespace spiked::validation
