#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/files/byte_file.hpp"
#include "core/files/output_file.hpp"
#include "core/text/json.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/compressors/compressor.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/io/tensor_layout.hpp"
#include "sim/kv/kv_dump.hpp"

namespace spiked::codec {

/// A tensor of keys or values in a container: heads x tokens x dim, coded block by block.
struct CodedTensor {
    std::size_t layer = 0;
    sim::Side side = sim::Side::key;  ///< key or value: KIVI's group axis
    std::size_t heads = 0;
    std::size_t tokens = 0;
    std::size_t dim = 0;
    std::vector<std::uint64_t> rotations;  ///< for each head its QuantizerOptions::rotation_index
    /// The tensor of the other side of its layer, if they are coded together.
    std::optional<std::size_t> other_side{};
};

struct ContainedTensor {
    std::string name;
    sim::DType dtype = sim::DType::f16;
    std::vector<std::size_t> shape;
    std::uint64_t bytes = 0;           ///< size of the tensor in the dump
    std::optional<CodedTensor> coded;  ///< no value: the tensor is stored unchanged
};

/// The header of a container: everything that a decoder needs besides the blocks.
struct KvContainerHeader {
    estimators::MethodSpec method;                 ///< only its text if there is a cache method
    std::optional<estimators::CacheMethod> cache;  ///< codes all tokens of a head, or of joined heads, as one block
    bool derotated = false;                        ///< a cache method coded keys without their rotary embedding
    double bits = 0;
    estimators::QuantizerOptions quantizer;  ///< axis and rotation_index are those of each tensor and head
    std::size_t block_tokens = 0;
    std::string dump_sha256;  ///< of the dump that was encoded; not needed to decode
    sim::TensorLayout layout;
    sim::Metadata metadata;
    std::vector<ContainedTensor> tensors;  ///< in the order of the dump and of this file

    /// The oldest version of the format that holds it.
    [[nodiscard]] std::uint32_t version() const;
    [[nodiscard]] Json json() const;
    /// Throws input_error, with `where` in front of the message, for anything that json() would not have written.
    [[nodiscard]] static KvContainerHeader parse(const Json& json, const std::string& where);
};

/// One block of one head, full or the partial last one, or of the heads that a cache method joins: `head` is the first
/// of them, and `tensor` the first in the file if keys and values are joined.
struct BlockPlace {
    std::size_t tensor = 0;
    std::size_t block = 0;
    std::size_t head = 0;

