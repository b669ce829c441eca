#pragma once
#include <armadillo>
#include <string>
#include <vector>

#include "validation/kv/equal_bits.hpp"
#include "validation/kv/open_dumps.hpp"

namespace spiked::validation {

/// The error of an ideal code of normal rows with the covariance of each head, as a curve beside measured methods.
struct SpectrumReference {
    std::string side;                  ///< as in KvRow: key or value
    std::string name;                  ///< water-filling, or water-filling+ar
    std::vector<BitsAndError> points;  ///< relative L2, a mean over heads with their blocks as weights
};

/// Reverse water-filling over the principal components of each head at these numbers of bits per entry, on all tokens
/// but the first, keys without their rotary embedding where the dump states it. `+ar`: each component is a process of
/// first order with the slope of its coordinates on those of the token before, so that prediction helps. Mean,
/// components, variances and slopes are known and take no bits. No bound: rows are not normal, and a code that follows
/// changes of the text can be better. Both are too good for a head with few tokens for its channels. Heads of zeros and
/// of one token are left out. Throws as open_dumps, and input_error for entries that are not finite. Cost: reading the
/// dumps, and an eigendecomposition for each head.
[[nodiscard]] std::vector<SpectrumReference> spectrum_references(const KvPlan& plan, const std::vector<double>& bits,
                                                                 std::size_t threads);

/// The curves of the rows of one head: relative errors at these bits, without and with prediction; empty for rows of
/// zeros and for fewer than 2. Throws input_error for entries that are not finite.
[[nodiscard]] std::vector<std::vector<double>> water_filled_errors(const arma::mat& rows,
                                                                   const std::vector<double>& bits);

}  // namespace spiked::validation
