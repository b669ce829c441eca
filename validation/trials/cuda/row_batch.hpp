#pragma once
#include <algorithm>

#include "estimators/quantizers/cuda/row_codec.hpp"
#include "validation/metrics/cuda/squared_error.hpp"
#include "validation/trials/cuda/layout.hpp"
#include "validation/trials/cuda/low_rank_rows.hpp"
#include "validation/trials/cuda/trial_device.hpp"

/// Memory layout of rows that are coded on a device, in trials and on their own.
namespace spiked::validation::cuda {

/// The threshold and the two levels of a one-bit sketch.
inline std::vector<float> sign_levels() { return {0.0F, -1.0F, 1.0F}; }
/// The arrays that the kernels of these codecs need besides bytes, status and rotations.
inline estimators::cuda::RowCodecArrays coding_arrays(Layout& layout, const std::vector<TrialCodec>& codecs,
                                                      std::size_t count, std::size_t rows, std::size_t dimension,
                                                      bool each_its_own,
                                                      const std::vector<std::uint64_t>& shared = {}) {
    estimators::cuda::RowCodecArrays on;
    on.shared = shared;
    on.count = static_cast<std::uint32_t>(count);
    on.rows = static_cast<std::uint32_t>(rows);
    on.dimension = static_cast<std::uint32_t>(dimension);
    on.each_its_own = each_its_own;
    const std::size_t entries = count * rows * dimension;
    const auto any = [&](auto what) { return std::any_of(codecs.begin(), codecs.end(), what); };
    on.factors = layout.take<float>(count * rows);
    on.rotated = layout.take<float>(entries);
    on.decoded = layout.take<float>(entries);
    if (any([](const TrialCodec& codec) { return codec.rows.scale != estimators::RowScale::norm; }))
        on.norms = layout.take<double>(count * rows);
    if (any([](const TrialCodec& codec) { return codec.rows.sketch.has_value(); })) {
        const std::size_t square = on.sketches() * dimension * dimension;
        on.sketch = layout.take<float>(square);
        on.projected = layout.take<float>(entries);
    }
    return on;
}

/// The results of coding rows that are copied to the host.
struct RowResults {
    estimators::cuda::CodingStatus* status;
    estimators::cuda::BlockStatus* measured;
    double *errors, *energies, *relative;
    std::uint8_t* bytes;
    std::size_t used;
};
inline RowResults row_results(unsigned char* at, const RowCoding& coding, std::size_t count) {
    Layout layout(at);
    RowResults out{};
    out.status = layout.take<estimators::cuda::CodingStatus>(count);
    out.measured = layout.take<estimators::cuda::BlockStatus>(count);
    for (double** array : {&out.errors, &out.energies, &out.relative}) *array = layout.take<double>(count);
    out.bytes = layout.take<std::uint8_t>(count * coding.codec.rows.bytes(coding.rows, coding.dimension));
    out.used = layout.used();
    return out;
}

/// All arrays for coding rows: those sent to the device, those that stay there, and the results.
struct RowArrays {
    float *thresholds, *levels, *signs, *rotations, *rows;
    std::uint32_t* which;
    std::uint64_t* replicates;
    std::size_t sent;
    estimators::cuda::RowCodecArrays code;
    float* rest;  ///< the rows without their low-rank part, where there is one
    FactorArrays factors;
    estimators::cuda::DecompositionBatch<float> batch;
    std::size_t results;  ///< offset of the results in bytes
    RowResults out;
    std::size_t used;

