#pragma once
#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/runtime/error.hpp"
#include "estimators/svd/cuda/decomposition_pipeline.hpp"
#include "validation/trials/cuda/device_passes.hpp"
#include "validation/trials/cuda/row_batch.hpp"

/// The passes of device_passes.hpp for any machine. Included only by the files that instantiate it for one machine.
namespace spiked::validation::cuda {

template <class Machine, class Real>
class DecompositionPass final : public DevicePass {
public:
    DecompositionPass(int number, std::size_t memory, const BlocksToDecompose& wanted, std::size_t count,
                      DecompositionPart part)
        : machine_(number, memory),
          part_(part),
          distinct_(wanted.blocks.size() / (std::size_t{wanted.rows} * wanted.columns)),
          blocks_(wanted.blocks) {
        const std::size_t entries = std::size_t{wanted.rows} * wanted.columns;
        const auto sized = [&](std::size_t blocks) {
            return estimators::cuda::BatchSize{static_cast<std::uint32_t>(blocks),
                                               std::max(wanted.rows, wanted.columns),
                                               std::min(wanted.rows, wanted.columns), wanted.rows < wanted.columns,
                                               part == DecompositionPart::vectors ? wanted.vectors : 0};
        };
        const auto input = [&](std::size_t blocks) { return (blocks * entries * sizeof(Real) + 255) / 256 * 256; };
        const auto bytes = [&](std::size_t blocks) {
            estimators::cuda::DecompositionBatch<Real> unused;
            return input(blocks) +
                   estimators::cuda::lay_out<Real>(nullptr, nullptr, sized(blocks), vector_batch(blocks), unused);
        };
        const std::size_t fitting = blocks_that_fit(count, machine_.memory(), bytes);
        unsigned char* const device_memory = machine_.reserve(bytes(fitting));
        // The host holds each block once; the device holds as many copies as fit.
        const std::size_t staged_blocks = std::min(fitting, distinct_);
        auto* const staged = reinterpret_cast<Real*>(machine_.staging(input(staged_blocks)));
        for (std::size_t i = 0; i < staged_blocks * entries; ++i) staged[i] = static_cast<Real>(wanted.blocks[i]);
        machine_.clear(device_memory, bytes(fitting));
        for (std::size_t b = 0; b < fitting; b += staged_blocks)
            machine_.upload(device_memory + b * entries * sizeof(Real), staged,
                            std::min(staged_blocks, fitting - b) * entries * sizeof(Real));
        estimators::cuda::lay_out(device_memory + input(fitting), reinterpret_cast<const Real*>(device_memory),
                                  sized(fitting), vector_batch(fitting), batch_);
        machine_.wait();
    }

