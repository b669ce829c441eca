#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "sim/io/dtype.hpp"
#include "sim/llama/llama_session.hpp"

namespace spiked::sim {

/// Metadata of a dump that do not follow from the model, and its type.
struct LlamaDumpOptions {
    std::string model;      ///< name of the model
    std::string prompt_id;  ///< identifies the text; empty: no such metadata
    DType dtype = DType::f16;
    /// Receives the tokens that the model has read, after each block.
    std::function<void(std::size_t done, std::size_t of)> progress = {};
};

/// A forecast of what write_llama_dump takes for so many tokens: that of a pass, and the rows to write as its state.
[[nodiscard]] PassMemory dump_memory(const LlamaConfig& model, std::uint64_t weight_bytes, std::size_t tokens);

/// Writes keys, values and queries of all layers as a KV dump (kv_dump.hpp): layers.L.key, value and query, head x
/// token x dim, keys and queries after the rotary embedding, and the token ids as token_ids. Throws like Llama::forward
/// and write_safetensors, an Error of the kind memory if dump_memory does not fit, and input_error for more tokens than
/// a sliding window of the model.
void write_llama_dump(const std::string& path, const Llama& model, std::span<const std::int32_t> tokens,
                      const LlamaDumpOptions& options);

}  // namespace spiked::sim
