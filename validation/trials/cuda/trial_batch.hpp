#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/device/device_failure.hpp"
#include "core/runtime/error.hpp"
#include "estimators/spectral/cuda/shrinkage.hpp"
#include "estimators/svd/cuda/decomposition_pipeline.hpp"
#include "estimators/svd/cuda/low_rank.hpp"
#include "sim/random/cuda/haar_frames.hpp"
#include "sim/random/cuda/haar_rotations.hpp"
#include "sim/spiked/cuda/colour_side.hpp"
#include "sim/spiked/cuda/spiked_blocks.hpp"
#include "validation/metrics/cuda/inner_products.hpp"
#include "validation/metrics/cuda/squared_error.hpp"
#include "validation/metrics/cuda/vector_products.hpp"
#include "validation/trials/cuda/low_rank_rows.hpp"
#include "validation/trials/cuda/row_batch.hpp"
#include "validation/trials/cuda/trial_device.hpp"
#include "validation/trials/cuda/trial_memory.hpp"

/// The driver of whole trials for any machine (see core/device/emulated_machine.hpp): a GPU, or its emulation on the
/// host. Included only by the files that instantiate it for one machine.
namespace spiked::validation::cuda {

template <class Machine>
class TrialBatch final : public TrialDevice, TrialMemory {
public:
    template <class... Arguments>
    explicit TrialBatch(const Arguments&... arguments) : machine_(arguments...) {}

    std::vector<TrialResult> run(const TrialPlan& plan, std::uint64_t first, std::size_t count, const DrawTrial& draw,
                                 TrialStages* stages) override {
        if (const std::string unsupported_reason = plan.unsupported_reason(); !unsupported_reason.empty())
            throw precondition_error("no kernel computes these trials ({})", unsupported_reason);
        return plan.in_float ? run_in<float>(plan, first, count, draw, stages)
                             : run_in<double>(plan, first, count, draw, stages);
    }
    [[nodiscard]] std::size_t chunk() const override { return chunk_; }

    std::vector<CodedRows> code_rows(const RowCoding& coding, std::size_t count, const FillBlock& fill) override {
        unsigned char* const memory = take(
            count, std::size_t{coding.rows} * coding.dimension,
            [&](std::size_t blocks) { return row_arrays(nullptr, coding, blocks).used; },
            [&](std::size_t blocks) { return row_arrays(nullptr, coding, blocks).staged(); });
        std::vector<CodedRows> found;
        found.reserve(count);
        for (std::size_t done = 0; done < count; done += chunk_)
            code_chunk(coding, done, std::min(chunk_, count - done), memory, fill, found);
        return found;
    }

private:
    /// Allocates memory for as many of `count` blocks as fit: bytes(blocks) on the device and staged(blocks) on the
    /// host. If the allocation fails, it tries half as many.
    template <class Bytes, class Staged>
    unsigned char* take(std::size_t count, std::size_t entries, const Bytes& bytes, const Staged& staged) {
        // Kernel launches count blocks in 32 bits.
        chunk_ = std::clamp<std::size_t>(count, 1, std::max<std::size_t>(1, (std::size_t{1} << 31) / entries));
        chunk_ = blocks_that_fit(chunk_, machine_.memory(), bytes);
        const auto reserve = [&] {
            machine_.staging(staged(chunk_));
            return machine_.reserve(bytes(chunk_));
        };
        try {
            return reserve();
        } catch (const spiked::cuda::DeviceFailure& failure) {
            if (!failure.out_of_memory() || chunk_ == 1) throw;
            chunk_ = (chunk_ + 1) / 2;
            return reserve();
        }
    }

