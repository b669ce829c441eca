#pragma once
#include <cstddef>
#include <string>

#include "reports/page/html.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::reports {

/// Stored bits by item, and methods at equal bits, in tables of at most `most_bytes`. Empty when nothing was coded.
[[nodiscard]] std::string ledger_markup(validation::Database& store, const PagePlace& place, std::size_t most_bytes);

}  // namespace spiked::reports
