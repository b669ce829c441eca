#pragma once
#include <armadillo>
#include <vector>

#include "sim/io/safetensors.hpp"
#include "sim/kv/kv_like.hpp"
#include "sim/kv/needle.hpp"

namespace spiked::sim {

/// Needles planted in the last layer of an attention-like cache, for a dump that `kv retrieve` evaluates. With it the
/// needles that a method loses can be studied as a function of tokens, noise and rank without a dump of a model.
///
/// The last tokens of the sequence are questions, one for each needle. In every query head the query of a question is
/// w, which separates the needle's key k best from all keys k_t of the head (a linear discriminant, the solution of
/// sum_t k_t k_t^T w = k), scaled so that w^T k / sqrt(d) is cache.needle_logit. The logits of all n keys then have the
/// root mean square needle_logit / sqrt(n h), where h is the leverage of k, d / n on average, in whatever proportion
/// the keys consist of S and Z. The vector of the answer, scaled to the norm of values, is added to the needle's value.
/// The readout is the inner product of the mean over heads with the vectors of the answers.
///
/// Whether full precision finds a needle therefore depends on the logit and d, not on the noise: with the default of
/// 12, 128 channels and F16 it does from noise of .001 to 100. What a method loses does depend on the noise: with less
/// of it, tokens differ by less (`tq-mse` at 2 bits finds all needles at .5 and an eighth at .1).
///
/// There are no answers of a model, so the metadata do not state how many are `correct`; `kv retrieve` then requires
/// half of them.
class KvNeedles {
public:
    static constexpr std::size_t answers = 64;

    /// Throws usage_error where the needles and questions do not fit into the tokens, and without queries.
    KvNeedles(const KvLikeOptions& options, const KvLikeCache& cache);

    /// Plants the needles in one head of the last layer.
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
