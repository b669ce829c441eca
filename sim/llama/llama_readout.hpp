#pragma once
#include <armadillo>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/kv/kv_dump.hpp"
#include "sim/kv/needle.hpp"
#include "sim/llama/llama_config.hpp"

namespace spiked::sim {

/// What redoes the last layer of a Llama-shaped model for the questions of a dump: its queries, keys and values, the
/// needles of the metadata and the tensors readout.residual (needles x hidden: before the layer's attention),
/// readout.wo, .mlp_norm, .gate, .up, .down, .final_norm and .unembed (answers x hidden), weights as output x input.
/// The metadata `readout` is JSON: layer, first_value_token (of the first answer), rms_eps and, where they are
/// known, attention_scale (dim^-0.5 or that number) and correct (how many of the model's own answers are the needles');
/// `context` is how many tokens lie before the questions.
class LlamaReadout {
public:
    /// Throws input_error naming what is missing, of another shape, at a place that does not exist, or said twice.
    explicit LlamaReadout(const KvDump& dump);

    /// layers: up to this one; sizes that nothing here needs are 0; the rotary embedding where the dump tells it.
    [[nodiscard]] const LlamaConfig& shape() const { return shape_; }
    [[nodiscard]] std::size_t layer() const { return shape_.layers - 1; }
    [[nodiscard]] std::size_t tokens() const { return keys_.front().n_rows; }
    [[nodiscard]] std::size_t context() const { return context_; }  ///< tokens before the first question
    [[nodiscard]] std::optional<std::size_t> correct() const { return correct_; }
    [[nodiscard]] const std::vector<Needle>& needles() const { return needles_; }

    /// Natural logarithms of probabilities among the answers, needles x answers; `attended`: what attention gave at
    /// each needle's asked_at, needles x heads * head_dim.
    [[nodiscard]] arma::fmat predict(const arma::fmat& attended) const;
    [[nodiscard]] std::size_t answer_of(const Needle& needle) const {
        return static_cast<std::size_t>(needle.answer - first_answer_);
    }

    /// Of the layer, by head: tokens x head_dim.
    [[nodiscard]] const std::vector<arma::fmat>& queries() const { return queries_; }
    [[nodiscard]] const std::vector<arma::fmat>& keys() const { return keys_; }
    [[nodiscard]] const std::vector<arma::fmat>& values() const { return values_; }

private:
    std::vector<arma::fmat> queries_, keys_, values_;
    LlamaConfig shape_;
    std::vector<Needle> needles_;
    std::size_t context_ = 0;
    std::optional<std::size_t> correct_;
    std::int32_t first_answer_ = 0;
    arma::fvec mlp_norm_, norm_;
    /// Linear maps as input x output, as in a model's layer.
    arma::fmat residual_, output_, gate_, up_, down_, answers_;
};

}  // namespace spiked::sim
