#pragma once
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/call_once.hpp"
#include "validation/trials/block_study.hpp"
#include "validation/trials/cuda/trial_device.hpp"

namespace spiked::validation {

/// The blocks of one cell and the estimators for them, prepared by the first thread that needs them.
class LazyCell {
public:
    LazyCell(decltype(BlockSource::prepare) prepare, const std::vector<NamedEstimator>& estimators,
             stream::StudySeed seed, std::string cell)
        : prepare_(std::move(prepare)), estimators_(estimators), seed_(seed), cell_(std::move(cell)) {}

    [[nodiscard]] sim::SpikedSample draw(std::uint64_t replicate);
    [[nodiscard]] const std::vector<estimators::SpectralMethod>& methods();
    /// The model that kernels draw from.
    [[nodiscard]] const sim::SpikedModel& model();
    /// The plan of the kernels: `methods` with the model of this cell.
    [[nodiscard]] const cuda::TrialPlan& plan(estimators::Precision precision, const cuda::TrialPlan& methods);

private:
    void prepare_once();

    decltype(BlockSource::prepare) prepare_;
    const std::vector<NamedEstimator>& estimators_;  ///< owned by the study, which outlives its cells
    stream::StudySeed seed_;
    std::string cell_;
    CallOnce prepared_;
    CallOnce planned_;
    PreparedSource source_;
    cuda::TrialPlan plan_;
    std::vector<estimators::SpectralMethod> methods_;
};

/// Keeps the most recently used cells, so that a study of many cells holds the bases of only a few in memory.
class RecentCells {
public:
    template <class Make>
    [[nodiscard]] std::shared_ptr<LazyCell> get(std::size_t cell, const Make& make) {
        const std::lock_guard lock(guard_);
        auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& one) { return one.first == cell; });
        if (found == kept_.end()) {
            if (kept_.size() == most) kept_.pop_back();
            found = kept_.emplace(kept_.begin(), cell, make());
        }
        std::rotate(kept_.begin(), found, found + 1);
        return kept_.front().second;
    }

private:
    static constexpr std::size_t most = 16;
    std::mutex guard_;
    std::vector<std::pair<std::size_t, std::shared_ptr<LazyCell>>> kept_;
};

}  // namespace spiked::validation
