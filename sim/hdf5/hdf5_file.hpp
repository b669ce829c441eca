#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/files/byte_file.hpp"

namespace spiked::sim {

class Hdf5Fields;

/// The type of the elements of a dataset.
struct Hdf5Type {
    enum class Kind : std::uint8_t { signed_integer, unsigned_integer, real, text, compound, other };
    Kind kind = Kind::other;
    std::endian order = std::endian::little;
    std::size_t bytes = 0;

    [[nodiscard]] bool is_number() const { return kind <= Kind::real; }
};

/// What the header of an object says: of a dataset, which has a type, or of a group, which has members.
struct Hdf5Object {
    std::optional<Hdf5Type> type;
    std::vector<std::uint64_t> shape;              ///< C order; empty: a single element
    std::map<std::string, std::string> texts;      ///< attributes that are texts of fixed length
    std::map<std::string, std::uint64_t> numbers;  ///< attributes that are one number
    bool is_group = false;
    /// Whether fewer bytes of the file than its elements may hold them: it is in chunks, or was never written.
    bool expands = true;

    // Where the reader finds the content.
    static constexpr std::uint64_t undefined = ~std::uint64_t{0};  ///< an address that was never set
    std::uint64_t symbols = undefined;                             ///< the B-tree of a group
    std::uint64_t names = undefined;                               ///< its heap
    std::uint64_t data = undefined;                                ///< of contiguous data, in the file
    std::uint64_t data_bytes = 0;
    std::vector<std::byte> compact;  ///< data that the header itself holds
    std::uint64_t chunk_tree = undefined;
    std::vector<std::uint64_t> chunk_sizes;  ///< empty: not in chunks; the last one is that of an element
    std::vector<std::uint16_t> filters;
    bool is_unread = false;     ///< its data are stored in a way that is not read
    bool is_elsewhere = false;  ///< its data lie in another file
};

/// An HDF5 file, of which only the structures are read that MATLAB and h5py write by default, after the "HDF5 File
/// Format Specification Version 3.0": superblocks 0 and 1, groups as symbol tables, object headers of version 1, data
/// that are compact, contiguous or in chunks under a B-tree of version 1, and the filters deflate, shuffle and
/// fletcher32 (whose checksum is not compared). Links, references and data in other files are never followed. All
/// structures together may be read from 8 times the bytes of the file plus 64 KiB, so that references in circles end.
/// Failures are input_errors. Not for several threads at once.
class Hdf5File {
public:
    /// The superblock must be at byte `offset`.
    Hdf5File(std::string path, std::uint64_t offset);

    [[nodiscard]] const std::string& path() const { return file_.path(); }
    /// The bytes of the file.
    [[nodiscard]] std::uint64_t size() const { return file_.size(); }
    /// The address of the group of all objects.
    [[nodiscard]] std::uint64_t root() const { return root_; }
    /// The header of the object at this address.
    [[nodiscard]] Hdf5Object object(std::uint64_t address);
    /// The names and addresses of the members of a group, without links to other places.
    [[nodiscard]] std::map<std::string, std::uint64_t> members(const Hdf5Object& group);
    /// The number of elements of a dataset, below 2^56.
    [[nodiscard]] std::uint64_t elements(const Hdf5Object& data) const;
    /// The bytes of all elements of a dataset in its order. Takes memory for them, which the caller must have limited
    /// for a dataset that expands.
    [[nodiscard]] std::vector<std::byte> bytes(const Hdf5Object& data);
    /// Begins to count the bytes that are read anew.
    void renew_budget() { budget_ = budget(); }

private:
    using Leaf = std::function<void(Hdf5Fields& key, std::uint64_t address)>;

    [[nodiscard]] std::vector<std::byte> read(std::uint64_t position, std::uint64_t count);
    [[nodiscard]] std::uint64_t position(std::uint64_t address) const;
    [[nodiscard]] std::uint64_t budget() const { return (std::uint64_t{1} << 16U) + 8 * file_.size(); }
    void each_leaf(std::uint64_t tree, std::uint64_t type, std::size_t key_bytes, const Leaf& use);
    [[nodiscard]] std::vector<std::byte> chunks(const Hdf5Object& data, std::uint64_t bytes);

    ByteFile file_;
    std::uint64_t budget_;  ///< bytes that may still be read
    std::uint64_t base_ = 0;
    std::uint64_t root_ = 0;
};

}  // namespace spiked::sim