    template <class Real>
    std::vector<TrialResult> run_in(const TrialPlan& plan, std::uint64_t first, std::size_t count,
                                    const DrawTrial& draw, TrialStages* stages) {
        unsigned char* const memory = take(
            count, std::size_t{plan.rows} * plan.columns,
            [&](std::size_t trials) { return device_bytes<Real>(plan, trials); },
            [&](std::size_t trials) { return staged_bytes(plan, trials); });
        std::vector<TrialResult> found;
        found.reserve(count);
        for (std::size_t done = 0; done < count; done += chunk_)
            run_chunk<Real>(plan, first + done, std::min(chunk_, count - done), memory, draw, done == 0, found, stages);
        return found;
    }

    template <class Real>
    void run_chunk(const TrialPlan& plan, std::uint64_t first, std::size_t count, unsigned char* memory,
                   const DrawTrial& draw, bool send_constants, std::vector<TrialResult>& found, TrialStages* stages) {
        const Constants constant = constants(memory, plan, false);
        const Inputs in = inputs(memory + constant.bytes, plan, count);
        const Results out = results(memory + constant.bytes + in.bytes, plan, count);
        const Work<Real> on = work<Real>(memory + constant.bytes + in.bytes + out.bytes, plan, count);

        unsigned char* const staged = machine_.staging(staged_bytes(plan, count));
        machine_.clear(memory + constant.bytes + in.bytes, out.bytes);
        if (!plan.codecs.empty()) machine_.clear(on.code.bytes, count * on.code.stride);
        if (send_constants) {
            constants(staged, plan, true);
            machine_.upload(memory, staged, constant.bytes);
        }
        const Inputs drawn = inputs(staged + constant.bytes, plan, count);
        if (plan.has_host_draws()) {
            const auto of_trial = [](bool wanted, auto* array, std::size_t t, std::size_t rows, std::size_t columns) {
                return wanted ? array + t * rows * columns : nullptr;
            };
            for (std::size_t t = 0; t < count; ++t)
                draw(first + t, {of_trial(!plan.left, drawn.left, t, plan.rows, plan.spikes()),
                                 of_trial(!plan.right, drawn.right, t, plan.columns, plan.spikes()),
                                 of_trial(plan.takes_rotations() && !plan.rotation, drawn.rotations, t, plan.columns,
                                          plan.columns)});
            machine_.upload(memory + constant.bytes, staged + constant.bytes, in.bytes);
        }
        const Vectors vectors = draw_frames(plan, first, count, constant, in, on);

        sample(plan, first, count, constant, vectors, on, stages);
        estimators::cuda::DecompositionBatch<Real> batch;
        estimators::cuda::lay_out(on.decomposition, static_cast<const Real*>(on.observed), size_of(plan, count),
                                  part_of(count), batch);
        batch.status = out.status;
        batch.values = out.values;
        estimators::cuda::decompose(machine_, batch, part_of(count));
        const bool wide = batch.size.wide;
        const Real* const left_vectors = wide ? batch.right_vectors : batch.left_vectors;
        const Real* const right_vectors = wide ? batch.left_vectors : batch.right_vectors;
        if constexpr (sizeof(Real) == sizeof(float))
            launch(estimators::cuda::DropRounding{batch.size.count, batch.size.short_side, batch.size.long_side,
                                                  out.values});
        if (plan.spikes() > 0)
            launch(estimators::cuda::VectorProducts<Real>{batch.size.count, plan.rows, plan.columns, plan.spikes(),
                                                          plan.vectors(), left_vectors, right_vectors, vectors.left,
                                                          vectors.right, out.left_products, out.right_products});
        for (std::size_t e = 0; e < plan.estimators.size(); ++e)
            estimate(plan, plan.estimators[e], batch, left_vectors, right_vectors, constant.weights[e],
                     out.estimates[e], on, stages == nullptr ? nullptr : on.estimate);
        append_stages(stages, plan, count, on, left_vectors, right_vectors);
        std::vector<StoredParts> factors(plan.codecs.size());
        for (std::size_t c = 0; c < plan.codecs.size(); ++c) {
            factors[c] = code(plan, c, first, batch, constant, vectors, out.codes[c], on, stages);
            measure_inner_products(plan, c, first, count, right_vectors, out.codes[c], on);
        }

        machine_.download(staged + constant.bytes, memory + constant.bytes + in.bytes, out.bytes);
        machine_.wait();
        const Results back = results(staged + constant.bytes, plan, count);
        for (std::size_t t = 0; t < count; ++t) found.push_back(result(plan, back, factors, t));
    }

