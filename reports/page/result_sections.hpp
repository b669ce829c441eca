#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "reports/page/html.hpp"
#include "validation/engine/sqlite.hpp"

namespace spiked::reports {

/// Which cells the tables of a page show, and what it says about the others.
struct ShownCells {
    std::optional<std::set<std::int64_t>> ids;  ///< all when not given
    std::string note;                           ///< markup

    [[nodiscard]] bool contains(std::int64_t cell) const { return !ids || ids->contains(cell); }
};

/// What was measured, as tables: of the sample beside theory, of estimators and codecs with the best in bold; of a dump
/// the paper's table and its heads, none longer than `most_bytes`. Empty when there is nothing.
[[nodiscard]] std::string results_markup(validation::Database& store, const PagePlace& place, const ShownCells& cells,
                                         std::size_t most_bytes);

/// Stored bits item by item, and methods at equal bits. Empty when nothing was coded.
[[nodiscard]] std::string ledger_markup(validation::Database& store, const PagePlace& place, std::size_t most_bytes);

}  // namespace spiked::reports
