#pragma once
#include <armadillo>
#include <vector>

#include "sim/io/safetensors.hpp"
#include "sim/kv/kv_like.hpp"
#include "sim/kv/needle.hpp"

namespace spiked::sim {

/// Needles planted in the last layer of an attention-like cache, as a dump that `kv retrieve` asks: what a method loses
/// of them is studied over tokens, noise and rank where no dump of a model exists. The last tokens of the sequence ask
/// for one needle each. In every query head a question's query is the direction w that tells the needle's key k best
/// from all keys of the head (a linear discriminant, sum of k_t k_t^T w = k), as long as gives w and k a product of
/// cache.needle_logit over sqrt(d). Products with all n keys then have a root mean square of needle_logit / sqrt(n h),
/// h the leverage of k among them, d / n on average: whatever shares S and Z have of the keys. The needle's value gets
/// its answer's vector, as long as values are. The readout is the mean of the heads against the answers' vectors.
///
/// So the logit and d, not the noise, say whether full precision finds a needle: with the default of 12, 128 channels
/// and F16 it does from noise of .001 to 100. What a method loses does depend on the noise: the less of it, the finer
/// is what tells tokens apart (`tq-mse` at 2 bits finds all at .5 and an eighth at .1).
///
/// No model gave answers, so metadata do not say how many are `correct`: `kv retrieve` asks for half of them.
class KvNeedles {
public:
    static constexpr std::size_t answers = 64;

    /// Throws usage_error where so many needles and questions do not fit, or nothing asks.
    KvNeedles(const KvLikeOptions& options, const KvLikeCache& cache);

    /// Puts them into one head of the last layer.
    void plant(KvLikeSample& sample) const;
    [[nodiscard]] Metadata metadata() const;
    [[nodiscard]] std::vector<TensorSource> tensors() const;
    [[nodiscard]] const std::vector<Needle>& needles() const { return needles_; }

private:
    std::size_t layer_, heads_, dim_;
    double logit_;
    DType dtype_;
    std::vector<Needle> needles_;
    std::size_t context_ = 0;
    arma::mat directions_;  ///< answers x d, rows of norm 1
};

}  // namespace spiked::sim
