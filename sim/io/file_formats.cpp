#include "sim/io/file_formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/io/tensor_container.hpp"

namespace spiked::sim {

const std::vector<FileFormat>& file_formats() {
    static const std::vector<FileFormat> table = {
        {".safetensors", "safetensors", ":tensor[:head]", "a safetensors file", "name it FILE.safetensors",
         // The length of the header, below 2^56, and its first brace.
         [](std::string_view head) { return head.size() > 9 && head[8] == '{' && head[7] == '\0'; }, open_safetensors},
        {".npz", ".npz", ":name", "a zip archive",
         "name it FILE.npz if NumPy wrote it; save PyTorch .pt files as safetensors",
         [](std::string_view head) { return head.starts_with("PK\x03\x04"); }, open_npz},
        {".npy", ".npy", "", "a .npy array", "name it FILE.npy",
         [](std::string_view head) { return head.starts_with("\x93NUMPY"); }, open_npy},
        {.suffix = ".csv", .name = "csv"},
    };
    return table;
}

namespace {

/// A format other than the expected one: what the file is and what to do about it, both parts of an error message.
struct OtherFormat {
    std::string what;
    std::string advice;
};

/// Formats that are not read.
struct ForeignFormat {
    std::string_view beginning;
    const char* what;
    const char* advice;
};
constexpr ForeignFormat foreign_formats[] = {
    {"<!DOCTYPE", "a web page", "the download saved an error or login page; fetch the file itself"},
    {"<!doctype", "a web page", "the download saved an error or login page; fetch the file itself"},
    {"<html", "a web page", "the download saved an error or login page; fetch the file itself"},
    {"GGUF", "a GGUF model", "convert it to safetensors"},
    {"\x89HDF", "an HDF5 file", "save the array as .npy or safetensors"},
    {"\x1f\x8b", "gzip-compressed", "unpack it first"},
    {"\x28\xb5\x2f\xfd", "zstd-compressed", "unpack it first"},
    {"\x80\x02", "a Python pickle", "pickles can run programs and are never opened; save it as safetensors"},
    {"\x80\x03", "a Python pickle", "pickles can run programs and are never opened; save it as safetensors"},
    {"\x80\x04", "a Python pickle", "pickles can run programs and are never opened; save it as safetensors"},
    {"\x80\x05", "a Python pickle", "pickles can run programs and are never opened; save it as safetensors"},
};

OtherFormat lfs_pointer(std::string_view head) {
    OtherFormat found{"a git-lfs pointer to the real file", "fetch it with: git lfs pull"};
    const std::size_t at = head.find("\nsize ");
    if (at == std::string_view::npos) return found;
    std::string_view number = head.substr(at + 6);
    number = number.substr(0, number.find_first_not_of("0123456789"));
    if (const auto size = to_integer(number))
        found.what += fmt::format(", which has {}", bytes_text(static_cast<std::uint64_t>(*size)));
    return found;
}

std::optional<OtherFormat> recognise(std::string_view head, const FileFormat& expected) {
    // The first bytes of a safetensors file are a length and may equal those of another format. So a file that begins
    // as expected is what it should be, and safetensors, which is first in the table, is the last guess.
    if (expected.begins != nullptr && expected.begins(head)) return std::nullopt;
    if (head.starts_with("version https://git-lfs")) return lfs_pointer(head);
    for (const auto& foreign : foreign_formats)
        if (head.starts_with(foreign.beginning)) return OtherFormat{foreign.what, foreign.advice};
    const auto& formats = file_formats();
    for (auto format = formats.rbegin(); format != formats.rend(); ++format)
        if (format->begins != nullptr && format->begins(head)) return OtherFormat{format->found, format->advice};
    if (head.size() >= 8 && std::all_of(head.begin(), head.end(), [](char c) { return c == '\0'; }))
        return OtherFormat{"zero bytes from its beginning", "likely an incomplete download; fetch it again"};
    return std::nullopt;
}

std::vector<std::string> suffixes_of(bool dumps_only) {
    std::vector<std::string> all;
    for (const auto& format : file_formats())
        if (!dumps_only || format.open != nullptr) all.push_back(format.suffix);
    return all;
}

}  // namespace

bool has_suffix(const std::string& path, std::string_view suffix) {
    return path.size() >= suffix.size() && std::equal(suffix.rbegin(), suffix.rend(), path.rbegin(),
                                                      [](char a, unsigned char b) { return a == std::tolower(b); });
}

const FileFormat* format_of(const std::string& path) {
    for (const auto& format : file_formats())
        if (has_suffix(path, format.suffix)) return &format;
    return nullptr;
}

const std::vector<std::string>& dump_suffixes() {
    static const auto suffixes = suffixes_of(true);
    return suffixes;
}

const std::vector<std::string>& matrix_suffixes() {
    static const auto suffixes = suffixes_of(false);
    return suffixes;
}

std::string matrix_forms() {
    std::vector<std::string> forms;
    for (const auto& format : file_formats()) forms.push_back(format.suffix + format.selector);
    return fmt::format("FILE({})", fmt::join(forms, "|"));
}

void reject_other_format(const ByteFile& file, std::string_view suffix) {
    const FileFormat* expected = format_of(std::string(suffix));
    if (expected == nullptr) throw precondition_error("{} is the suffix of no format", suffix);
    if (file.size() == 0)
        throw input_error("{}: empty (0 bytes where a {} file was expected): write or fetch it again", file.path(),
                          expected->name);
    std::array<std::byte, 512> head{};
    const auto known = static_cast<std::size_t>(std::min<std::uint64_t>(head.size(), file.size()));
    file.read(0, std::span(head).first(known));
    const std::string_view text(reinterpret_cast<const char*>(head.data()), known);
    if (const auto found = recognise(text, *expected))
        throw input_error("{}: not a {} file (its {} are {}): {}", file.path(), expected->name, bytes_text(file.size()),
                          found->what, found->advice);
}

}  // namespace spiked::sim
