#include "estimators/byte_stream.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "theory/base/error.hpp"

namespace spiked::estimators {
namespace {

constexpr std::uint64_t every_other_byte = 0x00FF00FF00FF00FF;
constexpr std::uint64_t every_other_pair = 0x0000FFFF0000FFFF;
constexpr std::uint64_t low_half = 0x00000000FFFFFFFF;

/// Eight fields, each in a byte, moved together: fields of twice the width in half as many places, three times.
std::uint64_t pack_eight(std::uint64_t word, unsigned bits) {
    word = (word & every_other_byte) | ((word >> 8) & every_other_byte) << bits;
    word = (word & every_other_pair) | ((word >> 16) & every_other_pair) << (2 * bits);
    return bits == 8 ? word : (word & low_half) | (word >> 32) << (4 * bits);
}

std::uint64_t unpack_eight(std::uint64_t packed, unsigned bits) {
    const auto low = [](unsigned width) { return (std::uint64_t{1} << width) - 1; };
    packed = (packed & low(4 * bits)) | (packed >> (4 * bits) & low(4 * bits)) << 32;
    const std::uint64_t pair = low(2 * bits) * 0x0000000100000001;
    packed = (packed & pair) | (packed >> (2 * bits) & pair) << 16;
    const std::uint64_t single = low(bits) * 0x0001000100010001;
    return (packed & single) | (packed >> bits & single) << 8;
}

}  // namespace

void BitWriter::write_cells(Item item, std::span<const std::uint8_t> cells, unsigned bits) {
    static_assert(std::endian::native == std::endian::little);
    std::size_t i = 0;
    if (free_bits_ == 0) {
        const std::size_t eights = cells.size() / 8;
        std::size_t at = bytes_.size();
        bytes_.resize(at + eights * bits + 8);
        for (; i < 8 * eights; i += 8, at += bits) {
            std::uint64_t word = 0;
            std::memcpy(&word, cells.data() + i, 8);
            word = pack_eight(word, bits);
            std::memcpy(bytes_.data() + at, &word, 8);
        }
        bytes_.resize(at);
        ledger_.add(item, i * bits);
    }
    for (; i < cells.size(); ++i) write(item, cells[i], bits);
}

void BitReader::read_cells(std::span<std::uint8_t> cells, unsigned bits) {
    std::size_t i = 0;
    if (at_ % 8 == 0) {
        std::size_t at = at_ / 8;
        for (; i + 8 <= cells.size() && at + 8 <= bytes_.size(); i += 8, at += bits) {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes_.data() + at, 8);
            word = unpack_eight(word, bits);
            std::memcpy(cells.data() + i, &word, 8);
        }
        at_ = 8 * at;
    }
    for (; i < cells.size(); ++i) cells[i] = static_cast<std::uint8_t>(read(bits));
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
