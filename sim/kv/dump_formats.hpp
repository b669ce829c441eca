#pragma once
#include <string>
#include <vector>

#include "core/text/registry.hpp"

namespace spiked::sim {

/// How a program writes its cache: the names of the tensors and the meaning of their axes.
struct DumpFormat {
    std::string name;
    std::string writer;                 ///< the program, as a phrase
    std::vector<std::string> patterns;  ///< of tensor names; the first that some tensor matches is used
    /// Texts for parse_side_layouts; the only one that fits a tensor's shape is used.
    std::vector<std::string> layouts;
    std::string metadata_prefix = {};  ///< in front of the keys that users give to the program
    std::string advice = {};           ///< behind the message that no layout fits
};

/// Every format that is known by name.
[[nodiscard]] const Registry<DumpFormat>& dump_formats();

}  // namespace spiked::sim
