#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "sim/spiked/covariance_kinds.hpp"
#include "theory/laws/spectrum.hpp"

namespace spiked::sim {

/// A SPEC of --row-spectrum and --col-spectrum in its parts.
struct SpectrumSpec {
    const CovarianceKind* kind = nullptr;
    CovarianceKind::Numbers numbers;
    std::optional<std::size_t> size;  ///< N, where it is given
    std::string path;                 ///< only of kinds that read a file

    /// Throws usage_error for numbers out of range, input_error for the file.
    [[nodiscard]] theory::Spectrum law() const;
    /// ar1, toeplitz and sample are matrices with correlations, all else is diagonal.
    [[nodiscard]] bool diagonal() const { return kind->first_column == nullptr && !kind->holds_matrix; }
};

/// Parses the spec_form() of a kind, such as ar1:RHO[:N]. Throws usage_error; reads no file.
[[nodiscard]] SpectrumSpec spectrum_spec(const std::string& spec);

/// The law of a SPEC of `spiked theory`; N defaults to 64. sample:PATH gives the eigenvalues of a symmetric covariance
/// matrix; eigenvalues within rounding of 0 (N epsilon times the largest; float's epsilon for a float32 file, 2^-10
/// sqrt(N) for fp16 values) become exact zeros. file:PATH reads csv lines value,weight, whatever the suffix. Throws
/// usage_error for the SPEC, input_error for the files.
[[nodiscard]] theory::Spectrum parse_spectrum(const std::string& spec);

}  // namespace spiked::sim
