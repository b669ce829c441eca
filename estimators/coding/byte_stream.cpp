#include "estimators/coding/byte_stream.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/runtime/error.hpp"
#include "core/runtime/processor.hpp"

namespace spiked::estimators {
namespace {

#define SPIKED_INLINE inline __attribute__((always_inline))

constexpr std::uint64_t every_other_byte = 0x00FF00FF00FF00FF;
constexpr std::uint64_t every_other_pair = 0x0000FFFF0000FFFF;
constexpr std::uint64_t low_half = 0x00000000FFFFFFFF;

/// Four words of eight fields each.
using Four [[gnu::vector_size(32), gnu::may_alias]] = std::uint64_t;

/// Packs eight fields of one byte each: three times, pairs of fields are joined into fields of twice the width. Works
/// on one word or on several side by side.
template <class Word>
SPIKED_INLINE void pack_eight(Word& word, unsigned bits) {
    if (bits == 8) return;
    word = (word & every_other_byte) | ((word >> 8) & every_other_byte) << bits;
    word = (word & every_other_pair) | ((word >> 16) & every_other_pair) << (2 * bits);
    word = (word & low_half) | (word >> 32) << (4 * bits);
}

template <class Word>
SPIKED_INLINE void unpack_eight(Word& packed, unsigned bits) {
    const auto low = [](unsigned width) { return (std::uint64_t{1} << width) - 1; };
    packed = (packed & low(4 * bits)) | (packed >> (4 * bits) & low(4 * bits)) << 32;
    const std::uint64_t pair = low(2 * bits) * 0x0000000100000001;
    packed = (packed & pair) | (packed >> (2 * bits) & pair) << 16;
    const std::uint64_t single = low(bits) * 0x0001000100010001;
    packed = (packed & single) | (packed >> bits & single) << 8;
}

/// Packs `eights` times eight cells into `bits` bytes each; writes up to 8 - bits bytes beyond the end.
SPIKED_INLINE void pack(const std::uint8_t* cells, std::size_t eights, unsigned bits, std::uint8_t* bytes) {
    std::size_t i = 0;
    for (; i + 4 <= eights; i += 4, cells += 32, bytes += 4 * bits) {
        Four words;
        std::memcpy(&words, cells, sizeof words);
        pack_eight(words, bits);
        for (unsigned k = 0; k < 4; ++k) {
            const std::uint64_t word = words[k];
            std::memcpy(bytes + k * bits, &word, 8);
        }
    }
    for (; i < eights; ++i, cells += 8, bytes += bits) {
        std::uint64_t word = 0;
        std::memcpy(&word, cells, 8);
        pack_eight(word, bits);
        std::memcpy(bytes, &word, 8);
    }
}

/// The inverse of pack; reads up to 8 - bits bytes beyond the end.
SPIKED_INLINE void unpack(const std::uint8_t* bytes, std::size_t eights, unsigned bits, std::uint8_t* cells) {
    std::size_t i = 0;
    for (; i + 4 <= eights; i += 4, cells += 32, bytes += 4 * bits) {
        std::uint64_t four[4];
        for (unsigned k = 0; k < 4; ++k) std::memcpy(four + k, bytes + k * bits, 8);
        Four words = {four[0], four[1], four[2], four[3]};
        unpack_eight(words, bits);
        std::memcpy(cells, &words, sizeof words);
    }
    for (; i < eights; ++i, cells += 8, bytes += bits) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes, 8);
        unpack_eight(word, bits);
        std::memcpy(cells, &word, 8);
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void avx2_pack(const std::uint8_t* cells, std::size_t eights, unsigned bits,
                                               std::uint8_t* bytes) {
    pack(cells, eights, bits, bytes);
}
__attribute__((target("avx2"))) void avx2_unpack(const std::uint8_t* bytes, std::size_t eights, unsigned bits,
                                                 std::uint8_t* cells) {
    unpack(bytes, eights, bits, cells);
}
#endif

void pack_eights(const std::uint8_t* cells, std::size_t eights, unsigned bits, std::uint8_t* bytes) {
#if defined(__x86_64__)
    if (processor().avx2) return avx2_pack(cells, eights, bits, bytes);
#endif
    pack(cells, eights, bits, bytes);
}

void unpack_eights(const std::uint8_t* bytes, std::size_t eights, unsigned bits, std::uint8_t* cells) {
#if defined(__x86_64__)
    if (processor().avx2) return avx2_unpack(bytes, eights, bits, cells);
#endif
    unpack(bytes, eights, bits, cells);
}

}  // namespace

void BitWriter::write_cells(Item item, std::span<const std::uint8_t> cells, unsigned bits) {
    static_assert(std::endian::native == std::endian::little);
    std::size_t done = 0;
    if (free_bits_ == 0) {
        const std::size_t eights = cells.size() / 8;
        const std::size_t at = bytes_.size();
        bytes_.resize(at + eights * bits + 8);
        pack_eights(cells.data(), eights, bits, bytes_.data() + at);
        bytes_.resize(at + eights * bits);
        done = 8 * eights;
        ledger_.add(item, done * bits);
    }
    for (; done < cells.size(); ++done) write(item, cells[done], bits);
}

void BitWriter::write_all(Item item, std::span<const std::uint64_t> values, unsigned bits) {
    if (free_bits_ != 0 || bits % 8 != 0) {
        for (const std::uint64_t value : values) write(item, value, bits);
        return;
    }
    const std::size_t at = bytes_.size();
    const std::size_t width = bits / 8;
    bytes_.resize(at + values.size() * width + 8);
    std::uint8_t* to = bytes_.data() + at;
    for (const std::uint64_t value : values) {
        std::memcpy(to, &value, 8);
        to += width;
    }
    bytes_.resize(at + values.size() * width);
    ledger_.add(item, values.size() * bits);
}

void BitReader::read_cells(std::span<std::uint8_t> cells, unsigned bits) {
    std::size_t done = 0;
    if (at_ % 8 == 0 && at_ / 8 + 8 <= bytes_.size()) {
        // Whole words are read, so the last ones must not reach beyond the end.
        const std::size_t words = (bytes_.size() - at_ / 8 - 8) / bits + 1;
        const std::size_t eights = std::min(cells.size() / 8, words);
        unpack_eights(bytes_.data() + at_ / 8, eights, bits, cells.data());
        at_ += 8 * eights * bits;
        done = 8 * eights;
    }
    for (; done < cells.size(); ++done) cells[done] = static_cast<std::uint8_t>(read(bits));
}

void BitWriter::write(Item item, std::uint64_t value, unsigned bits) {
    ledger_.add(item, bits);
    for (; free_bits_ == 0 && bits >= 8; bits -= 8, value >>= 8) bytes_.push_back(static_cast<std::uint8_t>(value));
    while (bits > 0) {
        if (free_bits_ == 0) {
            bytes_.push_back(0);
            free_bits_ = 8;
        }
        const unsigned now = std::min(bits, free_bits_);
        const std::uint64_t part = value & ((std::uint64_t{1} << now) - 1);
        bytes_.back() |= static_cast<std::uint8_t>(part << (8 - free_bits_));
        value >>= now;
        bits -= now;
        free_bits_ -= now;
    }
}

void BitWriter::align() {
    ledger_.add(Item::padding, free_bits_);
    free_bits_ = 0;
}

void BitReader::require_end() const {
    if (!at_end())
        throw input_error("a coded block has {} bytes and its rows need {}: the data is damaged or forged",
                          bytes_.size(), bytes_read());
}

std::uint64_t BitReader::read(unsigned bits) {
    if (at_ + bits > 8 * bytes_.size())
        throw input_error("a coded block ends after {} bytes (more were announced): the data is truncated",
                          bytes_.size());
    std::uint64_t value = 0;
    unsigned have = 0;
    if (at_ % 8 == 0)
        for (; have + 8 <= bits; have += 8, at_ += 8) value |= std::uint64_t{bytes_[at_ / 8]} << have;
    while (have < bits) {
        const auto offset = static_cast<unsigned>(at_ % 8);
        const unsigned now = std::min(bits - have, 8 - offset);
        const std::uint64_t part = (std::uint64_t{bytes_[at_ / 8]} >> offset) & ((1U << now) - 1U);
        value |= part << have;
        have += now;
        at_ += now;
    }
    return value;
}

}  // namespace spiked::estimators
