#include "sim/io/npz.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>

#include "core/files/byte_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"
#include "sim/io/file_formats.hpp"

namespace spiked::sim {
namespace {

constexpr std::string_view suffix = ".npy";
/// Deflate compresses at most 1032 bytes into one.
constexpr std::uint64_t largest_expansion = 1032;
constexpr std::size_t chunk_bytes = 1 << 20;
/// The limit of the sum of all headers and of the members that are unpacked.
constexpr ExpansionLimit archive_limit{.always = 32 << 20, .times = 16};

struct CloseArchive {
    void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseMember {
    void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;
using OpenMember = std::unique_ptr<zip_file_t, CloseMember>;

/// The sizes that an end record of an archive states of its directory.
struct Directory {
    std::uint64_t members = 0;
    std::uint64_t bytes = 0;
};

/// Returns an empty text where the file ends before offset + count.
std::string bytes_at(const ByteFile& file, std::uint64_t offset, std::size_t count) {
    if (count > file.size() || offset > file.size() - count) return "";
    std::string bytes(count, '\0');
    file.read(offset, std::as_writable_bytes(std::span(bytes)));
    return bytes;
}

std::uint64_t little_endian(std::string_view bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[i]);
    return value;
}

constexpr std::size_t end_bytes = 22;
constexpr std::size_t locator_bytes = 20;

/// The sizes of a zip64 end record where a locator in front of the end record names one, otherwise of the end record.
Directory directory_of(const ByteFile& file, std::string_view locator, std::string_view end) {
    if (locator.size() == locator_bytes && locator.starts_with("PK\x06\x07")) {
        const std::string record = bytes_at(file, little_endian(locator.substr(8, 8)), 56);
        const std::string_view fields = record;
        if (fields.starts_with("PK\x06\x06"))
            return {std::max(little_endian(fields.substr(24, 8)), little_endian(fields.substr(32, 8))),
                    little_endian(fields.substr(40, 8))};
    }
    return {std::max(little_endian(end.substr(8, 2)), little_endian(end.substr(10, 2))),
            little_endian(end.substr(12, 4))};
}

/// Limits the work of libzip, which reads the whole directory of each end record that it finds in the last 64 KiB and
/// compares each name with all names of the same hash. Beyond 65536 members the record need not state their number, so
/// the bytes are limited too.
void reject_large_directory(const ByteFile& file) {
    constexpr std::uint64_t most_members = 4096;
    constexpr std::uint64_t most_bytes = 2 << 20;
    constexpr std::uint64_t longest_comment = 65536;
    const std::uint64_t searched = std::min(file.size(), longest_comment + end_bytes + locator_bytes);
    const std::string tail = bytes_at(file, file.size() - searched, searched);
    const std::string_view text = tail;
    Directory all;
    for (std::size_t at = 0; (at = text.find("PK\x05\x06", at)) != text.npos && at + end_bytes <= text.size(); ++at) {
        const std::size_t before = std::min(at, locator_bytes);
        const Directory one = directory_of(file, text.substr(at - before, before), text.substr(at, end_bytes));
        all.members += std::min(one.members, most_members + 1);
        all.bytes += std::min(one.bytes, most_bytes + 1);
    }
    if (all.members > most_members || all.bytes > most_bytes)
        throw input_error(
            "{}: its directory is too large (at most {} members, in {}, are read): save the arrays in several files, "
            "or as .safetensors",
            file.path(), most_members, bytes_text(most_bytes));
}

/// Opens the file that `file` holds open, even if its path names another file by now, so that members of two files are
/// never mixed.
Archive open_archive(const ByteFile& file) {
    int code = 0;
    Archive archive(zip_open(file.own_path().c_str(), ZIP_RDONLY, &code));
    if (!archive) {
        file.reject_shrunk();
        zip_error_t error;
        zip_error_init_with_code(&error, code);
        const std::string reason = zip_error_strerror(&error);
        zip_error_fini(&error);
        throw input_error("{}: not a readable .npz (zip: {}): likely an incomplete download, fetch or save it again",
                          file.path(), reason);
    }
    return archive;
}

OpenMember open_member(const ByteFile& file, zip_t* archive, std::uint64_t index, const std::string& where) {
    OpenMember member(zip_fopen_index(archive, index, 0));
    if (!member) file.reject_shrunk();
    if (!member) throw input_error("{} cannot be opened (zip: {}): save the .npz again", where, zip_strerror(archive));
    return member;
}

void read_exactly(const ByteFile& file, zip_file_t* member, std::span<std::byte> out, const std::string& where) {
    while (!out.empty()) {
        const zip_int64_t count = zip_fread(member, out.data(), out.size());
        if (count <= 0) file.reject_shrunk();
        if (count < 0)
            throw input_error("{} is damaged (zip: {}): fetch or save the .npz again", where,
                              zip_file_strerror(member));
        if (count == 0)
            throw input_error("{} ends {} bytes early (its size in the archive is wrong): fetch or save the .npz again",
                              where, out.size());
        out = out.subspan(static_cast<std::size_t>(count));
    }
}

/// A source that unpacks a member only as far as it is read and keeps those bytes (for headers, which are short).
ByteSource prefix_source(const ByteFile& file, zip_t* archive, std::uint64_t index, std::uint64_t size,
                         const std::string& where) {
    const std::shared_ptr member = open_member(file, archive, index, where);
    const auto prefix = std::make_shared<std::vector<std::byte>>();
    return {where, size, [=, &file](std::uint64_t offset, std::span<std::byte> out) {
                if (const std::size_t before = prefix->size(); before < offset + out.size()) {
                    prefix->resize(offset + out.size());
                    read_exactly(file, member.get(), std::span(*prefix).subspan(before), where);
                }
                std::copy_n(prefix->begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
            }};
}

void check_member(const zip_stat_t& status, const std::string& where) {
    constexpr zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    if ((status.valid & needed) != needed)
        throw input_error("{} has no size (the archive does not say how long it is): save the .npz again", where);
    if ((status.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 && status.encryption_method != ZIP_EM_NONE)
        throw input_error("{} is encrypted (passwords are not supported): save the .npz without a password", where);
    if (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE)
        throw input_error(
            "{} is packed by zip method {} (methods 0, stored, and 8, deflated, are read): save it with np.savez or "
            "np.savez_compressed",
            where, status.comp_method);
    const bool stored = status.comp_method == ZIP_CM_STORE;
    if (stored ? status.size != status.comp_size : status.size / largest_expansion > status.comp_size)
        throw input_error(
            "{} claims {} out of {} packed (impossible for its compression): the file is damaged or forged", where,
            bytes_text(status.size), bytes_text(status.comp_size));
}

}  // namespace

NpzFile::NpzFile(std::string path) : file_(std::move(path)) {
    reject_other_format(file_, ".npz");
    reject_large_directory(file_);
    const Archive archive = open_archive(file_);
    const zip_int64_t entries = zip_get_num_entries(archive.get(), 0);
    std::set<std::string> names;
    for (zip_int64_t i = 0; i < entries; ++i) {
        zip_stat_t status;
        zip_stat_init(&status);
        const auto index = static_cast<zip_uint64_t>(i);
        if (zip_stat_index(archive.get(), index, 0, &status) != 0 || (status.valid & ZIP_STAT_NAME) == 0)
            throw input_error("{}: member {} cannot be examined (zip: {}): fetch or save the .npz again", file_.path(),
                              i, zip_strerror(archive.get()));
        std::string name = status.name;
        if (!name.ends_with(suffix)) continue;
        name.resize(name.size() - suffix.size());
        if (!names.insert(name).second)
            throw input_error("{}: two members named {} (names must be unique): save the .npz again", file_.path(),
                              in_quotes(name));
        NpzMember member{name, {}, status.size, status.comp_size, index};
        const std::string at = where(member);
        check_member(status, at);
        member.header = read_npy_header(prefix_source(file_, archive.get(), index, status.size, at));
        unpacked_bytes_ += member.header.data_offset;
        reject_expansion(unpacked_bytes_, file_.size(), archive_limit, at);
        members_.push_back(std::move(member));
    }
    if (members_.empty())
        throw input_error("{}: it holds no array (a .npz has members named *.npy): save it with np.savez",
                          file_.path());
}

void reject_expansion(std::uint64_t bytes, std::uint64_t packed, const ExpansionLimit& limit,
                      const std::string& where) {
    if (bytes > std::max(limit.always, limit.times * packed))
        throw input_error(
            "{} unpacks, with what was read before, to {} from {} (at most {} are read of data compressed so "
            "strongly): if the data really are so large, save them uncompressed, with np.savez or as .npy",
            where, bytes_text(bytes), bytes_text(packed), bytes_text(std::max(limit.always, limit.times * packed)));
}

std::string NpzFile::where(const NpzMember& member) const {
    return fmt::format("{}: member {}", path(), in_quotes(member.name));
}

std::vector<std::byte> NpzFile::unpack(const NpzMember& member) const {
    {
        const std::lock_guard lock(mutex_);
        if (unpacked_.insert(member.index).second) unpacked_bytes_ += member.size - member.header.data_offset;
        // Members may overlap in the file, so the limit is relative to the bytes of the whole file.
        reject_expansion(unpacked_bytes_, file_.size(), archive_limit, where(member));
    }
    const Archive archive = open_archive(file_);
    const std::string at = where(member);
    const auto open = open_member(file_, archive.get(), member.index, at);
    // Memory grows with the bytes that are unpacked, not with the size that the archive claims.
    std::vector<std::byte> bytes;
    while (bytes.size() < member.size) {
        const std::size_t before = bytes.size();
        bytes.resize(before + std::min<std::uint64_t>(chunk_bytes, member.size - before));
        read_exactly(file_, open.get(), std::span(bytes).subspan(before), at);
    }
    // libzip compares the checksum only when the end is read.
    std::byte beyond{};
    const zip_int64_t more = zip_fread(open.get(), &beyond, 1);
    if (more < 0) file_.reject_shrunk();
    if (more != 0)
        throw input_error("{} is damaged ({}): fetch or save the .npz again", at,
                          more < 0 ? zip_file_strerror(open.get()) : "longer than it claims");
    return bytes;
}

ByteSource source_of(const std::vector<std::byte>& bytes, std::string where) {
    return {std::move(where), bytes.size(), [&bytes](std::uint64_t offset, std::span<std::byte> out) {
                if (offset > bytes.size() || out.size() > bytes.size() - offset)
                    throw precondition_error("{} bytes are requested at {} of {} in memory", out.size(), offset,
                                             bytes.size());
                std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
            }};
}

}  // namespace spiked::sim