    void run() override {
        if (part_ == DecompositionPart::bidiagonal)
            estimators::cuda::bidiagonalise(machine_, batch_);
        else
            estimators::cuda::decompose(machine_, batch_, vector_batch(batch_.size.count));
        machine_.wait();
    }
    [[nodiscard]] std::size_t blocks() const override { return batch_.size.count; }
    [[nodiscard]] std::vector<double> outcome() override {
        const std::size_t count = batch_.size.count;
        const auto status = all(batch_.status, 1);
        const auto bad = std::count_if(status.begin(), status.end(),
                                       [](auto one) { return one != estimators::cuda::BlockStatus::fine; });
        if (bad > 0)
            throw postcondition_error("{} of {} blocks were not decomposed: such work is not timed", bad, count);
        const std::size_t size = batch_.size.short_side;
        same_as_copies(batch_.diagonal, size, "diagonals");
        same_as_copies(batch_.off_diagonal, size, "off-diagonals");
        if (part_ == DecompositionPart::bidiagonal) return {};
        const auto of_long =
            same_as_copies(batch_.left_vectors, batch_.size.vectors * batch_.size.long_side, "left vectors");
        const auto of_short = same_as_copies(batch_.right_vectors, batch_.size.vectors * size, "right vectors");
        auto values = same_as_copies(batch_.values, size, "singular values");
        const std::size_t distinct = std::min(distinct_, count);
        for (std::size_t b = 0; b < distinct; ++b) check_vectors(b, values, of_long, of_short);
        values.resize(distinct * size);
        return values;
    }

private:
    /// Throws postcondition_error unless the vectors of a block have norm 1, are orthogonal to each other, and satisfy
    /// Y v_k = s_k u_k up to rounding.
    void check_vectors(std::size_t block, const std::vector<double>& values, const std::vector<Real>& of_long,
                       const std::vector<Real>& of_short) const {
        const auto& [count, long_side, short_side, wide, vectors] = batch_.size;
        const Real* const u = of_long.data() + block * vectors * long_side;
        const Real* const v = of_short.data() + block * vectors * short_side;
        const double* const y = blocks_.data() + block * long_side * short_side;
        const double* const s = values.data() + block * short_side;
        const auto product = [](const Real* a, const Real* b, std::size_t length) {
            double sum = 0.0;
            for (std::size_t i = 0; i < length; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
            return sum;
        };
        double worst = 0.0;
        const auto note = [&](double error) { worst = std::isnan(error) ? error : std::max(worst, std::abs(error)); };
        for (std::size_t k = 0; k < vectors && !std::isnan(worst); ++k) {
            for (std::size_t l = 0; l <= k; ++l) {
                note(product(u + k * long_side, u + l * long_side, long_side) - (k == l ? 1.0 : 0.0));
                note(product(v + k * short_side, v + l * short_side, short_side) - (k == l ? 1.0 : 0.0));
            }
            for (std::size_t i = 0; i < long_side; ++i) {
                double sum = -s[k] * static_cast<double>(u[k * long_side + i]);
                for (std::size_t j = 0; j < short_side; ++j) {
                    const double entry = wide ? y[i * short_side + j] : y[j * long_side + i];
                    sum += static_cast<double>(static_cast<Real>(entry)) * static_cast<double>(v[k * short_side + j]);
                }
                note(sum / s[0]);
            }
        }
        constexpr double allowed = sizeof(Real) == sizeof(float) ? 1e-5 : 1e-12;
        if (!(worst <= allowed))
            throw postcondition_error("vectors of block {} are {:.2g} off (allowed {:.0e}): such work is not timed",
                                      block, worst, allowed);
    }
    /// Downloads `each` numbers of every block.
    template <class Number>
    std::vector<Number> all(const Number* device, std::size_t each) {
        std::vector<Number> here(each * batch_.size.count);
        machine_.download(here.data(), device, here.size() * sizeof(Number));
        machine_.wait();
        return here;
    }
    /// Downloads the numbers of every block and throws postcondition_error unless all copies of a block have the same
    /// bits, because the results of a block do not depend on its neighbours.
    template <class Number>
    std::vector<Number> same_as_copies(const Number* device, std::size_t each, std::string_view what) {
        auto here = all(device, each);
        for (std::size_t i = distinct_; i < batch_.size.count; ++i)
            if (!std::equal(here.begin() + static_cast<std::ptrdiff_t>(i * each),
                            here.begin() + static_cast<std::ptrdiff_t>((i + 1) * each),
                            here.begin() + static_cast<std::ptrdiff_t>(i % distinct_ * each)))
                throw postcondition_error("block {} and its copy {} have other {}: such work is not timed",
                                          i % distinct_, i, what);
        return here;
    }
    static std::uint32_t vector_batch(std::size_t count) {
        return static_cast<std::uint32_t>(std::min<std::size_t>(count, estimators::cuda::vector_batch_size));
    }

    Machine machine_;
    DecompositionPart part_;
    std::size_t distinct_;  ///< different blocks; the batch repeats them
    std::vector<double> blocks_;
    estimators::cuda::DecompositionBatch<Real> batch_{};
};

template <class Machine>
class CodingPass final : public DevicePass {
public:
    CodingPass(int number, std::size_t memory, const RowCoding& coding, std::size_t count, const FillBlock& fill,
               CodingPart part)
        : machine_(number, memory), coding_(coding), part_(part) {
        count = blocks_that_fit(count, machine_.memory(),
                                [&](std::size_t blocks) { return row_arrays(nullptr, coding_, blocks).used; });
        const std::size_t bytes = row_arrays(nullptr, coding_, count).used;
        device_arrays_ = row_arrays(machine_.reserve(bytes), coding_, count);
        staged_ = machine_.staging(device_arrays_.staged());
        put_rows(coding_, row_arrays(staged_, coding_, count), 0, count, fill);
        machine_.clear(first() + device_arrays_.results, device_arrays_.out.used);
        send();
        (void)code_once(machine_, coding_, device_arrays_);
        fetch();
        const auto count_bad = [&](const auto* array, auto fine) {
            return std::count_if(array, array + count, [&](auto one) { return one != fine; });
        };
        const RowResults back = row_results(staged_ + device_arrays_.sent, coding_, count);
        const auto bad = count_bad(back.status, estimators::cuda::CodingStatus::coded) +
                         count_bad(back.measured, estimators::cuda::BlockStatus::fine);
        if (bad > 0) throw postcondition_error("{} of {} blocks were not coded: such work is not timed", bad, count);
        error_ = back.relative[0];
    }

    void run() override {
        estimators::cuda::CodecKernels coder(machine_, coding_.codec.rows, device_arrays_.code);
        if (part_ == CodingPart::encode_and_copy) send();
        if (part_ == CodingPart::decode)
            coder.decode();
        else
            coder.encode();
        if (part_ == CodingPart::encode_and_copy)
            fetch();
        else
            machine_.wait();
    }
    [[nodiscard]] std::size_t blocks() const override { return device_arrays_.code.count; }
    [[nodiscard]] std::vector<double> outcome() override { return {error_}; }

private:
    [[nodiscard]] unsigned char* first() const { return reinterpret_cast<unsigned char*>(device_arrays_.thresholds); }
    void send() { machine_.upload(first(), staged_, device_arrays_.sent); }
    void fetch() {
        machine_.download(staged_ + device_arrays_.sent, first() + device_arrays_.results, device_arrays_.out.used);
        machine_.wait();
    }

    Machine machine_;
    RowCoding coding_;
    CodingPart part_;
    RowArrays device_arrays_{};
    unsigned char* staged_ = nullptr;
    double error_ = 0.0;
};

template <class Machine>
std::unique_ptr<DevicePass> decomposition_pass_on(int number, std::size_t memory, const BlocksToDecompose& blocks,
                                                  std::size_t count, DecompositionPart part) {
    if (blocks.in_float)
        return std::make_unique<DecompositionPass<Machine, float>>(number, memory, blocks, count, part);
    return std::make_unique<DecompositionPass<Machine, double>>(number, memory, blocks, count, part);
}

}  // namespace spiked::validation::cuda
