#include "app/studies/stored_claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "app/options/dump_options.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "validation/engine/judge.hpp"
#include "validation/store/open_store.hpp"
#include "validation/study/command_studies.hpp"
#include "validation/verdicts/claim_study.hpp"

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

OptionSpec false_alarm_option(std::string what) {
    return {"--false-alarm", any_text("RATE"),
            std::move(what) + " again at this false-alarm rate, without new draws; the store stays as it is"};
}

std::optional<double> false_alarm_of(const Arguments& arguments) {
    if (!arguments.has("--false-alarm")) return std::nullopt;
    const auto rate = to_number(arguments.text("--false-alarm"));
    if (!rate || !(*rate >= 1e-300 && *rate < 1.0))
        throw usage_error("--false-alarm \"{}\" is no probability between 0 and 1: write for example 1e-3",
                          arguments.text("--false-alarm"));
    return rate;
}

validation::Database open_judged(const Arguments& arguments, const std::string& path) {
    validation::Database store = validation::open_store(path);
    if (const auto rate = false_alarm_of(arguments)) validation::judge_again(store, *rate);
    return store;
}

}  // namespace spiked::app
