#pragma once
#include <armadillo>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/command.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/preparation/preparation.hpp"

namespace spiked::app {

/// Heading of the options that say what a matrix is and prepare it.
constexpr const char* before_the_analysis = "What the matrix is, and what is done to it first";
/// Why `--covariance` excludes options that are about samples.
constexpr const char* no_samples = "the file has covariances, not samples";

/// The options of every command that reads a matrix, and how it is read by their values.
[[nodiscard]] const std::vector<OptionSpec>& matrix_options();
/// Throws usage_error for a delimiter or a decimal mark that no table has.
[[nodiscard]] sim::MatrixReading read_matrix_options(const Arguments& arguments);

/// `--center` and `--standardize`, and the preparation that they ask for. Throws usage_error where they contradict each
/// other.
[[nodiscard]] const std::vector<OptionSpec>& preparation_options();
[[nodiscard]] sim::Preparation read_preparation(const Arguments& arguments);

/// `--missing` of commands that accept missing entries, of these kinds; read_preparation reads it.
[[nodiscard]] OptionSpec missing_option(const std::vector<sim::Missing>& kinds);
/// How a matrix is read that is prepared like this, by a command with that option.
[[nodiscard]] sim::MatrixReading read_matrix_options(const Arguments& arguments, const sim::Preparation& preparation);

/// The noise covariance of one side that `--row-spectrum` or `--col-spectrum` gives, a name with parameters or a file:
/// a matrix, or its diagonal as one column. Nothing for an empty text.
[[nodiscard]] std::optional<arma::mat> known_covariance(const std::string& spec, std::size_t size);

}  // namespace spiked::app
