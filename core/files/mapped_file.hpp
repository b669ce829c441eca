#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace spiked {

/// The bytes of a whole regular file as memory: read from the disk when they are first used, shared by all processes
/// that map the file, and dropped when memory is short. They stay mapped when the file is renamed or deleted. For
/// weights of gigabytes; other files are read (ByteFile). Where another program truncates the file, the process ends
/// when it next uses a byte behind the new end: by the signal SIGBUS, or as `end_where_mapped_files_shrink` says.
class MappedFile {
public:
    /// Null where the file cannot be mapped: one that is absent or empty, one of a file system that does not map, one
    /// larger than the address space that is left, and more than 1024 at once.
    [[nodiscard]] static std::shared_ptr<const MappedFile> of(const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    [[nodiscard]] std::span<const std::byte> bytes() const { return {begin_, size_}; }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    MappedFile(const std::byte* begin, std::size_t size, std::string path)
        : begin_(begin), size_(size), path_(std::move(path)) {}

    const std::byte* begin_;
    std::size_t size_;
    std::string path_;
};

/// From now on a mapped file that shrinks ends the process with one line on standard error that names it, and with this
/// exit code. For programs; a library leaves the signals of its process alone.
void end_where_mapped_files_shrink(int exit_code);

}  // namespace spiked
