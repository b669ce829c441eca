#include "validation/model/generated_answers.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "validation/statistics/clustered.hpp"

namespace spiked::validation {
namespace {

std::size_t tenth_of(double depth) { return std::min<std::size_t>(9, static_cast<std::size_t>(depth * 10.0)); }

struct PartsBy {
    bool context = false, needles = false, tenth = false;
};

/// The recall of the controls, or of all other prompts, by the given properties.
std::vector<Recall> recalls(const FactPrompts& file, const std::vector<GeneratedAnswer>& answers, PartsBy by,
                            bool control = false) {
    using Key = std::tuple<std::optional<std::size_t>, std::optional<std::size_t>, std::optional<std::size_t>>;
    std::map<Key, Parts> parts;
    for (std::size_t p = 0; p < answers.size(); ++p) {
        const FactPrompt& prompt = file.prompts[p];
        if (prompt.control != control) continue;
        for (std::size_t n = 0; n < prompt.needles.size(); ++n) {
            Key key;
            if (by.context) std::get<0>(key) = prompt.context;
            if (by.needles) std::get<1>(key) = prompt.needles.size();
            if (by.tenth) std::get<2>(key) = tenth_of(prompt.needles[n].depth);
            auto& sum = parts[key].sums[static_cast<std::int64_t>(p)];
            sum.count += 1.0;
            sum.sum += answers[p].found[n] ? 1.0 : 0.0;
        }
    }
    std::vector<Recall> found;
    for (const auto& [key, part] : parts) {
        const Interval interval = clustered_fraction(part, 0.05);
        Recall recall{std::get<0>(key), std::get<1>(key),  std::get<2>(key), 0,
                      part.sums.size(), part.mean().value, interval.low,     interval.high};
        for (const auto& [prompt, sum] : part.sums) recall.asked += static_cast<std::size_t>(sum.count);
        found.push_back(recall);
    }
    return found;
}

/// Needles and those found by prompt, of prompts that are not controls.
Parts found_by_prompt(const FactPrompts& file, const std::vector<GeneratedAnswer>& answers) {
    Parts parts;
    for (std::size_t p = 0; p < answers.size(); ++p) {
        const auto& found = answers[p].found;
        if (!file.prompts[p].control)
            parts.sums[static_cast<std::int64_t>(p)] = {
                static_cast<double>(found.size()), static_cast<double>(std::count(found.begin(), found.end(), true))};
    }
    return parts;
}

AnswerRow answer_row(const codec::CacheVersion& version, std::vector<MeasuredAnswer> results, const FactPrompts& file,
                     const Parts& exact) {
    AnswerRow row{.method = version.label, .bits = version.bits, .budget = version.budget};
    codec::CacheBits bits;
    double entries = 0.0;
    for (auto& result : results) {
        bits += result.bits;
        entries += result.entries;
        row.tokens += static_cast<double>(result.answer.tokens.size()) / static_cast<double>(results.size());
        row.ended += (result.answer.ended ? 1.0 : 0.0) / static_cast<double>(results.size());
        row.answers.push_back(std::move(result.answer));
    }
    if (version.cache) row.ledger = bits /= entries;
    row.recall = recalls(file, row.answers, {}).front();
    const auto controls = recalls(file, row.answers, {}, true);
    if (!controls.empty()) row.control = controls.front();
    for (const PartsBy by : {PartsBy{.context = true}, PartsBy{.needles = true}, PartsBy{.tenth = true},
                             PartsBy{.context = true, .needles = true}, PartsBy{.context = true, .tenth = true}})
        for (const Recall& part : recalls(file, row.answers, by)) row.parts.push_back(part);
    row.lost = paired_difference(exact, found_by_prompt(file, row.answers)).mean_and_error();
    return row;
}

void require_compressible(const FactPrompts& file, const AnswerPlan& plan) {
    if (plan.exact_questions || plan.at_once) return;  // there also a block that is not full is compressed
    for (std::size_t p = 0; p < file.prompts.size(); ++p)
        if (file.prompts[p].tokens.size() <= plan.block_tokens)
            throw input_error(
                "{}: prompt {} has {} tokens (more than a block of {} are expected, else nothing is compressed): give "
                "a smaller --block or longer prompts",
                plan.prompts, p, file.prompts[p].tokens.size(), plan.block_tokens);
}

}  // namespace

GreedyText generate_greedily(const sim::Llama& model, const std::vector<std::int32_t>& prompt,
                             const sim::ForwardOptions& options, const std::vector<std::int32_t>& end_tokens,
                             std::size_t most) {
    sim::LlamaSession session(model, options);
    session.append(prompt);
    GreedyText text;
    while (text.tokens.size() < most) {
        const auto next = static_cast<std::int32_t>(session.log_probabilities().index_max());
        text.ended = std::find(end_tokens.begin(), end_tokens.end(), next) != end_tokens.end();
        if (text.ended) break;
        text.tokens.push_back(next);
        if (text.tokens.size() < most) session.append({&text.tokens.back(), 1});
    }
    return text;
}

OpenAnswers open_answers(AnswerPlan plan) {
    const bool evicts = std::any_of(plan.methods.begin(), plan.methods.end(),
                                    [](const codec::CacheRequest& request) { return request.how.eviction != nullptr; });
    if (evicts)
        plan.at_once = true;
    else if (plan.observe_questions)
        throw usage_error(
            "--observe-questions has no effect (no method evicts tokens): add snapkv to --method, or leave it out");
    const sim::LlamaConfig shape = sim::read_llama_config(plan.model);
    FactPrompts file = read_fact_prompts(plan.prompts, shape);  // before the weights, which take longer
    require_compressible(file, plan);
    codec::CachePlan common{.quantizer = plan.quantizer, .block_tokens = plan.block_tokens};
    if (plan.last_layer_only) common.only = codec::layer_part(shape.layers - 1);
    std::size_t shortest = file.prompts.front().question_at;
    for (const auto& prompt : file.prompts) shortest = std::min(shortest, prompt.question_at);
    auto versions = codec::cache_versions(shape, plan.methods, common, shortest);
    PlannedPasses passes{.versions = versions, .block_tokens = plan.block_tokens, .threads = plan.threads};
    for (const auto& prompt : file.prompts) {
        passes.tokens.push_back(prompt.tokens.size());
        passes.added.push_back(prompt.most_tokens);
    }
    forecast_memory(plan.notes, shape, plan.model, passes);
    sim::Llama model(plan.model);
    forecast_time(plan.notes, model, file.prompts.front().tokens, passes);
    return {std::move(plan), std::move(file), std::move(versions), std::move(model)};
}

MeasuredAnswer answer_prompt(const OpenAnswers& open, std::size_t number, codec::CompressedCache* cache) {
    const FactPrompt& prompt = open.file.prompts[number];
    const AnswerPlan& plan = open.plan;
    sim::ForwardOptions options{.block_tokens = plan.block_tokens, .at_once = plan.at_once};
    // The last token of the prompt stays out, because it predicts the first of the answer.
    const std::size_t question_end = prompt.tokens.size() - 1;
    if (plan.exact_questions || plan.at_once)
        options.context = plan.observe_questions ? question_end : prompt.question_at;
    if (cache != nullptr) {
        if (plan.observe_questions) cache->observe_last(question_end - prompt.question_at);
        cache->attach(options, options.context.value_or(0));
    }
    auto text = generate_greedily(open.model, prompt.tokens, options, open.file.end_tokens, prompt.most_tokens);
    MeasuredAnswer result{.answer = spelled_answer(open, number, std::move(text))};
    if (cache != nullptr) {
        result.bits = cache->stored_bits();
        result.entries = cache->entries();
    }
    return result;
}

GeneratedAnswer spelled_answer(const OpenAnswers& open, std::size_t prompt, GreedyText text) {
    GeneratedAnswer answer{.tokens = std::move(text.tokens), .ended = text.ended};
    answer.text = open.file.text(answer.tokens);
    for (const FactNeedle& needle : open.file.prompts[prompt].needles)
        answer.found.push_back(states(answer.text, needle.answer));
    return answer;
}

GeneratedAnswers answers_table(const OpenAnswers& open, std::vector<std::vector<MeasuredAnswer>> found) {
    const AnswerPlan& plan = open.plan;
    GeneratedAnswers result{.file = open.file,
                            .last_layer_only = plan.last_layer_only,
                            .exact_questions = plan.exact_questions || plan.at_once,
                            .at_once = plan.at_once,
                            .observe_questions = plan.observe_questions,
                            .block_tokens = plan.block_tokens};
    result.file.vocabulary.clear();
    std::vector<GeneratedAnswer> first;
    for (const auto& one : found.front()) first.push_back(one.answer);
    const Parts exact = found_by_prompt(open.file, first);
    for (std::size_t v = 0; v < open.versions.size(); ++v)
        result.rows.push_back(answer_row(open.versions[v], std::move(found[v]), open.file, exact));
    return result;
}

GeneratedAnswers measure_answers(const AnswerPlan& plan) {
    const OpenAnswers open = open_answers(plan);
    const std::size_t count = open.file.prompts.size();
    const std::size_t jobs = open.versions.size() * count;
    std::vector<std::vector<MeasuredAnswer>> found(open.versions.size(), std::vector<MeasuredAnswer>(count));
    std::size_t all = 0;
    for (const FactPrompt& prompt : open.file.prompts) all += open.versions.size() * prompt.tokens.size();
    std::size_t done = 0;
    std::size_t tokens = 0;
    std::mutex progress_guard;
    // All versions of a prompt, then the next prompt, so that the time left is estimated from all methods.
    for_each_parallel(jobs, plan.threads, [&](std::size_t job) {
        const std::size_t version = job % open.versions.size();
        const std::size_t prompt = job / open.versions.size();
        auto cache = open.versions[version].cache;
        if (cache) cache->draw_rotations(prompt);
        found[version][prompt] = answer_prompt(open, prompt, cache ? &*cache : nullptr);
        const std::scoped_lock lock(progress_guard);
        tokens += open.file.prompts[prompt].tokens.size();
        if (plan.progress) plan.progress(++done, jobs, static_cast<double>(tokens) / static_cast<double>(all));
    });
    return answers_table(open, std::move(found));
}

}  // namespace spiked::validation
