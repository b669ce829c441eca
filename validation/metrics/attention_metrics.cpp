#include "validation/metrics/attention.hpp"
#include "validation/metrics/metric_table.hpp"

// The rows of metric_table.cpp on attention.

namespace spiked::validation {
namespace {

/// The measure of a metric of attention weights, which depend on keys only: it is not measured for values.
Measure<HeadAttention> of_keys(double AttentionErrors::*number) {
    return [number](const HeadAttention& of) {
        return of.coded_keys ? std::optional<double>(of.errors.*number) : std::nullopt;
    };
}

}  // namespace

std::vector<Metric> attention_metrics() {
    return {
        {.name = "attention_logits",
         .unit = "logit",
         .better = "lower",
         .definition =
             "root mean square of <q, k^ - k> / sqrt(d) over the pairs of a query and a key that it attends to",
         .of = "codec",
         .text = {.heading = "logit error",
                  .narrow = "logits",
                  .long_name = "error of attention logits",
                  .group = MetricGroup::of_attention,
                  .frontier = true},
         .measure = {.attention = of_keys(&AttentionErrors::logits)}},
        {.name = "attention_kl",
         .unit = "nats",
         .better = "lower",
         .definition = "mean over queries of the Kullback-Leibler divergence of attention over decoded keys from that "
                       "over exact ones",
         .of = "codec",
         .text = {.heading = "KL, nats", .narrow = "KL", .group = MetricGroup::of_attention},
         .measure = {.attention = of_keys(&AttentionErrors::divergence)}},
        {.name = "attention_top1",
         .unit = "share",
         .better = "higher",
         .definition = "fraction of queries whose largest attention weight stays at the same token",
         .of = "codec",
         .text = {.heading = "same top weight", .narrow = "top-1", .group = MetricGroup::of_attention},
         .measure = {.attention = of_keys(&AttentionErrors::top1)}},
        {.name = "attention_top8",
         .unit = "share",
         .better = "higher",
         .definition = "fraction of a query's 8 largest attention weights that stay among its 8 largest",
         .of = "codec",
         .text = {.heading = "same top 8", .narrow = "top-8", .group = MetricGroup::of_attention},
         .measure = {.attention = of_keys(&AttentionErrors::top8)}},
        {.name = "attention_output",
         .unit = "share",
         .better = "lower",
         .definition = "||O^ - O||_F / ||O||_F of softmax(Q K^T / sqrt(d)) V over the sequence, with decoded keys (for "
                       "a block of values: with decoded values)",
         .of = "codec",
         .text = {.heading = "output error",
                  .narrow = "attention",
                  .long_name = "relative error of attention output",
                  .group = MetricGroup::of_attention,
                  .frontier = true},
         .measure = {.attention = [](const HeadAttention& of) { return of.errors.outputs.front(); }}},
        {.name = "attention_output_both",
         .unit = "share",
         .better = "lower",
         .definition = "||O^ - O||_F / ||O||_F as attention_output, with decoded keys and values",
         .of = "codec",
         .text = {.heading = "output error, both sides", .narrow = "both", .group = MetricGroup::of_attention},
         .measure = {.attention =
                         [](const HeadAttention& of) {
                             return of.coded_keys ? std::optional<double>(of.errors.outputs.back()) : std::nullopt;
                         }}},
    };
}

}  // namespace spiked::validation
