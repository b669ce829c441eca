#pragma once
#include <string>

#include "theory/laws/spectrum.hpp"

namespace spiked::sim {

/// Parses a SPEC of `spiked theory`, the spec_form() of a kind of covariance_kinds.hpp such as ar1:RHO[:N]; N defaults
/// to
/// 64. sample:PATH gives the eigenvalues of a symmetric covariance matrix; eigenvalues within rounding of 0 (N epsilon
/// times the largest; float's epsilon for a float32 file, 2^-10 sqrt(N) for fp16 values) become exact zeros. file:PATH
/// reads csv lines value,weight, whatever the suffix. Throws usage_error for the SPEC, input_error for the files.
[[nodiscard]] theory::Spectrum parse_spectrum(const std::string& spec);

}  // namespace spiked::sim
