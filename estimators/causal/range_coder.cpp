#include "estimators/causal/range_coder.hpp"

#include <algorithm>
#include <utility>

#include "core/runtime/error.hpp"

namespace spiked::estimators {
namespace {

/// The interval stays wider than this, which bounds both the rounding of shares and the total of counts.
constexpr std::uint64_t narrowest = std::uint64_t{1} << 56;
constexpr unsigned word_bytes = 8;

}  // namespace

void RangeEncoder::carry() {
    std::size_t at = bytes_.size();
    while (at > 0 && ++bytes_[--at] == 0) {
    }
}

void RangeEncoder::narrow(std::uint64_t from, std::uint64_t width) {
    const std::uint64_t moved = low_ + from;
    if (moved < low_) carry();
    low_ = moved;
    range_ = width;
    while (range_ < narrowest) {
        bytes_.push_back(static_cast<std::uint8_t>(low_ >> 56));
        low_ <<= 8;
        range_ <<= 8;
    }
}

void RangeEncoder::encode(std::uint32_t below, std::uint32_t count, std::uint32_t total) {
    const std::uint64_t share = range_ / total;
    // The last symbol takes what the division left over.
    narrow(share * below, below + count == total ? range_ - share * below : share * count);
}

void RangeEncoder::encode_bits(std::uint32_t value, unsigned bits) {
    const std::uint64_t share = range_ >> bits;
    narrow(share * value, value + 1 == std::uint32_t{1} << bits ? range_ - share * value : share);
}

std::vector<std::uint8_t> RangeEncoder::finish() {
    // The shortest bytes that, followed by zeros, lie in the interval; the decoder supplies the zeros.
    for (unsigned kept = 0; kept <= word_bytes; ++kept) {
        const unsigned cut = 8 * (word_bytes - kept);
        const std::uint64_t below = cut == 0 ? 0 : cut == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << cut) - 1;
        const std::uint64_t up = (low_ + below) & ~below;
        if (up - low_ >= range_) continue;
        if (up < low_) carry();
        for (unsigned i = 0; i < kept; ++i) bytes_.push_back(static_cast<std::uint8_t>(up >> (56 - 8 * i)));
        break;
    }
    low_ = 0;
    range_ = ~std::uint64_t{0};
    return std::exchange(bytes_, {});
}

RangeDecoder::RangeDecoder(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
    for (unsigned i = 0; i < word_bytes; ++i) code_ = code_ << 8 | next();
}

std::uint8_t RangeDecoder::next() {
    const std::size_t at = at_++;
    if (at < bytes_.size()) return bytes_[at];
    if (at >= bytes_.size() + word_bytes)
        throw input_error("an entropy-coded block ends after {} bytes (its symbols need more): the data is truncated",
                          bytes_.size());
    return 0;
}

void RangeDecoder::take(std::uint64_t from, std::uint64_t width) {
    code_ -= from;
    range_ = width;
    while (range_ < narrowest) {
        code_ = code_ << 8 | next();
        range_ <<= 8;
    }
}

std::uint32_t RangeDecoder::decode(std::span<const std::uint32_t> counts, std::uint32_t total) {
    // Multiples of a share are compared with the code, because a division takes longer than the few that are needed.
    const std::uint64_t share = range_ / total;
    std::uint64_t from = 0;
    std::uint64_t to = share * counts[0];
    std::uint32_t symbol = 0;
    while (symbol + 1 < counts.size() && code_ >= to) {
        from = to;
        to += share * counts[++symbol];
    }
    take(from, symbol + 1 < counts.size() ? to - from : range_ - from);
    return symbol;
}

std::uint32_t RangeDecoder::decode_bits(unsigned bits) {
    const std::uint64_t share = range_ >> bits;
    const std::uint32_t most = (std::uint32_t{1} << bits) - 1;
    const auto value = bits == 1 ? static_cast<std::uint32_t>(code_ >= share)
                                 : static_cast<std::uint32_t>(std::min<std::uint64_t>(code_ / share, most));
    take(share * value, value == most ? range_ - share * value : share);
    return value;
}

void RangeDecoder::require_end() const {
    if (at_ < bytes_.size())
        throw input_error("an entropy-coded block has {} bytes and its symbols need {}: the data is damaged",
                          bytes_.size(), at_);
}

AdaptiveCounts::AdaptiveCounts(std::vector<std::uint32_t> counts, std::uint32_t increment, std::uint32_t limit)
    : counts_(std::move(counts)), increment_(increment), limit_(limit) {
    for (const std::uint32_t count : counts_) {
        if (count == 0) throw precondition_error("a count of 0 could not be coded");
        total_ += count;
    }
    if (total_ > limit || std::uint64_t{limit} + increment > narrowest >> 32)
        throw precondition_error("counts of sum {} with limit {} and increment {}", total_, limit, increment);
}

void AdaptiveCounts::adapt(std::uint32_t symbol) {
    counts_[symbol] += increment_;
    total_ += increment_;
    if (total_ <= limit_) return;
    total_ = 0;
    for (std::uint32_t& count : counts_) {
        count = (count + 1) / 2;
        total_ += count;
    }
}

void AdaptiveCounts::encode(RangeEncoder& encoder, std::uint32_t symbol) {
    std::uint32_t below = 0;
    for (std::uint32_t i = 0; i < symbol; ++i) below += counts_[i];
    encoder.encode(below, counts_[symbol], total_);
    adapt(symbol);
}

std::uint32_t AdaptiveCounts::decode(RangeDecoder& decoder) {
    const std::uint32_t symbol = decoder.decode(counts_, total_);
    adapt(symbol);
    return symbol;
}

}  // namespace spiked::estimators
