#include "validation/trials/device_trials.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "core/device/device_count.hpp"
#include "core/device/device_failure.hpp"
#include "core/runtime/error.hpp"
#include "core/text/registry.hpp"
#include "estimators/coding/factor_codec.hpp"
#include "estimators/coding/row_scale.hpp"
#include "estimators/quantizers/groups/kivi.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "estimators/svd/cuda/decomposition_pipeline.hpp"
#include "theory/quantization/lloyd_max.hpp"

namespace spiked::validation {
namespace {

using spiked::cuda::Backend;

/// While one batch is computed, others are copied and unpacked on the host. More slots would only divide the memory of
/// a GPU further.
constexpr std::size_t most_slots = 4;
constexpr std::size_t emulated_memory = std::size_t{256} << 20;

/// Row quantizers with kernels. Names with options have none, except those of kivi, whose groups kivi_options knows.
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
                                                                             {"tq-prod", RowScale::norm, true},
                                                                             {"kivi"}});
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

std::vector<std::string> quantizers_with_kernels() { return device_quantizers().names(); }

DevicesLost::DevicesLost(ErrorKind kind, const std::string& reason, bool cpu_may_go_on)
    : Error(kind, fmt::format("{}: go on with another device, or --device cpu (with --mixed where a store was begun)",
                              reason)),
      reason_(reason),
      cpu_may_go_on_(cpu_may_go_on) {}

