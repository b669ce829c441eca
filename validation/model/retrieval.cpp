#include "validation/model/retrieval.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

#include "core/files/sha256.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "sim/kv/dump_view.hpp"
#include "validation/model/perplexity.hpp"

namespace spiked::validation {
namespace {

/// All versions of the cache on contexts of so many tokens.
std::vector<codec::CacheVersion> versions_on_prompts(const RetrievalPlan& plan, const sim::LlamaConfig& shape,
                                                     std::size_t context, bool last_layer_only) {
    codec::CachePlan common{.quantizer = plan.quantizer, .block_tokens = plan.block_tokens};
    if (last_layer_only) common.only = codec::layer_part(shape.layers - 1);
    return codec::cache_versions(shape, plan.methods, common, context);
}

Questions questions_of_dumps(const RetrievalPlan& plan) {
    auto readouts = std::make_shared<std::vector<sim::LlamaReadout>>();
    const bool unrope = std::any_of(plan.methods.begin(), plan.methods.end(), [](const codec::CacheRequest& request) {
        return request.how.method && request.how.method->unrope;
    });
    std::size_t asked_for = 0;
    std::size_t context = std::numeric_limits<std::size_t>::max();
    std::map<std::string, std::string> paths_by_hash;
    for (const auto& path : plan.dumps) {
        const sim::KvDump dump(path, plan.dump);
        if (plan.dumps.size() > 1)
            if (const auto [same, added] = paths_by_hash.emplace(hex(sha256_of_file(path)), path); !added)
                throw input_error("{} and {} have the same content (a prompt counts once): name each dump once",
                                  same->second, path);
        if (unrope) (void)sim::dump_rotary(dump);
        readouts->emplace_back(dump);
        const auto& first = readouts->front().shape();
        const auto& own = readouts->back().shape();
        if (own.layers != first.layers || own.heads != first.heads || own.kv_heads != first.kv_heads ||
            own.head_dim != first.head_dim || own.rope != first.rope)
            throw input_error(
                "{} and {} are of different models (last layers, heads or rotary embeddings differ): measure them one "
                "by one",
                plan.dumps.front(), path);
        asked_for += readouts->back().needles().size();
        context = std::min(context, readouts->back().context());
    }
    return {
        .shape = readouts->front().shape(),
        .prompts = plan.dumps.size(),
        .questions = asked_for,
        .context = context,
        .last_layer_only = true,
        .at_once = plan.at_once,
        .versions = versions_on_prompts(plan, readouts->front().shape(), context, true),
        .ask = [readouts, plan](
                   std::size_t prompt,
                   codec::CompressedCache* cache) { return score_readout((*readouts)[prompt], plan, cache); },
        .check =
            [readouts, plan](const std::vector<double>& right) {
                for (std::size_t d = 0; d < right.size(); ++d) {
                    const auto& readout = (*readouts)[d];
                    const auto asked = static_cast<double>(readout.needles().size());
                    const auto found = static_cast<std::size_t>(std::lround(asked * right[d]));
                    if (!readout.correct() && 2 * found < readout.needles().size())
                        throw input_error(
                            "{}: full precision gives {} right answers of {} (expected at least half): do its queries "
                            "attend strongly enough to the needles?",
                            plan.dumps[d], found, readout.needles().size());
                    if (readout.correct() && found != *readout.correct())
                        throw input_error(
                            "{}: full precision gives {} right answers of {} (its metadata say the model gave {}): do "
                            "its tensors, readout and needles belong together?",
                            plan.dumps[d], found, readout.needles().size(), *readout.correct());
                }
            }};
}

Questions questions_of_model(const RetrievalPlan& plan) {
    const sim::LlamaConfig shape = sim::read_llama_config(plan.model);
    const auto& vocabulary = plan.vocabulary;
    for (const std::int32_t token : {vocabulary.bos, vocabulary.ask, vocabulary.first_key, vocabulary.last_key,
                                     vocabulary.first_value, vocabulary.last_value})
        if (token < 0 || static_cast<std::size_t>(token) >= shape.vocabulary)
            throw input_error(
                "{}: token {} of the needles lies outside the model's vocabulary of {}: is this a retrieval model?",
                plan.model, token, shape.vocabulary);
    if (vocabulary.last_key < vocabulary.first_key || vocabulary.last_value < vocabulary.first_value)
        throw usage_error("keys {}:{} and values {}:{} are not ranges: write FIRST:LAST", vocabulary.first_key,
                          vocabulary.last_key, vocabulary.first_value, vocabulary.last_value);
    if (plan.prompts == 0) throw precondition_error("retrieval without a prompt");
    const auto filler = read_documents(plan.filler, shape, std::numeric_limits<std::size_t>::max());
    const NeedlePrompt first = needle_prompt(plan, shape, filler, 0);
    const std::size_t context = first.context;
    const std::size_t asked = std::min(plan.asked, plan.needles);
    auto versions = versions_on_prompts(plan, shape, context, plan.last_layer_only);
    const PlannedPasses passes{versions,     std::vector<std::size_t>(plan.prompts, first.tokens.size()),
                               {},           plan.block_tokens,
                               plan.threads, true};
    forecast_memory(plan.notes, shape, plan.model, passes);
    const auto model = std::make_shared<const sim::Llama>(plan.model);
    forecast_time(plan.notes, *model, first.tokens, passes);
    return {
        .shape = shape,
        .prompts = plan.prompts,
        .questions = plan.prompts * asked,
        .needles = plan.needles,
        .context = context,
        .last_layer_only = plan.last_layer_only,
        .at_once = plan.at_once,
        .versions = std::move(versions),
        .ask =
            [model, plan, filler](std::size_t prompt, codec::CompressedCache* cache) {
                return score_prompt(*model, needle_prompt(plan, model->config(), filler, prompt), plan, cache);
            },
        .check =
            [plan](const std::vector<double>& right) {
                const double mean = arma::mean(arma::vec(right));
                if (mean < 0.5)
                    throw input_error(
                        "{}: the model answers {:.1f} % of the questions in full precision (expected at least half): "
                        "is it trained for these needles?",
                        plan.model, 100.0 * mean);
            }};
}

}  // namespace

Questions questions_of(RetrievalPlan plan) {
    if (std::any_of(plan.methods.begin(), plan.methods.end(),
                    [](const codec::CacheRequest& request) { return request.how.eviction != nullptr; }))
        plan.at_once = true;
    else if (plan.observe_questions)
        throw usage_error(
            "--observe-questions has no effect (no method evicts tokens): add snapkv to --method, or leave it out");
    if (plan.block_tokens == 0) throw precondition_error("blocks of 0 tokens");
    return plan.dumps.empty() ? questions_of_model(plan) : questions_of_dumps(plan);
}

namespace {

/// Results for one prompt with one version of the cache.
struct PromptResult {
    PromptScore score;
    codec::CacheBits bits;
    double entries = 0.0;
};
using VersionResults = std::vector<PromptResult>;  ///< one for each prompt

/// Runs all prompts with versions first, .., last - 1; versions before `first` are done.
void run_prompts(const RetrievalPlan& plan, const Questions& questions,
                 const std::vector<codec::CacheVersion>& versions, std::size_t first, std::size_t last,
                 std::vector<VersionResults>& found) {
    const std::size_t prompts = questions.prompts;
    std::size_t done = first * prompts;
    std::mutex progress_guard;
    // All versions of a prompt, then the next prompt, so that the time left is estimated from all methods.
    for_each_parallel((last - first) * prompts, plan.threads, [&](std::size_t job) {
        const std::size_t v = first + job % (last - first);
        const std::size_t prompt = job / (last - first);
        PromptResult& result = found[v][prompt];
        auto cache = versions[v].cache;
        if (cache) cache->draw_rotations(prompt);
        result.score = questions.ask(prompt, cache ? &*cache : nullptr);
        if (prompt != 0) result.score.where.clear();
        if (cache) {
            result.bits = cache->stored_bits();
            result.entries = cache->entries();
        }
        const std::scoped_lock lock(progress_guard);
        if (plan.progress) plan.progress(++done, versions.size() * prompts);
    });
}

/// The mean over prompts, weighted by their numbers of questions. `value`: function of the index of a prompt.
template <class Value>
MeanAndError over_questions(const VersionResults& results, const Value& value) {
    Parts prompts;
    for (std::size_t p = 0; p < results.size(); ++p) {
        const auto questions = static_cast<double>(results[p].score.questions);
        prompts.sums[static_cast<std::int64_t>(p)] = {questions, questions * value(p)};
    }
    return prompts.mean().mean_and_error();
}

/// The table row of one version, compared with full precision and the first method.
RetrievalRow table_row(const codec::CacheVersion& version, const VersionResults& results, const VersionResults& exact,
                       const VersionResults& first, const Retrieval& table) {
    RetrievalRow row{.method = version.label, .bits = version.bits, .budget = version.budget};
    const auto collect = [&](const auto& value) { return over_questions(results, value); };
    const auto score = [&](std::size_t p) -> const PromptScore& { return results[p].score; };
    row.right = collect([&](std::size_t p) { return score(p).right; });
    row.log_probability = collect([&](std::size_t p) { return score(p).log_probability; });
    row.lost = collect([&](std::size_t p) { return exact[p].score.right - score(p).right; });
    row.right_over_first = collect([&](std::size_t p) { return score(p).right - first[p].score.right; });
    row.log_probability_over_first =
        collect([&](std::size_t p) { return score(p).log_probability - first[p].score.log_probability; });
    for (const auto& result : results) {
        row.right_by_prompt.push_back(result.score.right);
        row.log_probability_by_prompt.push_back(result.score.log_probability);
    }
    row.mass = collect([&](std::size_t p) { return score(p).mass(table.best_layer, table.best_head); });
    const arma::mat& mass = results.front().score.mass;
    for (std::size_t layer = table.dumps.empty() ? 0 : mass.n_rows - 1; layer < mass.n_rows; ++layer)
        for (std::size_t head = 0; head < mass.n_cols; ++head)
            row.heads.push_back({layer, head, collect([&](std::size_t p) { return score(p).mass(layer, head); }),
                                 collect([&](std::size_t p) { return score(p).peaks(layer, head); })});
    row.where = results.front().score.where_of(table.best_layer, table.best_head);
    if (version.cache) {
        double entries = 0.0;
        row.ledger = {};
        for (const auto& result : results) (row.ledger += result.bits, entries += result.entries);
        row.ledger /= entries;
    }
    return row;
}

}  // namespace

Retrieval measure_retrieval(const RetrievalPlan& plan) {
    const Questions questions = questions_of(plan);
    const auto& shape = questions.shape;
    const auto& versions = questions.versions;
    Retrieval result{.prompts = questions.prompts,
                     .questions = questions.questions,
                     .needles = questions.needles,
                     .context = questions.context,
                     .dumps = plan.dumps,
                     .last_layer_only = questions.last_layer_only,
                     .exact_questions = plan.exact_questions || questions.at_once,
                     .at_once = questions.at_once,
                     .observe_questions = plan.observe_questions};

    std::vector<VersionResults> found(versions.size(), VersionResults(questions.prompts));
    const VersionResults& exact = found.front();
    run_prompts(plan, questions, versions, 0, 1, found);
    std::vector<double> right;
    for (const auto& prompt : exact) right.push_back(prompt.score.right);
    questions.check(right);
    run_prompts(plan, questions, versions, 1, versions.size(), found);

    // The head with the largest attention on the needles.
    arma::mat exact_mass(shape.layers, shape.heads, arma::fill::zeros);
    for (const auto& prompt : exact) exact_mass += prompt.score.mass;
    const arma::uword best = exact_mass.index_max();
    result.best_layer = best % shape.layers;
    result.best_head = best / shape.layers;

    for (const auto& prompt : exact) result.questions_by_prompt.push_back(prompt.score.questions);
    for (std::size_t v = 0; v < versions.size(); ++v)
        result.rows.push_back(table_row(versions[v], found[v], exact, found[found.size() > 1 ? 1 : 0], result));
    return result;
}

}  // namespace spiked::validation
