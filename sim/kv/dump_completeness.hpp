#pragma once
#include <string>

#include "sim/kv/dump_tensors.hpp"
#include "sim/kv/name_pattern.hpp"

namespace spiked::sim {

/// Why what mlx-lm stored of a layer is not the keys and values of every token in their order, by the class of its
/// cache and its state in the metadata of save_prompt_cache. Empty where it is, or where the metadata do not say.
[[nodiscard]] std::string other_cache_of_mlx(const Metadata& metadata, std::size_t layer, const StoredTensor& held);

/// A sentence on layers with one side only and on tensors outside the cache whose names hold a number, as those of
/// layers do. Empty where nothing seems to be missing.
[[nodiscard]] std::string incomplete_note(const FoundTensors& found, const TensorContainer& file);

/// What to do about tensors in a form that is recognised and not read; empty for others. Such are the pages of vLLM
/// 0.x, keys [block, head, dim / x, token, x] beside values [block, head, dim, token] or both in one tensor, and a list
/// of keys and values in turn.
[[nodiscard]] std::string unread_form(const TensorContainer& file);

/// A sentence on tokens that an attention mask in the file marks as padding; empty where none does. Of a batch it is
/// that of this sequence.
[[nodiscard]] std::string mask_note(const FoundTensors& found, const TensorContainer& file, std::size_t batch);

/// What to do about a tensor of this shape that has none of the shapes of vLLM, behind a message that says so: pages of
/// vLLM 0.x, latents of MLA, keys and values in turn. Empty for other formats and shapes.
[[nodiscard]] std::string pages_advice(const std::string& format, const std::vector<std::size_t>& shape);

/// A sentence on the axes, heads, tokens and channels that were found.
[[nodiscard]] std::string reading_note(const FoundTensors& found);

}  // namespace spiked::sim
