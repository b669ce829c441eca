#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/runtime/error.hpp"
#include "validation/engine/engine.hpp"

namespace spiked::validation {

/// A study whose replicates cost nothing: addressed normal numbers under known means and spreads, a constant, a
/// quantity that is missing in a third of the replicates, and replicates that fail.
struct FakeStudy {
    struct Cell {
        std::string name;
        double mean = 1.0;
        double spread = 1.0;
        double failing = 0.0;  ///< share of replicates that fail
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

/// A path in a folder of this process, gone at its end; neither a file is there nor a journal of one.
[[nodiscard]] std::string scratch_path(const std::string& name);

/// Runs the study into the store and closes it, with the status that the command would write.
RunOutcome run_into(const Experiment& experiment, const std::string& path, const RunOptions& options = {.threads = 1});

/// Everything of a store that is science, line by line, numbers to the last bit: no times, paths, sessions, threads.
[[nodiscard]] std::string science_of(Database& store);
[[nodiscard]] std::string science_of(const std::string& path);
/// Runs a statement on the store, as somebody who meddles with it would.
void edit(const std::string& path, const std::string& sql);

/// The message of the error that the work throws; the test fails when it throws none, or one of another code.
std::string message_of(const std::function<void()>& work, ExitCode code);

}  // namespace spiked::validation
