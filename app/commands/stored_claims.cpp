#include "app/commands/stored_claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "app/options/dump_options.hpp"
#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"
#include "validation/claims/claim_study.hpp"
#include "validation/study/command_studies.hpp"

namespace spiked::app {
namespace {

/// How the command read a dump of a store.
validation::KvPlan plan_of(validation::Database& store, const validation::StoredDump& dump) {
    try {
        return read_dump_plan(validation::stored_dump_settings(store), {dump.path});
    } catch (const Error& error) {
        throw validation::damaged_store(
            store.path(), fmt::format("its settings of dumps are not those of a command ({})", error.what()));
    }
}

}  // namespace

std::vector<validation::Claim> claims_of(const Arguments& arguments, validation::Database& store) {
    if (!validation::holds_claims(store)) return {};
    auto claims = validation::claims().rows();
    for (const auto& dump : validation::stored_dumps(store)) {
        std::string why;
        auto found = validation::claims_on_stored_dump(dump, plan_of(store, dump), why);
        if (!why.empty())
            print_note(arguments, one_line("claims on a dump are left out (" + why +
                                           "): put the file back, or run the command that made the store"));
        std::move(found.begin(), found.end(), std::back_inserter(claims));
    }
    return claims;
}

}  // namespace spiked::app
