#include "validation/model/model_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "core/files/sha256.hpp"
#include "core/runtime/error.hpp"
#include "estimators/quantizers/quantizer_options.hpp"
#include "validation/store/open_store.hpp"

namespace spiked::validation {
namespace {

namespace fs = std::filesystem;

struct Cost {
    std::optional<double> nats = {};
    std::optional<double> wrong_answers = {};  ///< a fraction; no value if there are no questions
    arma::rowvec answer = {};                  ///< a row for the store's array "answer"; none if empty
};

/// A task of a model, consisting of cases.
struct Task {
    std::string metric, cases;  ///< of the frontier; "document" or "prompt"
    sim::LlamaConfig shape;
    std::size_t count = 0;
    std::function<Cost(std::size_t number, codec::CompressedCache* cache)> cost;
    /// The attention of its questions; empty if it has none.
    std::function<PromptScore(std::size_t number, codec::CompressedCache* cache)> attention = {};
};

struct Source {
    std::string model, texts;
    std::vector<codec::CacheVersion> versions;  ///< full precision first
    const estimators::QuantizerOptions& quantizer;
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

/// The rows that workers made for the arrays of their cells. A cell's arrays are asked for after its work.
struct AnswerRows {
    std::mutex guard;
    std::map<std::size_t, std::vector<NamedArray>> by_cell;

