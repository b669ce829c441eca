#include "estimators/cuda/finish_on_host.hpp"

#include <algorithm>
#include <optional>

#include "estimators/batch_decomposition.hpp"

namespace spiked::estimators::cuda {

template <class Real>
std::size_t finish_on_host(const BatchSize& size, std::span<const Real> blocks, const DecomposedBlocks<Real>& results) {
    const Shape shape = size.wide ? Shape{size.short_side, size.long_side} : Shape{size.long_side, size.short_side};
    std::optional<BatchDecomposition<Real>> host;
    std::size_t finished = 0;
    arma::Mat<Real> left;
    arma::Mat<Real> right;
    for (std::size_t block = 0; block < results.status.size(); ++block) {
        if (results.status[block] != BlockStatus::for_the_host) continue;
        if (!host) host.emplace(shape);
        host->decompose(blocks.subspan(block * size.block_entries(), size.block_entries()));
        std::ranges::copy(host->singular_values(0), results.values.begin() + block * size.short_side);
        host->leading_vectors(0, size.vectors, &left, &right);
        if (size.wide) left.swap(right);
        std::ranges::copy(left, results.long_vectors.begin() + block * left.n_elem);
        std::ranges::copy(right, results.short_vectors.begin() + block * right.n_elem);
        results.status[block] = BlockStatus::fine;
        ++finished;
    }
    return finished;
}

template std::size_t finish_on_host(const BatchSize&, std::span<const float>, const DecomposedBlocks<float>&);
template std::size_t finish_on_host(const BatchSize&, std::span<const double>, const DecomposedBlocks<double>&);

}  // namespace spiked::estimators::cuda
