#pragma once
#include <armadillo>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimators/compressor.hpp"

namespace spiked::estimators {

/// What a head has cached, as an eviction sees it: one row a token, in their order. Attention is the weight that
/// queries gave to these rows, the mean over the query heads that share them.
struct EvictionView {
    const arma::fmat& keys;         ///< rows x d, as stored
    const arma::fvec& accumulated;  ///< by row: summed over all queries so far
    const arma::fmat& observed;     ///< the last queries, observation_window or more, x rows; 0 before the first
};

/// The last queries, whose attention an eviction looks at (SnapKV).
inline constexpr std::size_t observation_window = 32;

/// A rule that says which rows of a cache stay; a line of `spiked list evictions`.
struct Eviction {
    std::string name, summary, source;
    bool merges = false;  ///< a row that goes is averaged into the one kept before it, a mean over their tokens
    bool accumulates = false;  ///< looks at attention of all queries so far: a number a row that has to be kept
    /// What a layer may keep when the mean over `layers`, those that are compressed, is `share`; both in 0 to 1. No
    /// layer gets less than `least`, what one row takes, where the mean has room for it.
    double (*share_of_layer)(double share, double least, std::size_t layer, std::size_t layers);
    /// Which `count` (at least 1, at most all) of the rows stay, ascending.
    arma::uvec (*kept)(const EvictionView& view, std::size_t count);
};

/// streaming: the first 4 tokens and the last (Xiao et al. 2024, StreamingLLM). h2o: half the last tokens, half those
/// with the largest accumulated attention (Zhang et al. 2023). snapkv: the last tokens, as many as the observation
/// window and at most half of all, and those with the largest attention of the observation window, each taken as the
/// largest of its 7 neighbours (Li et al. 2024). pyramidkv: snapkv with shares that fall linearly from the first layer
/// to the last, there a 20th of the mean where the first layer has room for the rest and a row needs no more (Cai et
/// al. 2024); snapkv where one layer is compressed. dmc: neighbours
/// become their mean (Nawrot et al. 2024, where a trained model decides which); without training, those whose keys are
/// most alike.
[[nodiscard]] const std::vector<Eviction>& evictions();

/// An eviction and a method for what it keeps, as users type it: `snapkv+tq-mse`, or either alone.
struct KeptAndCoded {
    std::string text;
    const Eviction* eviction = nullptr;
    std::optional<Method> method;
};
/// Throws usage_error as parse_method does.
[[nodiscard]] KeptAndCoded parse_kept_and_coded(std::string_view text);

}  // namespace spiked::estimators
