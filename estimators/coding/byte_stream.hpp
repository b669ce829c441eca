#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "estimators/coding/ledger.hpp"

namespace spiked::estimators {

/// Appends fields of 1 to 64 bits, least significant bit first, and enters each in the ledger as it is written: the
/// bits of a method are what stands here, not a formula.
class BitWriter {
public:
    void write(Item item, std::uint64_t value, unsigned bits);
    /// Many fields of one width, 1 to 8 bits: the same bytes as one by one, faster.
    void write_cells(Item item, std::span<const std::uint8_t> cells, unsigned bits);
    /// Many fields of one width, 1 to 64 bits.
    void write_all(Item item, std::span<const std::uint64_t> values, unsigned bits);
    /// Fills up to a whole byte; the filling is counted as padding.
    void align();

    [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }
    [[nodiscard]] std::vector<std::uint8_t> take_bytes() { return std::move(bytes_); }
    [[nodiscard]] const Ledger& ledger() const { return ledger_; }

private:
    std::vector<std::uint8_t> bytes_;
    unsigned free_bits_ = 0;  // in the last byte
    Ledger ledger_;
};

/// Reads what BitWriter wrote. Throws input_error when the bytes end too early.
class BitReader {
public:
    explicit BitReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
    [[nodiscard]] std::uint64_t read(unsigned bits);
    void read_cells(std::span<std::uint8_t> cells, unsigned bits);
    void align() { at_ = (at_ + 7) / 8 * 8; }
    /// Whole bytes that were begun.
    [[nodiscard]] std::size_t bytes_read() const { return (at_ + 7) / 8; }
    [[nodiscard]] bool at_end() const { return (at_ + 7) / 8 == bytes_.size(); }
    /// Throws input_error when bytes are left that nothing asked for.
    void require_end() const;

private:
    std::span<const std::uint8_t> bytes_;
    std::size_t at_ = 0;  // in bits
};

}  // namespace spiked::estimators
