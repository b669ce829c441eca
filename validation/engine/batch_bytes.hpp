#pragma once
#include <string>
#include <string_view>

#include "validation/engine/store.hpp"

namespace spiked::validation {

/// A batch as bytes and back, bit for bit, between processes of one build.
[[nodiscard]] std::string batch_bytes(const Batch& batch);
/// Throws bug on bytes that are no batch.
[[nodiscard]] Batch batch_from_bytes(std::string_view bytes);

}  // namespace spiked::validation
