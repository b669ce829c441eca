#pragma once
#include <algorithm>
#include <exception>
#include <functional>
#include <vector>

#include "estimators/svd/analysed_block.hpp"
#include "estimators/svd/batch_decomposition.hpp"
#include "validation/store/experiment.hpp"

namespace spiked::validation {

/// The blocks of a range of replicates, drawn and decomposed in groups when they are first requested. A group has the
/// batch size of the decomposition, or less if blocks are large. The result for a replicate does not depend on its
/// group.
template <class Sample>
class PreparedBlocks {
public:
    /// The blocks of a group have `most_bytes` in all, unless it is a single block.
    PreparedBlocks(ReplicateRange range, estimators::Precision precision,
                   std::function<Sample(std::uint64_t replicate)> draw,
                   std::function<arma::mat(const Sample&)> observed, std::size_t most_bytes = most_bytes_of_group)
        : range_(range),
          precision_(precision),
          draw_(std::move(draw)),
          observed_(std::move(observed)),
          most_bytes_(most_bytes) {}

    struct Prepared {
        const Sample* sample;
        estimators::AnalysedBlock* block;
    };
    /// Rethrows the exception of drawing this replicate. The pointers are valid until the next call.
    [[nodiscard]] Prepared get(std::uint64_t replicate) {
        if (replicate < group_.first || replicate >= group_.end()) prepare(replicate);
        Slot& slot = slots_[replicate - group_.first];
        if (slot.failure) std::rethrow_exception(slot.failure);
        return {&slot.sample, &blocks_[slot.block]};
    }

private:
    static_assert(most_blocks_of_group == estimators::BatchDecomposition<double>::lanes &&
                  most_blocks_of_group == estimators::BatchDecomposition<float>::lanes);

    struct Slot {
        Sample sample;
        std::exception_ptr failure;
        std::size_t block = 0;
    };

    void prepare(std::uint64_t first) {
        slots_.clear();
        blocks_.clear();
        std::vector<arma::mat> observed;
        group_ = {first, 0};
        std::uint64_t most = most_blocks_of_group;
        const std::uint64_t left = std::max(range_.end(), first + 1) - first;
        slots_.reserve(std::min(most, left));  // vectors that grow would copy matrices
        observed.reserve(std::min(most, left));
        while (group_.count < std::min(most, left)) {
            Slot& slot = slots_.emplace_back();
            try {
                slot.sample = draw_(first + group_.count);
                slot.block = observed.size();
                observed.push_back(observed_(slot.sample));
                const std::size_t bytes = std::max<std::size_t>(1, observed.back().n_elem * sizeof(double));
                most = std::min<std::uint64_t>(most, std::max<std::size_t>(1, most_bytes_ / bytes));
            } catch (...) {
                slot.failure = std::current_exception();
            }
            ++group_.count;
        }
        blocks_ = estimators::AnalysedBlock::as_batch(std::move(observed), estimators::AnalysedBlock::EmptyLines::strip,
                                                      precision_);
    }

    ReplicateRange range_;
    estimators::Precision precision_;
    std::function<Sample(std::uint64_t)> draw_;
    std::function<arma::mat(const Sample&)> observed_;
    std::size_t most_bytes_;
    ReplicateRange group_{0, 0};
    std::vector<Slot> slots_;
    std::vector<estimators::AnalysedBlock> blocks_;
};

}  // namespace spiked::validation
