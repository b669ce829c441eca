#pragma once
#include <string>

#include "theory/laws/spectrum.hpp"

namespace spiked::sim {

/// Reads the SPEC of `spiked theory`:
/// words() of a kind of covariance_kinds.hpp, ar1:RHO[:N]; N defaults to 64.
/// sample: the eigenvalues of a symmetric covariance matrix, those within rounding of 0 (N epsilon of the largest,
/// float's epsilon for a float32 file) as exact zeros; file: csv lines value,weight, whatever the suffix. Throws
/// usage_error for the words, input_error for the files.
[[nodiscard]] theory::Spectrum parse_spectrum(const std::string& spec);

}  // namespace spiked::sim