    void add(std::size_t cell, std::size_t method, const arma::rowvec& row) {
        if (row.is_empty()) return;
        const std::scoped_lock lock(guard);
        by_cell[cell].push_back({method, "answer", row});
    }
    std::vector<NamedArray> take(std::size_t cell) {
        const std::scoped_lock lock(guard);
        return std::exchange(by_cell[cell], {});
    }
};

void add_work(Experiment& experiment, const std::shared_ptr<const std::vector<codec::CacheVersion>>& versions,
              const std::shared_ptr<const Task>& task) {
    const auto answers = std::make_shared<AnswerRows>();
    if (task->attention) experiment.figures.push_back(Json::object({{"kind", "needle-attention"}}));
    experiment.arrays = [versions, task, answers](std::size_t cell) {
        auto arrays = answers->take(cell);
        if (cell == 0 && task->attention) arrays = attention_of(*task, *versions);
        return arrays;
    };
    experiment.worker = [versions, task, answers](std::size_t cell, ReplicateRange) -> Experiment::Worker {
        return [versions, task, answers, cell](std::uint64_t) {
            (void)answers->take(cell);
            const Cost exact = task->cost(cell, nullptr);
            answers->add(cell, 0, exact.answer);
            std::vector<Observation> found;
            std::size_t method = 0;
            for (const auto& version : *versions) {
                if (!version.cache) continue;
                codec::CompressedCache cache = *version.cache;
                cache.draw_rotations(cell);
                const Cost cost = task->cost(cell, &cache);
                answers->add(cell, ++method, cost.answer);
                if (cost.nats) found.push_back({method, metric_index(task->metric), 0, *cost.nats - *exact.nats});
                if (cost.wrong_answers)
                    found.push_back({method, metric_index("wrong_answers"), 0, *cost.wrong_answers});
                found.push_back(
                    {method, metric_index("bits_per_entry"), 0, cache.stored_bits().total() / cache.entries()});
            }
            return found;
        };
    };
}

void make_experiment(Experiment& experiment, const Source& source, Task task) {
    experiment.kind = "kv_model";
    const auto versions = std::make_shared<const std::vector<codec::CacheVersion>>(source.versions);
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
    add_work(experiment, versions, std::make_shared<const Task>(std::move(task)));
}

}  // namespace

void make_perplexity_experiment(Experiment& experiment, const PerplexityPlan& plan) {
    const auto documents = std::make_shared<const Documents>(open_documents(plan));
    Json settings = Json::object({{"task", "perplexity"}});
    if (!plan.only.empty()) {
        Json parts = Json::array();
        for (const auto& [layer, side] : plan.only) parts.push(fmt::format("{}:{}", layer, sim::side_name(side)));
        settings.set("only", std::move(parts));
    }
    if (plan.sinks > 0) settings.set("sinks", plan.sinks);
    if (!plan.extra_bits.empty()) {
        Json parts = Json::array();
        for (const auto& [part, bits] : plan.extra_bits)
            parts.push(fmt::format("{}:{}={}", part.first, sim::side_name(part.second), bits));
        settings.set("extra_bits", std::move(parts));
    }
    make_experiment(experiment,
                    {plan.model, plan.tokens, documents->versions, plan.quantizer, plan.block_tokens, settings},
                    {"added_nats", "document", documents->model.config(), documents->tokens.size(),
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
    make_experiment(experiment,
                    {plan.model, plan.filler, questions.versions, plan.quantizer, plan.block_tokens, settings},
                    {"retrieval", "prompt", questions.shape, questions.prompts,
                     [questions](std::size_t number, codec::CompressedCache* cache) {
                         const PromptScore score = questions.ask(number, cache);
                         return Cost{-score.log_probability, 1.0 - score.right};
                     },
                     questions.ask});
}

namespace {

/// An answer as a row of the store: how it ended, the stored bits, the entries that they belong to, and its tokens.
constexpr std::size_t numbers_before_tokens = 6;

arma::rowvec row_of(const MeasuredAnswer& from) {
    const auto& bits = from.bits;
    std::vector<double> row = {
        from.answer.ended ? 1.0 : 0.0, bits.rows, bits.positions, bits.scores, bits.exact, from.entries};
    row.insert(row.end(), from.answer.tokens.begin(), from.answer.tokens.end());
    return row;
}

MeasuredAnswer answer_of(const OpenAnswers& open, std::size_t prompt, const arma::mat& row, const std::string& path) {
    const auto is_token = [&](double id) {
        return id >= 0.0 && id < static_cast<double>(open.model.config().vocabulary);
    };
    if (row.n_rows != 1 || row.n_cols < numbers_before_tokens ||
        !std::all_of(row.begin() + numbers_before_tokens, row.end(), is_token))
        throw damaged_store(path, fmt::format("its answer to prompt {} is none", prompt));
    GreedyText text{.ended = row(0) != 0.0};
    for (auto id = row.begin() + numbers_before_tokens; id != row.end(); ++id)
        text.tokens.push_back(static_cast<std::int32_t>(*id));
    return {spelled_answer(open, prompt, std::move(text)), {row(1), row(2), row(3), row(4)}, row(5)};
}

double fraction_wrong(const GeneratedAnswer& answer) {
    return static_cast<double>(std::count(answer.found.begin(), answer.found.end(), false)) /
           static_cast<double>(answer.found.size());
}

}  // namespace

void make_answers_experiment(Experiment& experiment, const std::shared_ptr<const OpenAnswers>& open) {
    const AnswerPlan& plan = open->plan;
    const Json settings = Json::object({{"task", "answers"},
                                        {"last_layer_only", plan.last_layer_only},
                                        {"exact_questions", plan.exact_questions},
                                        {"at_once", plan.at_once},
                                        {"observe_questions", plan.observe_questions}});
    make_experiment(experiment, {plan.model, plan.prompts, open->versions, plan.quantizer, plan.block_tokens, settings},
                    {"wrong_answers", "prompt", open->model.config(), open->file.prompts.size(),
                     [open](std::size_t number, codec::CompressedCache* cache) {
                         const MeasuredAnswer found = answer_prompt(*open, number, cache);
                         Cost cost{.answer = row_of(found)};
                         if (!open->file.prompts[number].control) cost.wrong_answers = fraction_wrong(found.answer);
                         return cost;
                     }});
}

std::optional<GeneratedAnswers> stored_answers(Database& store, const OpenAnswers& open) {
    const std::size_t count = open.file.prompts.size();
    std::vector<std::vector<MeasuredAnswer>> found(open.versions.size(), std::vector<MeasuredAnswer>(count));
    std::size_t answers = 0;
    Statement row(store, "SELECT cell_id, method_id, npy FROM array WHERE name = 'answer' AND rep = 0");
    for (; row.step(); ++answers) {
        const auto prompt = static_cast<std::size_t>(row.integer(0) - 1);
        const auto version = static_cast<std::size_t>(row.integer(1) - 1);
        if (prompt >= count || version >= found.size())
            throw damaged_store(store.path(),
                                fmt::format("it has an answer to prompt {} by method {}", prompt, version));
        found[version][prompt] =
            answer_of(open, prompt, stored_matrix(row, 2, store.path() + ": array answer"), store.path());
    }
    if (answers < found.size() * count) return std::nullopt;
    return answers_table(open, std::move(found));
}

}  // namespace spiked::validation
