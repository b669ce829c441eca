#pragma once
#include <memory>
#include <string>
#include <vector>

#include "estimators/svd/shape.hpp"

namespace spiked::estimators {

/// LAPACK routes to all singular values and the `wanted` leading vectors of one block, in float or double, with which
/// the fast decomposition is compared. Workspaces are allocated once. A wide block is transposed first.
///
///   gesdd       all vectors, divide and conquer
///   gesvdx      values by gesvd without vectors, the leading vectors by gesvdx
///   bidiagonal  gebrd, values by bdsqr, vectors by stein on B^T B, ormbr
///   gram        syrk, sytrd, sterf, stein, ormtr, A v over its length: float loses the small values
template <class Real>
class LapackRoute {
public:
    virtual ~LapackRoute() = default;
    /// `block` is column-major, rows x columns. Throws input_error when LAPACK does not converge.
    virtual void run(const Real* block) = 0;
    /// Singular values of the last block, in descending order.
    [[nodiscard]] const std::vector<Real>& values() const { return values_; }
    /// Vectors of the last block, or of its transpose where it is wide: long side x wanted and short side x wanted.
    [[nodiscard]] const std::vector<Real>& long_vectors() const { return long_vectors_; }
    [[nodiscard]] const std::vector<Real>& short_vectors() const { return short_vectors_; }

protected:
    std::vector<Real> values_;
    std::vector<Real> long_vectors_;
    std::vector<Real> short_vectors_;
};

/// The names of the routes, in the order above.
[[nodiscard]] const std::vector<std::string>& lapack_routes();
template <class Real>
[[nodiscard]] std::unique_ptr<LapackRoute<Real>> lapack_route(const std::string& name, Shape shape, std::size_t wanted);

extern template std::unique_ptr<LapackRoute<float>> lapack_route(const std::string&, Shape, std::size_t);
extern template std::unique_ptr<LapackRoute<double>> lapack_route(const std::string&, Shape, std::size_t);

}  // namespace spiked::estimators
