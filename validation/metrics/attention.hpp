#pragma once
#include <armadillo>
#include <vector>

namespace spiked::validation {

/// One key and value head over a whole sequence, with the query heads that read it.
struct AttentionHead {
    arma::mat keys;                  ///< tokens x d
    arma::mat values;                ///< tokens x any number of channels
    std::vector<arma::mat> queries;  ///< tokens x d, one a query head
    bool causal = true;              ///< the query of token i sees keys 0 to i, else all of them
};

struct AttentionErrors {
    double logits = 0.0;          ///< root mean square of <q, k^ - k> / sqrt(d) over the pairs that are seen
    double divergence = 0.0;      ///< mean over queries of KL(weights of the exact keys || of the others), nats
    double top1 = 0.0;            ///< share of queries whose largest weight stays where it was
    double top8 = 0.0;            ///< mean share of a query's 8 largest weights that are among the 8 largest again
    std::vector<double> outputs;  ///< ||O^ - O||_F / ||O||_F for each of the decoded values; NaN where O is zero
};

/// What replacing keys and values does to softmax(Q K^T / sqrt(d)) V, for the queries at some tokens, all query heads
/// together. `keys` are put in the place of the head's, with each of `values` in turn. The softmax runs over the whole
/// sequence. Throws bug for sizes that do not fit. Of equal weights the first is the largest; a query that sees
/// fewer than 8 keys has all of them among its 8. Cost: for q queries of h heads over t tokens (3 + v) q h t d
/// multiplications and 5 q h t exponentials; memory (4 + v) q t numbers.
[[nodiscard]] AttentionErrors attention_errors(const AttentionHead& head, const arma::mat& keys,
                                               const std::vector<const arma::mat*>& values, const arma::uvec& tokens);

/// At most 32 tokens of a block, evenly spaced, the last among them: the queries that stand for the block's.
[[nodiscard]] arma::uvec query_tokens(std::size_t first_token, std::size_t tokens);

}  // namespace spiked::validation
