#pragma once
#include <algorithm>

#include "estimators/spectral/cuda/shrinkage.hpp"
#include "estimators/svd/cuda/decomposition_pipeline.hpp"
#include "sim/random/cuda/haar_rotations.hpp"
#include "validation/metrics/cuda/inner_products.hpp"
#include "validation/metrics/cuda/squared_error.hpp"
#include "validation/trials/cuda/row_batch.hpp"
#include "validation/trials/cuda/trial_device.hpp"

namespace spiked::validation::cuda {

/// Memory layout of a batch of trials, the same on the host and on a device: constants, inputs, results, work space.
/// With a null address the layouts only count bytes.
struct TrialMemory {
    struct Inputs {  // copied to the device once per chunk
        double *left, *right;
        float* rotations;
        std::size_t bytes;
    };
    struct Constants {  // copied to the device once per run
        double *strengths, *row_roots, *column_roots, *row_root, *column_root, *left_basis_change, *right_basis_change;
        std::vector<double*> weights;
        std::vector<float*> thresholds, levels;
        float* signs;
        std::size_t bytes;
    };
    struct Results {  // copied to the host once per chunk
        estimators::cuda::BlockStatus* status;
        double *values, *left_products, *right_products;
        struct Estimate {
            estimators::cuda::ShrinkageStatus* answers;
            std::uint32_t* ranks;
            double *edges, *strengths, *overlaps_left, *overlaps_right, *shrunk, *errors, *energies, *relative;
            estimators::cuda::BlockStatus* measured;
        };
        std::vector<Estimate> estimates;
        struct Code {
            estimators::cuda::CodingStatus* status;
            estimators::cuda::BlockStatus *measured, *query_status;
            double *errors, *energies, *relative;
            estimators::cuda::RowErrorSums* rows;
            estimators::cuda::PairErrorSums* pairs[2];  ///< partial sums: the queries are other rows (0) or random (1)
        };
        std::vector<Code> codes;
        std::size_t bytes;
    };
    template <class Real>
    struct Work {  // stays on the device
        double *white, *half_coloured, *signal;
        Real *observed, *signal_as_real, *estimate;
        double* shrink;
        double *left, *right, *signal_frames, *rotation_normals;  ///< drawn by kernels
        stream::FrameWork rotation_work;
        float *rows, *rotations;
        float* rest;             ///< the rows without their low-rank part
        unsigned char* factors;  ///< factor_arrays of one codec at a time
        estimators::cuda::RowCodecArrays code;
        Real *queries, *query_scales, *row_scales;
        unsigned char* decomposition;
        std::size_t used;
    };

