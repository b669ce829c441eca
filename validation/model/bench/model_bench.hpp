#pragma once
#include <string>
#include <vector>

#include "core/text/json.hpp"
#include "core/timing/stopwatch.hpp"

namespace spiked::validation {

struct ModelTimings {
    std::vector<Timing> rows;  ///< microseconds per token
    std::size_t tokens = 0;    ///< per forward pass
    double nats = 0.0;         ///< mean per token, here and in NumPy
    double nats_in_numpy = 0.0;
    Json numpy;  ///< versions of NumPy and its libraries
};

/// Times the forward pass of a model over the first document of a .npy of token ids, in blocks of 128 and with the
/// probability of every next token. `spiked`, `gemm-floor` (the matrix products of the pass alone, with all cached
/// rows) and `numpy` (model_in_numpy.py: float32, the same blocks) run in turn, one thread each. Throws input_error for
/// a model that model_in_numpy.py does not know, and as Llama and NumpyPeer do, and postcondition_error if their
/// predictions differ, because only equal work may be compared.
[[nodiscard]] ModelTimings time_model(const std::string& model, const std::string& tokens, double seconds);

}  // namespace spiked::validation
