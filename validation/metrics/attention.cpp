#include "validation/metrics/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/runtime/error.hpp"

namespace spiked::validation {
namespace {

/// Softmax of each column (one per query) over the keys that the query sees; the other keys get weight 0.
arma::mat weights(arma::mat logits, const arma::uvec& seen) {
    for (arma::uword i = 0; i < logits.n_cols; ++i) {
        arma::vec column = logits.col(i);
        column.head(seen(i)) = arma::exp(column.head(seen(i)) - column.head(seen(i)).max());
        column.tail(logits.n_rows - seen(i)).zeros();
        logits.col(i) = column / arma::accu(column);
    }
    return logits;
}

/// Indices of the largest weights of a query.
arma::uvec largest(const arma::mat& weights, arma::uword query, arma::uword seen, arma::uword count) {
    std::vector<arma::uword> order(seen);
    std::iota(order.begin(), order.end(), arma::uword{0});
    const double* column = weights.colptr(query);
    const auto middle = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, seen));
    std::partial_sort(order.begin(), middle, order.end(), [&](arma::uword a, arma::uword b) {
        return column[a] > column[b] || (column[a] == column[b] && a < b);
    });
    order.erase(middle, order.end());
    return arma::uvec(order);
}

/// KL(softmax(a) || softmax(b)), computed from logits, so that weights may underflow to zero.
double divergence(const arma::vec& a, const arma::vec& b) {
    const auto log_sum = [](const arma::vec& logits) {
        return logits.max() + std::log(arma::accu(arma::exp(logits - logits.max())));
    };
    const arma::vec p = a - log_sum(a);
    const arma::vec q = b - log_sum(b);
    return std::max(arma::dot(arma::exp(p), p - q), 0.0);
}

}  // namespace

AttentionErrors attention_errors(const AttentionHead& head, const arma::mat& keys,
                                 const std::vector<const arma::mat*>& values, const arma::uvec& tokens) {
    const arma::uword length = head.keys.n_rows;
    if (arma::size(keys) != arma::size(head.keys) || head.values.n_rows != length ||
        std::any_of(values.begin(), values.end(),
                    [&](const arma::mat* v) { return arma::size(*v) != arma::size(head.values); }) ||
        tokens.is_empty() || tokens.max() >= length)
        throw precondition_error("attention over {} tokens of {} keys and {} values", length, keys.n_rows,
                                 head.values.n_rows);
    const double scale = 1.0 / std::sqrt(static_cast<double>(keys.n_cols));
    const arma::uvec seen = head.causal ? arma::uvec(tokens + 1) : arma::uvec(tokens.n_elem).fill(length);
    AttentionErrors errors;
    double logit_squares = 0.0;
    double pairs = 0.0;
    double energy = 0.0;
    std::vector<double> squares(values.size(), 0.0);
    for (const arma::mat& all : head.queries) {
        const arma::mat queries = scale * all.rows(tokens).t();
        const arma::mat logits = head.keys * queries;
        const arma::mat decoded_logits = keys * queries;
        for (arma::uword i = 0; i < tokens.n_elem; ++i) {
            const arma::vec exact = logits.col(i).head(seen(i));
            const arma::vec decoded = decoded_logits.col(i).head(seen(i));
            logit_squares += arma::accu(arma::square(decoded - exact));
            errors.divergence += divergence(exact, decoded);
            const arma::uvec before = largest(logits, i, seen(i), 8);
            const arma::uvec after = largest(decoded_logits, i, seen(i), 8);
            if (before(0) == after(0)) errors.top1 += 1.0;
            errors.top8 +=
                static_cast<double>(arma::intersect(before, after).eval().n_elem) / static_cast<double>(before.n_elem);
        }
        pairs += static_cast<double>(arma::accu(seen));
        const arma::mat output = head.values.t() * weights(logits, seen);
        const arma::mat decoded_weights = weights(decoded_logits, seen);
        energy += arma::accu(arma::square(output));
        for (std::size_t v = 0; v < values.size(); ++v)
            squares[v] += arma::accu(arma::square(values[v]->t() * decoded_weights - output));
    }
    const auto query_count = static_cast<double>(head.queries.size() * tokens.n_elem);
    errors.logits = std::sqrt(logit_squares / pairs);
    errors.divergence /= query_count;
    errors.top1 /= query_count;
    errors.top8 /= query_count;
    for (const double square : squares)
        errors.outputs.push_back(energy > 0.0 ? std::sqrt(square / energy) : std::numeric_limits<double>::quiet_NaN());
    return errors;
}

arma::uvec query_tokens(std::size_t first_token, std::size_t tokens) {
    constexpr std::size_t most = 32;
    const std::size_t count = std::min(most, tokens);
    arma::uvec chosen(count);
    for (std::size_t i = 0; i < count; ++i) chosen(i) = first_token + (i + 1) * tokens / count - 1;
    return chosen;
}

}  // namespace spiked::validation
