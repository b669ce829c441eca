#pragma once
#include <armadillo>
#include <vector>

namespace spiked::validation {

/// One key and value head over a whole sequence, with the query heads that use it.
struct AttentionHead {
    arma::mat keys;                  ///< tokens x d
    arma::mat values;                ///< tokens x any number of channels
    std::vector<arma::mat> queries;  ///< tokens x d, one matrix per query head
    bool causal = true;              ///< the query of token i sees keys 0 to i only, otherwise all keys
};

struct AttentionErrors {
    double logits = 0.0;  ///< root mean square of <q, k^ - k> / sqrt(d) over pairs of a query and a key that it sees
    double divergence = 0.0;      ///< mean over queries of KL(exact weights || weights for the decoded keys), nats
    double top1 = 0.0;            ///< fraction of queries whose largest weight stays at the same token
    double top8 = 0.0;            ///< mean fraction of a query's 8 largest weights that stay among its 8 largest
    std::vector<double> outputs;  ///< ||O^ - O||_F / ||O||_F for each of the decoded values; NaN if O is zero
};

/// The errors of the attention of one head, and whether its keys were coded; if not, its values were.
struct HeadAttention {
    AttentionErrors errors;
    bool coded_keys = false;
};

/// Errors of softmax(Q K^T / sqrt(d)) V when keys and values are replaced, for the queries at the given tokens, over
/// all query heads. `keys` replace the keys of the head, and each of `values` in turn replaces its values. The softmax
/// runs over the whole sequence. Throws precondition_error for sizes that do not fit. Among equal weights the first
/// counts as the largest; for a query that sees fewer than 8 keys all of them are among its 8. Cost for q queries of h
/// heads over t tokens and v sets of values: (3 + v) q h t d multiplications and 5 q h t exponentials; memory (4 + v) q
/// t numbers.
[[nodiscard]] AttentionErrors attention_errors(const AttentionHead& head, const arma::mat& keys,
                                               const std::vector<const arma::mat*>& values, const arma::uvec& tokens);

/// Tokens whose queries represent a block: at most 32, evenly spaced, including the last token of the block.
[[nodiscard]] arma::uvec query_tokens(std::size_t first_token, std::size_t tokens);

}  // namespace spiked::validation
