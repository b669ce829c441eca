#pragma once
#include <span>
#include <string>
#include <string_view>

#include "estimators/compressors/compressor.hpp"

namespace spiked::estimators {

/// A method from a name that somebody typed or a file holds. Throws usage_error as parse_method does, and says of an
/// eviction or a low-rank cache where it is possible.
[[nodiscard]] MethodSpec method_named(std::string_view text, std::span<const std::string> also = {});

}  // namespace spiked::estimators
