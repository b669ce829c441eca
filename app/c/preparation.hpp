#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/c/spiked.h"
#include "sim/preparation/preparation.hpp"

namespace spiked::c {

/// The text that a caller gave, or `fallback` for NULL.
[[nodiscard]] inline std::string_view words_or(const char* given, std::string_view fallback) {
    return given == nullptr ? fallback : given;
}

/// The preparation that a caller asks for, NULL for nothing. Throws usage_error for other words, and where centring
/// undoes standardizing.
[[nodiscard]] sim::Preparation preparation_of(const char* center, const char* standardize,
                                              const char* missing = nullptr);

/// The data of a caller who can ask for this preparation: NaN is kept where entries may be missing.
[[nodiscard]] arma::mat read_data(const spiked_matrix* data, const sim::Preparation& preparation);

/// Writes notes, one a line, cut off to fit.
void write_notes(char* to, std::int64_t capacity, const std::vector<std::string>& notes);

}  // namespace spiked::c