TrialSlots::TrialSlots(const spiked::cuda::Device& device, std::size_t threads, MakeDevice make)
    : backend_(device.backend),
      or_cpu_(device.or_cpu),
      report_(device.report),
      make_(std::move(make)),
      batch_size_(device.backend == Backend::cuda ? gpu_batch_size : 8) {
    const std::size_t each =
        std::clamp<std::size_t>((threads + device.numbers.size() - 1) / device.numbers.size(), 1, most_slots);
    for (std::size_t device_index = 0; device_index < device.numbers.size(); ++device_index) {
        const int number = device.numbers[device_index];
        const std::size_t memory =
            backend_ == Backend::cuda ? spiked::cuda::free_memory(number) / 10 * 8 / each : emulated_memory;
        usable_.push_back(each);
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

TrialSlots::Slot TrialSlots::take() {
    std::unique_lock lock(guard_);
    const auto all_lost = [&] {
        return std::all_of(usable_.begin(), usable_.end(), [](std::size_t count) { return count == 0; });
    };
    freed_.wait(lock, [&] { return !free_.empty() || all_lost(); });
    if (free_.empty()) throw DevicesLost(lost_kind_, lost_reason_, or_cpu_);
    std::vector<FreeSlot> free;
    for (const Slot& one : free_) free.push_back({one.device_index, one.device != nullptr});
    const auto taken = free_.begin() + static_cast<std::ptrdiff_t>(slot_to_take(free));
    Slot slot = std::move(*taken);
    free_.erase(taken);
    return slot;
}

void TrialSlots::give_back(Slot slot) {
    const std::lock_guard lock(guard_);
    if (usable_[slot.device_index] > 0) free_.push_back(std::move(slot));
    freed_.notify_one();
}

void TrialSlots::leave_out(const Slot& slot, const spiked::cuda::DeviceFailure& failure) {
    const std::lock_guard lock(guard_);
    std::size_t& usable = usable_[slot.device_index];
    if (usable == 0) return;  // another thread has noticed before
    const bool full = failure.out_of_memory();
    usable = full ? usable - 1 : 0;
    if (!full) std::erase_if(free_, [&](const Slot& one) { return one.device_index == slot.device_index; });
    lost_kind_ = full ? ErrorKind::memory : ErrorKind::internal;
    lost_reason_ = fmt::format("{}: {}{}", spiked::cuda::name_of(backend_, slot.number), failure.what(),
                               full ? ", also for half as many blocks" : "");
    const bool others = std::any_of(usable_.begin(), usable_.end(), [](std::size_t count) { return count > 0; });
    if (others && report_)
        report_(fmt::format("{}: {}", lost_reason_,
                            usable > 0 ? "it computes fewer batches at once" : "the other devices take its batches"));
    freed_.notify_all();
}

template <class Work>
auto TrialSlots::with_slot(const Work& work) {
    for (;;) {
        Slot slot = take();
        try {
            if (!slot.device) slot.device = make_(backend_, slot.number, slot.memory);
            auto found = work(*slot.device);
            give_back(std::move(slot));
            return found;
        } catch (const spiked::cuda::DeviceFailure& failure) {
            leave_out(slot, failure);
        } catch (...) {
            give_back(std::move(slot));
            throw;
        }
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

namespace {

/// Leading vectors to compute for blocks of this shape. An estimator that keeps more of a block leaves it to the CPU.
std::uint32_t low_rank_vectors(const estimators::SpectralEstimator& estimator, estimators::Shape shape) {
    std::size_t most = 16;
    const auto* const options = estimators::eoptshrink_options(estimator);
    if (estimator.least_side > 0)
        most = estimator.least_side;
    else if (options != nullptr)
        most = estimators::cuda::SpectralRule(estimators::eoptshrink_rule(shape, *options)).most();
    return static_cast<std::uint32_t>(
        std::clamp<std::size_t>(most, 1, std::min<std::size_t>(shape.short_side(), estimators::cuda::most_vectors)));
}

/// Why kernels cannot compute the low-rank part of a method.
std::string low_rank_unsupported_reason(const estimators::MethodSpec& method,
                                        const estimators::QuantizerOptions& options, estimators::Shape shape) {
    const estimators::SpectralMethod& spectral = *method.spectral;
    if (spectral.needs_block()) return method.text;
    if (options.open_loop) return "a low-rank part that is subtracted before it is coded";
    if (!estimators::cuda::fits(shape.long_side(), shape.short_side()))
        return fmt::format("blocks of {} x {} (kernels take 256 x 256)", shape.rows, shape.columns);
    if (spectral.estimator.least_side > std::min<std::size_t>(shape.short_side(), estimators::cuda::most_vectors))
        return fmt::format("{} for blocks of {} x {} (kernels find {} vectors)", method.text, shape.rows, shape.columns,
                           estimators::cuda::most_vectors);
    return "";
}

/// The factors of a block: what FactorCodec writes, and what it reads from that.
std::optional<cuda::StoredFactors> stored_factors(const estimators::SpectralEstimator& estimator,
                                                  const estimators::FactorCodec& codec, estimators::Shape shape,
                                                  std::size_t vectors, const cuda::FoundFactors& found) {
    // The CPU rejects a block whose row norms are all too small for fp16. The largest row norm of this block is at
    // least 2^-8, far above that.
    if (!(found.values.front() >= 0x1p-8 * std::sqrt(static_cast<double>(shape.rows)))) return std::nullopt;
    try {
        const estimators::Shrinkage shrinkage = estimator.estimate(found.values, shape);
        const std::size_t rank = shrinkage.rank;
        if (rank > vectors) return std::nullopt;
        estimators::BitWriter writer;
        codec.write(writer, {arma::mat(found.left.data(), shape.rows, rank), arma::vec(shrinkage.shrunk),
                             arma::mat(found.right.data(), shape.columns, rank)});
        const estimators::LowRank read = codec.read_factors(writer.bytes(), shape.rows, shape.columns).signal;
        cuda::StoredFactors stored;
        stored.values.assign(read.values.begin(), read.values.end());
        stored.left.assign(read.left.begin(), read.left.end());
        stored.right.assign(read.right.begin(), read.right.end());
        stored.ledger = writer.ledger();
        stored.bytes = writer.take_bytes();
        return stored;
    } catch (const Error&) {
        return std::nullopt;  // the CPU codes the block again and reports the reason
    }
}

}  // namespace

std::optional<cuda::LowRankPart> low_rank_part(const estimators::MethodSpec& method,
                                               const estimators::QuantizerOptions& options, estimators::Shape shape) {
    if (!method.spectral) return std::nullopt;
    const std::uint32_t vectors = low_rank_vectors(method.spectral->estimator, shape);
    return cuda::LowRankPart{vectors, [estimator = method.spectral->estimator,
                                       codec = estimators::FactorCodec(estimators::factor_options(options)), shape,
                                       vectors](const cuda::FoundFactors& found) {
                                 return stored_factors(estimator, codec, shape, vectors, found);
                             }};
}

std::string coding_unsupported_reason(const estimators::MethodSpec& method, const estimators::QuantizerOptions& options,
                                      estimators::Shape shape, double bits) {
    const auto groups = estimators::kivi_options(method.quantizer, options);
    const DeviceQuantizer* const quantizer = device_quantizers().find(method.quantizer.text);
    if (method.centred || (!groups && quantizer == nullptr)) return method.text;
    if (method.spectral)
        if (const std::string why = low_rank_unsupported_reason(method, options, shape); !why.empty()) return why;
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

cuda::RowCoding row_coding(const estimators::QuantizerSpec& quantizer, estimators::QuantizerOptions options,
                           estimators::Shape shape, double bits, std::span<const std::uint64_t> rotations) {
    cuda::RowCoding coding;
    coding.rows = static_cast<std::uint32_t>(shape.rows);
    coding.dimension = static_cast<std::uint32_t>(shape.columns);
    coding.codec = trial_codec(quantizer, options, shape, bits);
    if (rotations.empty()) coding.replicates = {options.rotation_index};
    std::map<std::uint64_t, std::uint32_t> numbers;
    for (const std::uint64_t rotation : rotations) {
        const auto [found, added] = numbers.try_emplace(rotation, static_cast<std::uint32_t>(numbers.size()));
        if (added) coding.replicates.push_back(rotation);
        coding.which.push_back(found->second);
    }
    if (options.rotation != estimators::RotationKind::haar || !coding.codec.takes_matrix()) return coding;
    const arma::fmat unit(shape.columns, shape.columns, arma::fill::eye);
    for (const std::uint64_t rotation : coding.replicates) {
        options.rotation_index = rotation;
        const arma::fmat matrix = estimators::row_rotation(options, shape.columns).rotate(unit).t();
        coding.rotations.insert(coding.rotations.end(), matrix.begin(), matrix.end());
    }
    return coding;
}

PaperBits::PaperBits(const estimators::MethodSpec& method, const estimators::QuantizerOptions& options,
                     estimators::Shape shape, double bits)
    : bits_(bits) {
    const double entries = static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
    if (method.spectral)
        each_ = static_cast<double>(shape.rows + shape.columns) *
                estimators::FactorCodec(estimators::factor_options(options)).entry_bits() / entries;
}

namespace {

/// Whether a row or a column of a column-major block holds zeros alone.
bool holds_zero_line(const float* block, estimators::Shape shape) {
    std::vector<char> row_has_entry(shape.rows, 0);
    bool zero_column = false;
    for (std::size_t j = 0; j < shape.columns; ++j) {
        bool column_has_entry = false;
        for (std::size_t i = 0; i < shape.rows; ++i)
            if (block[j * shape.rows + i] != 0.0F) {
                row_has_entry[i] = 1;
                column_has_entry = true;
            }
        zero_column = zero_column || !column_has_entry;
    }
    return zero_column || std::find(row_has_entry.begin(), row_has_entry.end(), 0) != row_has_entry.end();
}

}  // namespace

std::string DeviceBlockCoder::unsupported_reason(const codec::BlockCode& code) const {
    return coding_unsupported_reason(code.method, code.options, code.shape, code.bits);
}

std::vector<std::optional<codec::CodedBlock>> DeviceBlockCoder::code(const codec::BlockCode& code,
                                                                     std::span<const std::uint64_t> rotations,
                                                                     const codec::FillRows& fill) {
    const std::size_t count = rotations.size();
    const estimators::QuantizerSpec& quantizer = code.method.quantizer;
    auto coding = row_coding(quantizer, code.options, code.shape, code.bits, rotations);
    const estimators::Ledger ledger = ledger_of(quantizer, code.options, code.shape, code.bits);
    std::vector<char> has_zero_line(count, 0);
    if (auto part = low_rank_part(code.method, code.options, code.shape)) {
        coding.codec.low_rank =
            cuda::LowRankPart{part->vectors, [&, inner = part->code](const auto& factors) {
                                  return has_zero_line[factors.block] != 0 ? std::nullopt : inner(factors);
                              }};
    }
    std::vector<std::optional<codec::CodedBlock>> blocks(count);
    std::vector<cuda::CodedRows> found;
    try {
        found = slots_.code_rows(coding, count, [&](std::size_t b, float* to) {
            fill(b, to);
            if (coding.codec.low_rank) has_zero_line[b] = holds_zero_line(to, code.shape) ? 1 : 0;
        });
    } catch (const DevicesLost& lost) {
        if (!lost.cpu_may_go_on()) throw;
        std::call_once(reported_, [&] {
            if (report_) report_(fmt::format("{}: the CPU goes on", lost.reason()));
        });
        return blocks;
    }
    const PaperBits paper_bits(code.method, code.options, code.shape, code.bits);
    for (std::size_t b = 0; b < count; ++b) {
        auto& rows = found[b];
        if (!rows.coded) continue;
        const double error = rows.error == 0.0 ? 0.0 : std::sqrt(rows.error / rows.energy);
        rows.factors += ledger;
        blocks[b] = {{std::move(rows.bytes), rows.factors}, error, rows.rank, paper_bits.of(rows.rank)};
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
