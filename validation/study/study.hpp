#pragma once
#include <string>
#include <utility>
#include <vector>

#include "validation/engine/experiment.hpp"
#include "validation/engine/sqlite.hpp"

namespace spiked::validation {

/// What may stand in a [[figure]] of one kind.
struct FigureWords {
    std::string kind;
    std::vector<std::string> keys;
    bool of_dumps = true;   ///< drawn from dump studies
    bool of_blocks = true;  ///< drawn from all others
};

struct StudyOverrides {
    std::vector<std::pair<std::string, std::string>> set = {};  ///< dotted key and a TOML value
    std::string seed = {};                                      ///< hex, `fresh`, or empty: the file's
    std::vector<FigureWords> figures = {};                      ///< the kinds there are; empty: figures are not checked
    std::string folder = {};                                    ///< of the study file: see read_study
};

/// A study file read and checked: what to run, and how, where the how never changes a number.
struct Study {
    Experiment experiment;
    std::string store_path;
    std::size_t threads = 0;
    std::string device;  ///< words for choose_device; empty where the file says nothing
};

/// The texts of the claims that a study can check, for every experiment that goes into a store.
[[nodiscard]] std::vector<ClaimText> claims_of_studies();

/// Reads a study (interface of the project, section 4). Every mistake of the file is found before anything runs and
/// reported at once, as one usage_error with a line `file:line:column: problem` each, at most 20. Files of its model's
/// `source` are looked for from the current folder, those not found there from the folder of the study file.
[[nodiscard]] Study read_study(const std::string& path, const StudyOverrides& overrides = {});
/// The same from a text; `name` stands in messages.
[[nodiscard]] Study parse_study(const std::string& text, const std::string& name, const StudyOverrides& overrides = {});

/// The same again from what a store or another process keeps of a study: text, `set` (pairs of key and value), seed.
[[nodiscard]] Study reread_study(const std::string& text, const Json& set, const std::string& seed,
                                 const std::string& name);
/// The study a store was made from, ready to run again. Throws usage_error for a store that a command without study
/// file made, input_error when the study reads differently now.
[[nodiscard]] Study stored_study(Database& store);

}  // namespace spiked::validation
