#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "estimators/coding/ledger.hpp"

namespace spiked::estimators {

/// Appends fields of 1 to 64 bits, least significant bit first, and enters each in the ledger as it is written, so that
/// the bits of a method are counted and not computed by a formula.
class BitWriter {
public:
    void write(Item item, std::uint64_t value, unsigned bits);
    /// Writes many fields of one width, 1 to 8 bits: the same bytes as one by one, but faster.
    void write_cells(Item item, std::span<const std::uint8_t> cells, unsigned bits);
    /// Writes many fields of one width, 1 to 64 bits.
    void write_all(Item item, std::span<const std::uint64_t> values, unsigned bits);
    /// Fills the last byte; the filling is counted as padding.
    void align();

    [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }
    [[nodiscard]] std::vector<std::uint8_t> take_bytes() { return std::move(bytes_); }
    [[nodiscard]] const Ledger& ledger() const { return ledger_; }

private:
    std::vector<std::uint8_t> bytes_;
    unsigned free_bits_ = 0;  // unused bits of the last byte
    Ledger ledger_;
};

/// Reads the bytes of a BitWriter. Throws input_error when they end too early.
class BitReader {
public:
    explicit BitReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
    [[nodiscard]] std::uint64_t read(unsigned bits);
    void read_cells(std::span<std::uint8_t> cells, unsigned bits);
    void align() { at_ = (at_ + 7) / 8 * 8; }
    /// Number of bytes that have been read in whole or in part.
    [[nodiscard]] std::size_t bytes_read() const { return (at_ + 7) / 8; }
    [[nodiscard]] bool at_end() const { return (at_ + 7) / 8 == bytes_.size(); }
    /// Throws input_error when unread bytes remain.
    void require_end() const;

private:
    std::span<const std::uint8_t> bytes_;
    std::size_t at_ = 0;  // in bits
};

}  // namespace spiked::estimators
