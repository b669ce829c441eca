#pragma once
#include <algorithm>
#include <vector>

#include "estimators/spectral/eoptshrink.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "validation/trials/device_trials.hpp"

/// A small cell of trials, for tests of devices.
namespace spiked::validation {

inline const auto device_seed = stream::StudySeed::parse("0x5eed");
inline constexpr std::size_t plenty = std::size_t{64} << 20;

inline sim::SpikedModel small_model() {
    sim::SpikedModel model{sim::Covariance::ar1(0.4, 12), sim::Covariance::exponential(1.0, 10), {}};
    model.strengths = {SignalStrength{6.0}, SignalStrength{4.0}};
    return model;
}

inline cuda::TrialPlan small_plan(const sim::SpikedModel& model, estimators::Precision precision) {
    return trial_plan(model, device_seed, "device trials", precision,
                      {estimators::eoptshrink_rule({12, 10}, {}),
                       estimators::eoptshrink_rule({12, 10}, estimators::EOptShrinkOptions::edge_fit())});
}

inline cuda::DrawTrial draw_of(const sim::SpikedModel& model) {
    return [&model](std::uint64_t replicate, const cuda::TrialDraw& to) {
        const auto sides = sim::signal_sides(model, device_seed, "device trials", replicate);
        if (to.left != nullptr) std::copy(sides.left.begin(), sides.left.end(), to.left);
        if (to.right != nullptr) std::copy(sides.right.begin(), sides.right.end(), to.right);
    };
}

/// All numbers of a trial.
inline std::vector<double> numbers(const cuda::TrialResult& trial) {
    std::vector<double> all = trial.values;
    const auto add = [&](const std::vector<double>& more) { all.insert(all.end(), more.begin(), more.end()); };
    add(trial.left_products);
    add(trial.right_products);
    add({trial.energy, static_cast<double>(trial.status)});
    for (const auto& estimate : trial.estimates) {
        add({static_cast<double>(estimate.rank), estimate.bulk_edge.value_or(-1.0), estimate.error});
        add(estimate.strengths);
        add(estimate.shrunk);
    }
    return all;
}

}  // namespace spiked::validation