    template <class Kernel>
    void launch(const Kernel& kernel) {
        machine_.launch(kernel, kernel.blocks());
    }

    /// The orthonormal matrices of a chunk of trials, drawn by the host or by kernels.
    struct Vectors {
        const double *left, *right;
        const float* rotations;
    };
    template <class Real>
    Vectors draw_frames(const TrialPlan& plan, std::uint64_t first, std::size_t count, const Constants& constant,
                        const Inputs& in, const Work<Real>& on) {
        const auto trials = static_cast<std::uint32_t>(count);
        const auto normals = [&](const DrawnFrames& frames, std::uint32_t entries, double* to) {
            launch(stream::FillNormals<double>{frames.key, frames.role, first, trials, entries, to});
        };
        const auto side = [&](const DrawnFrames& frames, std::uint32_t size, const double* basis_change, double* to) {
            const std::uint32_t rank = plan.spikes();
            if (rank == 0) return;
            if (frames.basis_change.empty()) {
                normals(frames, size * rank, to);
                stream::launch_haar_frames(machine_, trials, size, rank, to, to);
                return;
            }
            normals(frames, size * rank, on.signal_frames);
            stream::launch_haar_frames(machine_, trials, size, rank, on.signal_frames, on.signal_frames);
            launch(sim::TurnVectors{trials * rank, size, basis_change, on.signal_frames, to});
        };
        if (plan.left) side(*plan.left, plan.rows, constant.left_basis_change, on.left);
        if (plan.right) side(*plan.right, plan.columns, constant.right_basis_change, on.right);
        const float* const rotations = plan.rotation ? on.rotations : in.rotations;
        if (plan.takes_rotations() && plan.rotation) {
            normals(*plan.rotation, plan.columns * plan.columns, on.rotation_normals);
            stream::launch_haar_rotations(machine_, trials, plan.columns, plan.columns, on.rotation_normals,
                                          on.rotation_work, on.rotations);
        }
        return {plan.left ? on.left : in.left, plan.right ? on.right : in.right, rotations};
    }

    template <class Real>
    void sample(const TrialPlan& plan, std::uint64_t first, std::size_t count, const Constants& constant,
                const Vectors& vectors, const Work<Real>& on, TrialStages* stages) {
        const auto trials = static_cast<std::uint32_t>(count);
        const std::size_t entries = count * plan.rows * plan.columns;
        const stream::FillNormals<double> fill{plan.key, plan.noise_role,          first,
                                               trials,   plan.rows * plan.columns, on.white};
        const bool drawn_with_signal = !plan.dense() && plan.rows % 2 == 0;
        if (!drawn_with_signal || stages != nullptr) launch(fill);
        if (stages != nullptr) append(stages->normals, on.white, entries);
        if (plan.dense()) {
            launch(sim::ColourSide{trials, plan.rows, plan.columns, constant.column_root, on.white, on.half_coloured});
            launch(sim::ColourSide{trials, plan.columns, plan.rows, constant.row_root, on.half_coloured, on.white});
        }
        sim::SpikedEntries model{plan.rows,          plan.columns,
                                 plan.spikes(),      std::sqrt(static_cast<double>(plan.columns)),
                                 constant.row_roots, constant.column_roots,
                                 constant.strengths, vectors.left,
                                 vectors.right,      on.white,
                                 on.signal};
        if constexpr (sizeof(Real) == sizeof(float)) {
            model.observed_as_float = on.observed;
            model.signal_as_float = on.signal_as_real;
            if (stages == nullptr) model.observed = model.signal = nullptr;
        }
        if (drawn_with_signal)
            launch(sim::DrawnBlocks{fill, model});
        else
            launch(sim::SpikedBlocks{trials, model, on.white});
        if (stages == nullptr) return;
        append(stages->observed, on.white, entries);
        append(stages->signal, on.signal, entries);
    }

