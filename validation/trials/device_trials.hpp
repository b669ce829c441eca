#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codec/container/block_coder.hpp"
#include "core/device/device_failure.hpp"
#include "core/runtime/error.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "validation/store/experiment.hpp"
#include "validation/trials/cuda/trial_device.hpp"

namespace spiked::validation {

/// Matrices that an H200 reduces at the same time in the kernel that takes longest for a single one
/// (TridiagonalEigenvalues): each of its 132 multiprocessors has room for three warps with a matrix of 128 x 128 per
/// lane. This is the number of trials in one batch on a GPU, since a batch of fewer takes as long in that kernel.
inline constexpr std::size_t gpu_batch_size = std::size_t{132} * 3 * 32;

/// The names of the quantizers with kernels.
[[nodiscard]] std::vector<std::string> quantizers_with_kernels();

struct FreeSlot {
    std::size_t device_index = 0;  ///< in the list of devices
    bool ready = false;            ///< its memory is allocated
};
/// Chooses a free slot (the list is not empty): on the device with the fewest running batches, and there one that is
/// ready.
[[nodiscard]] std::size_t slot_to_take(const std::vector<FreeSlot>& free);

/// Every device of a run is lost: thrown also for all later batches. The message names the last one and says what to
/// do.
class DevicesLost : public Error {
public:
    DevicesLost(ErrorKind kind, const std::string& reason, bool cpu_may_go_on);
    [[nodiscard]] const std::string& reason() const { return reason_; }  ///< the device and its failure
    [[nodiscard]] bool cpu_may_go_on() const { return cpu_may_go_on_; }  ///< Device::or_cpu

private:
    std::string reason_;
    bool cpu_may_go_on_;
};

/// The slots of the devices in use, shared by the threads of a run. A slot is a set of device buffers that computes one
/// batch at a time. Each thread holds a slot while it computes, so that on a GPU the kernels of one thread run while
/// the results of another are copied. A device that fails is used no more, and a batch that it did not finish is
/// computed by another; where a device has no memory for half a batch, only the slot is used no more.
class TrialSlots {
public:
    using MakeDevice = std::function<std::unique_ptr<cuda::TrialDevice>(spiked::cuda::Backend, int, std::size_t)>;
    /// `threads`: how many threads share the slots. The memory of a slot is allocated when it is first used. A test
    /// makes devices that fail.
    TrialSlots(const spiked::cuda::Device& device, std::size_t threads, MakeDevice make = cuda::trial_device);

    /// As TrialDevice::run; `draw` may be called again for a batch whose device is lost. Throws DevicesLost if no slot
    /// is left, of the kind memory if memory did not suffice even for half the trials.
    [[nodiscard]] std::vector<cuda::TrialResult> run(const cuda::TrialPlan& plan, std::uint64_t first,
                                                     std::size_t count, const cuda::DrawTrial& draw);
    /// As TrialDevice::code_rows; repeats `fill` and throws as `run`.
    [[nodiscard]] std::vector<cuda::CodedRows> code_rows(const cuda::RowCoding& coding, std::size_t count,
                                                         const cuda::FillBlock& fill);
    /// Trials to compute in one batch.
    [[nodiscard]] std::size_t batch_size() const { return batch_size_; }

private:
    struct Slot {
        std::size_t device_index = 0;  ///< in the list of devices
        int number = 0;
        std::size_t memory = 0;
        std::unique_ptr<cuda::TrialDevice> device;
    };

    template <class Work>
    auto with_slot(const Work& work);
    [[nodiscard]] Slot take();
    void give_back(Slot slot);
    void leave_out(const Slot& slot, const spiked::cuda::DeviceFailure& failure);

