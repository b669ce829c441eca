#include "validation/device_trials.hpp"

#include <algorithm>
#include <cmath>

#include "theory/base/cuda/device_count.hpp"
#include "theory/base/cuda/device_failure.hpp"
#include "theory/base/error.hpp"
#include "theory/lloyd_max.hpp"

namespace spiked::validation {
namespace {

using spiked::cuda::Backend;

/// A thread that draws feeds a GPU worse than eight do; more only cut its memory up.
constexpr std::size_t most_lanes = 8;
constexpr std::size_t emulated_memory = std::size_t{256} << 20;

std::vector<double> entries(const arma::mat& matrix) { return {matrix.begin(), matrix.end()}; }

arma::mat root_of(const sim::Covariance& covariance) {
    return covariance.root_times(arma::mat(covariance.size(), covariance.size(), arma::fill::eye));
}

}  // namespace

TrialLanes::TrialLanes(const spiked::cuda::Device& device, std::size_t threads)
    : backend_(device.backend), together_(device.backend == Backend::cuda ? 1024 : 8) {
    const std::size_t each =
        std::clamp<std::size_t>((threads + device.numbers.size() - 1) / device.numbers.size(), 1, most_lanes);
    for (const int number : device.numbers) {
        const std::size_t memory =
            backend_ == Backend::cuda ? spiked::cuda::free_memory(number) / 10 * 8 / each : emulated_memory;
        for (std::size_t lane = 0; lane < each; ++lane) free_.push_back({number, memory, nullptr});
    }
}

template <class Work>
auto TrialLanes::on_a_lane(const Work& work) {
    Lane lane;
    {
        std::unique_lock lock(guard_);
        freed_.wait(lock, [&] { return !free_.empty(); });
        // From the front: lists of GPUs are used in turn, and places that have memory before new ones.
        const auto ready =
            std::find_if(free_.begin(), free_.end(), [](const Lane& one) { return one.device != nullptr; });
        const auto taken = ready == free_.end() ? free_.begin() : ready;
        lane = std::move(*taken);
        free_.erase(taken);
    }
    const auto give_back = [&] {
        const std::lock_guard lock(guard_);
        free_.push_back(std::move(lane));
        freed_.notify_one();
    };
    try {
        if (!lane.device) lane.device = cuda::trial_device(backend_, lane.number, lane.memory);
        auto found = work(*lane.device);
        give_back();
        return found;
    } catch (const spiked::cuda::DeviceFailure& failure) {
        give_back();
        throw Error(failure.out_of_memory() ? ExitCode::out_of_memory : ExitCode::bug,
                    fmt::format("{}{}: go on with --device cpu, and with --mixed where a store was begun",
                                failure.what(), failure.out_of_memory() ? ", also for half as many blocks" : ""));
    } catch (...) {
        give_back();
        throw;
    }
}

std::vector<cuda::TrialResult> TrialLanes::run(const cuda::TrialPlan& plan, std::uint64_t first, std::size_t count,
                                               const cuda::DrawTrial& draw) {
    return on_a_lane([&](cuda::TrialDevice& device) { return device.run(plan, first, count, draw); });
}

std::vector<cuda::CodedRows> TrialLanes::code_rows(const cuda::RowCoding& coding, std::size_t count,
                                                   const cuda::FillBlock& fill) {
    return on_a_lane([&](cuda::TrialDevice& device) { return device.code_rows(coding, count, fill); });
}

cuda::TrialPlan trial_plan(const sim::SpikedModel& model, const stream::StudySeed& seed, const std::string& cell,
                           estimators::Precision precision, std::vector<estimators::EOptShrinkRule> estimators) {
    cuda::TrialPlan plan;
    plan.rows = static_cast<std::uint32_t>(model.row.size());
    plan.columns = static_cast<std::uint32_t>(model.column.size());
    plan.in_float = precision == estimators::Precision::float32;
    const stream::Stream noise(seed, cell, stream::Role::noise, 0);
    plan.key = noise.key();
    plan.noise_role = noise.counter(0)[1];
    plan.query_role = stream::Stream(seed, cell, stream::Role::query, 0).counter(0)[1];
    for (const auto& strength : model.strengths) plan.strengths.push_back(strength.value);
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

cuda::TrialCodec trial_codec(std::size_t dimension, std::uint32_t bits, estimators::CodebookKind kind) {
    const auto codebook = kind == estimators::CodebookKind::sphere
                              ? theory::lloyd_max_sphere(static_cast<int>(dimension), static_cast<int>(bits))
                              : theory::lloyd_max_normal(static_cast<int>(bits));
    return {bits,
            {codebook.thresholds.begin(), codebook.thresholds.end()},
            {codebook.levels.begin(), codebook.levels.end()},
            std::nullopt};
}

void draw_rotation(const estimators::QuantizerOptions& options, std::size_t dimension, float* to) {
    const arma::fmat matrix =
        estimators::row_rotation(options, dimension).rotate(arma::fmat(dimension, dimension, arma::fill::eye)).t();
    std::copy(matrix.begin(), matrix.end(), to);
}

std::string coding_obstacle(const estimators::Method& method, const estimators::QuantizerOptions& options,
                            std::size_t dimension) {
    if (method.spectral || method.quantizer != "tq-mse") return method.text;
    if (options.norm != estimators::NumberFormat::fp16) return "norms that are not fp16";
    const bool hadamard = options.rotation == estimators::RotationKind::rht1 ||
                          options.rotation == estimators::RotationKind::rht2 ||
                          options.rotation == estimators::RotationKind::fht_kac;
    if (hadamard && dimension > estimators::cuda::TurnByHadamard<float>::most_dimension)
        return fmt::format("a Hadamard rotation of {} entries", dimension);
    return "";
}

cuda::RowCoding row_coding(std::size_t rows, std::size_t dimension, double bits,
                           const estimators::QuantizerOptions& options) {
    cuda::RowCoding coding{static_cast<std::uint32_t>(rows),
                           static_cast<std::uint32_t>(dimension),
                           trial_codec(dimension, static_cast<std::uint32_t>(bits), options.codebook),
                           {}};
    const stream::Stream stream(options.seed, "quantizer", stream::Role::rotation, options.rotation_index);
    const auto hadamard = [&](unsigned rounds) {
        coding.codec.hadamard.emplace(stream, static_cast<std::uint32_t>(dimension), rounds);
    };
    switch (options.rotation) {
        case estimators::RotationKind::haar:
            coding.rotation.resize(dimension * dimension);
            draw_rotation(options, dimension, coding.rotation.data());
            break;
        case estimators::RotationKind::rht1:
            hadamard(1);
            break;
        case estimators::RotationKind::rht2:
            hadamard(2);
            break;
        case estimators::RotationKind::fht_kac:
            hadamard(4);
            break;
        case estimators::RotationKind::identity:
            break;
    }
    return coding;
}

const cuda::TrialResult& DeviceTrials::get(std::uint64_t replicate) {
    if (replicate < group_.first || replicate >= group_.end()) {
        const std::uint64_t left = std::max(range_.end(), replicate + 1) - replicate;
        group_ = {replicate, std::min<std::uint64_t>(left, lanes_.together())};
        found_ = lanes_.run(plan_, group_.first, group_.count, draw_);
    }
    return found_[replicate - group_.first];
}

}  // namespace spiked::validation
