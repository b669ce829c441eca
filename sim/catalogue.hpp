#pragma once
#include <string>
#include <vector>

namespace spiked::sim {

/// One line of `spiked list`: a name as users write it, what it is, what stands in its places, where it comes from.
struct CatalogueLine {
    std::string name;
    std::string summary;
    std::vector<std::string> options;
    std::string source;
};

/// The lines of a table whose rows carry one each.
template <class Kinds>
[[nodiscard]] std::vector<CatalogueLine> catalogue_of(const Kinds& kinds) {
    std::vector<CatalogueLine> lines;
    for (const auto& kind : kinds) lines.push_back(kind.line);
    return lines;
}

}  // namespace spiked::sim
