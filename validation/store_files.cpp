#include "validation/store_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "sim/byte_file.hpp"
#include "theory/base/error.hpp"

namespace spiked::validation {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

/// The end of a journal of one of several databases that are committed together: behind the name of the other journal.
constexpr std::string_view super_journal_mark = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"sv;

/// Where SQLite looks for files beside a database: beside what a link leads to.
std::string resolved(const std::string& path) {
    std::error_code absent;
    const auto real = fs::canonical(path, absent);
    return absent ? path : real.string();
}

std::optional<mode_t> kind_of(const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
    return status.st_mode & S_IFMT;
}

/// The `count` bytes of a regular file that end `from_end` bytes before its end; empty when it is shorter.
std::string last_bytes(const std::string& path, std::size_t count) {
    const sim::ByteFile file(path);
    std::string bytes(count, '\0');
    if (file.size() < count) return "";
    file.read(file.size() - count, std::as_writable_bytes(std::span(bytes)));
    return bytes;
}

/// `journal` is read, messages name the one beside `store`.
void reject_super_journal(const std::string& journal, const std::string& store) {
    if (last_bytes(journal, super_journal_mark.size()) == super_journal_mark)
        throw input_error(
            "{0}: the journal beside it names another journal (SQLite would delete that one, and no run writes such a "
            "name): remove {0}-journal",
            store);
}

void reject_write_ahead(const std::string& path, const std::string& real) {
    constexpr std::size_t write_version = 18;  // in the header of the database; 2: write-ahead log
    constexpr std::size_t read_version = 19;
    std::string reason;
    for (const char* suffix : {"-wal", "-shm"})
        if (kind_of(real + suffix)) reason = fmt::format("{}{} lies beside it", real, suffix);
    struct stat status {};
    if (::stat(real.c_str(), &status) == 0 && S_ISREG(status.st_mode) && reason.empty()) {
        const sim::ByteFile file(real);
        std::array<std::byte, 20> head{};
        if (file.size() >= head.size()) {
            file.read(0, head);
            const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
            if (text.starts_with("SQLite format 3\0"sv) && (text[write_version] != 1 || text[read_version] != 1))
                reason = "its header says so";
        }
    }
    if (!reason.empty())
        throw input_error(
            "{}: is kept with a write-ahead log ({}; no run keeps a store so, and to read it would write files): end "
            "the program that has it open, then sqlite3 FILE 'PRAGMA journal_mode = DELETE' makes it a store again",
            path, reason);
}

}  // namespace

std::string database_uri(const std::string& path, const std::string& mode) {
    constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-_.~";
    std::string uri = path.starts_with('/') ? "file://" : "file:";
    for (const char c : path)
        uri += plain.find(c) != plain.npos
                   ? std::string(1, c)
                   : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    return uri + "?mode=" + mode;
}

void reject_foreign_files(const std::string& path, bool writes) {
    const std::string real = resolved(path);
    reject_write_ahead(path, real);
    const std::string journal = real + "-journal";
    const auto kind = kind_of(journal);
    if (!kind) return;
    if (*kind != S_IFREG)
        throw input_error("{}: is not a regular file (SQLite would take it for the journal of {}): remove it", journal,
                          path);
    if (writes) reject_super_journal(journal, real);
}

std::shared_ptr<const RecoveredStore> recover(const std::string& path) {
    const std::string real = resolved(path);
    // A run holds this lock as long as it works; while it is held here, none begins to mend the store.
    const sim::FileDescriptor lock(::open(real.c_str(), O_RDONLY | O_CLOEXEC));
    if (lock.number() < 0 || ::flock(lock.number(), LOCK_SH | LOCK_NB) != 0) return nullptr;
    auto copy = std::make_shared<const RecoveredStore>();
    for (const char* suffix : {"", "-journal"}) {
        std::error_code failure;
        fs::copy_file(real + suffix, copy->path() + suffix, failure);
        if (failure == std::errc::no_such_file_or_directory && *suffix != '\0') return nullptr;  // mended meanwhile
        if (failure)
            throw write_error(
                "{}: a run was killed while it wrote here, and no copy can be made to read it as it was before ({}): "
                "run the same command again, which mends it, or set TMPDIR to a folder with room",
                path, failure.message());
    }
    reject_super_journal(copy->path() + "-journal", real);
    return copy;
}

}  // namespace spiked::validation
