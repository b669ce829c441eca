#include "validation/model/prompt_score.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"
#include "sim/llama/llama_steps.hpp"
#include "sim/random/permutation.hpp"

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
        throw usage_error("--context {} is not possible (the model reads {} tokens at most): give a smaller one",
                          plan.prompt_tokens, model.context);
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
        cache->attach(options, exact_questions ? prompt.context : prompt.tokens.size());
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
        cache->attach(hooks, limit);
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

arma::mat PromptScore::where_of(std::size_t layer, std::size_t head) const {
    const arma::mat& found = where.at(layer * mass.n_cols + head);
    return found.is_empty() ? arma::mat(questions, questions + 1, arma::fill::zeros) : found;
}

}  // namespace spiked::validation
