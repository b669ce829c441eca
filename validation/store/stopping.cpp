#include "validation/store/stopping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/runtime/error.hpp"
#include "validation/metrics/metric_table.hpp"
#include "validation/statistics/statistics.hpp"
#include "validation/store/store_metrics.hpp"

namespace spiked::validation {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();
constexpr double spare = 1.1;

double error_for(const StopRule& rule, const Moments& moments) {
    const double error = moments.standard_error();
    if (moments.count < 2) return error;
    if (rule.unit == share_of_replicates) {
        const double n = static_cast<double>(moments.count);
        return fraction_error(static_cast<std::uint64_t>(std::llround(std::clamp(n * moments.mean, 0.0, n))),
                              moments.count);
    }
    return rule.unit == whole_components ? std::max(error, fraction_error(0, moments.count)) : error;
}

/// Factor by which the replicates must grow to meet the rule; 1 if it is met.
double factor_wanted(const StopRule& rule, const Moments& moments) {
    const double error = error_for(rule, moments);
    double target = unbounded;
    if (rule.relative > 0.0) target = rule.relative * std::abs(moments.mean);
    if (rule.absolute > 0.0) target = std::min(target, rule.absolute);
    if (error <= target) return 1.0;
    const double factor = (error / target) * (error / target);
    return std::isnan(factor) ? unbounded : factor;
}

}  // namespace

std::string_view name_of(CellEnd end) { return enum_name(end); }

CellProgress::CellProgress(std::size_t least, std::size_t most, std::size_t batch, const std::vector<StopRule>& rules)
    : most_(most), batch_(batch), rules_(&rules) {
    if (least == 0 || batch == 0 || least > most)
        throw precondition_error("a cell of {} to {} replicates in batches of {} is not possible", least, most, batch);
    batches_ = (most + batch - 1) / batch;
    goal_ = rules.empty() ? batches_ : (least + batch - 1) / batch;
}

std::uint64_t CellProgress::replicates_up_to(std::size_t batches) const {
    return std::min<std::uint64_t>(batches * batch_, most_);
}

std::uint64_t CellProgress::size_of(std::size_t batch) const {
    return replicates_up_to(batch + 1) - replicates_up_to(batch);
}

void CellProgress::add(std::size_t batch, std::uint64_t failed, const MomentTable& moments) {
    if (batch >= batches_ || has(batch))
        throw precondition_error("batch {} of a cell of {} batches was added twice or does not exist", batch, batches_);
    replicates_ += size_of(batch);
    failed_ += failed;
    Part part{failed, {}};
    for (const auto& [quantity, values] : moments)
        if (std::any_of(rules_->begin(), rules_->end(),
                        [&quantity = quantity](const StopRule& r) { return r.metric == quantity.metric; }))
            part.moments.emplace(quantity, values);
    waiting_.emplace(batch, std::move(part));
    for (auto next = waiting_.find(merged_); next != waiting_.end(); next = waiting_.find(merged_)) {
        take(next->second);
        waiting_.erase(next);
    }
}

void CellProgress::take(const Part& part) {
    prefix_.failed += part.failed;
    for (const auto& [quantity, values] : part.moments) prefix_.moments[quantity].merge(values);
    if (++merged_ == goal_) evaluate_rules();
}

void CellProgress::evaluate_rules() {
    const std::uint64_t replicates = replicates_up_to(merged_);
    // If every replicate failed, it is not even known which metrics are measured.
    double factor = prefix_.failed < replicates ? 1.0 : unbounded;
    bool any = false;
    for (const auto& rule : *rules_)
        for (const auto& [quantity, values] : prefix_.moments)
            if (quantity.metric == rule.metric) {
                any = true;
                factor = std::max(factor, factor_wanted(rule, values));
            }
    if (!rules_->empty() && factor <= 1.0)
        end_ = any ? CellEnd::met : CellEnd::absent;
    else if (merged_ == batches_)
        end_ = CellEnd::max;
    else {
        const double now = static_cast<double>(replicates);
        const double step = static_cast<double>(batch_);
        const double projected = std::clamp(spare * now * factor, now + step, std::max(2.0 * now, now + step));
        goal_ = std::min(batches_, static_cast<std::size_t>(std::ceil(projected / step)));
    }
}

bool CellProgress::over_budget(double fraction) const {
    const std::uint64_t in_all = end_ ? replicates_ : most_;
    return static_cast<double>(failed_) > fraction * static_cast<double>(in_all);
}

StudyProgress::StudyProgress(Database& store) {
    const StoreMetrics metrics(store);
    Statement rule(store,
                   "SELECT metric_id, relative, absolute, unit FROM stop_rule JOIN metric USING(metric_id) ORDER BY "
                   "rule_id");
    while (rule.step()) rules_.push_back({metrics.metric(rule.integer(0)), rule.real(1), rule.real(2), rule.text(3)});
    const auto batch = static_cast<std::size_t>(store.integer("SELECT batch_reps FROM study"));
    Statement cell(store, "SELECT reps_least, reps_target FROM cell ORDER BY cell_id");
    while (cell.step()) {
        const auto least = static_cast<std::size_t>(cell.integer(0));
        const auto most = static_cast<std::size_t>(cell.integer(1));
        adaptive_ = adaptive_ || (!rules_.empty() && least < most);
        cells_.emplace_back(least, most, batch, rules_);
    }
    // Only the parts of a standard error: counts, means and second moments.
    Statement moment(store,
                     "SELECT batch, method_id, metric_id, k, n, mean, m2 FROM moment WHERE cell_id = ? AND metric_id "
                     "IN (SELECT metric_id FROM stop_rule)");
    Statement batches(store, "SELECT batch, reps, failed FROM batch WHERE cell_id = ? ORDER BY batch");
    for (std::size_t c = 0; c < cells_.size(); ++c) {
        std::map<std::size_t, MomentTable> tables;
        if (!rules_.empty()) {
            moment.bind(1, c + 1);
            while (moment.step()) {
                const Quantity quantity{static_cast<std::size_t>(moment.integer(1) - 1),
                                        metrics.metric(moment.integer(2)), static_cast<int>(moment.integer(3))};
                auto& m = tables[static_cast<std::size_t>(moment.integer(0))][quantity];
                m.count = static_cast<std::uint64_t>(moment.integer(4));
                if (m.count == 0) continue;
                m.mean = moment.real(5);
                m.m2 = moment.real(6);
            }
            moment.reset();
        }
        batches.bind(1, c + 1);
        while (batches.step()) {
            const auto number = static_cast<std::size_t>(batches.integer(0));
            const auto reps = static_cast<std::uint64_t>(batches.integer(1));
            if (cells_[c].size_of(number) != reps)
                throw input_error(
                    "{}: batch {} of cell {} has {} replicates, not {} (the store was changed by hand): delete that "
                    "batch, or the store",
                    store.path(), number, c + 1, reps, cells_[c].size_of(number));
            if (cells_[c].has(number))
                throw damaged_store(store.path(), fmt::format("it holds batch {} of cell {} twice", number, c + 1));
            cells_[c].add(number, static_cast<std::uint64_t>(batches.integer(2)), tables[number]);
        }
        batches.reset();
    }
}

bool StudyProgress::complete() const {
    return std::all_of(cells_.begin(), cells_.end(), [](const CellProgress& cell) { return cell.end().has_value(); });
}

bool StudyProgress::over_budget(double fraction) const {
    return std::any_of(cells_.begin(), cells_.end(),
                       [&](const CellProgress& cell) { return cell.over_budget(fraction); });
}

}  // namespace spiked::validation
