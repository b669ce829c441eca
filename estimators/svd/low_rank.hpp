#pragma once
#include <armadillo>

namespace spiked::estimators {

/// A matrix in factors: orthonormal columns, values descending.
struct LowRank {
    arma::mat left;  ///< n x r
    arma::vec values;
    arma::mat right;  ///< d x r

    [[nodiscard]] arma::mat matrix() const { return left * arma::diagmat(values) * right.t(); }
};

}  // namespace spiked::estimators
