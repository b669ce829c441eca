#pragma once
#include "app/cli/command.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/preparation.hpp"

namespace spiked::app {

/// The options of every command that reads a matrix, and how it is read by their values.
[[nodiscard]] const std::vector<OptionSpec>& matrix_options();
/// Throws usage_error for a delimiter or a decimal mark that no table has.
[[nodiscard]] sim::MatrixReading read_matrix_options(const Arguments& arguments);

/// `--center` and `--standardize`, and the preparation that they ask for. Throws usage_error where they contradict each
/// other.
[[nodiscard]] const std::vector<OptionSpec>& preparation_options();
[[nodiscard]] sim::Preparation read_preparation(const Arguments& arguments);

}  // namespace spiked::app
