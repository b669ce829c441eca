#pragma once
#include <armadillo>
#include <cstddef>
#include <string>
#include <vector>

#include "theory/laws/spectrum.hpp"

namespace spiked::sim {

/// A kind of covariance: one row serves the tables of study files (covariance_spec.hpp), the words of --row-spectrum
/// and --col-spectrum (spectrum_spec.hpp) and `spiked list covariances`.
struct CovarianceKind {
    using Numbers = std::vector<double>;
    enum class Size { none, optional, required };  ///< the N of the words; none: the law knows weights, not a size

    std::string name;
    std::vector<std::string> parameters;  ///< numbers, all needed; in words in this order
    Size size = Size::none;
    std::string summary;
    std::string source;
    /// Eigenvalues of the matrix of that size, or their law.
    theory::Spectrum (*law)(const Numbers& parameters, std::size_t size) = nullptr;
    /// What the words mean instead of `law`: the limit of large matrices at N points.
    theory::Spectrum (*symbol)(const Numbers& parameters, std::size_t size) = nullptr;
    /// Of kinds that are Toeplitz matrices.
    arma::vec (*first_column)(const Numbers& parameters, std::size_t size) = nullptr;
    /// In the place of `law`: reads a file.
    theory::Spectrum (*read)(const std::string& path) = nullptr;

    [[nodiscard]] bool reads_file() const { return read != nullptr; }
    [[nodiscard]] std::string default_basis() const { return first_column == nullptr ? "identity" : "toeplitz"; }
    /// As words: ar1:RHO[:N].
    [[nodiscard]] std::string words() const;
    /// As a table of a study file: { kind = "ar1", rho = .. }.
    [[nodiscard]] std::string table() const;
};

[[nodiscard]] const std::vector<CovarianceKind>& covariance_kinds();
/// Throws usage_error with the nearest name; `what` says of what it is a kind.
[[nodiscard]] const CovarianceKind& covariance_kind(const std::string& name, std::string_view what);

}  // namespace spiked::sim
