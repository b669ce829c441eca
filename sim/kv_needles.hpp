#pragma once
#include <armadillo>
#include <vector>

#include "sim/kv_like.hpp"
#include "sim/llama/llama_readout.hpp"
#include "sim/safetensors.hpp"

namespace spiked::sim {

/// Needles planted in the last layer of an attention-like cache, as a dump that `kv retrieve` asks: what a method loses
/// of them is studied over tokens, noise and rank where no dump of a model exists. The last tokens of the sequence ask
/// for one needle each. A question's query gets what makes a product of cache.needle_logit (over sqrt(d)) with the
/// noise Z of the needle's key, in every query head; the needle's value gets a unit vector, its answer's. The readout
/// is the mean of the heads against the answers' vectors.
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
