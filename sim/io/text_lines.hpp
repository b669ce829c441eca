#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "core/files/byte_file.hpp"

namespace spiked::sim {

/// The name, for iconv, of the encoding of a text that begins so, where it is one of UTF-16 or UTF-32; otherwise empty.
[[nodiscard]] std::string_view wide_encoding(std::string_view head);

/// Calls `use` for each line of a text file without its end, which is LF, CRLF, or CR in a file without LF; a
/// byte-order mark of UTF-8 is left out. Files that gzip wrote are unpacked, to at most 8 MiB, or 30 times their bytes
/// where that is more, because a table takes some 20 bytes of memory for each byte of text. Throws input_error for a
/// damaged file, UTF-16, UTF-32 and zero bytes. Takes memory for the longest line.
void each_line(const ByteFile& file, const std::function<void(std::string_view)>& use);

}  // namespace spiked::sim
