#pragma once
#include <armadillo>
#include <string_view>

#include "validation/claims/parts/fixture.hpp"

// Rows that are quantized, for the claims on quantizers (quantizers.cpp) and on sketches (sketches.cpp).
namespace spiked::validation {

/// The Lloyd-Max distortion of a coordinate of the sphere: the relative squared error of tq-mse.
[[nodiscard]] double distortion_of(std::size_t dimension, unsigned bits);

/// Rows of standard normal entries, from the random numbers of the trial.
[[nodiscard]] arma::mat gaussian_rows(const TrialPlace& place, std::uint64_t replicate, std::size_t rows,
                                      std::size_t dimension);

/// Rows after encoding and decoding by the quantizer of this name.
[[nodiscard]] arma::mat coded_by(std::string_view name, const arma::mat& rows, unsigned bits,
                                 const estimators::QuantizerOptions& options);

/// Rows before and after a quantizer.
struct Decoded {
    arma::mat rows;
    arma::mat decoded;
};
/// |x - x~|^2 / |x|^2 of the rows of a block, averaged.
[[nodiscard]] double relative_error(const Decoded& block);
/// <x, x~> / |x|^2 of the rows of a block, averaged.
[[nodiscard]] double self_gain(const Decoded& block);

}  // namespace spiked::validation