    template <class Real>
    void estimate(const TrialPlan& plan, const estimators::cuda::SpectralRule& rule,
                  const estimators::cuda::DecompositionBatch<Real>& batch, const Real* left, const Real* right,
                  const double* weights, const typename Results::Estimate& to, const Work<Real>& on, Real* estimates) {
        const std::uint32_t components = plan.vectors();
        launch(estimators::cuda::ShrinkBlocks{batch.size.count,
                                              {plan.rows, plan.columns},
                                              rule,
                                              weights,
                                              batch.status,
                                              batch.values,
                                              components,
                                              on.shrink,
                                              to.answers,
                                              to.ranks,
                                              to.edges,
                                              to.strengths,
                                              to.overlaps_left,
                                              to.overlaps_right,
                                              to.shrunk});
        launch(estimators::cuda::LowRankErrors<Real>{
            {batch.size.count, plan.rows * plan.columns, on.signal_as_real, to.measured, to.errors, to.energies,
             to.relative},
            {plan.rows, plan.columns, components, components, batch.status, to.ranks, to.shrunk, left, right},
            estimates});
    }

    template <class Real>
    StoredParts code(const TrialPlan& plan, std::size_t which, std::uint64_t first,
                     const estimators::cuda::DecompositionBatch<Real>& batch, const Constants& constant,
                     const Vectors& vectors, const typename Results::Code& to, const Work<Real>& on,
                     TrialStages* stages) {
        using namespace estimators::cuda;
        const TrialCodec& codec = plan.codecs[which];
        const std::size_t count = batch.size.count;
        const std::size_t entries = count * plan.rows * plan.columns;
        if constexpr (sizeof(Real) == sizeof(double))
            if (which == 0) launch(Narrow{entries, on.white, on.rows});
        RowCodec rows = codec.rows;
        if (rows.hadamard) rows.hadamard->replicate = first;
        if (rows.sketch) rows.sketch->replicate = first;
        RowCodecArrays arrays = on.code;
        arrays.thresholds = constant.thresholds[which];
        arrays.levels = constant.levels[which];
        arrays.signs = constant.signs;
        arrays.status = to.status;
        if (codec.takes_matrix()) arrays.matrix = vectors.rotations;
        StoredParts stored;
        LowRankRows low_rank(
            machine_, plan.rows, plan.columns,
            factor_arrays(on.factors, codec.low_rank ? codec.low_rank->vectors : 0, count, plan.rows, plan.columns));
        if (codec.low_rank) {
            stored = low_rank.subtract(*codec.low_rank, first, batch, on.rows, on.rest);
            arrays.from = on.rest;
        }
        CodecKernels coder(machine_, rows, arrays);
        coder.encode();
        if (stages != nullptr) append(stages->rotated[which], arrays.rotated, entries);
        coder.decode();
        if (codec.low_rank) low_rank.add(batch.status, arrays.count, arrays.decoded);
        launch(SquaredErrors<float>{
            {arrays.count, plan.rows * plan.columns, on.rows, to.measured, to.errors, to.energies, to.relative},
            arrays.decoded});
        if (stages == nullptr) return stored;
        append(stages->decoded[which], arrays.decoded, entries);
        std::vector<std::uint8_t> strided;
        append(strided, arrays.bytes, count * arrays.stride);
        const std::size_t bytes = rows.bytes(plan.rows, plan.columns);
        for (std::size_t t = 0; t < count; ++t)
            stages->bytes[which].insert(stages->bytes[which].end(), strided.data() + t * arrays.stride,
                                        strided.data() + t * arrays.stride + bytes);
        return stored;
    }

