#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/files/byte_file.hpp"
#include "core/files/temporary.hpp"

namespace spiked {

/// A file that appears completely or not at all: it is written as an unnamed file, and commit() flushes it and gives it
/// its name. Without commit() nothing is left behind, however the process ends. On file systems without unnamed files
/// it is written under a `.tmp` name beside the target, which remains after a SIGKILL or a power failure. Devices and
/// pipes are written in place. A file that replaces another keeps the permissions of the old one (and its owner, where
/// that is allowed); a new file follows the umask. Every failure is a output_error.
class OutputFile {
public:
    /// `expected_bytes` is used only in the message about a full disk.
    OutputFile(std::string path, std::uint64_t expected_bytes);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(std::span<const std::byte> bytes);
    void write(const std::string& text);
    /// Writes at any offset; bytes that are never written read as zeros. Not for pipes.
    void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
    void commit();

private:
    [[noreturn]] void fail(int why) const;
    void open_nameless();
    void open_temporary();
    void take_permissions(unsigned mode, unsigned owner, unsigned group);

    enum class State { in_place, nameless, temporary };
    State state_ = State::in_place;  ///< also after commit()
    std::string path_;               ///< as given
    std::string target_;             ///< the path with symbolic links resolved
    std::optional<TemporaryName> temporary_;
    std::uint64_t expected_bytes_;
    FileDescriptor file_;
};

/// Writes a whole file at once.
void write_file(const std::string& path, const std::string& content);
/// Throws output_error when `path`, a name that the user did not give explicitly, exists and is not a regular file:
/// another user may have put a link, a pipe or a folder there.
void reject_derived_name(const std::string& path);
/// Writes a whole file at such a name.
void write_derived_file(const std::string& path, const std::string& content);

}  // namespace spiked