    static Inputs inputs(unsigned char* at, const TrialPlan& plan, std::size_t count) {
        Layout layout(at);
        Inputs in{};
        in.left = layout.take<double>(plan.left ? 0 : count * plan.rows * plan.spikes());
        in.right = layout.take<double>(plan.right ? 0 : count * plan.columns * plan.spikes());
        in.rotations =
            layout.take<float>(plan.takes_rotations() && !plan.rotation ? count * plan.columns * plan.columns : 0);
        in.bytes = layout.used();
        return in;
    }
    /// If `fill`, `at` is host memory and the arrays are also written there.
    static Constants constants(unsigned char* at, const TrialPlan& plan, bool fill) {
        Layout layout(at);
        const auto put = [&]<class T>(const std::vector<T>& numbers) {
            T* const to = layout.take<T>(numbers.size());
            if (fill) std::copy(numbers.begin(), numbers.end(), to);
            return to;
        };
        Constants constant{};
        constant.strengths = put(plan.strengths);
        constant.row_roots = put(plan.row_roots);
        constant.column_roots = put(plan.column_roots);
        constant.row_root = put(plan.row_root);
        constant.column_root = put(plan.column_root);
        constant.left_basis_change = put(plan.left ? plan.left->basis_change : std::vector<double>{});
        constant.right_basis_change = put(plan.right ? plan.right->basis_change : std::vector<double>{});
        for (const auto& rule : plan.estimators)
            constant.weights.push_back(put(!rule.is_white && rule.eoptshrink.edge == estimators::EdgeRule::fit
                                               ? estimators::intercept_weights(rule.eoptshrink.pilot)
                                               : std::vector<double>{}));
        for (const auto& codec : plan.codecs) {
            constant.thresholds.push_back(put(codec.thresholds));
            constant.levels.push_back(put(codec.levels));
        }
        constant.signs = put(sign_levels());
        constant.bytes = layout.used();
        return constant;
    }
    static Results results(unsigned char* at, const TrialPlan& plan, std::size_t count) {
        using estimators::cuda::BlockStatus;
        Layout layout(at);
        Results out{};
        const std::size_t pairs = count * plan.spikes() * plan.spikes();
        out.status = layout.take<BlockStatus>(count);
        out.values = layout.take<double>(count * std::min(plan.rows, plan.columns));
        out.left_products = layout.take<double>(pairs);
        out.right_products = layout.take<double>(pairs);
        const std::size_t components = count * plan.vectors();
        for (std::size_t e = 0; e < plan.estimators.size(); ++e) {
            auto& estimate = out.estimates.emplace_back();
            estimate.answers = layout.take<estimators::cuda::ShrinkageStatus>(count);
            estimate.ranks = layout.take<std::uint32_t>(count);
            estimate.edges = layout.take<double>(count);
            for (double** array :
                 {&estimate.strengths, &estimate.overlaps_left, &estimate.overlaps_right, &estimate.shrunk})
                *array = layout.take<double>(components);
            for (double** array : {&estimate.errors, &estimate.energies, &estimate.relative})
                *array = layout.take<double>(count);
            estimate.measured = layout.take<BlockStatus>(count);
        }
        for (std::size_t c = 0; c < plan.codecs.size(); ++c) {
            auto& code = out.codes.emplace_back();
            code.status = layout.take<estimators::cuda::CodingStatus>(count);
            code.measured = layout.take<BlockStatus>(count);
            code.query_status = layout.take<BlockStatus>(count);
            for (double** array : {&code.errors, &code.energies, &code.relative}) *array = layout.take<double>(count);
            code.rows = layout.take<estimators::cuda::RowErrorSums>(count);
            for (std::size_t p = 0; p < 2; ++p)
                code.pairs[p] = layout.take<estimators::cuda::PairErrorSums>(count * parts(plan, p));
        }
        out.bytes = layout.used();
        return out;
    }
    template <class Real>
    static Work<Real> work(unsigned char* at, const TrialPlan& plan, std::size_t count) {
        Layout layout(at);
        Work<Real> on{};
        const std::size_t entries = count * plan.rows * plan.columns;
        on.white = layout.take<double>(entries);
        const std::size_t spikes = count * plan.spikes();
        on.left = layout.take<double>(plan.left ? spikes * plan.rows : 0);
        on.right = layout.take<double>(plan.right ? spikes * plan.columns : 0);
        const bool changes_basis =
            (plan.left && !plan.left->basis_change.empty()) || (plan.right && !plan.right->basis_change.empty());
        on.signal_frames = layout.take<double>(changes_basis ? spikes * std::max(plan.rows, plan.columns) : 0);
        const std::size_t square = plan.takes_rotations() ? count * plan.columns * plan.columns : 0;
        on.rotation_normals = layout.take<double>(plan.rotation ? square : 0);
        const std::size_t rotation_factors = plan.rotation ? stream::frame_factors(plan.columns) : 0;
        on.rotation_work = {layout.take<double>(count * rotation_factors),
                            layout.take<std::uint32_t>(rotation_factors > 0 ? count : 0)};
        on.rotations = layout.take<float>(plan.rotation ? square : 0);
        on.half_coloured = plan.dense() ? layout.take<double>(entries) : nullptr;
        on.signal = layout.take<double>(entries);
        if constexpr (sizeof(Real) == sizeof(float)) {
            on.observed = layout.take<float>(entries);
            on.signal_as_real = layout.take<float>(entries);
        } else {
            on.observed = on.white;
            on.signal_as_real = on.signal;
        }
        if (!plan.estimators.empty()) {
            on.estimate = layout.take<Real>(entries);
            on.shrink = layout.take<double>(3 * count * std::min(plan.rows, plan.columns));
        }
        if (!plan.codecs.empty()) {
            if constexpr (sizeof(Real) == sizeof(float))
                on.rows = on.observed;
            else
                on.rows = layout.take<float>(entries);
            on.code = coding_arrays(layout, plan.codecs, count, plan.rows, plan.columns, true);
            for (const auto& codec : plan.codecs)
                on.code.stride = std::max(on.code.stride, codec.rows.bytes(plan.rows, plan.columns));
            on.code.bytes = layout.take<std::uint8_t>(count * on.code.stride);
            std::size_t factors = 0;
            for (const auto& codec : plan.codecs)
                if (codec.low_rank)
                    factors = std::max(
                        factors, factor_arrays(nullptr, codec.low_rank->vectors, count, plan.rows, plan.columns).bytes);
            on.factors = layout.take<unsigned char>(factors);
            on.rest = layout.take<float>(factors > 0 ? entries : 0);
            on.code.from = on.rows;
            on.queries = layout.take<Real>(count * random_queries * plan.columns);
            on.query_scales = layout.take<Real>(count * random_queries);
            on.row_scales = layout.take<Real>(2 * count * plan.rows);
        }
        estimators::cuda::DecompositionBatch<Real> unused;
        const std::size_t decomposition =
            estimators::cuda::lay_out<Real>(nullptr, nullptr, size_of(plan, count), part_of(count), unused);
        on.decomposition = layout.take<unsigned char>(decomposition);
        on.used = layout.used();
        return on;
    }
    static estimators::cuda::BatchSize size_of(const TrialPlan& plan, std::size_t count) {
        return {static_cast<std::uint32_t>(count), std::max(plan.rows, plan.columns), std::min(plan.rows, plan.columns),
                plan.rows < plan.columns, plan.vectors()};
    }
    static std::uint32_t part_of(std::size_t count) {
        return std::min(static_cast<std::uint32_t>(count), estimators::cuda::vector_batch_size);
    }
    static std::size_t staged_bytes(const TrialPlan& plan, std::size_t count) {
        return constants(nullptr, plan, false).bytes +
               std::max(inputs(nullptr, plan, count).bytes, results(nullptr, plan, count).bytes);
    }
    template <class Real>
    static std::size_t device_bytes(const TrialPlan& plan, std::size_t count) {
        return constants(nullptr, plan, false).bytes + inputs(nullptr, plan, count).bytes +
               results(nullptr, plan, count).bytes + work<Real>(nullptr, plan, count).used;
    }

    /// Number of partial sums of PairSums: the queries are the rows (pairs = 0) or random (pairs = 1).
    static unsigned parts(const TrialPlan& plan, std::size_t pairs) {
        return estimators::cuda::PairSums<float>::Product::tiles(pairs == 0 ? plan.rows : random_queries, plan.rows);
    }
};

}  // namespace spiked::validation::cuda
