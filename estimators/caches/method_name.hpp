#pragma once
#include <span>
#include <string>
#include <string_view>

#include "estimators/compressors/compressor.hpp"

namespace spiked::estimators {

/// The method of a name from a user or a file. Throws the errors of parse_method; for the name of an eviction or a
/// low-rank cache the message says which commands accept it.
[[nodiscard]] MethodSpec method_named(std::string_view text, std::span<const std::string> also = {});

}  // namespace spiked::estimators
