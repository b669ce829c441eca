#pragma once
#include <armadillo>
#include <array>
#include <limits>
#include <string_view>

namespace spiked::validation {

/// Errors of the inner products of some queries q with the rows of a block, over all pairs (q, t) with neither zero;
/// NaN where there is no pair.
struct InnerProductErrors {
    double bias = std::numeric_limits<double>::quiet_NaN();  ///< mean of cos(q, x^_t) - cos(q, x_t): the paper's
    double deviation = bias;                                 ///< standard deviation of that over the pairs
    double bias_plain = bias;  ///< mean of <q, x^_t - x_t> / (|q| |x_t|): decoded rows not renormalised
    double deviation_plain = bias;
};

/// How far a decoded block is from the block. Rows are vectors.
struct BlockMetrics {
    double relative_l2 = std::numeric_limits<double>::quiet_NaN();  ///< estimators::relative_l2 of the two
    double linear_gain = relative_l2;  ///< sum of <x_t, x^_t> over sum of |x_t|^2; NaN for a zero block
    InnerProductErrors other;          ///< the query of row t is every other row of the block, as in the paper
    InnerProductErrors random;         ///< queries of random directions
    InnerProductErrors aligned;        ///< one query along the block's strongest component
    InnerProductErrors own;            ///< the query of row t is row t itself
    InnerProductErrors dumped;         ///< queries the model itself asked
};

/// The query models by what their metrics are called: ip_bias, ip_std, ip_bias_plain, ip_std_plain and this suffix.
struct QueryModel {
    std::string_view suffix;
    InnerProductErrors BlockMetrics::*errors;
    std::string_view queries;  ///< in words
};
[[nodiscard]] const std::array<QueryModel, 5>& query_models();

/// The queries that do not follow from the block alone; one a row, of any length. A set that is empty is not measured.
struct BlockQueries {
    arma::mat random;
    arma::rowvec aligned;
    arma::mat dumped;
};

/// Source: paper Section 5 (tables of compression quality); research reading of its renormalisation. Cost: two n x n x
/// d products, two m x n x d for m random or dumped queries.
[[nodiscard]] BlockMetrics measure_block(const arma::mat& block, const arma::mat& decoded,
                                         const BlockQueries& queries = {});

}  // namespace spiked::validation
