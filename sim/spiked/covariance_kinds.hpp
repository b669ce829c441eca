#pragma once
#include <armadillo>
#include <cstddef>
#include <string>
#include <vector>

#include "theory/laws/spectrum.hpp"

namespace spiked::sim {

/// A kind of covariance. Its entry serves the tables of study files (covariance_spec.hpp), the SPEC texts of
/// --row-spectrum and --col-spectrum (spectrum_spec.hpp) and `spiked list covariances`.
struct CovarianceKind {
    using Numbers = std::vector<double>;
    enum class Size {
        none,
        optional,
        required
    };  ///< whether a SPEC ends with :N; none: the law has weights, not a size

    std::string name;
    std::vector<std::string> parameters;  ///< names of numbers; all are required, a SPEC lists them in this order
    Size size = Size::none;
    std::string summary;
    std::string source;
    /// The eigenvalues of the matrix of that size, or the law they follow.
    theory::Spectrum (*law)(const Numbers& parameters, std::size_t size) = nullptr;
    /// Where not null, a SPEC means this instead of `law`: the limit for large matrices, sampled at N points.
    theory::Spectrum (*symbol)(const Numbers& parameters, std::size_t size) = nullptr;
    /// The first column of the matrix; null for kinds that are not Toeplitz matrices.
    arma::vec (*first_column)(const Numbers& parameters, std::size_t size) = nullptr;
    /// Reads the law from a file; such kinds have no `law`.
    theory::Spectrum (*read)(const std::string& path) = nullptr;

    [[nodiscard]] bool reads_file() const { return read != nullptr; }
    [[nodiscard]] std::string default_basis() const { return first_column == nullptr ? "identity" : "toeplitz"; }
    /// How it is written as a SPEC: ar1:RHO[:N].
    [[nodiscard]] std::string spec_form() const;
    /// How it is written as a table of a study file: { kind = "ar1", rho = .. }.
    [[nodiscard]] std::string table_form() const;
};

[[nodiscard]] const std::vector<CovarianceKind>& covariance_kinds();
/// Throws usage_error "unknown WHAT" with the nearest name.
[[nodiscard]] const CovarianceKind& covariance_kind(const std::string& name, std::string_view what);

}  // namespace spiked::sim
