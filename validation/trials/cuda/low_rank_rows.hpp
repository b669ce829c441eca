#pragma once
#include <algorithm>
#include <functional>

#include "estimators/svd/cuda/decomposition_pipeline.hpp"
#include "estimators/svd/cuda/low_rank.hpp"
#include "validation/trials/cuda/layout.hpp"
#include "validation/trials/cuda/trial_device.hpp"

/// Low-rank parts of the blocks of a batch: kernels decompose the blocks and subtract the factors that the host has
/// coded in between. Included only by the drivers.
namespace spiked::validation::cuda {

/// The low-rank parts of the blocks of a batch; without a value where a block is left to the host.
using StoredParts = std::vector<std::optional<StoredFactors>>;

/// The factors that a decoder reads, for the kernels that subtract them and add them again: `vectors` columns for each
/// block, of which `ranks` are filled.
struct FactorArrays {
    std::uint32_t vectors = 0;
    std::uint32_t* ranks = nullptr;
    double *values = nullptr, *negated = nullptr;
    float *left = nullptr, *right = nullptr;
    std::size_t bytes = 0;
};
inline FactorArrays factor_arrays(unsigned char* at, std::uint32_t vectors, std::size_t count, std::size_t rows,
                                  std::size_t columns) {
    Layout layout(at);
    FactorArrays on;
    on.vectors = vectors;
    on.ranks = layout.take<std::uint32_t>(count);
    for (double** array : {&on.values, &on.negated}) *array = layout.take<double>(count * vectors);
    on.left = layout.take<float>(count * vectors * rows);
    on.right = layout.take<float>(count * vectors * columns);
    on.bytes = layout.used();
    return on;
}

/// The low-rank parts of blocks of one shape on a machine.
template <class Machine>
class LowRankRows {
public:
    LowRankRows(Machine& machine, std::uint32_t rows, std::uint32_t columns, const FactorArrays& on)
        : machine_(machine), rows_(rows), columns_(columns), on_(on) {}

    /// Lets the host code the low-rank part of every block, and writes `from` minus this part to `rest`. Block b is
    /// number `first` + b for the host. Blocks without a value are left to the host; nothing is subtracted from them.
    template <class Real>
    StoredParts subtract(const LowRankPart& part, std::uint64_t first,
                         const estimators::cuda::DecompositionBatch<Real>& batch, const float* from, float* rest) {
        const std::size_t count = batch.size.count;
        const auto status = all(batch.status, count);
        const auto values = all(batch.values, count * batch.size.short_side);
        const bool wide = batch.size.wide;
        const std::size_t vectors = batch.size.vectors;
        const auto left = all(wide ? batch.right_vectors : batch.left_vectors, count * vectors * rows_);
        const auto right = all(wide ? batch.left_vectors : batch.right_vectors, count * vectors * columns_);
        StoredParts stored(count);
        const std::size_t each = on_.vectors;
        std::vector<unsigned char> memory(on_.bytes);
        const FactorArrays here = factor_arrays(memory.data(), on_.vectors, count, rows_, columns_);
        std::vector<double> of_left(each * rows_);
        std::vector<double> of_right(each * columns_);
        const auto at = [](const auto& array, std::size_t entry) {
            return array.begin() + static_cast<std::ptrdiff_t>(entry);
        };
        for (std::size_t b = 0; b < count; ++b) {
            if (status[b] != estimators::cuda::BlockStatus::fine) continue;
            std::copy_n(at(left, b * vectors * rows_), of_left.size(), of_left.begin());
            std::copy_n(at(right, b * vectors * columns_), of_right.size(), of_right.begin());
            const std::span<const double> own(values.data() + b * batch.size.short_side, batch.size.short_side);
            stored[b] = part.code({first + b, own, of_left, of_right});
            if (!stored[b]) continue;
            here.ranks[b] = static_cast<std::uint32_t>(stored[b]->rank());
            std::copy(stored[b]->values.begin(), stored[b]->values.end(), here.values + b * each);
            std::transform(stored[b]->values.begin(), stored[b]->values.end(), here.negated + b * each, std::negate());
            std::copy(stored[b]->left.begin(), stored[b]->left.end(), here.left + b * each * rows_);
            std::copy(stored[b]->right.begin(), stored[b]->right.end(), here.right + b * each * columns_);
        }
        machine_.upload(on_.ranks, memory.data(), on_.bytes);
        machine_.wait();
        launch(batch.status, static_cast<std::uint32_t>(count), on_.values, from, rest);
        return stored;
    }
    /// Adds the low-rank parts to the decoded rows.
    void add(const estimators::cuda::BlockStatus* status, std::uint32_t count, float* decoded) {
        launch(status, count, on_.negated, decoded, decoded);
    }

private:
    void launch(const estimators::cuda::BlockStatus* status, std::uint32_t count, const double* values,
                const float* from, float* to) {
        const estimators::cuda::SplitLowRank<float> split{
            count,
            {rows_, columns_, on_.vectors, on_.vectors, status, on_.ranks, values, on_.left, on_.right},
            from,
            nullptr,
            to};
        machine_.launch(split, split.blocks());
    }
    template <class Number>
    std::vector<Number> all(const Number* device, std::size_t count) {
        std::vector<Number> here(count);
        machine_.download(here.data(), device, count * sizeof(Number));
        machine_.wait();
        return here;
    }

    Machine& machine_;
    std::uint32_t rows_, columns_;
    FactorArrays on_;
};

}  // namespace spiked::validation::cuda
