#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/runtime/error.hpp"
#include "validation/engine/compare.hpp"
#include "validation/engine/engine.hpp"
#include "validation/store/open_store.hpp"

namespace spiked::validation {

/// A study whose replicates are cheap. They yield addressed normal numbers with known means and standard deviations, a
/// constant, and a quantity that is missing in a third of the replicates; some replicates fail.
struct FakeStudy {
    struct Cell {
        std::string name;
        double mean = 1.0;
        double deviation = 1.0;  ///< standard deviation
        double failing = 0.0;    ///< fraction of replicates that fail
    };
    std::vector<Cell> cells = {{"a", 1.0, 0.5}, {"b", 2.0, 3.0}, {"c", -1.0, 1.5}, {"d", 4.0, 0.1}, {"e", 1.0, 2.0}};
    std::size_t least = 0;
    std::size_t most = 47;
    std::size_t batch = 5;
    std::vector<StopRule> until;
    std::size_t raw = static_cast<std::size_t>(-1);
    std::string seed = "0x5eed";
    double failure_budget = 1.0;
    double margin = 0.5;

    [[nodiscard]] Experiment experiment() const;
};

/// A path in a folder that is deleted when this process ends. A store or journal that exists there is deleted first.
[[nodiscard]] std::string scratch_path(const std::string& name);

/// Runs the study into the store and closes it with the status that the command would write.
RunOutcome run_into(const Experiment& experiment, const std::string& path, const RunOptions& options = {.threads = 1});

/// Runs the study into the store and prints its checks. Their verdicts by cell, metric and component, such as "cell a
/// outlier 1"; each built-in control must fail.
std::map<std::string, std::string> judged_study(const Experiment& experiment, const std::string& path);

/// The scientific content of a store as text, with exact numbers; without times, paths, sessions and threads.
[[nodiscard]] std::string science_of(Database& store);
[[nodiscard]] std::string science_of(const std::string& path);
/// Opens both stores and compares them.
StoreComparison compared(const std::string& path_a, const std::string& path_b);
/// Runs a statement on the store, to simulate manipulation.
void edit(const std::string& path, const std::string& sql);

/// The message of the error that the work throws. The test fails if it throws none, or one with another kind.
std::string message_of(const std::function<void()>& work, ErrorKind kind);

}  // namespace spiked::validation
