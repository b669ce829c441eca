#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace spiked {

class FileDescriptor {
public:
    FileDescriptor() = default;
    explicit FileDescriptor(int number) : number_(number) {}
    FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    FileDescriptor& operator=(FileDescriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~FileDescriptor() { close(); }
    [[nodiscard]] int number() const { return number_; }
    void close();

private:
    int number_ = -1;
};

/// A regular file that is read at any offset. It is not mapped (MappedFile is, for weights), so that a file that another
/// program truncates while it is read ends in an input_error that names it, not in a signal. Several threads may read at
/// once. Every failure is an input_error.
class ByteFile {
public:
    explicit ByteFile(std::string path);

    [[nodiscard]] const std::string& path() const { return path_; }
    /// The size in bytes when the file was opened.
    [[nodiscard]] std::uint64_t size() const { return size_; }
    /// Fills all of `out` from byte `offset` on, or throws.
    void read(std::uint64_t offset, std::span<std::byte> out) const;
    /// A path that opens this same file even if another file has taken its name since.
    [[nodiscard]] std::string own_path() const;
    /// Throws input_error when the file is shorter than when it was opened.
    void reject_shrunk() const;

private:
    std::string path_;
    FileDescriptor file_;
    std::uint64_t size_ = 0;
};

}  // namespace spiked
