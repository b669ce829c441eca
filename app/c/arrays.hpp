#pragma once
#include <armadillo>
#include <cstdint>
#include <string_view>

#include "app/c/spiked.h"

namespace spiked::c {

/// The treatment of NaN in an input: errors, whose message may offer to say how entries are missing, or kept.
enum class Nans { rejected, offered, kept };

/// A copy of an input in double. Throws usage_error for a description that is wrong, input_error for NaN and
/// infinities, and the error of the kind memory where no copy of that size can exist; `name` is that of the argument.
[[nodiscard]] arma::mat read_matrix(const spiked_matrix* matrix, const char* name, Nans nans = Nans::rejected);

/// Throws the same errors for an output that is to receive rows x columns entries; checked before any work.
void check_output(const spiked_matrix& matrix, std::int64_t rows, std::int64_t columns, const char* name);
/// Writes to an output that has been checked.
void write_matrix(const spiked_matrix& matrix, const arma::mat& values);

/// Block b of several.
[[nodiscard]] spiked_matrix block_of(const spiked_blocks& blocks, std::int64_t index);

/// A count that a caller gives. Throws usage_error unless it is at least `least`.
[[nodiscard]] std::size_t count_of(std::int64_t count, std::int64_t least, const char* name);

/// Copies a text with its ending zero, cut off at a whole character to fit; nothing where there is no room.
void write_cut(char* to, std::size_t capacity, std::string_view text);

}  // namespace spiked::c
