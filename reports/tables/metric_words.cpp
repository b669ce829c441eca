#include "reports/tables/metric_words.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include "validation/metrics/metric_table.hpp"

namespace spiked::reports {
namespace {

struct MetricNames {
    const char* metric;
    const char* heading;
    const char* narrow;     ///< heading for a terminal; null where it is the same
    const char* long_name;  ///< null where it is the name with spaces for underscores
    MetricGroup group = MetricGroup::none;
};

constexpr MetricNames metric_table[] = {
    {"overlap.left", "", nullptr, "overlap of left vectors"},
    {"overlap.right", "", nullptr, "overlap of right vectors"},
    {"rank", "mean rank", nullptr, nullptr, MetricGroup::of_codecs},
    {"rank_over", "", nullptr, "fraction of ranks that are too high"},
    {"rank_right", "", nullptr, "fraction of ranks that are right"},
    {"bits_per_entry", "bits", nullptr, nullptr, MetricGroup::of_codecs},
    {"paper_bits", "paper bits", nullptr, nullptr, MetricGroup::of_codecs},
    {"relative_l2", "relative L2", "rel. L2", "relative L2 error", MetricGroup::of_codecs},
    {"ip_bias", "IP bias", nullptr, nullptr, MetricGroup::of_codecs},
    {"ip_std", "IP std", nullptr, nullptr, MetricGroup::of_codecs},
    {"ip_bias_plain", "IP bias plain", nullptr, nullptr, MetricGroup::of_codecs},
    {"ip_std_plain", "IP std plain", nullptr, nullptr, MetricGroup::of_codecs},
    {"attention_logits", "logits", nullptr, "error of attention logits", MetricGroup::of_attention},
    {"attention_kl", "KL", nullptr, nullptr, MetricGroup::of_attention},
    {"attention_top1", "top-1", nullptr, nullptr, MetricGroup::of_attention},
    {"attention_top8", "top-8", nullptr, nullptr, MetricGroup::of_attention},
    {"attention_output", "attention", nullptr, "relative error of attention output", MetricGroup::of_attention},
    {"attention_output_both", "both", nullptr, nullptr, MetricGroup::of_attention},
    {"added_nats", "added nats", nullptr, "added nats a token", MetricGroup::of_models},
    {"retrieval", "log-probability lost", "lost log p", "nats lost of the answers' log-probability",
     MetricGroup::of_models},
    {"wrong_answers", "wrong answers", "wrong", "fraction of answers that are wrong", MetricGroup::of_models},
    // Bias and standard deviation for each kind of query.
    {"ip_bias_plain_random", "random", nullptr, nullptr},
    {"ip_std_plain_random", "std", nullptr, nullptr},
    {"ip_bias_plain_aligned", "aligned", nullptr, nullptr},
    {"ip_std_plain_aligned", "std", nullptr, nullptr},
    {"ip_bias_plain_own", "own row", nullptr, nullptr},
    {"ip_std_plain_own", "std", nullptr, nullptr},
    {"ip_bias_plain_query", "dumped", nullptr, nullptr},
    {"ip_std_plain_query", "std", nullptr, nullptr},
};

const MetricNames* find_metric(std::string_view metric) {
    const auto* found = std::find_if(std::begin(metric_table), std::end(metric_table),
                                     [&](const auto& m) { return m.metric == metric; });
    return found == std::end(metric_table) ? nullptr : found;
}

bool is_fraction(std::string_view metric) {
    const auto& all = validation::metrics();
    return std::any_of(all.begin(), all.end(), [&](const auto& m) { return m.name == metric && m.unit == "share"; });
}

std::string with_percent_sign(std::string heading, std::string_view metric) {
    return heading + (!heading.empty() && is_fraction(metric) ? " %" : "");
}

}  // namespace

const std::vector<std::string>& metrics_of(MetricGroup group) {
    static const auto groups = [] {
        std::map<MetricGroup, std::vector<std::string>> all;
        for (const auto& metric : metric_table) all[metric.group].emplace_back(metric.metric);
        return all;
    }();
    return groups.at(group);
}

const std::vector<std::string>& frontier_metrics() {
    static const std::vector<std::string> names = {"relative_l2", "attention_logits", "attention_output",
                                                   "added_nats",  "retrieval",        "wrong_answers"};
    return names;
}

std::string heading_of(std::string_view metric) {
    const auto* found = find_metric(metric);
    return found == nullptr ? "" : with_percent_sign(found->heading, metric);
}

std::string narrow_heading_of(std::string_view metric) {
    const auto* found = find_metric(metric);
    return found == nullptr || found->narrow == nullptr ? heading_of(metric) : with_percent_sign(found->narrow, metric);
}

std::string long_name_of(std::string_view metric) {
    if (const auto* found = find_metric(metric); found != nullptr && found->long_name != nullptr)
        return found->long_name;
    std::string plain(metric);
    std::replace(plain.begin(), plain.end(), '_', ' ');
    return plain;
}

double scale_of(std::string_view metric) { return is_fraction(metric) ? 100.0 : 1.0; }

}  // namespace spiked::reports
