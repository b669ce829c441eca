#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/files/temporary.hpp"

// Checks of a store and of the files beside it before SQLite opens anything. SQLite uses journals and write-ahead logs
// that it finds beside a database, and an untrusted store may come with such files.
namespace spiked::validation {

/// The URI by which SQLite opens exactly this file, for any characters in its path; `mode` is ro, rw or rwc.
[[nodiscard]] std::string database_uri(const std::string& path, const std::string& mode);

/// Throws input_error if the store or a file beside it would make SQLite write to other files than the store or wait
/// forever: a write-ahead log, a header that demands one, a journal that is not a regular file, a file that consists
/// almost entirely of holes. With `writes`, SQLite will roll back the journal; then it also throws if the journal names
/// another journal, which SQLite would delete, or claims more pages than the store has.
void reject_foreign_files(const std::string& path, bool writes);

/// A copy, in a temporary folder, of the store of a run that was killed during a commit, as it was before that commit.
/// The store itself and its journal are not changed; only `spiked run` repairs them.
class RecoveredStore {
public:
    [[nodiscard]] std::string path() const { return folder_.path() + "/store"; }

private:
    TemporaryFolder folder_{"recovered"};
};

/// Bytes that a file, which may have holes, occupies on disk.
[[nodiscard]] std::uint64_t bytes_on_disk(const std::string& path);

/// Copies the store and its journal; SQLite rolls the copy back when it is first opened for writing. Null if a run
/// repaired the store in the meantime. Throws input_error for a journal that reject_foreign_files rejects, and
/// output_error if the disk has no room for the copy.
[[nodiscard]] std::shared_ptr<const RecoveredStore> recover(const std::string& path);

}  // namespace spiked::validation
