#pragma once
#include <vector>

#include "app/cli/command.hpp"
#include "validation/claims/claims.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::app {

/// The claims that can be judged and replayed from a store of claims: those of this program, and those on dumps of the
/// store that are where they were, with the content that was judged. Prints a note for each other dump. Empty for a
/// store of another kind.
[[nodiscard]] std::vector<validation::Claim> claims_of(const Arguments& arguments, validation::Database& store);

}  // namespace spiked::app
