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

}  // namespace spiked::sim
