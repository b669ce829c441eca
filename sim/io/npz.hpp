#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/files/byte_file.hpp"
#include "sim/io/npy.hpp"

namespace spiked::sim {

struct NpzMember {
    std::string name;          ///< without .npy
    NpyHeader header;          ///< its array fills the member exactly
    std::uint64_t size = 0;    ///< bytes when unpacked
    std::uint64_t packed = 0;  ///< bytes in the archive
    std::uint64_t index = 0;   ///< position in the archive
};

/// A limit of the memory that compressed arrays may take: `always` bytes, or `times` their compressed bytes where that
/// is more. Deflate compresses zeros a thousand times, so without it a file of megabytes could take gigabytes.
struct ExpansionLimit {
    std::uint64_t always;  ///< bytes
    std::uint64_t times;   ///< factor on the compressed bytes
};
/// Throws an input_error where `bytes` of memory are beyond the limit.
void reject_expansion(std::uint64_t bytes, std::uint64_t packed, const ExpansionLimit& limit, const std::string& where);

/// A .npz (zip of .npy members, stored or deflated). Sizes are checked before anything is unpacked: a member may not
/// claim more bytes than deflate can produce from its compressed bytes, and must claim exactly what its array needs;
/// all headers and the members that are unpacked may take 32 MiB in total, or 16 times the bytes of the file where that
/// is more. Failures are input_errors. Reading is safe from several threads.
class NpzFile {
public:
    explicit NpzFile(std::string path);

    [[nodiscard]] const std::string& path() const { return file_.path(); }
    [[nodiscard]] std::uint64_t file_bytes() const { return file_.size(); }
    [[nodiscard]] const std::vector<NpzMember>& members() const { return members_; }
    /// For messages: `FILE: member "name"`.
    [[nodiscard]] std::string where(const NpzMember& member) const;
    /// Unpacks a member and verifies its checksum. Takes memory of its size. Throws an input_error beyond the limit
    /// above.
    [[nodiscard]] std::vector<std::byte> unpack(const NpzMember& member) const;

private:
    ByteFile file_;
    std::vector<NpzMember> members_;
    mutable std::mutex mutex_;
    mutable std::set<std::uint64_t> unpacked_;  ///< indices of members
    mutable std::uint64_t unpacked_bytes_ = 0;  ///< of these members, and of the headers of all others
};

/// Bytes in memory as a source; `bytes` must outlive it.
[[nodiscard]] ByteSource source_of(const std::vector<std::byte>& bytes, std::string where);

}  // namespace spiked::sim
