#pragma once
#include <string>
#include <string_view>

#include "validation/store/store.hpp"

namespace spiked::validation {

/// Serialises a batch, bit for bit, for messages between processes of the same build.
[[nodiscard]] std::string batch_bytes(const Batch& batch);
/// The inverse of batch_bytes. Throws data_error for bytes that do not hold a batch.
[[nodiscard]] Batch batch_from_bytes(std::string_view bytes);

}  // namespace spiked::validation
