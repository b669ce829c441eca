#pragma once
#include "sim/io/dtype.hpp"
#include "sim/llama/llama.hpp"

namespace spiked::sim {

/// Metadata of a dump that do not follow from the model, and its type.
struct LlamaDumpOptions {
    std::string model;      ///< name of the model
    std::string prompt_id;  ///< identifies the text; empty: no such metadata
    DType dtype = DType::f16;
};

/// Writes keys, values and queries of all layers as a KV dump (kv_dump.hpp): layers.L.key, value and query, head x
/// token x dim, keys and queries after the rotary embedding. Needs memory for the whole cache in float. Throws like
/// Llama::forward and write_safetensors, and input_error for more tokens than a sliding window of the model.
void write_llama_dump(const std::string& path, const Llama& model, std::span<const std::int32_t> tokens,
                      const LlamaDumpOptions& options);

}  // namespace spiked::sim
