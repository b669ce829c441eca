#include "estimators/compressors/relative_error.hpp"

namespace spiked::estimators {

double relative_l2(const arma::mat& block, const arma::mat& decoded) {
    const arma::mat error = decoded - block;
    const double error_norm = arma::norm(error, "fro");
    return error_norm == 0.0 ? 0.0 : error_norm / arma::norm(block, "fro");
}

}  // namespace spiked::estimators
