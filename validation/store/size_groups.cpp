#include "validation/store/size_groups.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace spiked::validation {

std::vector<SizeGroup> size_groups(const Check& check, const std::vector<ExperimentCell>& cells) {
    std::vector<SizedCell> members;
    std::map<std::string, std::map<double, std::set<std::string>>> values;  // of each other factor, by size
    for (std::size_t c = 0; c < cells.size(); ++c) {
        const auto& factors = cells[c].factors;
        const auto size = std::find_if(factors.begin(), factors.end(),
                                       [&](const Factor& factor) { return factor.name == check.exponent_of; });
        if (!check.applies_to(cells[c]) || size == factors.end() || !(size->number.value_or(0.0) > 0.0)) continue;
        members.push_back({c, *size->number});
        for (const Factor& factor : factors) values[factor.name][*size->number].insert(factor.text);
    }
    const auto follows_the_size = [&](const std::string& factor) {
        const auto& by_size = values.at(factor);
        return std::all_of(by_size.begin(), by_size.end(), [](const auto& at) { return at.second.size() == 1; });
    };
    std::map<std::string, SizeGroup> groups;
    for (const SizedCell& member : members) {
        std::string others;
        for (const Factor& factor : cells[member.cell].factors)
            if (!follows_the_size(factor.name)) others += factor.name + '=' + factor.text + '\n';
        groups[others].push_back(member);
    }
    std::vector<SizeGroup> found;
    for (auto& [others, group] : groups) {
        std::stable_sort(group.begin(), group.end(),
                         [](const SizedCell& a, const SizedCell& b) { return a.size < b.size; });
        found.push_back(std::move(group));
    }
    std::sort(found.begin(), found.end(),
              [](const SizeGroup& a, const SizeGroup& b) { return a.front().cell < b.front().cell; });
    return found;
}

}  // namespace spiked::validation
