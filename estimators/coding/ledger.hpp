#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spiked::estimators {

/// The purpose of a stored bit. Order and names are those of the JSON output.
enum class Item : std::size_t {
    indices,
    signs,
    norms,
    residual_norms,
    scales,
    zeros,
    factor_indices,
    singular_values,
    codebooks,
    ranks,
    outliers,
    residual_window,
    header,
    padding,
};
inline constexpr std::size_t item_count = 14;
inline constexpr std::array<std::string_view, item_count> item_names = {
    "indices",         "signs",     "norms", "residual_norms", "scales",          "zeros",  "factor_indices",
    "singular_values", "codebooks", "ranks", "outliers",       "residual_window", "header", "padding"};

/// Counts of all stored bits by item, taken while the bytes are written.
class Ledger {
public:
    void add(Item item, std::uint64_t bits) { bits_[static_cast<std::size_t>(item)] += bits; }
    [[nodiscard]] std::uint64_t bits(Item item) const { return bits_[static_cast<std::size_t>(item)]; }
    [[nodiscard]] std::uint64_t total() const {
        std::uint64_t sum = 0;
        for (const auto bits : bits_) sum += bits;
        return sum;
    }
    Ledger& operator+=(const Ledger& other) {
        for (std::size_t i = 0; i < item_count; ++i) bits_[i] += other.bits_[i];
        return *this;
    }

private:
    std::array<std::uint64_t, item_count> bits_{};
};

}  // namespace spiked::estimators