    spiked::cuda::Backend backend_;
    bool or_cpu_;
    std::function<void(const std::string&)> report_;
    MakeDevice make_;
    std::size_t batch_size_;
    std::mutex guard_;
    std::condition_variable freed_;
    std::vector<Slot> free_;
    std::vector<std::size_t> usable_;  ///< slots of each device, free or not; 0: the device is lost
    ErrorKind lost_kind_ = ErrorKind::internal;
    std::string lost_reason_;  ///< the last failure
};

/// The plan of a cell's trials: the covariances and strengths of its model, and these estimators.
[[nodiscard]] cuda::TrialPlan trial_plan(const sim::SpikedModel& model, const stream::StudySeed& seed,
                                         const std::string& cell, estimators::Precision precision,
                                         std::vector<estimators::cuda::SpectralRule> estimators);

/// Which part of a method has no kernel, for blocks of this shape. Empty if kernels can code its rows.
[[nodiscard]] std::string coding_unsupported_reason(const estimators::MethodSpec& method,
                                                    const estimators::QuantizerOptions& options,
                                                    estimators::Shape shape, double bits);
/// The low-rank part of a method for which coding_unsupported_reason is empty; no value for a row quantizer alone.
/// The estimator and the codec of the factors are those of the CPU: any estimator that sees only singular values.
[[nodiscard]] std::optional<cuda::LowRankPart> low_rank_part(const estimators::MethodSpec& method,
                                                             const estimators::QuantizerOptions& options,
                                                             estimators::Shape shape);
/// The codec of a row quantizer for which coding_unsupported_reason is empty.
[[nodiscard]] cuda::TrialCodec trial_codec(const estimators::QuantizerSpec& quantizer,
                                           const estimators::QuantizerOptions& options, estimators::Shape shape,
                                           double bits);
/// The ledger of the bits of the rows of one block. It is the same for every block.
[[nodiscard]] estimators::Ledger ledger_of(const estimators::QuantizerSpec& quantizer,
                                           estimators::QuantizerOptions options, estimators::Shape shape, double bits);
/// Bits per entry by the paper's formula, as Compressor::paper_bits.
class PaperBits {
public:
    PaperBits(const estimators::MethodSpec& method, const estimators::QuantizerOptions& options,
              estimators::Shape shape, double bits);
    [[nodiscard]] double of(std::size_t rank) const { return bits_ + static_cast<double>(rank) * each_; }

private:
    double bits_;
    double each_ = 0.0;  ///< for each component
};
/// The address from which kernels draw the Haar rotations of these options, one for each replicate.
[[nodiscard]] cuda::DrawnFrames drawn_rotation(const estimators::QuantizerOptions& options);

/// The coding of blocks of such rows without a low-rank part: block b has the rotation of rotation_index
/// `rotations`[b] or, where that is empty, all have that of the options.
[[nodiscard]] cuda::RowCoding row_coding(const estimators::QuantizerSpec& quantizer,
                                         estimators::QuantizerOptions options, estimators::Shape shape, double bits,
                                         std::span<const std::uint64_t> rotations = {});

/// Codes the blocks of containers on a device. A block with rows or columns of zeros alone, which an estimator does not
/// count, is left to the CPU where the method has one.
class DeviceBlockCoder : public codec::BlockCoder {
public:
    /// As TrialSlots. Where every device is lost and the CPU may go on, all later blocks are left to it.
    DeviceBlockCoder(const spiked::cuda::Device& device, std::size_t threads,
                     TrialSlots::MakeDevice make = cuda::trial_device)
        : slots_(device, threads, std::move(make)), report_(device.report) {}

    [[nodiscard]] std::string unsupported_reason(const codec::BlockCode& code) const override;
    /// Throws as TrialSlots::run.
    [[nodiscard]] std::vector<std::optional<codec::CodedBlock>> code(const codec::BlockCode& code,
                                                                     std::span<const std::uint64_t> rotations,
                                                                     const codec::FillRows& fill) override;

private:
    TrialSlots slots_;
    std::function<void(const std::string&)> report_;
    std::once_flag reported_;
};

/// The trials of a range of replicates, computed in batches when they are first requested.
class DeviceTrials {
public:
    DeviceTrials(TrialSlots& slots, const cuda::TrialPlan& plan, ReplicateRange range, cuda::DrawTrial draw)
        : slots_(slots), plan_(plan), range_(range), draw_(std::move(draw)) {}

    /// The reference is valid until the next call.
    [[nodiscard]] const cuda::TrialResult& get(std::uint64_t replicate);

private:
    TrialSlots& slots_;
    const cuda::TrialPlan& plan_;
    ReplicateRange range_;
    cuda::DrawTrial draw_;
    ReplicateRange group_{0, 0};
    std::vector<cuda::TrialResult> found_;
};

}  // namespace spiked::validation
