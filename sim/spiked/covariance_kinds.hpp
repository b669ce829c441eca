#pragma once
#include <armadillo>
#include <cstddef>
#include <string>
#include <vector>

#include "core/text/registry.hpp"
#include "sim/spiked/covariance.hpp"
#include "theory/laws/spectrum.hpp"

namespace spiked::sim {

/// A kind of covariance. Its entry serves the tables of study files (covariance_spec.hpp), the SPEC texts of
/// --row-spectrum and --col-spectrum (spectrum_spec.hpp) and `spiked list covariances`. The options of the entry are
/// numbers, all required, in the order in which a SPEC lists them; then `path` for kinds that read a file, and `N`, the
/// number of eigenvalues in a SPEC, for laws that have a size and no weights.
struct CovarianceKind {
    using Numbers = std::vector<double>;

    RegistryEntry entry;
    /// The eigenvalues of the matrix of that size, or the law they follow.
    theory::Spectrum (*law)(const Numbers& parameters, std::size_t size) = nullptr;
    /// Where not null, a SPEC means this instead of `law`: the limit for large matrices, sampled at N points.
    theory::Spectrum (*symbol)(const Numbers& parameters, std::size_t size) = nullptr;
    /// The first column of the matrix; null for kinds that are not Toeplitz matrices.
    arma::vec (*first_column)(const Numbers& parameters, std::size_t size) = nullptr;
    /// The matrix on the basis `identity`, where its eigenvalues are not in decreasing order.
    Covariance (*diagonal)(const Numbers& parameters, std::size_t size) = nullptr;
    /// Reads the law from a file; such kinds have no `law`.
    theory::Spectrum (*read)(const std::string& path) = nullptr;
    bool holds_matrix = false;  ///< the file is the matrix itself, not a list of eigenvalues
    bool white = false;         ///< the identity matrix, which is the same on every basis

    [[nodiscard]] bool reads_file() const { return read != nullptr; }
    [[nodiscard]] std::string default_basis() const { return first_column == nullptr ? "identity" : "toeplitz"; }
    /// The names of its numbers.
    [[nodiscard]] std::vector<std::string> parameters() const;
    /// Throws usage_error for a number outside the range of its option; `place` is put in front.
    void require_in_range(const Numbers& numbers, const std::string& place) const;
    /// The option N of a SPEC; null for laws with weights. Without a default it is required.
    [[nodiscard]] const OptionSpec* size() const;
    /// How it is written as a SPEC: ar1:RHO[:N].
    [[nodiscard]] std::string spec_form() const;
    /// How it is written as a table of a study file: { kind = "ar1", rho = .. }.
    [[nodiscard]] std::string table_form() const;
};

[[nodiscard]] const Registry<CovarianceKind>& covariance_kinds();

}  // namespace spiked::sim
