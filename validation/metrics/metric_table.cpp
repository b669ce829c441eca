#include "validation/metrics/metric_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "estimators/coding/ledger.hpp"
#include "validation/metrics/block_metrics.hpp"
#include "validation/metrics/codec_measurement.hpp"
#include "validation/metrics/estimate_measurement.hpp"

namespace spiked::validation {

// In attention_metrics.cpp, without a header.
std::vector<Metric> attention_metrics();

namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

/// The measure of a metric of samples that is the square of a number of each spike.
SpikeMeasure<SampleResult> square_of(std::vector<double> SampleResult::*numbers) {
    return [numbers](const SampleResult& sample, std::size_t spike) {
        const auto& found = sample.*numbers;
        return spike < found.size() ? found[spike] * found[spike] : undefined;
    };
}

/// The measure of a number of the cluster that begins with the spike. Other spikes do not have it.
SpikeMeasure<SampleResult> of_cluster(double SubspaceResult::*number) {
    return [number](const SampleResult& sample, std::size_t spike) -> std::optional<double> {
        for (const SubspaceResult& cluster : sample.subspaces)
            if (cluster.first == spike) return cluster.*number;
        return std::nullopt;
    };
}

/// The measure of a number of a spike that is seen in a gap only. Other spikes do not have it.
SpikeMeasure<SampleResult> in_gap(double GapResult::*number) {
    return [number](const SampleResult& sample, std::size_t spike) -> std::optional<double> {
        for (const GapResult& outlier : sample.in_gaps)
            if (outlier.spike == spike) return outlier.*number;
        return std::nullopt;
    };
}

SpikeMeasure<EstimateResult> number_of(std::vector<double> EstimateResult::*numbers) {
    return [numbers](const EstimateResult& estimate, std::size_t component) {
        return component < estimate.rank ? (estimate.*numbers)[component] : undefined;
    };
}

/// The measure of a metric that needs the true signal, and is not measured without.
template <class Value>
Measure<EstimateResult> with_truth(Value value) {
    return [value](const EstimateResult& estimate) {
        return estimate.sample.truth ? std::optional<double>(value(estimate)) : std::nullopt;
    };
}

/// The measure of a metric that compares the rank with the number of detectable spikes, and needs the law.
template <class Value>
Measure<EstimateResult> with_detectable(Value value) {
    return [value](const EstimateResult& estimate) {
        const auto& spikes = estimate.sample.detectable;
        return spikes ? std::optional<double>(value(estimate.rank, *spikes)) : std::nullopt;
    };
}

std::vector<Metric> spectral_metrics() {
    return {
        {.name = "outlier",
         .unit = "eigenvalue",
         .better = "none",
         .definition = "k-th largest eigenvalue of S~ S~^T",
         .of = "sample",
         .measure = {.sample = square_of(&SampleResult::values)}},
        {.name = "overlap.left",
         .unit = "share",
         .better = "higher",
         .definition = "squared inner product of the k-th true and observed left vector",
         .of = "sample",
         .text = {.heading = "left overlap", .long_name = "overlap of left vectors"},
         .measure = {.sample = square_of(&SampleResult::left)}},
        {.name = "overlap.right",
         .unit = "share",
         .better = "higher",
         .definition = "squared inner product of the k-th true and observed right vector",
         .of = "sample",
         .text = {.heading = "right overlap", .long_name = "overlap of right vectors"},
         .measure = {.sample = square_of(&SampleResult::right)}},
        // Of spikes that are too close for their vectors to be told apart; k is the first spike of their cluster.
        {.name = "subspace_outlier",
         .unit = "eigenvalue",
         .better = "none",
         .definition = "mean outlier of the cluster of close spikes that begins with the k-th",
         .of = "sample",
         .text = {.long_name = "mean outlier of close spikes"},
         .measure = {.sample = of_cluster(&SubspaceResult::outlier)}},
        {.name = "subspace_overlap.left",
         .unit = "share",
         .better = "higher",
         .definition = "mean squared cosine of the principal angles between the true and observed left subspaces of "
                       "the cluster of close spikes that begins with the k-th",
         .of = "sample",
         .text = {.long_name = "overlap of left subspaces of close spikes"},
         .measure = {.sample = of_cluster(&SubspaceResult::overlap_left)}},
        {.name = "subspace_overlap.right",
         .unit = "share",
         .better = "higher",
         .definition = "mean squared cosine of the principal angles between the true and observed right subspaces of "
                       "the cluster of close spikes that begins with the k-th",
         .of = "sample",
         .text = {.long_name = "overlap of right subspaces of close spikes"},
         .measure = {.sample = of_cluster(&SubspaceResult::overlap_right)}},
        {.name = "subspace_angle.left",
         .unit = "degree",
         .better = "lower",
         .definition = "largest principal angle between these left subspaces",
         .of = "sample",
         .text = {.long_name = "largest angle of left subspaces of close spikes"},
         .measure = {.sample = of_cluster(&SubspaceResult::angle_left)}},
        {.name = "subspace_angle.right",
         .unit = "degree",
         .better = "lower",
         .definition = "largest principal angle between these right subspaces",
         .of = "sample",
         .text = {.long_name = "largest angle of right subspaces of close spikes"},
         .measure = {.sample = of_cluster(&SubspaceResult::angle_right)}},
        // Of spikes that have an outlier in a gap of the noise's bulk and none above its top edge.
        {.name = "gap_outlier",
         .unit = "eigenvalue",
         .better = "none",
         .definition = "eigenvalue of S~ S~^T that the k-th spike leaves in a gap of the noise's bulk, counted from "
                       "the top; only of spikes without an outlier above the bulk",
         .of = "sample",
         .text = {.long_name = "outlier in a gap of the bulk"},
         .measure = {.sample = in_gap(&GapResult::outlier)}},
        {.name = "gap_overlap.left",
         .unit = "share",
         .better = "higher",
         .definition = "squared inner product of the k-th true left vector and that of its outlier in a gap",
         .of = "sample",
         .text = {.long_name = "overlap of left vectors of outliers in gaps"},
         .measure = {.sample = in_gap(&GapResult::overlap_left)}},
        {.name = "gap_overlap.right",
         .unit = "share",
         .better = "higher",
         .definition = "squared inner product of the k-th true right vector and that of its outlier in a gap",
         .of = "sample",
         .text = {.long_name = "overlap of right vectors of outliers in gaps"},
         .measure = {.sample = in_gap(&GapResult::overlap_right)}},
        {.name = "rank",
         .unit = std::string(whole_components),
         .better = "none",
         .definition = "number of components that a method keeps",
         .of = "estimator codec",
         .text = {.heading = "mean rank", .group = MetricGroup::of_codecs, .column = 1},
         .measure = {.estimate = [](const EstimateResult& of) { return static_cast<double>(of.rank); },
                     .size = [](const CodeSize& of) { return static_cast<double>(of.rank); }}},
        {.name = "rank_over",
         .unit = std::string(share_of_replicates),
         .better = "lower",
         .definition = "1 if a method keeps more components than there are detectable signals (strengths above the "
                       "threshold), else 0; not measured where the noise law is unknown",
         .of = "estimator",
         .text = {.heading = "rank too high", .long_name = "fraction of ranks that are too high"},
         .measure = {.estimate = with_detectable([](auto rank, auto spikes) { return rank > spikes ? 1.0 : 0.0; })}},
        {.name = "rank_right",
         .unit = std::string(share_of_replicates),
         .better = "higher",
         .definition = "1 if a method keeps as many components as there are detectable signals, else 0",
         .of = "estimator",
         .text = {.heading = "rank right", .long_name = "fraction of ranks that are right"},
         .measure = {.estimate = with_detectable([](auto rank, auto spikes) { return rank == spikes ? 1.0 : 0.0; })}},
        {.name = "rank_missed",
         .unit = std::string(whole_components),
         .better = "lower",
         .definition = "number of detectable signals that a method misses: signals minus kept components, at least 0",
         .of = "estimator",
         .text = {.heading = "signals missed", .long_name = "detectable signals that are missed"},
         .measure = {.estimate = with_detectable([](auto rank, auto spikes) {
                         return static_cast<double>(spikes > rank ? spikes - rank : 0);
                     })}},
        {.name = "rank_false",
         .unit = std::string(whole_components),
         .better = "lower",
         .definition = "number of components that a method keeps in excess of detectable signals, at least 0",
         .of = "estimator",
         .text = {.heading = "components in excess", .long_name = "components beyond the detectable signals"},
         .measure = {.estimate = with_detectable([](auto rank, auto spikes) {
                         return static_cast<double>(rank > spikes ? rank - spikes : 0);
                     })}},
        {.name = "bulk_edge",
         .unit = "eigenvalue",
         .better = "target",
         .definition = "estimated upper edge of the noise eigenvalues",
         .of = "estimator",
         .text = {.heading = "edge of the noise"},
         .measure = {.estimate = [](const EstimateResult& of) { return of.bulk_edge; }}},
        {.name = "strength",
         .unit = "singular value",
         .better = "target",
         .definition = "estimated strength of component k, the singular value of the clean signal",
         .of = "estimator",
         .measure = {.component = number_of(&EstimateResult::strengths)}},
        {.name = "shrunk",
         .unit = "singular value",
         .better = "target",
         .definition = "the value that a method puts in place of the k-th singular value",
         .of = "estimator",
         .text = {.heading = "shrunk value"},
         .measure = {.component = number_of(&EstimateResult::shrunk)}},
    };
}

std::vector<Metric> estimate_errors() {
    return {
        {.name = "relative_error",
         .unit = "share",
         .better = "lower",
         .definition = "||S^ - S||_F^2 / ||S||_F^2",
         .of = "estimator",
         .text = {.heading = "relative squared error"},
         .measure = {.estimate = with_truth([](const EstimateResult& of) {
                         return of.sample.energy > 0.0 ? of.error / of.sample.energy : undefined;
                     })}},
        // If the observed vectors equal the true ones up to rounding, the oracle error is zero and the ratio undefined.
        {.name = "loss_ratio",
         .unit = "ratio",
         .better = "lower",
         .definition = "||S^ - S||_F^2 divided by its least value for the observed singular vectors of the true "
                       "components; below 1 if a method has better vectors, as behind a transform",
         .of = "estimator",
         .text = {.heading = "loss over the least"},
         .measure = {.estimate = with_truth([](const EstimateResult& of) {
                         return of.sample.oracle > 1e-12 * of.sample.energy ? of.error / of.sample.oracle : undefined;
                     })}},
    };
}

std::vector<Metric> block_errors() {
    return {
        {.name = "relative_l2",
         .unit = "share",
         .better = "lower",
         .definition = "||X - X^||_F / ||X||_F",
         .of = "codec",
         .text = {.heading = "relative L2",
                  .narrow = "rel. L2",
                  .long_name = "relative L2 error",
                  .group = MetricGroup::of_codecs,
                  .column = 4,
                  .frontier = true},
         .measure = {.errors = [](const BlockMetrics& of) { return of.relative_l2; }}},
        {.name = "distortion",
         .unit = "share",
         .better = "lower",
         .definition = "||X - X^||_F^2 / ||X||_F^2",
         .of = "codec",
         .measure = {.errors = [](const BlockMetrics& of) { return of.relative_l2 * of.relative_l2; }}},
        {.name = "linear_gain",
         .unit = "share",
         .better = "target",
         .definition = "sum of <x_t, x^_t> over sum of |x_t|^2",
         .of = "codec",
         .measure = {.errors = [](const BlockMetrics& of) { return of.linear_gain; }}},
    };
}

std::vector<Metric> model_metrics() {
    return {
        {.name = "added_nats",
         .unit = "nats",
         .better = "lower",
         .definition = "increase of a model's loss per token when it reads a coded instead of the exact cache, mean "
                       "over a document",
         .of = "codec",
         .text = {.heading = "added nats",
                  .long_name = "added nats a token",
                  .group = MetricGroup::of_models,
                  .frontier = true}},
        {.name = "retrieval",
         .unit = "nats",
         .better = "lower",
         .definition = "decrease of the answer's log-probability when a model reads a coded instead of the exact "
                       "cache, mean over a prompt's questions",
         .of = "codec",
         .text = {.heading = "log-probability lost",
                  .narrow = "lost log p",
                  .long_name = "nats lost of the answers' log-probability",
                  .group = MetricGroup::of_models,
                  .frontier = true}},
        {.name = "wrong_answers",
         .unit = "share",
         .better = "lower",
         .definition = "fraction of a prompt's questions whose likeliest value, given a coded cache, is not the answer",
         .of = "codec",
         .text = {.heading = "wrong answers",
                  .narrow = "wrong",
                  .long_name = "fraction of answers that are wrong",
                  .group = MetricGroup::of_models,
                  .frontier = true}},
    };
}

/// The number of studies of claims, whose methods are the criterion and its controls.
Metric claim_metric() {
    return {.name = "trial",
            .unit = "number",
            .better = "none",
            .definition = "number of one trial of a claim, which its criterion defines",
            .of = "claim"};
}

/// The sizes of codes: in all, and one metric for each item of the ledger.
std::vector<Metric> bit_metrics() {
    std::vector<Metric> all = {
        {.name = "paper_bits",
         .unit = std::string(bits_an_entry),
         .better = "lower",
         .definition =
             "b + r (n + d) b_s / (n d), the paper's formula, which leaves out norms, singular values and codebooks",
         .of = "codec",
         .text = {.heading = "paper bits", .group = MetricGroup::of_codecs, .column = 3},
         .measure = {.size = [](const CodeSize& of) { return of.paper_bits; }}},
        {.name = "bits_per_entry",
         .unit = std::string(bits_an_entry),
         .better = "lower",
         .definition = "all stored bits divided by the number of entries, counted from the bytes",
         .of = "codec",
         .text = {.heading = "stored bits", .narrow = "bits", .group = MetricGroup::of_codecs, .column = 2},
         .measure = {.size = [](const CodeSize& of) { return of.bits_per_entry; }}},
    };
    for (const auto& item : EnumNames<estimators::Item>::table) {
        const std::string name(item.name);
        std::string words = name;
        std::replace(words.begin(), words.end(), '_', ' ');
        all.push_back({.name = "bits." + name,
                       .unit = std::string(bits_an_entry),
                       .better = "none",
                       .definition = "stored bits of the item " + name,
                       .of = "codec",
                       .text = {.heading = "bits of " + words},
                       .measure = {.size = [item = item.value](const CodeSize& of) { return of.items[item]; }}});
    }
    return all;
}

/// Bias and standard deviation of inner products for one kind of queries. Only those of the first kind, the other rows
/// of the block, are columns of the tables of codecs.
std::vector<Metric> inner_product_metrics(const QueryModel& model) {
    const auto metric = [&](const std::string& name, const char* better, const std::string& definition,
                            const char* heading, const char* narrow, const char* heading_of_others,
                            double InnerProductErrors::*number) -> Metric {
        const bool first = model.suffix.empty();
        return {.name = name + std::string(model.suffix),
                .unit = "cosine",
                .better = better,
                .definition = fmt::format("{}; q: {}", definition, model.queries),
                .of = "codec",
                .text = {.heading = first ? heading : heading_of_others,
                         .narrow = first ? narrow : "",
                         .long_name = first ? "" : fmt::format("{}, {}", heading, model.heading),
                         .group = first ? MetricGroup::of_codecs : MetricGroup::none,
                         .column = 5},
                .measure = {.errors = [errors = model.errors, number](const BlockMetrics& of) {
                    const bool measured = errors != &BlockMetrics::dumped || of.has_dumped_queries;
                    return measured ? std::optional<double>(of.*errors.*number) : std::nullopt;
                }}};
    };
    const std::string cosines = "cos(q, x^_t) - cos(q, x_t), decoded rows renormalised as in the paper";
    const std::string products = "<q, x^_t - x_t> / (|q| |x_t|)";
    const auto deviation_of = [](const std::string& of) {
        return fmt::format("standard deviation of {} over the pairs of a block", of);
    };
    const std::string bias_of_queries = fmt::format("bias, {}", model.heading);
    const std::string std_of_queries = fmt::format("std, {}", model.heading);
    return {
        metric("ip_bias", "target", "mean of " + cosines, "cosine bias", "IP bias", "", &InnerProductErrors::bias),
        metric("ip_std", "lower", deviation_of(cosines), "cosine std", "IP std", "", &InnerProductErrors::deviation),
        metric("ip_bias_plain", "target", "mean of " + products, "product bias", "IP bias plain",
               bias_of_queries.c_str(), &InnerProductErrors::bias_plain),
        metric("ip_std_plain", "lower", deviation_of(products), "product std", "IP std plain", std_of_queries.c_str(),
               &InnerProductErrors::deviation_plain),
    };
}

Metric shared_bits() {
    return {.name = "shared_bits",
            .unit = std::string(bits_an_entry),
            .better = "lower",
            .definition =
                "calibrated basis of a cache method over the entries of one sequence; it serves every sequence and is "
                "not among the stored bits",
            .of = "codec",
            .measure = {.size = [](const CodeSize& of) { return of.shared_bits; }}};
}

}  // namespace

const Registry<Metric>& metrics() {
    static const Registry<Metric> table("metric", [] {
        std::vector<Metric> all;
        const auto add = [&](const std::vector<Metric>& more) { all.insert(all.end(), more.begin(), more.end()); };
        for (const auto& part : {spectral_metrics(), estimate_errors(), block_errors(), attention_metrics(),
                                 model_metrics(), bit_metrics()})
            add(part);
        for (const auto& model : query_models()) add(inner_product_metrics(model));
        all.push_back(shared_bits());
        all.push_back(claim_metric());
        return all;
    }());
    return table;
}

bool Metric::is_of(std::string_view kind) const {
    const std::vector<std::string> kinds = split(of, ' ');
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

std::optional<std::size_t> find_metric(std::string_view name) {
    const Metric* found = metrics().find(name);
    if (found == nullptr) return std::nullopt;
    return static_cast<std::size_t>(found - metrics().rows().data());
}

std::size_t metric_index(std::string_view name) {
    const auto found = find_metric(name);
    if (!found) throw precondition_error("no metric is called {}", name);
    return *found;
}

}  // namespace spiked::validation
