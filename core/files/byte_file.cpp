#include "core/files/byte_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/files/open_advice.hpp"
#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"

namespace spiked {
namespace {

Error shrunk(const std::string& path, std::uint64_t before, std::uint64_t end) {
    return input_error(
        "{}: shrank while it was read (it had {} when it was opened and now ends before byte {}): wait until the "
        "program that writes it has finished",
        path, bytes_text(before), end + 1);
}

}  // namespace

void FileDescriptor::close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
}

ByteFile::ByteFile(std::string path) : path_(std::move(path)) {
    if (path_.find('\0') != std::string::npos)
        throw input_error("{}: holds a zero byte (a file name cannot): leave it out", in_quotes(path_));
    // Without O_NONBLOCK, opening a named pipe would wait for a writer.
    file_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file_.number() < 0) {
        const int why = errno;
        if (path_ == "-" && why == ENOENT)
            throw input_error(
                "-: standard input is not read (files are read at any offset): save the data to a file first");
        if (why == ENOENT || why == ENOTDIR) throw input_error("{}: no such file: {}", path_, open_advice(why));
        throw input_error("{}: cannot be opened ({}): {}", path_, std::generic_category().message(why),
                          open_advice(why));
    }
    struct stat status {};
    if (::fstat(file_.number(), &status) != 0)
        throw input_error("{}: cannot be examined ({}): check the disk", path_, std::generic_category().message(errno));
    if (S_ISDIR(status.st_mode)) throw input_error("{}: is a folder (a file is needed): name a file in it", path_);
    if (!S_ISREG(status.st_mode))
        throw input_error("{}: is not a regular file (it is read at any offset): save the data to a file first", path_);
    size_ = static_cast<std::uint64_t>(status.st_size);
}

void ByteFile::read(std::uint64_t offset, std::span<std::byte> out) const {
    if (offset > size_ || out.size() > size_ - offset)
        throw precondition_error("{}: read of {} bytes at offset {} in a file of {}", path_, out.size(), offset, size_);
    while (!out.empty()) {
        const ssize_t count = ::pread(file_.number(), out.data(), out.size(), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0)
            throw input_error("{}: cannot be read at byte {} ({}): check the disk", path_, offset,
                              std::generic_category().message(errno));
        if (count == 0) throw shrunk(path_, size_, offset);
        offset += static_cast<std::uint64_t>(count);
        out = out.subspan(static_cast<std::size_t>(count));
    }
}

std::string ByteFile::own_path() const { return fmt::format("/proc/self/fd/{}", file_.number()); }

void ByteFile::reject_shrunk() const {
    struct stat status {};
    if (::fstat(file_.number(), &status) == 0 && static_cast<std::uint64_t>(status.st_size) < size_)
        throw shrunk(path_, size_, static_cast<std::uint64_t>(status.st_size));
}

}  // namespace spiked
