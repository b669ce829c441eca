#pragma once
#include <string>
#include <vector>

#include "core/text/json.hpp"
#include "core/timing/stopwatch.hpp"

namespace spiked::validation {

struct ModelTimings {
    std::vector<Timing> rows;  ///< microseconds a token
    std::size_t tokens = 0;    ///< of a reading
    double nats = 0.0;         ///< of a token, here and in NumPy
    double nats_in_numpy = 0.0;
    Json numpy;  ///< what NumPy ran on
};

/// Times the forward pass of a model over the first document of a .npy of token ids, in blocks of 128, predictions of
/// all tokens among it: `spiked` and `numpy` (model_in_numpy.py: float32, the same blocks), one thread each, in turn.
/// Throws like Llama and NumpyPeer; bug when the two predict something else: only equal work is compared.
[[nodiscard]] ModelTimings time_model(const std::string& model, const std::string& tokens, double seconds);

}  // namespace spiked::validation
