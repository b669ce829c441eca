#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/kv/kv_dump.hpp"

namespace spiked::validation {

/// A key of the metadata of a dump that measurements use.
struct WantedMetadata {
    const char* key;
    const char* without;  ///< consequence if it is missing
};
[[nodiscard]] const std::vector<WantedMetadata>& wanted_metadata();

/// What a file holds of a dump, and what it lacks.
struct DumpInspection {
    std::unique_ptr<sim::TensorContainer> file;
    std::optional<sim::KvDump> dump;  ///< no value if neither the options nor the file state the layout or format
    std::vector<std::string> possible_layouts;  ///< of the first tensor with three or more axes
    std::vector<WantedMetadata> missing;        ///< in the order of wanted_metadata()
    std::vector<std::string> unusable;          ///< sentences on tensors that are present but cannot be used
    std::vector<std::string> notes;             ///< what was decided on reading the dump, empty tokens, sequences
};

/// Reads headers, and keys and values as far as empty tokens are looked for. Throws the errors of open_tensors and
/// KvDump.
[[nodiscard]] DumpInspection inspect_dump(const std::string& path, const sim::DumpOptions& options);

}  // namespace spiked::validation
