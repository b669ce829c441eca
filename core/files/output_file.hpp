#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/files/byte_file.hpp"
#include "core/files/temporary.hpp"

namespace spiked {

/// A file that appears whole or not at all: written without a name, then flushed and put in its place by commit().
/// Without commit() nothing is left behind, whatever ends the process; on file systems that know no nameless files it
/// is written as `.tmp` beside its place, which a kill (SIGKILL, a power cut) leaves there. Devices and pipes are
/// written in place. A file that replaces another keeps its permissions (and its owner, where that is allowed); others
/// follow the umask. Every failure is a write_error.
class OutputFile {
public:
    /// `expected_bytes` is only for the message of a full disk.
    OutputFile(std::string path, std::uint64_t expected_bytes);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(std::span<const std::byte> bytes);
    void write(const std::string& text);
    /// At any place; what is never written reads as zeros. Not for pipes.
    void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
    void commit();

private:
    [[noreturn]] void fail(int why) const;
    void open_nameless();
    void open_temporary();
    void take_permissions(unsigned mode, unsigned owner, unsigned group);

    enum class State { in_place, nameless, temporary };
    State state_ = State::in_place;  ///< also when done
    std::string path_;               ///< as given
    std::string target_;             ///< links resolved
    std::optional<TemporaryName> temporary_;
    std::uint64_t expected_bytes_;
    FileDescriptor file_;
};

/// A whole file at once.
void write_file(const std::string& path, const std::string& content);
/// Throws write_error where a name that nobody typed is that of anything but a regular file: a stranger may have put a
/// link, a pipe or a folder there.
void reject_derived_name(const std::string& path);
/// A whole file at such a name.
void write_derived_file(const std::string& path, const std::string& content);

}  // namespace spiked
