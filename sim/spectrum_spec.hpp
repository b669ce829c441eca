#pragma once
#include <string>

#include "theory/spectrum.hpp"

namespace spiked::sim {

/// Reads the SPEC of `spiked theory`:
///   identity | ar1:RHO[:N] | toeplitz:RHO:N | two-atom:LO,HI,WEIGHT_HI | uniform:LO,HI[:N] | exponential:C[:N]
///   | power:A[:N] | wishart:ASPECT[:N] | sample:FILE.npy | file:PATH        (N defaults to 64)
/// sample: the eigenvalues of a symmetric covariance matrix, those within rounding of 0 (N epsilon of the largest,
/// float's epsilon for a float32 file) as exact zeros; file: csv lines value,weight, whatever the suffix. Throws
/// usage_error for the words, input_error for the files.
[[nodiscard]] theory::Spectrum parse_spectrum(const std::string& spec);

}  // namespace spiked::sim