    [[nodiscard]] std::size_t first_token(const KvContainerHeader& header) const { return block * header.block_tokens; }
    [[nodiscard]] std::size_t tokens(const KvContainerHeader& header) const;
    /// Its tensors, keys before values, and of each of them the number of heads from `head` on.
    [[nodiscard]] std::vector<std::size_t> tensors(const KvContainerHeader& header) const;
    [[nodiscard]] std::size_t heads(const KvContainerHeader& header) const;
    /// The number of channels of all its heads.
    [[nodiscard]] std::size_t channels(const KvContainerHeader& header) const;
    /// Whether the block is full. Full blocks are coded; the partial last block of a head is stored in fp16. That of a
    /// cache method is always full.
    [[nodiscard]] bool full(const KvContainerHeader& header) const {
        return header.cache || tokens(header) == header.block_tokens;
    }
    /// For example `tensor "layers.0.key", head 1, block 3 (tokens 384 to 511)`.
    [[nodiscard]] std::string text(const KvContainerHeader& header) const;
};

/// The number of blocks that begin with a head of this tensor, which is 0 if they begin with the other side of its
/// layer.
[[nodiscard]] std::size_t blocks_of(const KvContainerHeader& header, std::size_t tensor);

/// Finds the other sides of all tensors if the method joins keys with values. Throws input_error if a layer lacks one,
/// has one twice, or if they differ in heads, tokens or channels.
void join_sides(KvContainerHeader& header);

/// A coded KV dump in one file, `.spkv`. Every number is little-endian. A file has version 4 if it was coded by a cache
/// method that joins heads, 3 if by another cache method, and else 2. Version 1 differs only in `kivi-hf`, whose groups
/// ran along tokens; its files are read as `kivi:axis=key`, which is the same code.
///
///     8 bytes   "SPIKEDKV"
///     u32       version
///     u32       CRC-32 (zlib's) of the header text
///     u64       length of the header text
///     text      JSON: format, version, method, bits, options, seed, block, dump_sha256, layout, metadata, tensors
///     then for each tensor of the header, in its order
///       coded:  for each block of `block` tokens, for each head, a frame
///                 u32   length of the payload
///                 u32   CRC-32 of tensor, head and block (u32 each, counted from 0) and of the payload
///                 payload: the bytes that the method's encoder returns for the rows of that block; the last tokens of
///                 a head that do not fill a block are stored as IEEE binary16, channel after channel
///       not coded:  its bytes as in safetensors (C order)
///       u32     CRC-32 of everything between the previous tensor's end and here
///
/// A tensor of the header has name, dtype and shape; a coded one also has layer, side and `rotations` (for each head a
/// hexadecimal 64-bit index of the seed's rotation). For a cache method `block` is the number of tokens of the longest
/// tensor, so that each head is one frame, and `derotated` says whether its keys were coded without their rotary
/// embedding, which the metadata state. Heads that it joins are one frame, in the place of the first of them; if keys
/// and values of a layer are joined, the tensor of the two that comes later is its CRC-32 alone. The file contains no
/// offsets: positions follow from the order and the lengths, so it is written and read in one pass.
///
/// Bounds, which limit the memory that a forged header can request: 100 MB of header; 1024 entries per row; 2^26
/// entries in the blocks of all heads of a tensor at the same tokens, or of both if two are joined; 2048 joined
/// channels; payloads of 32 bytes per entry plus 64 KiB.
inline constexpr std::uint32_t kv_container_version = 4;

/// Called after each batch of blocks, never by two threads at once.
using CodecProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Throws usage_error that names the bound if a tensor exceeds one.
void check_bounds(const KvContainerHeader& header);

/// Writes a container front to back; the file appears at commit(). The ledger counts every bit except those of tensors
/// that are stored unchanged: ledger().total() == 8 * (bytes() - kept_bytes()).
class KvContainerWriter {
public:
    KvContainerWriter(const std::string& path, const KvContainerHeader& header, std::uint64_t expected_bytes);

    void block(const BlockPlace& place, const estimators::Encoded& encoded);
    void raw(std::span<const std::byte> bytes);
    void end_tensor();
    void commit();

    [[nodiscard]] const estimators::Ledger& ledger() const { return ledger_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::uint64_t kept_bytes() const { return kept_bytes_; }

private:
    void put(std::span<const std::byte> bytes);

    OutputFile file_;
    std::uint32_t tensor_checksum_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t kept_bytes_ = 0;
    std::uint64_t least_bytes_ = 0;  ///< smallest size of the file that a reader accepts
    estimators::Ledger ledger_;
};

/// Reads a container front to back, in the order in which it was written. The constructor checks the header and that
/// the file is long enough for the tensors that the header lists; everything else is checked as it is read. Errors are
/// input_errors that name file, tensor, head and block.
class KvContainerReader {
public:
    explicit KvContainerReader(const std::string& path);

    [[nodiscard]] const std::string& path() const { return file_.path(); }
    [[nodiscard]] std::uint64_t bytes() const { return file_.size(); }
    [[nodiscard]] const KvContainerHeader& header() const { return header_; }

    [[nodiscard]] std::vector<std::uint8_t> block(const BlockPlace& place);
    void raw(std::size_t tensor, std::span<std::byte> out);
    void end_tensor(std::size_t tensor);
    /// Throws input_error if bytes follow the last tensor.
    void finish() const;

private:
    void take(std::span<std::byte> out, const std::string& what);
    void read_header();
    void check_length() const;
    [[noreturn]] void reject_checksum(const std::string& what) const;
    [[noreturn]] void reject_short(const ContainedTensor& too_long) const;

    ByteFile file_;
    KvContainerHeader header_;
    std::uint64_t at_ = 0;
    std::uint32_t tensor_checksum_ = 0;
};

}  // namespace spiked::codec
