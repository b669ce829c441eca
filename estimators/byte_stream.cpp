#include "estimators/byte_stream.hpp"

#include <algorithm>

#include "theory/base/error.hpp"

namespace spiked::estimators {

void BitWriter::write(Item item, std::uint64_t value, unsigned bits) {
    ledger_.add(item, bits);
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
