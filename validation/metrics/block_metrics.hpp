#pragma once
#include <armadillo>
#include <array>
#include <limits>
#include <string_view>

namespace spiked::validation {

/// Errors of the inner products of queries q with the rows x_t of a block, over all pairs (q, t) in which neither is
/// zero; NaN if there is no pair. A hat marks the decoded row.
struct InnerProductErrors {
    double bias = std::numeric_limits<double>::quiet_NaN();  ///< mean of cos(q, x^_t) - cos(q, x_t), as in the paper
    double deviation = bias;                                 ///< standard deviation of this difference over the pairs
    double bias_plain = bias;       ///< mean of <q, x^_t - x_t> / (|q| |x_t|): decoded rows are not renormalised
    double deviation_plain = bias;  ///< standard deviation of the plain error over the pairs
};

/// Errors of a decoded block. The rows of a block are the vectors that were coded.
struct BlockMetrics {
    double relative_l2 = std::numeric_limits<double>::quiet_NaN();  ///< estimators::relative_l2 of the two blocks
    double linear_gain = relative_l2;  ///< sum of <x_t, x^_t> over sum of |x_t|^2; NaN for a zero block
    InnerProductErrors other;          ///< the queries of row t are all other rows of the block, as in the paper
    InnerProductErrors random;         ///< queries of random directions
    InnerProductErrors aligned;        ///< one query along the leading right singular vector of the block
    InnerProductErrors own;            ///< the query of row t is row t itself
    InnerProductErrors dumped;         ///< the model's own queries, from the dump
    bool has_dumped_queries = false;   ///< whether there are such queries
};

/// A query model. The names of its metrics are ip_bias, ip_std, ip_bias_plain and ip_std_plain with this suffix.
struct QueryModel {
    std::string_view suffix;
    InnerProductErrors BlockMetrics::*errors;
    std::string_view queries;  ///< description of the queries
    std::string_view heading;  ///< of the column of their plain bias
};
[[nodiscard]] const std::array<QueryModel, 5>& query_models();

/// The queries that are not determined by the block alone, one per row, of any norm. An empty set is not measured.
struct BlockQueries {
    arma::mat random;
    arma::rowvec aligned;
    arma::mat dumped;
};

/// Measures the errors of a decoded block. Source: paper, Section 5 (tables of compression quality); its
/// renormalisation is interpreted as in the research notes. Cost: two n x n x d products, and two m x n x d products
/// for m random or dumped queries.
[[nodiscard]] BlockMetrics measure_block(const arma::mat& block, const arma::mat& decoded,
                                         const BlockQueries& queries = {});

}  // namespace spiked::validation
