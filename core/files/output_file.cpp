#include "core/files/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"

namespace spiked {
namespace {

std::string folder_of(const std::string& path) {
    const auto folder = std::filesystem::path(path).parent_path();
    return folder.empty() ? "." : folder.string();
}

}  // namespace

OutputFile::OutputFile(std::string path, std::uint64_t expected_bytes)
    : path_(std::move(path)), target_(path_), expected_bytes_(expected_bytes) {
    struct stat status {};
    const bool replaces = ::stat(path_.c_str(), &status) == 0;
    if (replaces) {
        if (S_ISDIR(status.st_mode))
            throw output_error("{}: cannot be written (it is a folder): name a file in it", path_);
        if (!S_ISREG(status.st_mode)) {
            // Renaming onto /dev/null would replace the device.
            file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
            if (file_.number() < 0) fail(errno);
            return;
        }
        std::error_code none;
        const auto resolved = std::filesystem::canonical(path_, none);
        if (!none) target_ = resolved.string();
    }
    open_nameless();
    if (state_ != State::nameless) open_temporary();
    if (replaces) take_permissions(status.st_mode, status.st_uid, status.st_gid);
}

/// Called before anything is written, so that the content of a private file is never readable by others. The owner is
/// set first, because changing it clears permission bits.
void OutputFile::take_permissions(unsigned mode, unsigned owner, unsigned group) {
    constexpr unsigned permissions = 0777;  // without the set-user-ID and set-group-ID bits
    constexpr unsigned of_group = 0070;
    // Only root may change the owner. Where the group cannot be kept, its permissions would go to another group.
    const bool keeps =
        ::fchown(file_.number(), owner, group) == 0 || ::fchown(file_.number(), static_cast<uid_t>(-1), group) == 0;
    if (::fchmod(file_.number(), mode & (keeps ? permissions : permissions & ~of_group)) != 0) fail(errno);
}

void OutputFile::open_nameless() {
    if (::access("/proc/self/fd", X_OK) != 0) return;  // commit() names the file through this folder
    file_ = FileDescriptor(::open(folder_of(target_).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666));
    if (file_.number() >= 0)
        state_ = State::nameless;
    else if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOSYS)
        fail(errno);
}

void OutputFile::open_temporary() {
    temporary_.emplace(target_);
    file_ = FileDescriptor(::open(temporary_->path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file_.number() < 0) {
        const int why = errno;
        temporary_->release();
        fail(why);
    }
    state_ = State::temporary;
}

void OutputFile::fail(int why) const {
    const auto reason = std::generic_category().message(why);
    if (why == ENOSPC || why == EDQUOT || why == EFBIG)
        throw output_error("{}: cannot be written ({}; {} are needed): free space or choose another folder", path_,
                           reason, bytes_text(expected_bytes_));
    if (why == ENOENT)
        throw output_error("{}: cannot be written (its folder does not exist): create the folder first", path_);
    throw output_error("{}: cannot be written ({}): choose another place or check the permissions of its folder", path_,
                       reason);
}

void OutputFile::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::write(file_.number(), bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail(errno);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
}

void OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::pwrite(file_.number(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail(errno);
        offset += static_cast<std::uint64_t>(count);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
}

void OutputFile::write(const std::string& text) { write(std::as_bytes(std::span(text))); }

void OutputFile::commit() {
    if (state_ == State::in_place) {
        file_.close();
        return;
    }
    if (::fsync(file_.number()) != 0) fail(errno);
    if (state_ == State::nameless) {
        const auto give_name = [&](const std::string& name) {
            const std::string nameless = fmt::format("/proc/self/fd/{}", file_.number());
            return ::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
        };
        if (give_name(target_)) {
            state_ = State::in_place;
        } else {  // a link cannot replace an existing file, but a rename can
            if (errno != EEXIST) fail(errno);
            temporary_.emplace(target_);
            if (!give_name(temporary_->path())) {
                const int why = errno;
                temporary_->release();
                fail(why);
            }
            state_ = State::temporary;
        }
    }
    file_.close();
    if (state_ == State::temporary && std::rename(temporary_->path().c_str(), target_.c_str()) != 0) fail(errno);
    state_ = State::in_place;
    // The new name is durable only when its folder has been flushed to disk too. An error here is ignored: some file
    // systems cannot flush a folder, and the content is already safe.
    const FileDescriptor handle(::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (handle.number() >= 0) ::fsync(handle.number());
}

void write_file(const std::string& path, const std::string& content) {
    OutputFile file(path, content.size());
    file.write(content);
    file.commit();
}

void reject_derived_name(const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
        throw output_error(
            "{}: cannot be written (a link, a folder or a special file has this name, which the command chose itself): "
            "remove it first",
            path);
}

void write_derived_file(const std::string& path, const std::string& content) {
    reject_derived_name(path);
    write_file(path, content);
}

}  // namespace spiked
