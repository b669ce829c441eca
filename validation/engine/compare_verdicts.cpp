#include "validation/engine/compare_verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "validation/engine/judge.hpp"

namespace spiked::validation {
namespace {

/// Check, cell, method, metric, component and factor of an exponent.
using VerdictKey = std::tuple<std::string, std::int64_t, std::string, std::string, int, std::string>;

struct StoredVerdict {
    VerdictKey key;
    std::string cell;
    ComparedVerdict::Side side;
};

std::vector<StoredVerdict> read_verdicts(Database& store) {
    std::vector<StoredVerdict> verdicts;
    Statement row(store,
                  fmt::format("SELECT check_name, cell_id, m.name, metric, k, v.exponent_of, {}, verdict, estimate, "
                              "mcse, v.n, expected, allowed_lo, allowed_hi FROM verdict v JOIN cell c USING(cell_id) "
                              "JOIN method m USING(method_id) ORDER BY verdict_id",
                              judged_cell));
    while (row.step())
        verdicts.push_back(
            {{row.text(0), row.integer(1), row.text(2), row.text(3), static_cast<int>(row.integer(4)), row.text(5)},
             row.text(6),
             {row.text(7), row.real(8), row.real(9), static_cast<std::uint64_t>(row.integer(10)), row.real(11),
              row.real(12), row.real(13)}});
    return verdicts;
}

}  // namespace

std::size_t VerdictComparison::others() const {
    return static_cast<std::size_t>(
        std::count_if(rows.begin(), rows.end(), [](const ComparedVerdict& row) { return !row.same(); }));
}

VerdictComparison compare_verdicts(Database& a, Database& b, const std::map<std::int64_t, std::int64_t>& cells) {
    const auto of_b = read_verdicts(b);
    std::map<VerdictKey, const StoredVerdict*> by_key;
    for (const StoredVerdict& one : of_b) by_key[one.key] = &one;
    VerdictComparison found;
    for (const auto& [key, cell, side] : read_verdicts(a)) {
        VerdictKey in_b = key;
        const auto partner = cells.find(std::get<1>(key));
        if (partner != cells.end()) std::get<1>(in_b) = partner->second;
        const auto other = partner == cells.end() ? by_key.end() : by_key.find(in_b);
        if (other == by_key.end()) {
            ++found.only_a;
            continue;
        }
        const auto& [check, id, method, metric, k, exponent_of] = key;
        found.rows.push_back({check, cell, method, metric, k, !exponent_of.empty(), side, other->second->side});
    }
    found.only_b = of_b.size() - found.rows.size();
    return found;
}

}  // namespace spiked::validation
