#include "validation/metrics/metric_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/runtime/error.hpp"
#include "estimators/coding/ledger.hpp"
#include "validation/metrics/block_metrics.hpp"

namespace spiked::validation {

const std::vector<Metric>& metrics() {
    static const std::vector<Metric> table = [] {
        std::vector<Metric> all = {
            {"outlier", "eigenvalue", "none", "k-th largest eigenvalue of S~ S~^T", "sample"},
            {"overlap.left", "share", "higher", "squared inner product of the k-th true and observed left vector",
             "sample"},
            {"overlap.right", "share", "higher", "squared inner product of the k-th true and observed right vector",
             "sample"},
            {"rank", "components", "none", "components a method keeps", "estimator codec"},
            {"rank_over", "share", "lower", "1 where a method keeps more components than there are signals, else 0",
             "estimator"},
            {"rank_right", "share", "higher", "1 where a method keeps as many components as there are signals, else 0",
             "estimator"},
            {"bulk_edge", "eigenvalue", "target", "estimated upper edge of the noise", "estimator"},
            {"strength", "singular value", "target", "estimated strength of component k", "estimator"},
            {"shrunk", "singular value", "target", "what replaces the k-th singular value", "estimator"},
            {"relative_error", "share", "lower", "||S^ - S||_F^2 / ||S||_F^2", "estimator"},
            {"loss_ratio", "ratio", "lower",
             "||S^ - S||_F^2 over that of the best values for the observed vectors of the true components; below 1 "
             "where a method has better vectors, as behind a transform",
             "estimator"},
            {"relative_l2", "share", "lower", "||X - X^||_F / ||X||_F", "codec"},
            {"distortion", "share", "lower", "||X - X^||_F^2 / ||X||_F^2", "codec"},
            {"linear_gain", "share", "target", "sum of <x_t, x^_t> over sum of |x_t|^2", "codec"},
            {"attention_logits", "logit", "lower",
             "root mean square of <q, k^ - k> / sqrt(d) over the pairs of a query and a key that it sees", "codec"},
            {"attention_kl", "nats", "lower",
             "mean over queries of the Kullback-Leibler divergence of attention over decoded keys from that over exact "
             "ones",
             "codec"},
            {"attention_top1", "share", "higher", "queries whose largest weight stays at the same token", "codec"},
            {"attention_top8", "share", "higher", "of a query's 8 largest weights, those that stay among its 8 largest",
             "codec"},
            {"attention_output", "share", "lower",
             "||O^ - O||_F / ||O||_F of softmax(Q K^T / sqrt(d)) V over the sequence, keys (of rows of values: values) "
             "decoded",
             "codec"},
            {"attention_output_both", "share", "lower",
             "||O^ - O||_F / ||O||_F as attention_output, keys and values decoded", "codec"},
            {"added_nats", "nats", "lower",
             "what a token costs a model that reads its cache coded more than one that reads it exactly, mean of a "
             "document",
             "codec"},
            {"retrieval", "nats", "lower",
             "log-probability of the answer with an exact cache less that with a coded one, mean of a prompt's "
             "questions",
             "codec"},
            {"wrong_answers", "share", "lower",
             "of a prompt's questions with a coded cache, likeliest value not the answer", "codec"},
            {"paper_bits", "bits an entry", "lower",
             "b + r (n + d) b_s / (n d): norms, singular values and codebooks left out", "codec"},
            {"bits_per_entry", "bits an entry", "lower", "all stored bits over all entries, counted from the bytes",
             "codec"},
        };
        for (const auto item : estimators::item_names)
            all.push_back({"bits." + std::string(item), "bits an entry", "none",
                           "stored bits of the item: " + std::string(item), "codec"});
        for (const auto& model : query_models()) {
            const std::string suffix(model.suffix);
            const auto queries = fmt::format("; q: {}", model.queries);
            const std::string cosines = "cos(q, x^_t) - cos(q, x_t), decoded rows renormalised as in the paper";
            const std::string products = "<q, x^_t - x_t> / (|q| |x_t|)";
            const auto deviation_of = [&](const std::string& of) {
                return fmt::format("standard deviation of {} over the pairs of a block{}", of, queries);
            };
            all.push_back({"ip_bias" + suffix, "cosine", "target", "mean of " + cosines + queries, "codec"});
            all.push_back({"ip_std" + suffix, "cosine", "lower", deviation_of(cosines), "codec"});
            all.push_back({"ip_bias_plain" + suffix, "cosine", "target", "mean of " + products + queries, "codec"});
            all.push_back({"ip_std_plain" + suffix, "cosine", "lower", deviation_of(products), "codec"});
        }
        all.push_back({"shared_bits", "bits an entry", "lower",
                       "calibrated basis of a cache method over the entries of one sequence; it serves every sequence "
                       "and is not among the stored bits",
                       "codec"});
        return all;
    }();
    return table;
}

std::size_t metric_index(std::string_view name) {
    const auto found =
        std::find_if(metrics().begin(), metrics().end(), [&](const Metric& m) { return m.name == name; });
    if (found == metrics().end()) throw precondition_error("no metric is called {}", name);
    return static_cast<std::size_t>(found - metrics().begin());
}

}  // namespace spiked::validation
