#include "estimators/coding/ledger.hpp"

#include <gtest/gtest.h>

#include <set>

namespace spiked::estimators {
namespace {

TEST(Ledger, EveryItemHasItsOwnNameAndCount) {
    Ledger ledger;
    std::set<std::string_view> names;
    std::uint64_t total = 0;
    for (const auto& item : EnumNames<Item>::table) {
        EXPECT_TRUE(names.insert(item.name).second) << item.name;
        const std::uint64_t bits = 3 * names.size();
        ledger.add(item.value, bits);
        total += bits;
    }
    // A table without the last item would leave it without a place.
    EXPECT_EQ(names.size(), static_cast<std::size_t>(Item::padding) + 1);
    EXPECT_EQ(ledger.total(), total);
    Ledger twice = ledger;
    twice += ledger;
    EXPECT_EQ(twice.total(), 2 * total);

    const PerItem<double> per_entry = twice.per_entry(4.0);
    std::uint64_t expected = 0;
    for (const auto& item : EnumNames<Item>::table) {
        expected += 3;
        EXPECT_EQ(ledger.bits(item.value), expected) << item.name;
        EXPECT_EQ(per_entry[item.value], static_cast<double>(expected) / 2.0) << item.name;
    }
}

TEST(Ledger, NamesAreThoseOfTheJsonOutputInItsOrder) {
    EXPECT_EQ(names_of<Item>(),
              (std::vector<std::string>{"indices", "signs", "norms", "residual_norms", "scales", "zeros",
                                        "factor_indices", "singular_values", "codebooks", "ranks", "outliers",
                                        "residual_window", "header", "padding"}));
    EXPECT_EQ(enum_name(Item::residual_window), "residual_window");
    EXPECT_EQ(enum_name(Item::factor_indices), "factor_indices");
}

}  // namespace
}  // namespace spiked::estimators