    /// Bytes of host memory for the arrays that are sent, followed by the results.
    [[nodiscard]] std::size_t staged() const { return sent + used - results; }
};
inline RowArrays row_arrays(unsigned char* at, const RowCoding& coding, std::size_t count) {
    using namespace estimators::cuda;
    Layout layout(at);
    RowArrays on{};
    on.thresholds = layout.take<float>(coding.codec.thresholds.size());
    on.levels = layout.take<float>(coding.codec.levels.size());
    on.signs = layout.take<float>(sign_levels().size());
    on.rotations = layout.take<float>(coding.rotations.size());
    on.which = layout.take<std::uint32_t>(count);
    on.replicates = layout.take<std::uint64_t>(count);
    on.rows = layout.take<float>(count * coding.rows * coding.dimension);
    on.sent = layout.used();
    on.code = coding_arrays(layout, {coding.codec}, count, coding.rows, coding.dimension, false, coding.replicates);
    if (coding.codec.low_rank) {
        const std::uint32_t vectors = coding.codec.low_rank->vectors;
        on.rest = layout.take<float>(count * coding.rows * coding.dimension);
        const std::size_t factors = factor_arrays(nullptr, vectors, count, coding.rows, coding.dimension).bytes;
        on.factors = factor_arrays(layout.take<unsigned char>(factors), vectors, count, coding.rows, coding.dimension);
        const BatchSize size{static_cast<std::uint32_t>(count), std::max(coding.rows, coding.dimension),
                             std::min(coding.rows, coding.dimension), coding.rows < coding.dimension, vectors};
        const std::uint32_t part = std::min(size.count, vector_batch_size);
        const std::size_t bytes = lay_out<float>(nullptr, nullptr, size, part, on.batch);
        lay_out(layout.take<unsigned char>(bytes), static_cast<const float*>(on.rows), size, part, on.batch);
    }
    on.results = layout.used();
    on.out = row_results(at == nullptr ? nullptr : at + on.results, coding, count);
    on.used = on.results + on.out.used;
    on.code.status = on.out.status;
    on.code.bytes = on.out.bytes;
    on.code.stride = coding.codec.rows.bytes(coding.rows, coding.dimension);
    on.code.thresholds = on.thresholds;
    on.code.levels = on.levels;
    on.code.signs = on.signs;
    on.code.from = coding.codec.low_rank ? on.rest : on.rows;
    if (!coding.rotations.empty()) on.code.matrix = on.rotations;
    on.code.which = on.which;
    on.code.replicates = on.replicates;
    return on;
}

/// Writes codebook, rotations and blocks first, .., first + count - 1 into the host memory that is sent to the device.
inline void put_rows(const RowCoding& coding, const RowArrays& here, std::size_t first, std::size_t count,
                     const FillBlock& fill) {
    const auto put = [](const std::vector<float>& numbers, float* to) {
        std::copy(numbers.begin(), numbers.end(), to);
    };
    put(coding.codec.thresholds, here.thresholds);
    put(coding.codec.levels, here.levels);
    put(sign_levels(), here.signs);
    put(coding.rotations, here.rotations);
    for (std::size_t b = 0; b < count; ++b) {
        here.which[b] = coding.which.empty() ? 0 : coding.which[first + b];
        here.replicates[b] = coding.replicates[here.which[b]];
    }
    const std::size_t entries = std::size_t{coding.rows} * coding.dimension;
    for (std::size_t b = 0; b < count; ++b) fill(first + b, here.rows + b * entries);
}

/// Codes and decodes the rows on the device and measures the error of the decoded rows. Block b is number `first` + b
/// for the host, which codes the low-rank parts, if there are any; these are returned.
template <class Machine>
StoredParts code_once(Machine& machine, const RowCoding& coding, const RowArrays& on, std::uint64_t first = 0) {
    const auto launch = [&](const auto& kernel) { machine.launch(kernel, kernel.blocks()); };
    LowRankRows low_rank(machine, coding.rows, coding.dimension, on.factors);
    StoredParts stored;
    if (coding.codec.low_rank) {
        const auto& size = on.batch.size;
        estimators::cuda::decompose(machine, on.batch, std::min(size.count, estimators::cuda::vector_batch_size));
        launch(estimators::cuda::DropRounding{size.count, size.short_side, size.long_side, on.batch.values});
        stored = low_rank.subtract(*coding.codec.low_rank, first, on.batch, on.rows, on.rest);
    }
    estimators::cuda::CodecKernels coder(machine, coding.codec.rows, on.code);
    coder.encode();
    coder.decode();
    if (coding.codec.low_rank) low_rank.add(on.batch.status, on.code.count, on.code.decoded);
    launch(estimators::cuda::SquaredErrors<float>{{on.code.count, coding.rows * coding.dimension, on.rows,
                                                   on.out.measured, on.out.errors, on.out.energies, on.out.relative},
                                                  on.code.decoded});
    return stored;
}

/// Halves the number of blocks until bytes(blocks) fits in memory.
template <class Bytes>
std::size_t blocks_that_fit(std::size_t count, std::size_t memory, const Bytes& bytes) {
    while (count > 1 && bytes(count) > memory) count = (count + 1) / 2;
    return count;
}

}  // namespace spiked::validation::cuda
