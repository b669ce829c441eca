#pragma once
#include <cstddef>
#include <string_view>

#include "core/files/byte_file.hpp"

namespace spiked::sim {

inline constexpr std::string_view zip_beginning = "PK\x03\x04";
inline constexpr std::string_view gzip_beginning = "\x1f\x8b";

/// A format that is not read: the bytes that tell it, what it is and how to convert it, both parts of an error message.
struct ForeignFormat {
    std::size_t at;  ///< offset of the bytes
    std::string_view bytes;
    const char* what;
    const char* advice;
    bool packed = false;  ///< what follows the advice reads files of gzip too
};

/// The line that converts numbers without a header, whose type and number of rows it does not know.
inline constexpr const char* from_raw_numbers =
    "python3 -c \"import numpy; numpy.save('x.npy', numpy.fromfile('FILE', dtype='f8').reshape(ROWS, -1))\"";

/// The format of a file that begins so; null where it is none of these.
[[nodiscard]] const ForeignFormat* foreign_format(std::string_view head);

/// The line that converts a file which its suffix, or more than its first bytes, tells better; null where they do not.
[[nodiscard]] const char* foreign_advice(const ByteFile& file, std::string_view head);

}  // namespace spiked::sim
