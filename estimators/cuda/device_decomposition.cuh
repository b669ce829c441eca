#pragma once
#include <algorithm>
#include <cstring>
#include <optional>

#include "estimators/cuda/decomposition_pipeline.hpp"
#include "estimators/cuda/device_decomposition.hpp"
#include "theory/base/cuda/device_memory.cuh"

/// Included by one file for each precision, which are compiled side by side.
namespace spiked::estimators::cuda {

template <class Real>
class DeviceDecomposition<Real>::Work {
public:
    Work(int device, const BatchSize& size, std::size_t memory) : device_(device), size_(size) {
        spiked::cuda::check(cudaSetDevice(device), "choosing the device");
        size_.count = fitting(memory);
        try {
            take_memory();
        } catch (const spiked::cuda::DeviceFailure& failure) {
            if (!failure.out_of_memory() || size_.count == 1) throw;
            cudaGetLastError();  // forgets it
            size_.count = fitting(memory / 2);
            take_memory();
        }
    }

    void decompose(std::span<const Real> blocks, const DecomposedBlocks<Real>& to) {
        spiked::cuda::check(cudaSetDevice(device_), "choosing the device");
        const std::size_t count = blocks.size() / size_.block_entries();
        std::size_t piece = 0;
        for (std::size_t first = 0; first < count; first += size_.count, ++piece) {
            Lane& lane = lanes_[piece % 2];
            collect(lane, to);
            start(lane, blocks, first, std::min<std::size_t>(size_.count, count - first));
        }
        for (Lane& lane : lanes_) collect(lane, to);
    }

    [[nodiscard]] std::size_t piece() const { return size_.count; }

private:
    /// Blocks whose vectors are found together: their work stays in the second cache.
    static constexpr std::uint32_t together = 512;

    struct Lane {
        spiked::cuda::Stream stream;
        spiked::cuda::DeviceMemory entries, memory;
        spiked::cuda::PinnedMemory from_host, to_host;
        DecompositionBatch<Real> batch;
        std::size_t first = 0;
        std::size_t some = 0;  ///< 0: nothing under way
    };

    [[nodiscard]] std::size_t entry_bytes(std::size_t count) const {
        return count * size_.block_entries() * sizeof(Real);
    }
    [[nodiscard]] std::size_t bytes(std::uint32_t count) const {
        BatchSize size = size_;
        size.count = count;
        DecompositionBatch<Real> unused;
        return entry_bytes(count) + lay_out<Real>(nullptr, nullptr, size, std::min(count, together), unused);
    }
    [[nodiscard]] std::uint32_t fitting(std::size_t memory) const {
        std::uint32_t count = std::max<std::uint32_t>(1, size_.count);
        while (count > 1 && 2 * bytes(count) > memory) count = (count + 1) / 2;
        return count;
    }

    /// One copy back: status, values and vectors, one after the other.
    [[nodiscard]] std::size_t result_bytes() const {
        const std::size_t vectors = std::size_t{size_.vectors} * (size_.long_side + size_.short_side) * sizeof(Real);
        return size_.count * (size_.short_side * sizeof(double) + vectors + sizeof(BlockStatus));
    }

    void take_memory() {
        for (Lane& lane : lanes_) {
            lane.entries.reset();
            lane.memory.reset();
        }
        for (Lane& lane : lanes_) {
            DecompositionBatch<Real> unused;
            lane.memory = spiked::cuda::device_memory(lay_out<Real>(nullptr, nullptr, size_, part(), unused));
            lane.entries = spiked::cuda::device_memory(entry_bytes(size_.count));
            lane.from_host = spiked::cuda::pinned_memory(entry_bytes(size_.count));
            lane.to_host = spiked::cuda::pinned_memory(result_bytes());
        }
    }
    [[nodiscard]] std::uint32_t part() const { return std::min(size_.count, together); }

    void start(Lane& lane, std::span<const Real> blocks, std::size_t first, std::size_t some) {
        BatchSize size = size_;
        size.count = static_cast<std::uint32_t>(some);
        lay_out(lane.memory.get(), reinterpret_cast<const Real*>(lane.entries.get()), size, part(), lane.batch);
        std::memcpy(lane.from_host.get(), blocks.data() + first * size_.block_entries(), entry_bytes(some));
        spiked::cuda::check(cudaMemcpyAsync(lane.entries.get(), lane.from_host.get(), entry_bytes(some),
                                            cudaMemcpyHostToDevice, lane.stream.get()),
                            "copying blocks to the device");
        spiked::cuda::DeviceExecutor executor(lane.stream.get());
        cuda::decompose(executor, lane.batch, part());
        visit_results(lane, some, [&](const auto* on_device, auto* on_host, std::size_t count, auto) {
            spiked::cuda::check(
                cudaMemcpyAsync(on_host, on_device, count * sizeof *on_host, cudaMemcpyDeviceToHost, lane.stream.get()),
                "copying results from the device");
        });
        lane.first = first;
        lane.some = some;
    }

    void collect(Lane& lane, const DecomposedBlocks<Real>& to) {
        if (lane.some == 0) return;
        lane.stream.wait();
        visit_results(lane, lane.some, [&](const auto*, const auto* on_host, std::size_t count, auto which) {
            const auto target = to.*which;
            if (!target.empty()) std::copy_n(on_host, count, target.data() + lane.first * (count / lane.some));
        });
        lane.some = 0;
    }

    /// Each result: where it is on the device, where in pinned memory, how many entries, and where it belongs.
    template <class Visitor>
    void visit_results(Lane& lane, std::size_t some, Visitor&& visit) const {
        unsigned char* at = lane.to_host.get();
        const auto one = [&](auto* on_device, std::size_t each, auto which) {
            using Entry = std::remove_cvref_t<decltype(*on_device)>;
            if (each > 0) visit(on_device, reinterpret_cast<Entry*>(at), some * each, which);
            at += size_.count * each * sizeof(Entry);
        };
        one(lane.batch.values, size_.short_side, &DecomposedBlocks<Real>::values);
        one(lane.batch.left_vectors, std::size_t{size_.long_side} * size_.vectors,
            &DecomposedBlocks<Real>::long_vectors);
        one(lane.batch.right_vectors, std::size_t{size_.short_side} * size_.vectors,
            &DecomposedBlocks<Real>::short_vectors);
        one(lane.batch.status, 1, &DecomposedBlocks<Real>::status);
    }

    int device_;
    BatchSize size_;
    Lane lanes_[2];
};

template <class Real>
DeviceDecomposition<Real>::DeviceDecomposition(int device, const BatchSize& size, std::size_t memory)
    : work_(std::make_unique<Work>(device, size, memory)) {}
template <class Real>
DeviceDecomposition<Real>::~DeviceDecomposition() = default;
template <class Real>
DeviceDecomposition<Real>::DeviceDecomposition(DeviceDecomposition&&) noexcept = default;
template <class Real>
DeviceDecomposition<Real>& DeviceDecomposition<Real>::operator=(DeviceDecomposition&&) noexcept = default;

template <class Real>
void DeviceDecomposition<Real>::decompose(std::span<const Real> blocks, const DecomposedBlocks<Real>& to) {
    work_->decompose(blocks, to);
}
template <class Real>
std::size_t DeviceDecomposition<Real>::piece() const {
    return work_->piece();
}

}  // namespace spiked::estimators::cuda