    template <class Real>
    void measure_inner_products(const TrialPlan& plan, std::size_t which, std::uint64_t first, std::size_t count,
                                const Real* right, const typename Results::Code& to, const Work<Real>& on) {
        using namespace estimators::cuda;
        const auto trials = static_cast<std::uint32_t>(count);
        if (which == 0) {
            launch(stream::FillNormals<double, Real>{plan.key, plan.query_role, first, trials,
                                                     random_queries * plan.columns, on.queries});
            launch(QueryScales<Real>{trials, random_queries, plan.columns, on.queries, on.query_scales});
        }
        const Real* const rows = on.observed;
        launch(RowErrors<Real, Real>{trials, plan.rows, plan.columns, plan.vectors(), rows, on.code.decoded, right,
                                     on.row_scales, to.query_status, to.rows});
        const auto pairs = [&](bool other, const Real* query_rows, const Real* scales, std::uint32_t queries,
                               std::uint32_t stride, PairErrorSums* sums) {
            launch(PairSums<Real>{trials, queries, plan.rows, plan.columns, other, query_rows, scales, stride, rows,
                                  on.code.decoded, on.row_scales, sums});
        };
        pairs(true, rows, on.row_scales, plan.rows, 2 * plan.rows, to.pairs[0]);
        pairs(false, on.queries, on.query_scales, random_queries, random_queries, to.pairs[1]);
    }
    /// Means and standard deviations over the pairs of one trial.
    [[nodiscard]] static TrialResult::Products products(const TrialPlan& plan, const typename Results::Code& from,
                                                        std::size_t pairs, std::size_t trial) {
        estimators::cuda::PairErrorSums sums{};
        const std::size_t each = parts(plan, pairs);
        for (std::size_t part = trial * each; part < (trial + 1) * each; ++part) {
            const auto& more = from.pairs[pairs][part];
            sums.renormalised += more.renormalised;
            sums.renormalised_squares += more.renormalised_squares;
            sums.plain += more.plain;
            sums.plain_squares += more.plain_squares;
        }
        const double count = static_cast<double>(plan.rows) * (pairs == 0 ? plan.rows - 1 : random_queries);
        const auto bias_and_deviation = [&](double sum, double squares) -> TrialResult::BiasAndDeviation {
            const double mean = sum / count;
            return {mean, std::sqrt(std::max(0.0, squares / count - mean * mean))};
        };
        return {bias_and_deviation(sums.renormalised, sums.renormalised_squares),
                bias_and_deviation(sums.plain, sums.plain_squares)};
    }

    void code_chunk(const RowCoding& coding, std::size_t first, std::size_t count, unsigned char* memory,
                    const FillBlock& fill, std::vector<CodedRows>& found) {
        using namespace estimators::cuda;
        const RowArrays on = row_arrays(memory, coding, count);
        unsigned char* const staged = machine_.staging(on.staged());
        const RowArrays here = row_arrays(staged, coding, count);
        const RowResults back = row_results(staged + on.sent, coding, count);
        machine_.clear(memory + on.results, on.used - on.results);
        put_rows(coding, here, first, count, fill);
        machine_.upload(memory, staged, on.sent);
        auto factors = code_once(machine_, coding, on, first);
        factors.resize(count);
        machine_.download(staged + on.sent, memory + on.results, on.used - on.results);
        machine_.wait();
        const std::size_t bytes = on.code.stride;
        for (std::size_t b = 0; b < count; ++b) {
            CodedRows& one = found.emplace_back();
            one.coded = back.status[b] == CodingStatus::coded && back.measured[b] == BlockStatus::fine &&
                        (!coding.codec.low_rank || factors[b]);
            if (factors[b]) {
                one.rank = factors[b]->rank();
                one.factors = factors[b]->ledger;
                one.bytes = std::move(factors[b]->bytes);
            }
            one.bytes.insert(one.bytes.end(), back.bytes + b * bytes, back.bytes + (b + 1) * bytes);
            one.error = back.errors[b];
            one.energy = back.energies[b];
        }
    }

