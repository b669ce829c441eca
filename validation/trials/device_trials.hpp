#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "codec/container/block_coder.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "validation/engine/experiment.hpp"
#include "validation/trials/cuda/trial_device.hpp"

namespace spiked::validation {

/// Trials of one range that a GPU wants: kernels with a thread a matrix take as long for one as for thousands.
inline constexpr std::size_t trials_of_a_gpu = 8192;

struct FreeSlot {
    std::size_t place = 0;  ///< in the list of devices
    bool ready = false;     ///< has its memory
};
/// Of the lanes that are free, not none: one where the fewest batches are under way, there one that is ready.
[[nodiscard]] std::size_t slot_to_take(const std::vector<FreeSlot>& free);

/// The places of a device where trials are computed, shared by the threads of a run: each thread takes one for as long
/// as it computes, so on a GPU one thread's kernels run while another's results travel.
class TrialSlots {
public:
    /// For so many threads. Memory is taken when a place is first used.
    TrialSlots(const spiked::cuda::Device& device, std::size_t threads);

    /// As TrialDevice::run. Throws Error: out of memory (also of half the trials), or a GPU that failed.
    [[nodiscard]] std::vector<cuda::TrialResult> run(const cuda::TrialPlan& plan, std::uint64_t first,
                                                     std::size_t count, const cuda::DrawTrial& draw);
    /// As TrialDevice::code_rows; throws as `run`.
    [[nodiscard]] std::vector<cuda::CodedRows> code_rows(const cuda::RowCoding& coding, std::size_t count,
                                                         const cuda::FillBlock& fill);
    /// Trials worth computing at once.
    [[nodiscard]] std::size_t together() const { return together_; }

private:
    struct Lane {
        std::size_t place = 0;  ///< in the list of devices
        int number = 0;
        std::size_t memory = 0;
        std::unique_ptr<cuda::TrialDevice> device;
    };

    template <class Work>
    auto on_a_lane(const Work& work);

    spiked::cuda::Backend backend_;
    std::size_t together_;
    std::mutex guard_;
    std::condition_variable freed_;
    std::vector<Lane> free_;
};

/// The plan of a cell's trials: its model's covariances and strengths, and these estimators.
[[nodiscard]] cuda::TrialPlan trial_plan(const sim::SpikedModel& model, const stream::StudySeed& seed,
                                         const std::string& cell, estimators::Precision precision,
                                         std::vector<estimators::cuda::SpectralRule> estimators);

/// What of a method no kernel does, for blocks of this shape; empty where they code its rows.
[[nodiscard]] std::string coding_unsupported_reason(const estimators::Method& method,
                                                    const estimators::QuantizerOptions& options,
                                                    estimators::Shape shape, double bits);
/// The row quantizer of this name, without such an obstacle.
[[nodiscard]] cuda::TrialCodec trial_codec(std::string_view quantizer, const estimators::QuantizerOptions& options,
                                           estimators::Shape shape, double bits);
/// What the bits of each of its blocks are for.
[[nodiscard]] estimators::Ledger ledger_of(std::string_view quantizer, estimators::QuantizerOptions options,
                                           estimators::Shape shape, double bits);
/// Where kernels draw the Haar rotations of these options, a trial's at its replicate.
[[nodiscard]] cuda::DrawnFrames drawn_rotation(const estimators::QuantizerOptions& options);

/// Blocks of such rows, all turned by the rotation of the options.
[[nodiscard]] cuda::RowCoding row_coding(std::string_view quantizer, const estimators::QuantizerOptions& options,
                                         estimators::Shape shape, double bits);

/// Codes the blocks of containers on a device.
class DeviceBlockCoder : public codec::BlockCoder {
public:
    /// As TrialLanes.
    DeviceBlockCoder(const spiked::cuda::Device& device, std::size_t threads) : lanes_(device, threads) {}

    [[nodiscard]] std::string unsupported_reason(const codec::BlockCode& code) const override;
    /// Throws as TrialLanes::run.
    [[nodiscard]] std::vector<std::optional<codec::CodedBlock>> code(const codec::BlockCode& code, std::size_t count,
                                                                     const codec::FillRows& fill) override;

private:
    TrialSlots lanes_;
};

/// The trials of a range of replicates, computed in groups as they are asked for.
class DeviceTrials {
public:
    DeviceTrials(TrialSlots& lanes, const cuda::TrialPlan& plan, ReplicateRange range, cuda::DrawTrial draw)
        : lanes_(lanes), plan_(plan), range_(range), draw_(std::move(draw)) {}

    /// Valid until the next question.
    [[nodiscard]] const cuda::TrialResult& get(std::uint64_t replicate);

private:
    TrialSlots& lanes_;
    const cuda::TrialPlan& plan_;
    ReplicateRange range_;
    cuda::DrawTrial draw_;
    ReplicateRange group_{0, 0};
    std::vector<cuda::TrialResult> found_;
};

}  // namespace spiked::validation
