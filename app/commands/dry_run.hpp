#pragma once
#include <string>

#include "app/cli/command.hpp"
#include "validation/study/study.hpp"

namespace spiked::app {

/// What a study is, in one line.
[[nodiscard]] std::string plan_line(const validation::Experiment& experiment, std::size_t threads);

/// `run --dry-run`: tries a few replicates for at most ten seconds and says what the study takes and what its checks
/// can tell. Returns the exit code.
int dry_run_study(const Arguments& arguments, const validation::Study& study);

}  // namespace spiked::app