    [[nodiscard]] static TrialResult result(const TrialPlan& plan, const Results& back,
                                            const std::vector<StoredParts>& factors, std::size_t t) {
        using estimators::cuda::BlockStatus;
        using estimators::cuda::CodingStatus;
        const auto part = [&](const double* array, std::size_t each) {
            return std::vector<double>(array + t * each, array + (t + 1) * each);
        };
        const std::size_t pairs = std::size_t{plan.spikes()} * plan.spikes();
        TrialResult found;
        const auto set_status = [&](TrialStatus status) {
            if (found.status == TrialStatus::fine) found.status = status;
        };
        if (back.status[t] == BlockStatus::not_finite) set_status(TrialStatus::not_finite);
        if (back.status[t] == BlockStatus::for_the_host) set_status(TrialStatus::for_the_host);
        found.values = part(back.values, std::min(plan.rows, plan.columns));
        found.left_products = part(back.left_products, pairs);
        found.right_products = part(back.right_products, pairs);
        for (const auto& from : back.estimates) {
            auto& estimate = found.estimates.emplace_back();
            estimate.rank = from.ranks[t];
            if (estimate.rank > plan.vectors()) {
                set_status(TrialStatus::too_many);
                continue;
            }
            if (!std::isnan(from.edges[t])) estimate.bulk_edge = from.edges[t];
            estimate.strengths = part(from.strengths, plan.vectors());
            estimate.shrunk = part(from.shrunk, plan.vectors());
            estimate.strengths.resize(estimate.rank);
            estimate.shrunk.resize(estimate.rank);
            if (from.measured[t] != BlockStatus::fine) set_status(TrialStatus::not_finite);
            estimate.error = from.errors[t];
            found.energy = from.energies[t];
        }
        for (std::size_t c = 0; c < plan.codecs.size(); ++c) {
            const auto& from = back.codes[c];
            if (plan.codecs[c].low_rank && !factors[c][t]) set_status(TrialStatus::for_the_host);
            if (from.status[t] != CodingStatus::coded || from.measured[t] != BlockStatus::fine ||
                from.query_status[t] != BlockStatus::fine || plan.rows < 2)
                set_status(TrialStatus::for_the_host);
            const auto& rows = from.rows[t];
            const bool has_rank = plan.codecs[c].low_rank && factors[c][t];
            found.codes.push_back(
                {has_rank ? factors[c][t]->rank() : 0,
                 has_rank ? factors[c][t]->ledger : estimators::Ledger{},
                 from.errors[t],
                 from.energies[t],
                 rows.across,
                 products(plan, from, 0, t),
                 products(plan, from, 1, t),
                 {{rows.aligned_bias, rows.aligned_deviation}, {rows.aligned_bias_plain, rows.aligned_deviation_plain}},
                 {{rows.own_bias, rows.own_deviation}, {rows.own_bias_plain, rows.own_deviation_plain}}});
        }
        return found;
    }

    /// Downloads numbers and appends them to a vector.
    template <class To, class From>
    void append(std::vector<To>& to, const From* device, std::size_t count) {
        std::vector<From> here(count);
        machine_.download(here.data(), device, count * sizeof(From));
        machine_.wait();
        to.insert(to.end(), here.begin(), here.end());
    }
    template <class Real>
    void append_stages(TrialStages* stages, const TrialPlan& plan, std::size_t count, const Work<Real>& on,
                       const Real* left, const Real* right) {
        if (stages == nullptr) return;
        append(stages->left_vectors, left, count * plan.rows * plan.vectors());
        append(stages->right_vectors, right, count * plan.columns * plan.vectors());
        if (!plan.estimators.empty()) append(stages->estimate, on.estimate, count * plan.rows * plan.columns);
        stages->rotated.resize(plan.codecs.size());
        stages->decoded.resize(plan.codecs.size());
        stages->bytes.resize(plan.codecs.size());
    }

    Machine machine_;
    std::size_t chunk_ = 0;
};

}  // namespace spiked::validation::cuda
