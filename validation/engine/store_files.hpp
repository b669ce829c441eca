#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/files/temporary.hpp"

// What lies on disk under and beside the name of a store, looked at before SQLite opens anything: SQLite obeys files
// beside a database without asking, and a store from a stranger may come with such files.
namespace spiked::validation {

/// The name by which SQLite opens exactly this file, whatever signs are in its path; `mode` is ro, rw or rwc.
[[nodiscard]] std::string database_uri(const std::string& path, const std::string& mode);

/// Throws an input_error when the store or what lies beside it would make SQLite write to other files than the store or
/// wait for ever: a write-ahead log, a header that asks for one, a journal that is no regular file, a file that is all
/// but a hole. With `writes` also when the journal, which SQLite will then roll back, names another journal, which
/// SQLite would delete, or claims more pages than the store has.
void reject_foreign_files(const std::string& path, bool writes);

/// The store of a run that was killed while it committed, as it was before that commit: a copy in a temporary folder.
/// The store itself and its journal stay as they are; only `spiked run` mends them.
class RecoveredStore {
public:
    [[nodiscard]] std::string path() const { return folder_.path() + "/store"; }

private:
    TemporaryFolder folder_{"recovered"};
};

/// Bytes that the disk holds of a file, which may have holes.
[[nodiscard]] std::uint64_t bytes_on_disk(const std::string& path);

/// Null when a run mended the store meanwhile. Throws an input_error for a journal that reject_foreign_files would not
/// take either, a write_error when there is no room. SQLite rolls the copy back when it is first opened for writing.
[[nodiscard]] std::shared_ptr<const RecoveredStore> recover(const std::string& path);

}  // namespace spiked::validation
