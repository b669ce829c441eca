#pragma once
#include <armadillo>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/io/tensor_container.hpp"
#include "sim/tables/table_dialect.hpp"

namespace spiked::sim {

/// The words for a character of a TableDialect, which also stands for itself.
using CharacterNames = std::vector<std::pair<std::string, char>>;
[[nodiscard]] const CharacterNames& delimiter_names();
[[nodiscard]] const CharacterNames& decimal_names();
/// The character of such a word. Throws usage_error, with `key` in front, for another text.
[[nodiscard]] char named_character(const std::string& key, const std::string& text, const CharacterNames& names);

struct MatrixReading {
    std::string layout;
    TableDialect table;
    bool keep_missing = false;  ///< missing values are read as NaN, and only infinite ones are errors
    /// The option or key by which the caller's user can ask for keep_missing, for the message about missing values.
    std::string missing_option = {};
    bool real_form = false;  ///< complex numbers A + iB of a .npy file are read as [[A, -B], [B, A]], as A where B is 0
    double copies = 1.0;     ///< of the matrix, which the caller needs at the same time
};

/// A matrix and what was decided on reading it, a sentence each.
struct NotedMatrix {
    arma::mat matrix;
    std::vector<std::string> notes;
    bool of_text = false;  ///< a table of text, in which a header and an index have been looked for
    bool complex = false;  ///< the real form of complex numbers of a file
};

/// Reads `FILE.npy`, `FILE.npz[:name]`, a table of text (`read_table`) or `FILE.safetensors[:tensor[:head]]` as a
/// matrix (rows x columns). A 1-D array is a column. Of a tensor with 3 axes (or 4 with a batch axis of size 1 in
/// front) one head, tokens x dim, is read and must be named; its layout is `layout`, or that of the file's metadata.
/// FILE itself may contain colons. Throws an error of kind `memory`, before an array is read, where the caller's copies
/// exceed what the process may use, input_error for a file that cannot be read, an empty matrix, NaN (unless
/// missing values are kept) and infinities (with their count and the first position), and usage_error for a dialect of
/// a file that is no table.
[[nodiscard]] NotedMatrix read_noted_matrix(const std::string& spec, const MatrixReading& reading = {});
/// The same for callers that have nowhere to say notes: throws input_error too where numbers of a table could only be
/// guessed to be a header or an index.
[[nodiscard]] arma::mat read_matrix(const std::string& spec, const std::string& layout = "");

/// The only tensor of a container; NaN and infinities are accepted.
[[nodiscard]] arma::mat read_matrix(const TensorContainer& file);

/// The number of entries that are NaN or infinite, and the position of the first one in row order.
struct Nonfinite {
    std::size_t count = 0;
    std::size_t infinite = 0;  ///< of them
    std::size_t row = 0;
    std::size_t column = 0;
};
[[nodiscard]] std::optional<Nonfinite> find_nonfinite(const arma::mat& matrix);

/// Throws input_error with the count and the first position when the matrix holds NaN or infinities; `option` is
/// offered where only NaN stand in the way, as in MatrixReading.
void reject_nonfinite(const arma::mat& matrix, const std::string& where, const std::string& option = "");

}  // namespace spiked::sim
