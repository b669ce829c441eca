#include "validation/trials/device_trials.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/device/device_count.hpp"
#include "core/device/device_failure.hpp"
#include "core/runtime/error.hpp"
#include "core/text/registry.hpp"
#include "estimators/coding/row_scale.hpp"
#include "estimators/quantizers/kivi.hpp"
#include "theory/quantization/lloyd_max.hpp"

namespace spiked::validation {
namespace {

using spiked::cuda::Backend;

/// While one batch is computed, others are copied and unpacked on the host. More slots would only divide the memory of
/// a GPU further.
constexpr std::size_t most_slots = 4;
constexpr std::size_t emulated_memory = std::size_t{256} << 20;

/// Row quantizers with kernels. Names with options have none, except those of kivi.
struct DeviceQuantizer {
    std::string name;
    estimators::RowScale scale = estimators::RowScale::norm;
    bool sketched = false;
};
const Registry<DeviceQuantizer>& device_quantizers() {
    using estimators::RowScale;
    static const Registry<DeviceQuantizer> table("quantizer with a kernel", {{"tq-mse"},
                                                                             {"eden", RowScale::unbiased},
                                                                             {"eden-mmse", RowScale::least_squares},
                                                                             {"eden-norm", RowScale::norm_matched},
                                                                             {"tq-prod", RowScale::norm, true}});
    return table;
}

/// Rounds of a Hadamard rotation; 0 for other rotations.
unsigned rounds_of(estimators::RotationKind kind) {
    switch (kind) {
        case estimators::RotationKind::rht1:
            return 1;
        case estimators::RotationKind::rht2:
            return 2;
        case estimators::RotationKind::fht_kac:
            return 4;
        default:
            return 0;
    }
}

std::vector<double> entries(const arma::mat& matrix) { return {matrix.begin(), matrix.end()}; }

arma::mat root_of(const sim::Covariance& covariance) {
    return covariance.root_times(arma::mat(covariance.size(), covariance.size(), arma::fill::eye));
}

}  // namespace

TrialSlots::TrialSlots(const spiked::cuda::Device& device, std::size_t threads)
    : backend_(device.backend), batch_size_(device.backend == Backend::cuda ? gpu_batch_size : 8) {
    const std::size_t each =
        std::clamp<std::size_t>((threads + device.numbers.size() - 1) / device.numbers.size(), 1, most_slots);
    for (std::size_t device_index = 0; device_index < device.numbers.size(); ++device_index) {
        const int number = device.numbers[device_index];
        const std::size_t memory =
            backend_ == Backend::cuda ? spiked::cuda::free_memory(number) / 10 * 8 / each : emulated_memory;
        for (std::size_t slot = 0; slot < each; ++slot) free_.push_back({device_index, number, memory, nullptr});
    }
}

std::size_t slot_to_take(const std::vector<FreeSlot>& free) {
    const auto free_slots_on = [&](std::size_t device_index) {
        return std::count_if(free.begin(), free.end(),
                             [&](const FreeSlot& one) { return one.device_index == device_index; });
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < free.size(); ++i) {
        const auto more = free_slots_on(free[i].device_index) - free_slots_on(free[best].device_index);
        if (more > 0 || (more == 0 && free[i].ready && !free[best].ready)) best = i;
    }
    return best;
}

template <class Work>
auto TrialSlots::with_slot(const Work& work) {
    Slot slot;
    {
        std::unique_lock lock(guard_);
        freed_.wait(lock, [&] { return !free_.empty(); });
        std::vector<FreeSlot> free;
        for (const Slot& one : free_) free.push_back({one.device_index, one.device != nullptr});
        const auto taken = free_.begin() + static_cast<std::ptrdiff_t>(slot_to_take(free));
        slot = std::move(*taken);
        free_.erase(taken);
    }
    const auto give_back = [&] {
        const std::lock_guard lock(guard_);
        free_.push_back(std::move(slot));
        freed_.notify_one();
    };
    try {
        if (!slot.device) slot.device = cuda::trial_device(backend_, slot.number, slot.memory);
        auto found = work(*slot.device);
        give_back();
        return found;
    } catch (const spiked::cuda::DeviceFailure& failure) {
        give_back();
        throw Error(failure.out_of_memory() ? ErrorKind::memory : ErrorKind::internal,
                    fmt::format("{}{}: go on with --device cpu, and with --mixed where a store was begun",
                                failure.what(), failure.out_of_memory() ? ", also for half as many blocks" : ""));
    } catch (...) {
        give_back();
        throw;
    }
}

std::vector<cuda::TrialResult> TrialSlots::run(const cuda::TrialPlan& plan, std::uint64_t first, std::size_t count,
                                               const cuda::DrawTrial& draw) {
    return with_slot([&](cuda::TrialDevice& device) { return device.run(plan, first, count, draw); });
}

std::vector<cuda::CodedRows> TrialSlots::code_rows(const cuda::RowCoding& coding, std::size_t count,
                                                   const cuda::FillBlock& fill) {
    return with_slot([&](cuda::TrialDevice& device) { return device.code_rows(coding, count, fill); });
}

cuda::TrialPlan trial_plan(const sim::SpikedModel& model, const stream::StudySeed& seed, const std::string& cell,
                           estimators::Precision precision, std::vector<estimators::cuda::SpectralRule> estimators) {
    cuda::TrialPlan plan;
    plan.rows = static_cast<std::uint32_t>(model.row.size());
    plan.columns = static_cast<std::uint32_t>(model.column.size());
    plan.in_float = precision == estimators::Precision::float32;
    const stream::Stream noise(seed, cell, stream::Role::noise, 0);
    plan.key = noise.key();
    plan.noise_role = noise.counter(0)[1];
    plan.query_role = stream::Stream(seed, cell, stream::Role::query, 0).counter(0)[1];
    for (const auto& strength : model.strengths) plan.strengths.push_back(strength.value);
    const auto drawn = [&](const sim::VectorLaw& law, const sim::Covariance& covariance, stream::Role role) {
        std::optional<cuda::DrawnFrames> frames;
        if (law.text() != sim::VectorLaw().text()) return frames;
        const stream::Stream one(seed, cell, role, 0);
        frames = {one.key(), one.counter(0)[1]};
        if (model.colouring == sim::Colouring::eigenbasis && !covariance.is_diagonal())
            frames->basis_change = entries(covariance.to_eigenbasis(arma::eye(covariance.size(), covariance.size())));
        return frames;
    };
    plan.left = drawn(model.left_vectors, model.row, stream::Role::left_vectors);
    plan.right = drawn(model.right_vectors, model.column, stream::Role::right_vectors);
    const bool scaled =
        model.colouring == sim::Colouring::eigenbasis || (model.row.is_diagonal() && model.column.is_diagonal());
    if (scaled) {
        plan.row_roots = entries(arma::sqrt(model.row.eigenvalues()));
        plan.column_roots = entries(arma::sqrt(model.column.eigenvalues()));
    } else {
        plan.row_roots.assign(plan.rows, 1.0);
        plan.column_roots.assign(plan.columns, 1.0);
        plan.row_root = entries(root_of(model.row));
        plan.column_root = entries(root_of(model.column));
    }
    plan.estimators = std::move(estimators);
    return plan;
}

cuda::DrawnFrames drawn_rotation(const estimators::QuantizerOptions& options) {
    const stream::Stream one(options.seed, "quantizer", stream::Role::rotation, 0);
    return {one.key(), one.counter(0)[1]};
}

std::string coding_unsupported_reason(const estimators::MethodSpec& method, const estimators::QuantizerOptions& options,
                                      estimators::Shape shape, double bits) {
    const auto groups = method.spectral ? std::nullopt : estimators::kivi_options(method.quantizer, options);
    const DeviceQuantizer* const quantizer = device_quantizers().find(method.quantizer.text);
    if (method.spectral || method.centred || (!groups && quantizer == nullptr)) return method.text;
    if (options.norm != estimators::NumberFormat::fp16) return "norms that are not fp16";
    if (groups && groups->runs_on && shape.columns % groups->group != 0)
        return fmt::format("kivi-hf whose groups go on in the next row ({} entries in groups of {})", shape.columns,
                           groups->group);
    if (groups) return groups->residual > 0 ? "kivi with tokens kept in full" : "";
    if (rounds_of(options.rotation) > 0 && shape.columns > estimators::cuda::TurnByHadamard<float>::most_dimension)
        return fmt::format("a Hadamard rotation of {} entries", shape.columns);
    if (quantizer->sketched && static_cast<std::size_t>(bits) * shape.rows * shape.columns % 8 != 0)
        return fmt::format("tq-prod whose indices end within a byte ({} x {}, {} bits)", shape.rows, shape.columns,
                           bits);
    return "";
}

cuda::TrialCodec trial_codec(const estimators::QuantizerSpec& quantizer, const estimators::QuantizerOptions& options,
                             estimators::Shape shape, double bits) {
    const auto dimension = static_cast<std::uint32_t>(shape.columns);
    cuda::TrialCodec codec;
    codec.rows.bits = static_cast<std::uint32_t>(bits);
    if (const auto groups = estimators::kivi_options(quantizer, options)) {
        // A group is never longer than a row or column.
        const std::size_t size = std::min(groups->group, shape.long_side());
        codec.rows.groups = {static_cast<std::uint32_t>(size), groups->axis == estimators::GroupAxis::key,
                             static_cast<std::uint32_t>(shape.rows), dimension};
        return codec;
    }
    const DeviceQuantizer* const kernel = device_quantizers().find(quantizer.text);
    if (kernel == nullptr) throw precondition_error("no kernel codes rows by {}", quantizer.text);
    codec.rows.scale = kernel->scale;
    const int whole = static_cast<int>(bits);
    const auto codebook = options.codebook == estimators::CodebookKind::sphere
                              ? theory::lloyd_max_sphere(static_cast<int>(shape.columns), whole)
                              : theory::lloyd_max_normal(whole);
    codec.thresholds.assign(codebook.thresholds.begin(), codebook.thresholds.end());
    codec.levels.assign(codebook.levels.begin(), codebook.levels.end());
    const auto stream = [&](stream::Role role) {
        return stream::Stream(options.seed, "quantizer", role, options.rotation_index);
    };
    if (const unsigned rounds = rounds_of(options.rotation); rounds > 0)
        codec.rows.hadamard.emplace(stream(stream::Role::rotation), dimension, rounds);
    if (kernel->sketched) {
        const stream::Stream sketch = stream(stream::Role::projection);
        codec.rows.sketch = {sketch.key(), sketch.counter(0)[1], options.rotation_index,
                             std::sqrt(0.5 * std::numbers::pi) / static_cast<double>(dimension)};
    }
    return codec;
}

estimators::Ledger ledger_of(const estimators::QuantizerSpec& quantizer, estimators::QuantizerOptions options,
                             estimators::Shape shape, double bits) {
    options.rotation = estimators::RotationKind::identity;
    return quantizer.make(shape.columns, bits, options)
        .encode(arma::mat(shape.rows, shape.columns, arma::fill::ones))
        .ledger;
}

cuda::RowCoding row_coding(const estimators::QuantizerSpec& quantizer, const estimators::QuantizerOptions& options,
                           estimators::Shape shape, double bits) {
    cuda::RowCoding coding{static_cast<std::uint32_t>(shape.rows),
                           static_cast<std::uint32_t>(shape.columns),
                           trial_codec(quantizer, options, shape, bits),
                           {}};
    if (options.rotation == estimators::RotationKind::haar && coding.codec.takes_matrix()) {
        const arma::fmat unit(shape.columns, shape.columns, arma::fill::eye);
        const arma::fmat matrix = estimators::row_rotation(options, shape.columns).rotate(unit).t();
        coding.rotation.assign(matrix.begin(), matrix.end());
    }
    return coding;
}

std::string DeviceBlockCoder::unsupported_reason(const codec::BlockCode& code) const {
    return coding_unsupported_reason(code.method, code.options, code.shape, code.bits);
}

std::vector<std::optional<codec::CodedBlock>> DeviceBlockCoder::code(const codec::BlockCode& code, std::size_t count,
                                                                     const codec::FillRows& fill) {
    const estimators::QuantizerSpec& quantizer = code.method.quantizer;
    const auto coding = row_coding(quantizer, code.options, code.shape, code.bits);
    const estimators::Ledger ledger = ledger_of(quantizer, code.options, code.shape, code.bits);
    std::vector<std::optional<codec::CodedBlock>> blocks(count);
    auto found = slots_.code_rows(coding, count, fill);
    for (std::size_t b = 0; b < count; ++b) {
        auto& rows = found[b];
        if (!rows.coded) continue;
        const double error = rows.error == 0.0 ? 0.0 : std::sqrt(rows.error / rows.energy);
        blocks[b] = {{std::move(rows.bytes), ledger}, error};
    }
    return blocks;
}

const cuda::TrialResult& DeviceTrials::get(std::uint64_t replicate) {
    if (replicate < group_.first || replicate >= group_.end()) {
        const std::uint64_t left = std::max(range_.end(), replicate + 1) - replicate;
        group_ = {replicate, std::min<std::uint64_t>(left, slots_.batch_size())};
        found_ = slots_.run(plan_, group_.first, group_.count, draw_);
    }
    return found_[replicate - group_.first];
}

}  // namespace spiked::validation
