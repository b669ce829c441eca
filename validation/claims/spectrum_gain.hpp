#pragma once
#include <armadillo>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "estimators/quantizers/quantizer_options.hpp"
#include "theory/quantization/rate_distortion.hpp"
#include "validation/claims/claims.hpp"
#include "validation/kv/equal_bits.hpp"
#include "validation/kv/open_dumps.hpp"

// The claim that the spectrum of rows predicts what a transform code gains over TurboQuant: on simulated rows
// (spectrum_gain.cpp) and on the heads of dumps (dump_gain.cpp).
namespace spiked::validation {

/// The index bits of tq-mse, with which causal-klt is compared at as many stored bits.
inline constexpr unsigned compared_index_bits = 2;
inline constexpr const char* what_is_measured =
    "bits that causal-klt saves over tq-mse minus those that reverse water-filling predicts";

/// Stored bits an entry and relative L2 error of causal-klt without weights, near so many bits; without `basis` it
/// keeps the columns.
[[nodiscard]] BitsAndError by_causal_klt(const arma::mat& rows, double bits, bool basis = true);
/// The bits and the error of tq-mse, with the rotation of the options.
[[nodiscard]] BitsAndError by_turboquant(const arma::mat& rows, const estimators::QuantizerOptions& options);

/// The gain of a code over another in bits an entry: how often its error is halved at equal stored bits, where one bit
/// halves an error.
[[nodiscard]] double gain_in_bits(const BitsAndError& code, const BitsAndError& over);

/// The variances that a code meets which knows only the rows so far: of what the row before does not predict, in the
/// principal components of all rows before a chunk of the sequence, or of the first 256 from there on, as causal-klt
/// has them. Chunks have 8 rows in the first 32, 32 in the first 128 and 128 after those; rows at the end that fill
/// none are left out. Row 0 counts as a copy of row 1, and the first chunk is measured in its own columns. A variance
/// for each 8 rows and each component.
[[nodiscard]] std::vector<theory::NormalChannel> running_channels(const arma::mat& rows);

/// The gain over tq-mse that reverse water-filling over the running channels of `seen` has at these bits, for rows of
/// the mean square of `rows`.
[[nodiscard]] double water_filled_gain(const arma::mat& rows, const arma::mat& seen, double stored_bits);

/// The criterion on trials that give the measured gain minus the predicted one.
[[nodiscard]] Criterion predicted_gain(std::string name, std::string measures,
                                       std::function<Trial(const TrialPlace&)> prepare);

/// Names of changes of a trial: the code keeps the columns; the prediction is for rows with shuffled columns; bits of
/// the code are not counted.
inline constexpr const char* without_basis = "no-basis";
inline constexpr const char* with_other_columns = "columns-shuffled";
inline constexpr const char* with_bits_left_out = "bits-not-counted";

/// The rows with the entries of each column in a random order of its own: the variances of the columns stay, and the
/// covariances vanish.
[[nodiscard]] arma::mat with_shuffled_columns(arma::mat rows, const TrialPlace& place, std::uint64_t replicate);

/// The criterion for a side of one of the dumps, a mean over at most 8 of its heads and their first 4096 tokens; none
/// where it has no heads of 512 tokens with entries. What causal-klt and the prediction give is the same in all trials,
/// the rotation of tq-mse changes.
[[nodiscard]] std::optional<Criterion> predicted_gain_on(const std::shared_ptr<const OpenDumps>& open, std::size_t dump,
                                                         sim::Side side);

}  // namespace spiked::validation
