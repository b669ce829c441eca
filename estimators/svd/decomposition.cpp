#include "estimators/svd/decomposition.hpp"

#include "core/runtime/error.hpp"

namespace spiked::estimators {

std::vector<double> singular_values(const arma::mat& block) {
    if (block.is_empty()) return {};
    if (!block.is_finite())
        throw input_error("a block holds NaN or infinity (no decomposition exists): clean the data first");
    arma::vec values;
    if (!arma::svd(values, block))
        throw input_error("the singular values of a {} x {} block did not converge (LAPACK gesdd): check its values",
                          block.n_rows, block.n_cols);
    return {values.begin(), values.end()};
}

SingularVectors leading_vectors(const arma::mat& block, std::size_t count) {
    if (count == 0) return {arma::mat(block.n_rows, 0), arma::mat(block.n_cols, 0)};
    arma::mat left;
    arma::mat right;
    arma::vec values;
    if (!arma::svd_econ(left, values, right, block, "both", "dc"))
        throw input_error("the singular vectors of a {} x {} block did not converge (LAPACK gesdd): check its values",
                          block.n_rows, block.n_cols);
    return {left.head_cols(count), right.head_cols(count)};
}

}  // namespace spiked::estimators
