#pragma once
#include <string>

namespace spiked {

/// The name of an unfinished file. While this object exists, remove_temporary_names() removes the file.
class TemporaryName {
public:
    /// A unique name: `target` followed by a random number, a counter and `.tmp`.
    explicit TemporaryName(const std::string& target);
    TemporaryName(const TemporaryName&) = delete;
    TemporaryName& operator=(const TemporaryName&) = delete;
    /// Removes the file if it exists.
    ~TemporaryName();
    /// Gives up ownership: the file is no longer removed.
    void release();
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

/// A new folder under $TMPDIR that only this user can enter. Its destructor and remove_temporary_names() remove it with
/// the files in it; folders below it are not expected.
class TemporaryFolder {
public:
    /// Creates a folder `spiked-PURPOSE-XXXXXX` with six random characters. Throws output_error when it cannot.
    explicit TemporaryFolder(const std::string& purpose);
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder();
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

/// $TMPDIR, or /tmp when it is not set. Throws output_error when that is not a folder.
[[nodiscard]] std::string temporary_root();

/// For signal handlers that end the process: removes the files of all existing TemporaryName objects and all existing
/// TemporaryFolder objects.
void remove_temporary_names() noexcept;

}  // namespace spiked
