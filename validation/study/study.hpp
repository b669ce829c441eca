#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/text/option_spec.hpp"
#include "validation/store/experiment.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::validation {

/// The keys that a [[figure]] of one kind may have besides `kind`.
struct FigureKeys {
    std::string kind;
    std::vector<OptionSpec> options;
    bool of_dumps = true;   ///< can be drawn from dump studies
    bool of_blocks = true;  ///< can be drawn from all other studies
};

struct StudyOverrides {
    std::vector<std::pair<std::string, std::string>> set = {};  ///< pairs of a dotted key and a TOML value
    std::string seed = {};                 ///< hexadecimal, `fresh`, or empty for the seed of the file
    std::vector<FigureKeys> figures = {};  ///< all kinds of figures; empty: figures are not checked
    std::string folder = {};               ///< folder of the study file: see read_study
};

/// A study file after reading and validation: the experiment, and execution settings that never change a number.
struct Study {
    Experiment experiment;
    std::string store_path;
    std::size_t threads = 0;
    std::string device;  ///< argument of choose_device; empty where the file does not set it
};

/// The texts of the claims that a study can check. Every store holds them.
[[nodiscard]] std::vector<ClaimText> claims_of_studies();

/// Reads a study (docs/reference/study.md). All errors of the file are found before anything runs and reported together
/// in one usage_error with one line `file:line:column: problem` each, at most 20 of them. Paths in `source` of the
/// model are relative to the current folder, or to the folder of the study file where they are not found there.
[[nodiscard]] Study read_study(const std::string& path, const StudyOverrides& overrides = {});
/// The same from the text of a study; messages use `name` as the name of the file.
[[nodiscard]] Study parse_study(const std::string& text, const std::string& name, const StudyOverrides& overrides = {});

/// The same from the form in which a store or another process keeps a study: text, `set` (pairs of key and value) and
/// seed.
[[nodiscard]] Study reread_study(const std::string& text, const Json& set, const std::string& seed,
                                 const std::string& name);
/// The study of a store, ready to run again. Throws usage_error for a store that was made by a command without a study
/// file, and input_error when the study no longer gives the same experiment.
[[nodiscard]] Study stored_study(Database& store);

}  // namespace spiked::validation
