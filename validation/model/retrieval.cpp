#include "validation/model/retrieval.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>

#include "core/files/sha256.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "sim/kv/dump_view.hpp"
#include "sim/llama/llama_steps.hpp"
#include "sim/random/permutation.hpp"
#include "validation/model/perplexity.hpp"

namespace spiked::validation {
namespace {

/// A uniform whole number below `count`.
std::size_t below(const stream::Stream& draws, std::uint32_t element, std::size_t count) {
    const auto random_words = draws.words(element);
    const std::uint64_t bits = std::uint64_t{random_words[0]} << 32 | random_words[1];
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::size_t>(static_cast<Wide>(bits) * count >> 64);
}

/// Turns sums over questions into means.
PromptScore mean_of(PromptScore score, std::size_t questions) {
    const auto count = static_cast<double>(questions);
    score.questions = questions;
    score.right /= count;
    score.log_probability /= count;
    score.mass /= count;
    score.peaks /= count;
    return score;
}

/// A score with all sums zero.
PromptScore no_score(const sim::LlamaConfig& shape) {
    PromptScore score;
    score.mass.zeros(shape.layers, shape.heads);
    score.peaks.zeros(shape.layers, shape.heads);
    score.where.resize(shape.layers * shape.heads);
    return score;
}

/// Adds the attention of one question; `tokens`: the token that each weight belongs to.
void add_attention(PromptScore& score, std::size_t layer, std::size_t head, const std::vector<Needle>& needles,
                   std::size_t question, const arma::frowvec& weights, const std::vector<std::size_t>& tokens,
                   const codec::CompressedCache* cache) {
    const bool merges = cache != nullptr && cache->merges();
    arma::mat& where = score.where[layer * score.mass.n_cols + head];
    if (where.is_empty()) where.zeros(needles.size(), needles.size() + 1);
    where(question, needles.size()) = 1.0;
    for (std::size_t n = 0; n < needles.size(); ++n) {
        const auto behind = std::upper_bound(tokens.begin(), tokens.end(), needles[n].value_at);
        if (behind == tokens.begin() || (!merges && *(behind - 1) != needles[n].value_at)) continue;  // evicted
        const auto holder = static_cast<arma::uword>(behind - tokens.begin() - 1);
        where(question, n) = static_cast<double>(weights(holder));
        where(question, needles.size()) -= where(question, n);
        if (n != question) continue;
        score.mass(layer, head) += where(question, n);
        if (weights.index_max() == holder) score.peaks(layer, head) += 1.0;
    }
}

}  // namespace

NeedlePrompt needle_prompt(const RetrievalPlan& plan, const sim::LlamaConfig& model,
                           const std::vector<std::vector<std::int32_t>>& filler, std::uint64_t number) {
    const NeedleVocabulary& vocabulary = plan.vocabulary;
    const std::size_t asked = std::min(plan.asked, plan.needles);
    const auto keys = static_cast<std::size_t>(vocabulary.last_key - vocabulary.first_key + 1);
    if (plan.needles == 0 || asked == 0 || plan.needles > keys)
        throw input_error("{} needles, {} asked (expected 1 to {}, the keys of the vocabulary): choose other numbers",
                          plan.needles, asked, keys);
    if (plan.prompt_tokens > model.context)
        throw usage_error("--context {} is not possible: the model reads {} tokens at most", plan.prompt_tokens,
                          model.context);
    // BOS, then positions for pairs of tokens.
    const std::size_t questions = 2 * asked;
    std::size_t all = plan.prompt_tokens;
    if (all == 0) {
        all = model.context;
        for (const auto& stream : filler) all = std::min(all, stream.size() + questions);
    }
    const std::size_t places = all > questions + 1 ? (all - questions - 1) / 2 : 0;
    if (plan.needles > places)
        throw input_error("{} needles and {} questions do not fit a context of {} tokens ({} do): choose fewer",
                          plan.needles, asked, all, places);

    const stream::Stream draws(plan.quantizer.seed, "needles", stream::Role::query, number);
    const auto order = [&](const char* of, std::size_t count) {
        return stream::random_order(stream::Stream(plan.quantizer.seed, of, stream::Role::token_order, number), count);
    };
    NeedlePrompt prompt;
    prompt.context = all - questions;
    const auto& stream = filler[below(draws, 0, filler.size())];
    if (stream.size() < prompt.context)
        throw input_error("a stream of the filler has {} tokens (expected {} or more): give longer ones", stream.size(),
                          prompt.context);
    prompt.tokens.assign(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(prompt.context));
    prompt.tokens.front() = vocabulary.bos;
    const auto where = order("needle places", places);
    const auto which = order("needle keys", keys);
    const auto values = static_cast<std::size_t>(vocabulary.last_value - vocabulary.first_value + 1);
    for (std::size_t n = 0; n < plan.needles; ++n) {
        const std::size_t key_at = 1 + 2 * where[n];
        const auto answer =
            vocabulary.first_value + static_cast<std::int32_t>(below(draws, static_cast<std::uint32_t>(n + 1), values));
        prompt.tokens[key_at] = vocabulary.first_key + static_cast<std::int32_t>(which[n]);
        prompt.tokens[key_at + 1] = answer;
        if (n < asked) prompt.needles.push_back({key_at, key_at + 1, prompt.context + 2 * n + 1, answer});
    }
    for (std::size_t n = 0; n < asked; ++n) {
        prompt.tokens.push_back(vocabulary.ask);
        prompt.tokens.push_back(prompt.tokens[prompt.needles[n].key_at]);
    }
    return prompt;
}

PromptScore score_prompt(const sim::Llama& model, const NeedlePrompt& prompt, const RetrievalPlan& plan,
                         codec::CompressedCache* cache) {
    const auto& shape = model.config();
    PromptScore score = no_score(shape);
    const NeedleVocabulary& vocabulary = plan.vocabulary;
    const bool exact_questions = plan.exact_questions || plan.at_once;
    sim::ForwardOptions options{
        .block_tokens = plan.block_tokens, .at_once = plan.at_once, .keep_own = cache != nullptr && !exact_questions};
    if (exact_questions) options.context = prompt.context;
    // Visits the questions in a block: question and row.
    const auto each = [&](std::size_t first, std::size_t rows, const auto& visit) {
        for (std::size_t n = 0; n < prompt.needles.size(); ++n) {
            const std::size_t at = prompt.needles[n].asked_at;
            if (at >= first && at < first + rows) visit(n, at - first);
        }
    };
    options.attention = [&](const sim::AttentionBlock& at) {
        each(at.first_token, at.weights.n_rows, [&](std::size_t question, std::size_t row) {
            add_attention(score, at.layer, at.head, prompt.needles, question, at.weights.row(row), at.tokens, cache);
        });
    };
    options.predicted = [&](std::size_t first, const arma::fmat& log_probabilities) {
        each(first, log_probabilities.n_rows, [&](std::size_t question, std::size_t row) {
            const Needle& needle = prompt.needles[question];
            const arma::frowvec all = log_probabilities.row(row);
            const auto values = all.subvec(static_cast<arma::uword>(vocabulary.first_value),
                                           static_cast<arma::uword>(vocabulary.last_value));
            const auto predicted =
                vocabulary.first_value + static_cast<std::int32_t>(arma::frowvec(values).index_max());
            if (predicted == needle.answer) score.right += 1.0;
            score.log_probability += static_cast<double>(all(static_cast<arma::uword>(needle.answer)));
        });
    };
    if (cache != nullptr) {
        if (plan.observe_questions) {
            cache->observe_last(prompt.tokens.size() - prompt.context);
            cache->observe(model, prompt.tokens);
        }
        cache->attach(options);
    }
    model.forward(prompt.tokens, options);
    return mean_of(std::move(score), prompt.needles.size());
}

PromptScore score_readout(const sim::LlamaReadout& readout, const RetrievalPlan& plan, codec::CompressedCache* cache) {
    const auto& shape = readout.shape();
    const std::size_t layer = readout.layer();
    const std::size_t group = shape.heads / shape.kv_heads;
    const std::size_t limit = plan.exact_questions || plan.at_once ? readout.context() : readout.tokens();
    sim::ForwardOptions hooks{.at_once = true};
    if (cache != nullptr) {
        if (plan.observe_questions) cache->observe_last(readout.tokens() - readout.context());
        cache->attach(hooks);
    }

    std::vector<sim::CachedHead> heads(shape.kv_heads);
    for (std::size_t h = 0; h < shape.kv_heads; ++h) {
        heads[h] = {readout.keys()[h].head_rows(limit), readout.values()[h].head_rows(limit), {}};
        for (std::size_t t = 0; t < limit; ++t) heads[h].tokens.push_back(t);
    }
    if (hooks.evict) {
        std::vector<std::size_t> tokens;
        for (std::size_t first = 0; first < (plan.observe_questions ? readout.tokens() : limit);
             first = tokens.size()) {
            const std::size_t end = std::min(first + plan.block_tokens, readout.tokens());
            const std::size_t last = first < limit ? std::min(end, limit) : end;
            while (tokens.size() < last) tokens.push_back(tokens.size());
            for (std::size_t h = 0; h < shape.heads; ++h)
                hooks.attention({layer, h, first,
                                 sim::attention_weights(readout.queries()[h].rows(first, last - 1),
                                                        readout.keys()[h / group].head_rows(last)),
                                 tokens});
        }
        for (std::size_t h = 0; h < shape.kv_heads; ++h) hooks.evict(layer, h, limit, heads[h]);
    }
    if (hooks.keep)
        for (std::size_t h = 0; h < shape.kv_heads; ++h)
            for (const sim::Side side : {sim::Side::key, sim::Side::value})
                for (std::size_t first = 0; first < limit; first += plan.block_tokens) {
                    arma::fmat& rows = side == sim::Side::key ? heads[h].keys : heads[h].values;
                    const std::size_t last = std::min(first + plan.block_tokens, limit) - 1;
                    rows.rows(first, last) = hooks.keep({layer, side, h, first}, arma::fmat(rows.rows(first, last)));
                }
    for (std::size_t h = 0; h < shape.kv_heads; ++h) {
        const std::size_t left = readout.tokens() - limit;
        heads[h].keys = arma::join_cols(heads[h].keys, readout.keys()[h].tail_rows(left));
        heads[h].values = arma::join_cols(heads[h].values, readout.values()[h].tail_rows(left));
        for (std::size_t t = limit; t < readout.tokens(); ++t) heads[h].tokens.push_back(t);
    }

    const auto& needles = readout.needles();
    PromptScore score = no_score(shape);
    arma::fmat attended(needles.size(), shape.heads * shape.head_dim);
    for (std::size_t n = 0; n < needles.size(); ++n)
        for (std::size_t h = 0; h < shape.heads; ++h) {
            const auto& cached = heads[h / group];
            const auto seen = static_cast<arma::uword>(
                std::upper_bound(cached.tokens.begin(), cached.tokens.end(), needles[n].asked_at) -
                cached.tokens.begin());
            const arma::frowvec weights =
                sim::attention_weights(readout.queries()[h].row(needles[n].asked_at), cached.keys.head_rows(seen));
            add_attention(score, layer, h, needles, n, weights, cached.tokens, cache);
            attended.row(n).cols(h * shape.head_dim, (h + 1) * shape.head_dim - 1) =
                weights * cached.values.head_rows(seen);
        }
    const arma::fmat log_probabilities = readout.predict(attended);
    for (std::size_t n = 0; n < needles.size(); ++n) {
        const arma::frowvec answers = log_probabilities.row(n);
        const std::size_t answer = readout.answer_of(needles[n]);
        if (answers.index_max() == answer) score.right += 1.0;
        score.log_probability += static_cast<double>(answers(answer));
    }
    return mean_of(std::move(score), needles.size());
}

namespace {

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
            own.head_dim != first.head_dim || own.rope.base != first.rope.base || own.rope.style != first.rope.style)
            throw input_error(
                "{} and {} are of different models (last layers, heads or rotary embeddings differ): "
                "measure them one by one",
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
    const auto model = std::make_shared<const sim::Llama>(plan.model);
    const auto& shape = model->config();
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
    if (plan.prompts == 0) throw usage_error("--prompts 0 is not possible: give 1 or more");
    const auto filler = read_documents(plan.filler, shape, std::numeric_limits<std::size_t>::max());
    const std::size_t context = needle_prompt(plan, shape, filler, 0).context;
    const std::size_t asked = std::min(plan.asked, plan.needles);
    return {
        .shape = shape,
        .prompts = plan.prompts,
        .questions = plan.prompts * asked,
        .needles = plan.needles,
        .context = context,
        .last_layer_only = plan.last_layer_only,
        .at_once = plan.at_once,
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
    if (plan.block_tokens == 0) throw usage_error("--block 0 is not possible: a block has 1 token or more");
    return plan.dumps.empty() ? questions_of_model(plan) : questions_of_dumps(plan);
}

arma::mat PromptScore::where_of(std::size_t layer, std::size_t head) const {
    const arma::mat& found = where.at(layer * mass.n_cols + head);
    return found.is_empty() ? arma::mat(questions, questions + 1, arma::fill::zeros) : found;
}

codec::CachePart Questions::part() const {
    if (!last_layer_only) return {};
    return {{shape.layers - 1, sim::Side::key}, {shape.layers - 1, sim::Side::value}};
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
    for_each_parallel((last - first) * prompts, plan.threads, [&](std::size_t job) {
        const std::size_t v = first + job / prompts;
        PromptResult& result = found[v][job % prompts];
        auto cache = versions[v].cache;
        if (cache) cache->draw_rotations(job % prompts);
        result.score = questions.ask(job % prompts, cache ? &*cache : nullptr);
        if (job % prompts != 0) result.score.where.clear();
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
    const PartEstimate estimate = prompts.mean();
    return {estimate.value, estimate.error()};
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
    const auto versions = codec::cache_versions(shape, plan.methods, plan.quantizer, questions.part(),
                                                plan.block_tokens, questions.context);
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
