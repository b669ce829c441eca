#pragma once
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/byte_file.hpp"

namespace spiked::sim {

class TensorContainer;

/// A format in which files hold matrices and dumps.
struct FileFormat {
    std::string suffix;    ///< of its files, in lower case
    std::string name;      ///< in messages: `not a NAME file`
    std::string selector;  ///< how one of its tensors is named behind the suffix, for help texts; empty: it holds one
    /// What a file is that has these bytes at its beginning where another format was expected, and what to do then.
    std::string found;
    std::string advice;
    bool (*begins)(std::string_view head) = nullptr;  ///< null: its beginning is like no other
    /// Null for a table of text, which is read as one matrix and is no dump.
    std::unique_ptr<TensorContainer> (*open)(const std::string& path) = nullptr;
    std::vector<std::string> other_suffixes = {};  ///< of files that are read in the same way
};

/// The table of formats. Dumps, matrices, the messages about files of a wrong kind, help texts and the fuzzing of
/// readers follow from it.
[[nodiscard]] const std::vector<FileFormat>& file_formats();

/// Whether the path ends with this suffix in lower or upper case; `suffix` must be lower case.
[[nodiscard]] bool has_suffix(const std::string& path, std::string_view suffix);
/// The format of a file by its suffix; null where it is none of the table.
[[nodiscard]] const FileFormat* format_of(const std::string& path);

/// The suffixes of the files that open_tensors reads, and of all files that are read as matrices.
[[nodiscard]] const std::vector<std::string>& dump_suffixes();
[[nodiscard]] const std::vector<std::string>& matrix_suffixes();
/// How a matrix in each kind of file is named, for help texts: `FILE(.npz:name|.npy|.csv)`.
[[nodiscard]] std::string matrix_forms();

/// The header of each variable of a MAT-file of level 4.
struct Mat4Head {
    std::endian order = std::endian::little;
    std::uint32_t type = 0;  ///< tens: type of the numbers, 0 to 5; units: full, text or sparse
    std::uint32_t rows = 0, columns = 0;
    bool complex = false;
    std::string name;
    std::uint32_t name_bytes = 0;
};
/// Empty where the bytes begin with none.
[[nodiscard]] std::optional<Mat4Head> read_mat4_head(std::string_view head);
/// Whether the bytes begin a file that Octave saved as text.
[[nodiscard]] bool begins_octave_text(std::string_view head);

/// Throws input_error when the file is empty, or when its first bytes show that it is not of the expected format, which
/// is named by its suffix, but a git-lfs pointer, a web page saved in its place, or another format.
void reject_other_format(const ByteFile& file, std::string_view suffix);

/// The format of a file by its first bytes, whatever its name; that of tables of text where it is text. Null where it
/// is none. Throws input_error as reject_other_format does, for a format that is not read.
[[nodiscard]] const FileFormat* format_of_content(const ByteFile& file);

}  // namespace spiked::sim
