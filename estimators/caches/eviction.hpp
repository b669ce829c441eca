#pragma once
#include <armadillo>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/registry.hpp"
#include "estimators/compressors/compressor.hpp"

namespace spiked::estimators {

/// What a head has cached, as an eviction sees it: one row a token, in their order. Attention is the weight that
/// queries gave to these rows, the mean over the query heads that share them.
struct EvictionView {
    const arma::fmat& keys;         ///< rows x d, as stored
    const arma::fvec& accumulated;  ///< by row: summed over all queries so far
    const arma::fmat& observed;     ///< the last queries, observation_window or more, x rows; 0 before the first
    std::size_t mean_rows = 0;      ///< that a layer keeps, over those compressed; of rules with rows_of_layer
};

/// The last queries, whose attention an eviction looks at (SnapKV).
inline constexpr std::size_t observation_window = 32;

/// A rule that says which rows of a cache stay; an entry of `spiked list evictions`.
struct Eviction {
    RegistryEntry entry;
    bool merges = false;       ///< a row that goes is averaged into the one kept before it, a mean over their tokens
    bool accumulates = false;  ///< looks at attention of all queries so far: a number a row that has to be kept
    /// How many rows a layer keeps where the mean over `layers`, those that are compressed, is `mean` (1 to `seen`) of
    /// the `seen` rows: 1 to `seen`, averaging to `mean`. Nothing: as many in each.
    std::size_t (*rows_of_layer)(std::size_t mean, std::size_t seen, std::size_t layer, std::size_t layers);
    /// Which `count` (at least 1, at most all) of the rows stay, ascending.
    arma::uvec (*kept)(const EvictionView& view, std::size_t count);
};

/// streaming: the first 4 tokens and the last (Xiao et al. 2024, StreamingLLM). h2o: half the last tokens, half those
/// with the largest accumulated attention (Zhang et al. 2023). snapkv: the last tokens, as many as the observation
/// window and at most half of all, and those with the largest attention of the observation window, each taken as the
/// largest of its 7 neighbours (Li et al. 2024). pyramidkv: snapkv whose last tokens stay in every layer, as many as
/// where all layers keep the mean; the rows beyond them fall linearly from the first layer to the last, there a 20th of
/// their mean, or more where the first has no more rows (Cai et al. 2024). So a budget of no more than two windows
/// gives half of itself to the last tokens, and one of a single row is the same in every layer. dmc: neighbours become
/// their mean (Nawrot et al. 2024, where a trained model decides which); without training, those whose keys are most
/// alike.
[[nodiscard]] const Registry<Eviction>& evictions();

/// An eviction and a method for what it keeps, as users type it: `snapkv+tq-mse`, or either alone.
struct KeptAndCoded {
    std::string text;
    const Eviction* eviction = nullptr;
    std::optional<MethodSpec> method;
};
/// Throws usage_error as method_named does.
[[nodiscard]] KeptAndCoded parse_kept_and_coded(std::string_view text);

}  // namespace spiked::estimators
