#pragma once
#include <string>

namespace spiked {

/// The name of a file that is not finished; while this lives, remove_temporary_names() removes the file.
class TemporaryName {
public:
    /// `target` with something drawn, a number and `.tmp` behind it: a name that nobody else has.
    explicit TemporaryName(const std::string& target);
    TemporaryName(const TemporaryName&) = delete;
    TemporaryName& operator=(const TemporaryName&) = delete;
    /// Removes the file, where there is one.
    ~TemporaryName();
    /// From now on the file is somebody else's.
    void leave();
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

/// A new folder under $TMPDIR that only this user can enter. Its destructor and remove_temporary_names() remove it with
/// the files in it; folders below it are not expected.
class TemporaryFolder {
public:
    /// `spiked-PURPOSE-` and something drawn. Throws a write_error where no folder can be made.
    explicit TemporaryFolder(const std::string& purpose);
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder();
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

/// $TMPDIR, or /tmp where it is not set. Throws a write_error when that is no folder.
[[nodiscard]] std::string temporary_root();

/// For handlers of signals that end the process: removes the files of all names and all folders that live.
void remove_temporary_names() noexcept;

}  // namespace spiked
