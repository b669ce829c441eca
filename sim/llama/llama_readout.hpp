#pragma once
#include <armadillo>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/kv/kv_dump.hpp"
#include "sim/kv/needle.hpp"
#include "sim/llama/llama_config.hpp"

namespace spiked::sim {

/// Recomputes the last layer of a Llama-shaped model for the questions of a dump. The dump holds the queries, keys and
/// values of that layer, the needles in its metadata, and the tensors readout.residual (needles x hidden, the residual
/// stream before the layer's attention), readout.wo, .mlp_norm, .gate, .up, .down, .final_norm and .unembed (answers x
/// hidden); weights are output x input. The metadata `readout` is JSON with layer, first_value_token (the token of the
/// first answer), rms_eps and optionally attention_scale (dim^-0.5 or that number) and correct (the number of needles
/// that the model itself answered correctly). The metadata `context` is the number of tokens before the questions.
class LlamaReadout {
public:
    /// Throws an input_error that names metadata or tensors that are missing or of another shape, positions outside the
    /// sequence, and positions that occur twice.
    explicit LlamaReadout(const KvDump& dump);

    /// `layers` counts the layers up to this one, sizes that are not needed are 0, and `rope` is set where the metadata
    /// state it.
    [[nodiscard]] const LlamaConfig& shape() const { return shape_; }
    [[nodiscard]] std::size_t layer() const { return shape_.layers - 1; }
    [[nodiscard]] std::size_t tokens() const { return keys_.front().n_rows; }
    [[nodiscard]] std::size_t context() const { return context_; }  ///< tokens before the first question
    [[nodiscard]] std::optional<std::size_t> correct() const { return correct_; }
    [[nodiscard]] const std::vector<Needle>& needles() const { return needles_; }

    /// Natural logarithms of the probabilities of the answers, needles x answers. `attended` is the output of attention
    /// at each needle's asked_at, needles x heads * head_dim.
    [[nodiscard]] arma::fmat predict(const arma::fmat& attended) const;
    [[nodiscard]] std::size_t answer_of(const Needle& needle) const {
        return static_cast<std::size_t>(needle.answer - first_answer_);
    }

    /// Queries, keys and values of the layer by head, tokens x head_dim.
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
    /// Linear maps are input x output, as in Llama::Layer.
    arma::fmat residual_, output_, gate_, up_, down_, answers_;
};

}  // namespace spiked::sim
