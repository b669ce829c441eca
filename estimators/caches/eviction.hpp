#pragma once
#include <armadillo>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/registry.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/compressors/compressor.hpp"

namespace spiked::estimators {

/// The cached data of a head, as an eviction uses it: one row per token, in their order. Attention is the weight that
/// queries gave to these rows, averaged over the query heads that share them.
struct EvictionView {
    const arma::fmat& keys;         ///< rows x d, as stored
    const arma::fvec& accumulated;  ///< per row: sum over all queries so far
    const arma::fmat& observed;     ///< the last queries, observation_window or more, x rows; 0 before the first
    std::size_t mean_rows = 0;      ///< mean of kept rows over the compressed layers; for rules with rows_of_layer
};

/// The number of last queries whose attention an eviction uses (SnapKV).
inline constexpr std::size_t observation_window = 32;

/// A rule that chooses the rows of a cache to keep; an entry of `spiked list evictions`.
struct Eviction {
    RegistryEntry entry;
    bool merges = false;       ///< an evicted row is averaged into the kept row before it, a mean over their tokens
    bool accumulates = false;  ///< needs the attention of all queries so far, which is a stored number per row
    /// The number of rows that a layer keeps of its `seen` rows, if the mean over the `layers` compressed layers is
    /// `mean` (1 to `seen`): from 1 to `seen`, with average `mean`. Null: the same number in each layer.
    std::size_t (*rows_of_layer)(std::size_t mean, std::size_t seen, std::size_t layer, std::size_t layers);
    /// The `count` rows (at least 1, at most all) that are kept, ascending.
    arma::uvec (*kept)(const EvictionView& view, std::size_t count);
};

/// streaming: the first 4 tokens and the last (Xiao et al. 2024, StreamingLLM). h2o: half the last tokens, half those
/// with the largest accumulated attention (Zhang et al. 2023). snapkv: the last tokens, as many as the observation
/// window and at most half of all, and of those before them the ones with the largest attention of the observation
/// window, where each value is the maximum over 7 neighbours, none of them among the last (Li et al. 2024). pyramidkv:
/// snapkv with the same number of last tokens in every layer, as many as where all layers keep the mean; the number of
/// other rows falls linearly from the first layer to the last, where it is a 20th of their mean, or more where the
/// first has no more rows; every layer keeps the mean where fewer tokens were seen than two means without their windows
/// (Cai et al. 2024). Thus a budget of at most two windows uses half of itself for the last tokens, and a budget of a
/// single row is the same in every layer. dmc: neighbours are replaced by their mean (Nawrot et al. 2024, where a
/// trained model decides which); here, without training, those with the most similar keys.
[[nodiscard]] const Registry<Eviction>& evictions();
/// The option of commands that limits the bytes of the kept tokens.
[[nodiscard]] OptionSpec budget_spec();

/// An eviction and a method for the rows that it keeps, as users write it: `snapkv+tq-mse`, or either alone.
struct KeptAndCoded {
    std::string text;
    const Eviction* eviction = nullptr;
    std::optional<MethodSpec> method;
    std::optional<CacheMethod> cache = {};  ///< in place of both: a causal one
};
/// Throws the errors of method_named and of cache_method.
[[nodiscard]] KeptAndCoded parse_kept_and_coded(std::string_view text);

}  // namespace spiked::estimators
