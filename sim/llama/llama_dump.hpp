#pragma once
#include "sim/io/dtype.hpp"
#include "sim/llama/llama.hpp"

namespace spiked::sim {

/// What the metadata of a dump say besides the shape of the model.
struct LlamaDumpOptions {
    std::string model;      ///< a name
    std::string prompt_id;  ///< which text; empty: not said
    DType dtype = DType::f16;
};

/// Keys, values and queries of all layers as a KV dump (kv_dump.hpp): layers.L.key, value and query, head x token x
/// dim, keys and queries after the rotary embedding. Memory: the whole cache in float. Throws like Llama::read and
/// write_safetensors.
void write_llama_dump(const std::string& path, const Llama& model, std::span<const std::int32_t> tokens,
                      const LlamaDumpOptions& options);

}  // namespace spiked::sim
