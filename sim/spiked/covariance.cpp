#include "sim/spiked/covariance.hpp"

#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"

namespace spiked::sim {

Covariance Covariance::identity(std::size_t size) {
    Covariance covariance(size, theory::identity_spectrum());
    covariance.eigenvalues_.ones(size);
    return covariance;
}

Covariance Covariance::ar1(double rho, std::size_t size) {
    arma::vec column(size);
    for (arma::uword i = 0; i < size; ++i) column[i] = std::pow(rho, static_cast<double>(i));
    return toeplitz(theory::toeplitz_ar1_spectrum(rho, size), column);
}

Covariance Covariance::toeplitz(theory::Spectrum spectrum, const arma::vec& first_column) {
    const std::size_t size = first_column.n_elem;
    Covariance covariance(size, std::move(spectrum));
    const arma::mat matrix = arma::toeplitz(first_column);
    arma::vec values;
    arma::mat vectors;
    if (!arma::eig_sym(values, vectors, matrix))
        throw postcondition_error("the eigenvectors of a Toeplitz covariance of size {} cannot be computed", size);
    values = arma::sqrt(values);
    covariance.dense_root_ = vectors * arma::diagmat(values) * vectors.t();
    covariance.eigenvalues_ = expand(covariance.spectrum_, size);
    covariance.eigenvalue_roots_ = arma::sqrt(covariance.eigenvalues_);
    covariance.basis_ = arma::fliplr(vectors);  // LAPACK returns the smallest eigenvalue first
    return covariance;
}

Covariance Covariance::exponential(double decay, std::size_t size) {
    Covariance covariance(size, theory::exponential_spectrum(decay, size));
    covariance.eigenvalue_roots_.set_size(size);
    for (arma::uword j = 0; j < size; ++j)
        covariance.eigenvalue_roots_(j) =
            std::exp(-0.5 * decay * (static_cast<double>(j) + 0.5) / static_cast<double>(size));
    covariance.eigenvalues_ = arma::square(covariance.eigenvalue_roots_);
    return covariance;
}

Covariance Covariance::diagonal(const arma::vec& eigenvalues) {
    Covariance covariance(eigenvalues.n_elem, theory::Spectrum::of_values({eigenvalues.memptr(), eigenvalues.n_elem}));
    covariance.eigenvalues_ = eigenvalues;
    covariance.eigenvalue_roots_ = arma::sqrt(eigenvalues);
    return covariance;
}

Covariance Covariance::on_basis(const arma::vec& eigenvalues, arma::mat basis) {
    const arma::uword size = eigenvalues.n_elem;
    if (basis.n_rows != size || basis.n_cols != size)
        throw precondition_error("the basis of a covariance is {} x {} for {} eigenvalues", basis.n_rows, basis.n_cols,
                                 size);
    arma::mat gram = basis.t() * basis;
    gram.diag() -= 1.0;
    if (!(arma::abs(gram).max() < 1e-10))
        throw precondition_error("the basis of a covariance of size {} is not orthonormal", size);
    Covariance covariance = diagonal(eigenvalues);
    covariance.dense_root_ = (basis.each_row() % covariance.eigenvalue_roots_.t()) * basis.t();
    covariance.basis_ = std::move(basis);
    return covariance;
}

arma::mat Covariance::basis() const { return is_diagonal() ? arma::mat(size_, size_, arma::fill::eye) : basis_; }

bool Covariance::same_as(const Covariance& other) const {
    const auto same = [](const arma::mat& a, const arma::mat& b) {
        return arma::size(a) == arma::size(b) && std::equal(a.begin(), a.end(), b.begin());
    };
    return size_ == other.size_ && same(eigenvalues_, other.eigenvalues_) &&
           same(eigenvalue_roots_, other.eigenvalue_roots_) && same(basis_, other.basis_) &&
           same(dense_root_, other.dense_root_);
}

arma::mat Covariance::root_times(const arma::mat& right) const {
    if (!dense_root_.is_empty()) return dense_root_ * right;
    if (!eigenvalue_roots_.is_empty()) return right.each_col() % eigenvalue_roots_;
    return right;
}

arma::mat Covariance::times_root(const arma::mat& left) const {
    if (!dense_root_.is_empty()) return left * dense_root_;
    if (!eigenvalue_roots_.is_empty()) return left.each_row() % eigenvalue_roots_.t();
    return left;
}

Covariance Covariance::in_eigenbasis() const {
    Covariance covariance(size_, spectrum_);
    covariance.eigenvalues_ = eigenvalues_;
    covariance.eigenvalue_roots_ = eigenvalue_roots_;
    return covariance;
}

arma::mat Covariance::to_eigenbasis(const arma::mat& vectors) const {
    return is_diagonal() ? vectors : arma::mat(basis_.t() * vectors);
}

arma::mat Covariance::eigenvectors(std::size_t first, std::size_t count) const {
    if (first < 1 || first - 1 + count > size_)
        throw precondition_error("{} eigenvectors from number {} on are requested of a covariance of size {}", count,
                                 first, size_);
    const arma::uvec order = arma::stable_sort_index(eigenvalues_, "descend");
    arma::mat vectors(size_, count, arma::fill::zeros);
    for (arma::uword k = 0; k < count; ++k) {
        const arma::uword column = order(first - 1 + k);
        if (is_diagonal())
            vectors(column, k) = 1.0;
        else
            vectors.col(k) = basis_.col(column);
    }
    return vectors;
}

arma::vec expand(const theory::Spectrum& spectrum, std::size_t size) {
    arma::vec values(size);
    long double cumulative = 0.0L;
    std::size_t filled = 0;
    for (const theory::Atom& atom : spectrum.atoms()) {
        cumulative += atom.weight;
        // Slightly more than 1/2, because sums of weights are rounded and a tie (0.3 times 5) must count as one.
        const auto target =
            static_cast<std::size_t>(std::floor(cumulative * static_cast<long double>(size) + 0.5L + 1e-9L));
        for (; filled < std::min(target, size); ++filled) values(filled) = atom.value;
    }
    for (; filled < size; ++filled) values(filled) = spectrum.atoms().back().value;
    return values;
}

}  // namespace spiked::sim
