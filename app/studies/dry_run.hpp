#pragma once
#include <string>

#include "app/cli/command.hpp"
#include "validation/study/study.hpp"

namespace spiked::app {

/// Describes a study in one line.
[[nodiscard]] std::string plan_line(const validation::Experiment& experiment, std::size_t threads);

/// `run --dry-run`: computes a few replicates in at most ten seconds and prints the time, memory and disk space that
/// the study needs, and which checks it can decide. Returns the exit code.
int dry_run_study(const Arguments& arguments, const validation::Study& study);

}  // namespace spiked::app
