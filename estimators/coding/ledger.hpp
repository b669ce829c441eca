#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "core/text/enum_names.hpp"

namespace spiked::estimators {

/// The purpose of a stored bit.
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

}  // namespace spiked::estimators

/// In the order of the JSON output.
template <>
struct spiked::EnumNames<spiked::estimators::Item> {
    using Item = spiked::estimators::Item;
    static constexpr EnumName<Item> table[] = {
        {Item::indices, "indices"},
        {Item::signs, "signs"},
        {Item::norms, "norms"},
        {Item::residual_norms, "residual_norms"},
        {Item::scales, "scales"},
        {Item::zeros, "zeros"},
        {Item::factor_indices, "factor_indices"},
        {Item::singular_values, "singular_values"},
        {Item::codebooks, "codebooks"},
        {Item::ranks, "ranks"},
        {Item::outliers, "outliers"},
        {Item::residual_window, "residual_window"},
        {Item::header, "header"},
        {Item::padding, "padding"},
    };
};

namespace spiked::estimators {

/// A number for each item, 0 at first. They are iterated in the order of the enumeration.
template <class Number>
class PerItem {
public:
    [[nodiscard]] Number& operator[](Item item) { return numbers_[static_cast<std::size_t>(item)]; }
    [[nodiscard]] const Number& operator[](Item item) const { return numbers_[static_cast<std::size_t>(item)]; }
    [[nodiscard]] auto begin() const { return numbers_.begin(); }
    [[nodiscard]] auto end() const { return numbers_.end(); }

private:
    std::array<Number, std::size(EnumNames<Item>::table)> numbers_{};
};

/// Counts of all stored bits by item, taken while the bytes are written.
class Ledger {
public:
    void add(Item item, std::uint64_t bits) { bits_[item] += bits; }
    [[nodiscard]] std::uint64_t bits(Item item) const { return bits_[item]; }
    [[nodiscard]] std::uint64_t total() const {
        std::uint64_t sum = 0;
        for (const auto bits : bits_) sum += bits;
        return sum;
    }
    /// The bits of each item divided by a number of entries.
    [[nodiscard]] PerItem<double> per_entry(double entries) const {
        PerItem<double> found;
        for (const auto& item : EnumNames<Item>::table)
            found[item.value] = static_cast<double>(bits_[item.value]) / entries;
        return found;
    }
    Ledger& operator+=(const Ledger& other) {
        for (const auto& item : EnumNames<Item>::table) bits_[item.value] += other.bits_[item.value];
        return *this;
    }

private:
    PerItem<std::uint64_t> bits_;
};

}  // namespace spiked::estimators
