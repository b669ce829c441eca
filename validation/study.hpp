#pragma once
#include <string>
#include <utility>
#include <vector>

#include "validation/experiment.hpp"

namespace spiked::validation {

/// A study file read and checked: what to run, and how, where the how never changes a number.
struct Study {
    Experiment experiment;
    std::string store_path;
    std::size_t threads = 0;
};

struct StudyOverrides {
    std::vector<std::pair<std::string, std::string>> set;  ///< dotted key and a TOML value
    std::string seed;                                      ///< hex, `fresh`, or empty: the file's
};

/// Reads a study (interface of the project, section 4). Every mistake of the file is found before anything runs and
/// reported at once, as one usage_error with a line `file:line:column: problem` each, at most 20.
[[nodiscard]] Study read_study(const std::string& path, const StudyOverrides& overrides = {});
/// The same from a text; `name` stands in messages.
[[nodiscard]] Study parse_study(const std::string& text, const std::string& name, const StudyOverrides& overrides = {});

}  // namespace spiked::validation
