#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace spiked::estimators {

/// Range coding (Martin 1979) with integers only, so that encoder and decoder agree on every machine: an interval of 64
/// bits is divided among the symbols by their counts, and its leading bytes are written once they are settled. A carry
/// runs back through the bytes that are already written.
///
/// Cost beyond the code length of the counts: below 2^-30 bits a symbol, and at most two bytes at the end of a stream.
class RangeEncoder {
public:
    /// A symbol that takes `count` of `total` and begins at `below`: count > 0, below + count <= total <= 2^24.
    void encode(std::uint32_t below, std::uint32_t count, std::uint32_t total);
    /// The lowest `bits` (at most 20) of a number, each value as likely as any other.
    void encode_bits(std::uint32_t value, unsigned bits);
    /// The bytes, after which the encoder is empty.
    [[nodiscard]] std::vector<std::uint8_t> finish();

private:
    void narrow(std::uint64_t from, std::uint64_t width);
    void carry();

    std::uint64_t low_ = 0;
    std::uint64_t range_ = ~std::uint64_t{0};
    std::vector<std::uint8_t> bytes_;
};

/// Reads what RangeEncoder wrote, given the same counts. Any bytes decode to some symbols; input_error where a stream
/// ends before its symbols do.
class RangeDecoder {
public:
    explicit RangeDecoder(std::span<const std::uint8_t> bytes);
    /// The next symbol, given the counts of all symbols and their sum.
    [[nodiscard]] std::uint32_t decode(std::span<const std::uint32_t> counts, std::uint32_t total);
    [[nodiscard]] std::uint32_t decode_bits(unsigned bits);
    /// Throws input_error when bytes are left over.
    void require_end() const;

private:
    void take(std::uint64_t from, std::uint64_t width);
    [[nodiscard]] std::uint8_t next();

    std::span<const std::uint8_t> bytes_;
    std::size_t at_ = 0;
    std::uint64_t code_ = 0;
    std::uint64_t range_ = ~std::uint64_t{0};
};

/// Counts of the symbols 0, 1, ... that follow what was coded.
class AdaptiveCounts {
public:
    AdaptiveCounts() = default;
    /// First counts, each at least 1. Every coded symbol adds `increment` to its count, 0 for fixed counts; all are
    /// halved, upwards, when their sum exceeds `limit`. The first sum is at most `limit`, and limit + increment at most
    /// 2^24.
    AdaptiveCounts(std::vector<std::uint32_t> counts, std::uint32_t increment, std::uint32_t limit);

    void encode(RangeEncoder& encoder, std::uint32_t symbol);
    [[nodiscard]] std::uint32_t decode(RangeDecoder& decoder);

    [[nodiscard]] std::span<const std::uint32_t> counts() const { return counts_; }
    [[nodiscard]] std::uint32_t total() const { return total_; }

private:
    void adapt(std::uint32_t symbol);

    std::vector<std::uint32_t> counts_;
    std::uint32_t total_ = 0;
    std::uint32_t increment_ = 0;
    std::uint32_t limit_ = 0;
};

}  // namespace spiked::estimators
