#pragma once
#include <armadillo>

namespace spiked::estimators {

/// A low-rank matrix in factors: orthonormal columns on both sides and values in descending order.
struct LowRank {
    arma::mat left;  ///< n x r
    arma::vec values;
    arma::mat right;  ///< d x r

    [[nodiscard]] arma::mat matrix() const { return left * arma::diagmat(values) * right.t(); }
};

}  // namespace spiked::estimators
