#include "sim/io/file_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"

namespace spiked::sim {
namespace {

/// What a file is instead of the expected kind, as it stands in the message.
struct OtherFormat {
    std::string what;
    std::string advice;
};

std::string_view format_name(FileKind kind) {
    switch (kind) {
        case FileKind::safetensors:
            return "safetensors";
        case FileKind::npy:
            return ".npy";
        case FileKind::zip:
            return ".npz";
        case FileKind::text:
            return "csv";
    }
    throw precondition_error("file kind {} has no name", static_cast<int>(kind));
}

OtherFormat lfs_pointer(std::string_view head) {
    OtherFormat found{"a git-lfs pointer file that stands for the real one", "fetch it with: git lfs pull"};
    const std::size_t at = head.find("\nsize ");
    if (at == std::string_view::npos) return found;
    std::string_view number = head.substr(at + 6);
    number = number.substr(0, number.find_first_not_of("0123456789"));
    if (const auto size = to_integer(number))
        found.what += fmt::format(", which has {}", bytes_text(static_cast<std::uint64_t>(*size)));
    return found;
}

std::optional<OtherFormat> recognise(std::string_view head, FileKind expected) {
    const auto starts = [&](std::string_view magic) { return head.starts_with(magic); };
    // The first bytes of a safetensors file are a length and may equal the magic bytes of another format; the brace
    // behind them decides.
    const bool safetensors = head.size() > 9 && head[8] == '{' && head[7] == '\0';
    if (safetensors && expected == FileKind::safetensors) return std::nullopt;
    if (starts("version https://git-lfs")) return lfs_pointer(head);
    if (starts("<!DOCTYPE") || starts("<!doctype") || starts("<html"))
        return OtherFormat{"a web page", "the download saved an error or login page; fetch the file itself"};
    if (expected != FileKind::npy && starts("\x93NUMPY")) return OtherFormat{"a .npy array", "name it FILE.npy"};
    if (expected != FileKind::zip && starts("PK\x03\x04"))
        return OtherFormat{"a zip archive",
                           "name it FILE.npz if NumPy wrote it; save PyTorch .pt files as safetensors"};
    if (starts("GGUF")) return OtherFormat{"a GGUF model", "convert it to safetensors"};
    if (starts("\x89HDF")) return OtherFormat{"an HDF5 file", "save the array as .npy or safetensors"};
    if (starts("\x1f\x8b")) return OtherFormat{"gzip-compressed", "unpack it first"};
    if (starts("\x28\xb5\x2f\xfd")) return OtherFormat{"zstd-compressed", "unpack it first"};
    if (starts("\x80\x02") || starts("\x80\x03") || starts("\x80\x04") || starts("\x80\x05"))
        return OtherFormat{"a Python pickle", "pickles can run programs and are never opened; save it as safetensors"};
    if (safetensors) return OtherFormat{"a safetensors file", "name it FILE.safetensors"};
    if (head.size() >= 8 && std::all_of(head.begin(), head.end(), [](char c) { return c == '\0'; }))
        return OtherFormat{"zero bytes from its beginning", "likely an incomplete download; fetch it again"};
    return std::nullopt;
}

}  // namespace

void reject_other_format(const ByteFile& file, FileKind expected) {
    if (file.size() == 0)
        throw input_error("{}: empty (0 bytes where a {} file was expected): write or fetch it again", file.path(),
                          format_name(expected));
    std::array<std::byte, 512> head{};
    const auto known = static_cast<std::size_t>(std::min<std::uint64_t>(head.size(), file.size()));
    file.read(0, std::span(head).first(known));
    const std::string_view text(reinterpret_cast<const char*>(head.data()), known);
    if (const auto found = recognise(text, expected))
        throw input_error("{}: not a {} file (its {} are {}): {}", file.path(), format_name(expected),
                          bytes_text(file.size()), found->what, found->advice);
}

}  // namespace spiked::sim
