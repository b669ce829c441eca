#include "validation/trials/cuda/trial_device.hpp"

#include "core/device/emulated_machine.hpp"
#include "validation/trials/cuda/batch_passes.hpp"
#include "validation/trials/cuda/gpu_batches.hpp"
#include "validation/trials/cuda/trial_batch.hpp"

namespace spiked::validation::cuda {

bool TrialPlan::takes_rotations() const {
    return std::any_of(codecs.begin(), codecs.end(), [](const TrialCodec& codec) { return codec.takes_matrix(); });
}

bool TrialPlan::has_host_draws() const {
    return (spikes() > 0 && (!left || !right)) || (takes_rotations() && !rotation);
}

std::uint32_t TrialPlan::vectors() const {
    std::size_t most = std::max<std::size_t>(spikes(), codecs.empty() ? 0 : 1);
    for (const auto& rule : estimators) most = std::max(most, rule.most());
    for (const auto& codec : codecs)
        if (codec.low_rank) most = std::max<std::size_t>(most, codec.low_rank->vectors);
    return static_cast<std::uint32_t>(
        std::min<std::size_t>({most, std::min(rows, columns), estimators::cuda::most_vectors}));
}

std::string TrialPlan::unsupported_reason() const {
    const std::size_t longer = std::max(rows, columns);
    const std::size_t shorter = std::min(rows, columns);
    if (!estimators::cuda::fits(longer, shorter))
        return fmt::format("blocks of {} x {}: kernels take 256 x 256", rows, columns);
    if (spikes() > estimators::cuda::most_vectors)
        return fmt::format("{} signals: kernels take {}", spikes(), estimators::cuda::most_vectors);
    for (const auto& rule : estimators)
        if (rule.rank_is_given() && rule.most() > estimators::cuda::most_vectors)
            return fmt::format("rank {}: kernels take {}", rule.most(), estimators::cuda::most_vectors);
    for (const auto* roots : {&row_roots, &column_roots})
        if (std::find(roots->begin(), roots->end(), 0.0) != roots->end()) return "rows or columns without noise";
    for (const auto& codec : codecs)
        if (codec.rows.hadamard && columns > estimators::cuda::TurnByHadamard<float>::most_dimension)
            return fmt::format("a Hadamard rotation of {} entries: kernels take {}", columns,
                               estimators::cuda::TurnByHadamard<float>::most_dimension);
    return "";
}

#ifndef SPIKED_HAS_CUDA
namespace {
[[noreturn]] void no_gpu() { throw precondition_error("a build without CUDA code has no GPU"); }
}  // namespace
std::unique_ptr<TrialDevice> gpu_trials(int, std::size_t) { no_gpu(); }
std::unique_ptr<DevicePass> gpu_pass(int, std::size_t, const BlocksToDecompose&, std::size_t, DecompositionPart) {
    no_gpu();
}
std::unique_ptr<DevicePass> gpu_pass(int, std::size_t, const RowCoding&, std::size_t, const FillBlock&, CodingPart) {
    no_gpu();
}
std::string gpu_library_problem() { return "this build has no CUDA code"; }
std::unique_ptr<DevicePass> gpu_library_pass(int, const BlocksToDecompose&, std::size_t, LibraryRoute) { no_gpu(); }
#endif

using spiked::cuda::Backend;

std::unique_ptr<TrialDevice> emulated_trials(std::size_t memory, std::size_t available) {
    return std::make_unique<TrialBatch<spiked::cuda::EmulatedMachine>>(0, memory, available);
}

std::unique_ptr<TrialDevice> trial_device(Backend backend, int number, std::size_t memory) {
    if (backend == Backend::cuda) return gpu_trials(number, memory);
    return emulated_trials(memory, memory);
}

std::unique_ptr<DevicePass> decomposition_pass(Backend backend, int number, std::size_t memory,
                                               const BlocksToDecompose& blocks, std::size_t count,
                                               DecompositionPart part) {
    if (backend == Backend::cuda) return gpu_pass(number, memory, blocks, count, part);
    return decomposition_pass_on<spiked::cuda::EmulatedMachine>(number, memory, blocks, count, part);
}

std::unique_ptr<DevicePass> coding_pass(Backend backend, int number, std::size_t memory, const RowCoding& coding,
                                        std::size_t count, const FillBlock& fill, CodingPart part) {
    if (backend == Backend::cuda) return gpu_pass(number, memory, coding, count, fill, part);
    return std::make_unique<CodingPass<spiked::cuda::EmulatedMachine>>(number, memory, coding, count, fill, part);
}

std::string library_unsupported_reason(Backend backend, const BlocksToDecompose& blocks) {
    if (backend != Backend::cuda) return "no GPU is timed";
    if (blocks.columns > blocks.rows) return "more columns than rows";
    return gpu_library_problem();
}

std::unique_ptr<DevicePass> library_pass(int number, const BlocksToDecompose& blocks, std::size_t count,
                                         LibraryRoute route) {
    return gpu_library_pass(number, blocks, count, route);
}

}  // namespace spiked::validation::cuda
