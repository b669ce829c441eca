#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/registry.hpp"

namespace spiked::validation {

struct BlockMetrics;
struct CodeSize;
struct EstimateResult;
struct HeadAttention;
struct SampleResult;

/// The kinds of tables that show a metric in a column.
enum class MetricGroup { none, of_codecs, of_attention, of_models };

/// The texts of a metric in tables and figures.
struct MetricText {
    std::string heading = {};    ///< of a column on a page, without the percent sign; empty: the long name
    std::string narrow = {};     ///< of a column on a terminal; empty: the same
    std::string long_name = {};  ///< on axes and in titles; empty: the name with spaces for underscores
    MetricGroup group = MetricGroup::none;
    int column = 0;         ///< orders the columns of a group; those with equal numbers are in the order of metrics()
    bool frontier = false;  ///< whether it is an error that a frontier shows
};

/// The value of a metric, computed from the results for one block; no value if the metric is not measured there, NaN if
/// it is undefined.
template <class Result>
using Measure = std::function<std::optional<double>(const Result& result)>;
/// The same for one spike or component, from 0.
template <class Result>
using SpikeMeasure = std::function<std::optional<double>(const Result& result, std::size_t spike)>;

/// How a metric is measured, for each kind of result that has it.
struct MetricMeasures {
    SpikeMeasure<SampleResult> sample = {};
    Measure<EstimateResult> estimate = {};
    SpikeMeasure<EstimateResult> component = {};
    Measure<CodeSize> size = {};
    Measure<BlockMetrics> errors = {};
    Measure<HeadAttention> attention = {};
};

// Units of metrics whose values are whole numbers. Few replicates may all have the same value although others would
// not, so that their standard error of 0 says nothing: stop rules and tables use fraction_error. Stores keep the unit
// of the program that made them, and with it the way in which their stop rules measure errors.
inline constexpr std::string_view share_of_replicates = "share of replicates";  ///< each value is 0 or 1
inline constexpr std::string_view whole_components = "whole components";
/// Unit of the sizes of codes, which are constants of many methods (has_constant_size).
inline constexpr std::string_view bits_an_entry = "bits an entry";

/// A quantity that is measured on replicates. The program has one table of metrics, which `spiked list metrics` prints.
/// The name identifies a metric, in stores as well, so a new one may be added anywhere; its place in the table is the
/// order of tables.
struct Metric {
    std::string name;
    std::string unit;    ///< values of the units `share` and share_of_replicates are shown in percent
    std::string better;  ///< lower | higher | target | none
    std::string definition;
    std::string of;  ///< kinds of methods that it is measured for: sample, estimator, codec; a space between two
    MetricText text = {};
    MetricMeasures measure = {};  ///< empty for metrics of whole models, which validation/model measures

    [[nodiscard]] bool is_of(std::string_view kind) const;
};
[[nodiscard]] const Registry<Metric>& metrics();
/// Position of the metric in metrics(), by which this process refers to it; none if no metric has that name.
[[nodiscard]] std::optional<std::size_t> find_metric(std::string_view name);
/// The same; throws precondition_error if no metric has that name.
[[nodiscard]] std::size_t metric_index(std::string_view name);

/// The value of one metric in one replicate; k is the spike, from 1, or 0 if the metric has none.
struct Observation {
    std::size_t method = 0;
    std::size_t metric = 0;
    int k = 0;
    double value = 0.0;
};

/// Appends the metrics that are measured from this kind of result, in the order of metrics().
template <class Result>
void observe(Measure<Result> MetricMeasures::*measure, const Result& result, std::size_t method,
             std::vector<Observation>& to) {
    for (std::size_t m = 0; m < metrics().size(); ++m)
        if (const auto& value_of = metrics()[m].measure.*measure)
            if (const auto value = value_of(result)) to.push_back({method, m, 0, *value});
}

/// Appends the metrics of one spike, from 0, that are measured from this kind of result, in the order of metrics().
template <class Result>
void observe_spike(SpikeMeasure<Result> MetricMeasures::*measure, const Result& result, std::size_t spike,
                   std::size_t method, std::vector<Observation>& to) {
    for (std::size_t m = 0; m < metrics().size(); ++m)
        if (const auto& value_of = metrics()[m].measure.*measure)
            if (const auto value = value_of(result, spike))
                to.push_back({method, m, static_cast<int>(spike) + 1, *value});
}

}  // namespace spiked::validation
