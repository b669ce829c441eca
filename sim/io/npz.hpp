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
    NpyHeader header;          ///< fills the member exactly
    std::uint64_t size = 0;    ///< bytes when unpacked
    std::uint64_t packed = 0;  ///< bytes in the archive
    std::uint64_t index = 0;   ///< in the archive
};

/// Deflate packs zeros a thousand times, and a file of megabytes would take gigabytes: memory that a packed array may
/// take is limited, by what it takes in the file and whatever that is.
struct ExpansionLimit {
    std::uint64_t always;  ///< bytes
    std::uint64_t times;   ///< of the packed bytes
};
/// Throws an input_error where `bytes` of memory are beyond the limit.
void reject_expansion(std::uint64_t bytes, std::uint64_t packed, const ExpansionLimit& limit, const std::string& where);

/// A .npz (zip of .npy members, stored or deflated). Sizes are checked before anything is unpacked: a member may claim
/// no more than deflate can pack into its compressed bytes, and exactly what its array needs; all headers and the
/// members that are unpacked may take 32 MiB together, or 16 times the bytes of the file. Failures are input_errors.
/// Reading is safe from several threads.
class NpzFile {
public:
    explicit NpzFile(std::string path);

    [[nodiscard]] const std::string& path() const { return file_.path(); }
    [[nodiscard]] const std::vector<NpzMember>& members() const { return members_; }
    /// For messages: `FILE: member "name"`.
    [[nodiscard]] std::string where(const NpzMember& member) const;
    /// The member unpacked and its checksum verified. Costs memory of its size. Throws an input_error for one that is
    /// packed too well.
    [[nodiscard]] std::vector<std::byte> unpack(const NpzMember& member) const;

private:
    ByteFile file_;
    std::vector<NpzMember> members_;
    mutable std::mutex mutex_;
    mutable std::set<std::uint64_t> unpacked_;  ///< members
    mutable std::uint64_t unpacked_bytes_ = 0;  ///< of all of them, and of the headers of all others
};

/// Bytes in memory as a source; `bytes` must outlive it.
[[nodiscard]] ByteSource source_of(const std::vector<std::byte>& bytes, std::string where);

}  // namespace spiked::sim
