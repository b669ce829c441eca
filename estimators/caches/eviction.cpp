#include "estimators/caches/eviction.hpp"

#include <algorithm>
#include <limits>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "estimators/caches/method_name.hpp"

namespace spiked::estimators {
namespace {

constexpr std::size_t sinks = 4;
constexpr std::size_t pooled_neighbours = 7;
constexpr std::size_t pyramid_depth = 20;

/// How many of the `count` rows that snapkv keeps are the last tokens.
std::size_t window_rows(std::size_t count) { return std::min(observation_window, (count + 1) / 2); }

std::size_t pyramid_rows(std::size_t mean, std::size_t seen, std::size_t layer, std::size_t layers) {
    const std::size_t window = window_rows(mean);
    const std::size_t beyond = mean - window;
    if (layers < 2 || seen < 2 * beyond) return mean;
    const std::size_t first = std::min(2 * beyond - beyond / pyramid_depth, seen - window);
    const std::size_t steps = layers - 1;
    // Layers at equal distances from both ends add up to two means for any rounding.
    const auto fallen = [&](std::size_t by) { return ((4 * (first - beyond)) * by + steps) / (2 * steps); };
    if (2 * layer < steps) return window + first - fallen(layer);
    if (2 * layer == steps) return mean;
    return window + 2 * beyond - (first - fallen(steps - layer));
}

/// The last `recent` rows and, of those before them, the ones with the largest scores; of equal scores the first.
/// `scores` are those of the rows before.
arma::uvec recent_and_largest(const arma::fvec& scores, std::size_t recent, std::size_t count) {
    const std::size_t rows = scores.n_elem + recent;
    const arma::uvec order = arma::stable_sort_index(scores, "descend");
    arma::uvec kept(count);
    for (std::size_t i = 0; i < count - recent; ++i) kept(i) = order(i);
    for (std::size_t i = 0; i < recent; ++i) kept(count - recent + i) = rows - recent + i;
    return arma::sort(kept);
}

arma::uvec kept_by_streaming(const EvictionView& view, std::size_t count) {
    const std::size_t rows = view.keys.n_rows;
    const std::size_t first = std::min(sinks, count / 2);
    arma::uvec kept(count);
    for (std::size_t i = 0; i < count; ++i) kept(i) = i < first ? i : rows - count + i;
    return kept;
}

arma::uvec kept_by_h2o(const EvictionView& view, std::size_t count) {
    const std::size_t recent = (count + 1) / 2;
    return recent_and_largest(view.accumulated.head(view.accumulated.n_elem - recent), recent, count);
}

/// The attention of the observation window to each row before the last `recent` ones, replaced by the largest in the
/// row's neighbourhood. The last rows are nobody's neighbours, because queries attend to them most.
arma::fvec pooled_attention(const EvictionView& view, std::size_t recent) {
    const arma::fvec all = arma::sum(view.observed, 0).t();
    const arma::fvec seen = all.head(all.n_elem - recent);
    const std::size_t reach = pooled_neighbours / 2;
    arma::fvec pooled(seen.n_elem);
    for (std::size_t i = 0; i < seen.n_elem; ++i)
        pooled(i) = seen.subvec(i - std::min(i, reach), std::min<std::size_t>(i + reach, seen.n_elem - 1)).max();
    return pooled;
}

arma::uvec pooled_and_recent(const EvictionView& view, std::size_t recent, std::size_t count) {
    return recent_and_largest(pooled_attention(view, recent), recent, count);
}

arma::uvec kept_by_snapkv(const EvictionView& view, std::size_t count) {
    return pooled_and_recent(view, window_rows(count), count);
}

arma::uvec kept_by_pyramidkv(const EvictionView& view, std::size_t count) {
    return pooled_and_recent(view, std::min(window_rows(view.mean_rows), count), count);
}

/// The first row of each run of rows that are merged.
arma::uvec kept_by_dmc(const EvictionView& view, std::size_t count) {
    arma::fvec unlike(view.keys.n_rows);  // dissimilarity to the previous row
    for (arma::uword i = 1; i < view.keys.n_rows; ++i) {
        const float norms = arma::norm(view.keys.row(i)) * arma::norm(view.keys.row(i - 1));
        unlike(i) = norms > 0.0F ? 1.0F - arma::dot(view.keys.row(i), view.keys.row(i - 1)) / norms : 0.0F;
    }
    unlike(0) = std::numeric_limits<float>::infinity();  // the first row always starts a run
    return recent_and_largest(unlike, 0, count);
}

}  // namespace

OptionSpec budget_spec() {
    return {"--budget", number("SHARE", {.above = 0.0, .most = 1.0}),
            "fraction of the bytes in fp16 that the kept tokens may take"};
}

const Registry<Eviction>& evictions() {
    const OptionSpec budget = budget_spec();
    static const Registry<Eviction> table(
        "eviction",
        {{{"snapkv",
           "keeps the last tokens and those that the last 32 queries attend to most",
           {budget},
           "Li et al. 2024, SnapKV"},
          false,
          false,
          nullptr,
          kept_by_snapkv},
         {{"pyramidkv",
           "snapkv with a budget that falls from the first layer to the last",
           {budget},
           "Cai et al. 2024, PyramidKV"},
          false,
          false,
          pyramid_rows,
          kept_by_pyramidkv},
         {{"streaming",
           "keeps the first 4 tokens and the last ones",
           {budget},
           "Xiao et al. 2024, StreamingLLM",
           {"streamingllm"}},
          false,
          false,
          nullptr,
          kept_by_streaming},
         {{"h2o", "keeps the last tokens and those with the most attention so far", {budget}, "Zhang et al. 2023, H2O"},
          false,
          true,
          nullptr,
          kept_by_h2o},
         {{"dmc",
           "replaces neighbouring tokens with the most similar keys by their mean",
           {budget},
           "Nawrot et al. 2024, Dynamic Memory Compression (there a trained model decides)"},
          true,
          false,
          nullptr,
          kept_by_dmc}});
    return table;
}

KeptAndCoded parse_kept_and_coded(std::string_view text) {
    KeptAndCoded result{std::string(text), nullptr, std::nullopt};
    result.cache = causal_cache(text);
    if (result.cache) return result;
    const std::size_t plus = text.find('+');
    const auto parts = split(text, '+');
    result.eviction = evictions().find(parts.front());
    for (const auto& name : evictions().names())
        if (std::find(parts.begin() + 1, parts.end(), name) != parts.end())
            throw usage_error(
                "\"{}\": {} is an eviction and is not first (one eviction chooses, then one method codes what is "
                "left): write {} or {}+tq-mse",
                text, name, name, name);
    if (result.eviction == nullptr)
        result.method = method_named(text, and_causal_caches(evictions().names()));
    else if (plus != std::string_view::npos) {
        const std::string_view coding = text.substr(plus + 1);
        if (is_cache_method(coding))
            throw usage_error(
                "\"{}\": {} codes all tokens in their order (an eviction leaves some out): write {} alone, or "
                "{}+tq-mse",
                text, coding, coding, parts.front());
        result.method = method_named(coding);
    }
    return result;
}

}  // namespace spiked::estimators
