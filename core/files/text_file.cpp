#include "core/files/text_file.hpp"

#include <span>

#include "core/files/byte_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"

namespace spiked {

std::string read_text_file(const std::string& path, std::uint64_t most, const char* what) {
    const ByteFile file(path);
    if (file.size() > most)
        throw input_error("{}: is {} long ({} is at most {}): is this another file?", path, bytes_text(file.size()),
                          what, bytes_text(most));
    std::string text(file.size(), '\0');
    file.read(0, std::as_writable_bytes(std::span(text)));
    return text;
}

}  // namespace spiked
