#include "validation/store/store_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>

#include "core/files/byte_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"

namespace spiked::validation {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

/// The last bytes of a journal that names another one, for a commit to several databases; the name comes before them.
constexpr std::string_view super_journal_mark = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"sv;

constexpr std::string_view journal_mark = super_journal_mark;  // SQLite uses the same bytes at the start

/// The path with links resolved. SQLite looks for journals beside the file that a link leads to.
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

/// The last `count` bytes of a regular file; empty if it is shorter.
std::string last_bytes(const std::string& path, std::size_t count) {
    const ByteFile file(path);
    std::string bytes(count, '\0');
    if (file.size() < count) return "";
    file.read(file.size() - count, std::as_writable_bytes(std::span(bytes)));
    return bytes;
}

std::uint32_t big_endian(std::string_view bytes) {
    std::uint32_t number = 0;
    for (const char byte : bytes.substr(0, 4)) number = number << 8U | static_cast<unsigned char>(byte);
    return number;
}

std::uint64_t size_of(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

/// Page size of the database at `path`; 0 if it has no header. SQLite writes the largest page size as 1.
std::uint32_t page_size_of(const std::string& path) {
    constexpr std::size_t page_size_at = 16;
    constexpr std::uint32_t largest = 65536;
    std::string head(page_size_at + 2, '\0');
    const ByteFile file(path);
    if (file.size() < head.size()) return 0;
    file.read(0, std::as_writable_bytes(std::span(head)));
    if (!head.starts_with("SQLite format 3\0"sv)) return 0;
    const std::uint32_t bytes = big_endian(std::string(2, '\0') + head.substr(page_size_at));
    return bytes == 1 ? largest : bytes;
}

/// Rejects a journal that names another journal or that would make the store larger than it is. SQLite would write as
/// many pages as the journal claims, of the page size that it states or, if it states none, of the store's. The file
/// `journal` is read; messages name the journal beside `store`.
void reject_foreign_journal(const std::string& journal, const std::string& store) {
    if (last_bytes(journal, super_journal_mark.size()) == super_journal_mark)
        throw input_error(
            "{0}: the journal beside it names another journal (SQLite would delete that one, and no run writes such a "
            "name): remove {0}-journal",
            store);
    constexpr std::size_t pages_at = 16;  // in the header of a journal: pages of the database, and the bytes of each
    constexpr std::size_t page_size_at = 24;
    std::string head(28, '\0');
    const ByteFile file(journal);
    if (file.size() < head.size()) return;
    file.read(0, std::as_writable_bytes(std::span(head)));
    const std::string_view text = head;
    if (!text.starts_with(journal_mark)) return;
    const std::uint32_t page_size = big_endian(text.substr(page_size_at));
    const std::uint32_t of_store = page_size_of(store);
    if (page_size == 0 || (of_store != 0 && page_size != of_store))
        throw input_error(
            "{0}: the journal beside it has pages of {1} bytes (those of the store differ, so it belongs to another "
            "file): remove {0}-journal",
            store, page_size);
    const std::uint64_t claimed = std::uint64_t{big_endian(text.substr(pages_at))} * page_size;
    if (claimed > size_of(store))
        throw input_error(
            "{0}: the journal beside it belongs to a larger store ({1}; this one has {2}): remove {0}-journal", store,
            bytes_text(claimed), bytes_text(size_of(store)));
}

/// Rejects a store or journal that consists almost entirely of holes, because copying or reading it would take the
/// space and time of its full size.
void reject_holes(const std::string& path, const char* advice) {
    constexpr std::uint64_t always = 64 << 20;
    constexpr std::uint64_t times = 64;  // compressing file systems stay below this
    if (const std::uint64_t size = size_of(path); size > std::max(always, times * bytes_on_disk(path)))
        throw input_error("{}: {} of which the disk holds {} (the rest is a hole): {}", path, bytes_text(size),
                          bytes_text(bytes_on_disk(path)), advice);
}

/// Rejects a journal that is too long. A journal holds each page of the store at most once, with 8 bytes and at worst a
/// header of one sector, which is not longer than a page of our stores: about twice the size of the store. Twice that
/// allows for other sector sizes.
void reject_long_journal(const std::string& journal, const std::string& real) {
    constexpr std::uint64_t always = 1 << 20;
    constexpr std::uint64_t times = 4;
    if (const std::uint64_t most = always + times * size_of(real); size_of(journal) > most)
        throw input_error("{}: {} (the journal of a store of {} has at most {}): remove it", journal,
                          bytes_text(size_of(journal)), bytes_text(size_of(real)), bytes_text(most));
}

void reject_write_ahead(const std::string& path, const std::string& real) {
    constexpr std::size_t write_version = 18;  // offset in the header of the database; a value of 2: write-ahead log
    constexpr std::size_t read_version = 19;
    std::string reason;
    for (const char* suffix : {"-wal", "-shm"})
        if (kind_of(real + suffix)) reason = fmt::format("{}{} lies beside it", real, suffix);
    struct stat status {};
    if (::stat(real.c_str(), &status) == 0 && S_ISREG(status.st_mode) && reason.empty()) {
        const ByteFile file(real);
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
            "{}: uses a write-ahead log ({}; no run does that, and reading the store would write files): end the "
            "program that has it open, then sqlite3 FILE 'PRAGMA journal_mode = DELETE' makes it a store again",
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

std::uint64_t bytes_on_disk(const std::string& path) {
    constexpr std::uint64_t block_bytes = 512;  // unit of st_blocks on every file system
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return 0;
    return std::min(static_cast<std::uint64_t>(status.st_size),
                    block_bytes * static_cast<std::uint64_t>(status.st_blocks));
}

void reject_foreign_files(const std::string& path, bool writes) {
    const std::string real = resolved(path);
    reject_write_ahead(path, real);
    reject_holes(real, "no run writes such a store; get it again");
    const std::string journal = real + "-journal";
    const auto kind = kind_of(journal);
    if (!kind) return;
    if (*kind != S_IFREG)
        throw input_error("{}: is not a regular file (SQLite would take it for the journal of {}): remove it", journal,
                          path);
    reject_holes(journal, "no run leaves such a journal; remove it");
    reject_long_journal(journal, real);
    if (writes) reject_foreign_journal(journal, real);
}

std::shared_ptr<const RecoveredStore> recover(const std::string& path) {
    const std::string real = resolved(path);
    const std::string journal = real + "-journal";
    const auto identity = [&] {
        struct stat status {};
        const bool there = ::stat(journal.c_str(), &status) == 0;
        return there ? std::tuple(status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
                     : std::tuple<ino_t, off_t, time_t, long>();
    };
    // If a run starts to repair the store during the copy, it restores the same pages that this journal restores in the
    // copy. If it has finished, the journal is gone.
    const auto before = identity();
    auto copy = std::make_shared<const RecoveredStore>();
    for (const char* suffix : {"", "-journal"}) {
        std::error_code failure;
        fs::copy_file(real + suffix, copy->path() + suffix, failure);
        if (failure == std::errc::no_such_file_or_directory && *suffix != '\0') return nullptr;
        if (!failure) fs::permissions(copy->path() + suffix, fs::perms::owner_read | fs::perms::owner_write, failure);
        if (failure)
            throw output_error(
                "{}: a run was killed while it wrote here, and the store cannot be copied to read its earlier state "
                "({}): run the same command again, which repairs it, or set TMPDIR to a folder with room",
                path, failure.message());
    }
    if (identity() != before) return nullptr;
    reject_foreign_journal(copy->path() + "-journal", real);
    return copy;
}

}  // namespace spiked::validation
