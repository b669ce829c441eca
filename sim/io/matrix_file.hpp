#pragma once
#include <armadillo>
#include <cstddef>
#include <optional>
#include <string>

#include "sim/io/tensor_container.hpp"

namespace spiked::sim {

/// Reads `FILE.npy`, `FILE.npz[:name]`, `FILE.csv` or `FILE.safetensors[:tensor[:head]]` as a matrix (rows x columns).
/// A 1-D array is a column. A tensor with 3 axes (or a batch axis of 1 in front) needs the head; its layout comes from
/// `layout`, else from the file's metadata; it is tokens x dim. FILE itself may contain colons.
/// Throws input_error: whatever is wrong with the file, an empty matrix, NaN or infinities (count and first place).
[[nodiscard]] arma::mat read_matrix(const std::string& spec, const std::string& layout = "");

/// What read_matrix reads, as help says it: `FILE(.npz:name|.npy|.csv)`.
[[nodiscard]] std::string matrix_words();

/// The only tensor of a container, NaN and infinities with it.
[[nodiscard]] arma::mat read_matrix(const TensorContainer& file);

/// Entries that are NaN or infinite: how many, and the first, row by row.
struct Nonfinite {
    std::size_t count = 0;
    std::size_t row = 0;
    std::size_t column = 0;
};
[[nodiscard]] std::optional<Nonfinite> find_nonfinite(const arma::mat& matrix);

/// Throws input_error with the count and the first place when the matrix holds NaN or infinities.
void reject_nonfinite(const arma::mat& matrix, const std::string& where);

}  // namespace spiked::sim
