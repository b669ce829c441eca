#pragma once
#include <armadillo>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/command.hpp"
#include "estimators/transforms/noise_covariance.hpp"
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

/// The noise covariance of one side that `--row-spectrum` or `--col-spectrum` gives, a name with parameters or a file,
/// restricted to the rows or columns that were kept; nothing for an empty text.
[[nodiscard]] std::optional<estimators::NoiseCovariance> known_covariance(const std::string& spec, std::size_t size,
                                                                          const arma::uvec& kept);

}  // namespace spiked::app
