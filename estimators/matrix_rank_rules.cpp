#include "estimators/matrix_rank_rules.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "estimators/decomposition.hpp"
#include "sim/stream/element_engine.hpp"
#include "theory/base/error.hpp"

namespace spiked::estimators {
namespace {

stream::Stream stream_of(const ResamplingAddress& address) {
    return {address.seed, address.cell, stream::Role::resampling, address.replicate};
}

arma::mat flipped(const arma::mat& block, const stream::Stream& stream, std::size_t draw) {
    arma::mat null = block;
    stream::PhiloxCounter words{};
    for (arma::uword e = 0; e < null.n_elem; ++e) {
        const auto bit = static_cast<unsigned>(e % 128);
        if (bit == 0) words = stream.words(static_cast<std::uint32_t>(e / 128), static_cast<std::uint16_t>(draw));
        if ((words[bit / 32] >> (bit % 32) & 1U) != 0) null(e) = -null(e);
    }
    return null;
}

/// 0..size-1 in random order. Fisher and Yates, so that every library draws the same.
std::vector<arma::uword> shuffled(std::size_t size, const stream::Stream& stream, std::uint32_t element) {
    std::vector<arma::uword> order(size);
    for (std::size_t i = 0; i < size; ++i) order[i] = i;
    stream::ElementEngine engine(stream, element);
    for (std::size_t left = size; left > 1; --left) {
        // The bias of a 32-bit word against a range of thousands is below 1e-6.
        const auto at = static_cast<std::size_t>(std::uint64_t{engine()} * left >> 32);
        std::swap(order[left - 1], order[at]);
    }
    return order;
}

arma::mat permuted(const arma::mat& block, const stream::Stream& stream, std::size_t draw) {
    arma::mat null = block;
    for (arma::uword j = 0; j < block.n_cols; ++j) {
        const auto order = shuffled(block.n_rows, stream, static_cast<std::uint32_t>(draw * block.n_cols + j));
        for (arma::uword i = 0; i < block.n_rows; ++i) null(i, j) = block(order[i], j);
    }
    return null;
}

std::vector<arma::uvec> parts(std::size_t size, std::size_t folds, const stream::Stream& stream,
                              std::uint32_t element) {
    const auto order = shuffled(size, stream, element);
    std::vector<arma::uvec> result;
    for (std::size_t f = 0; f < folds; ++f) {
        const std::size_t from = f * size / folds;
        const std::size_t to = (f + 1) * size / folds;
        result.push_back(arma::sort(arma::uvec(std::vector<arma::uword>(
            order.begin() + static_cast<std::ptrdiff_t>(from), order.begin() + static_cast<std::ptrdiff_t>(to)))));
    }
    return result;
}

arma::uvec others(const std::vector<arma::uvec>& all, std::size_t without) {
    arma::uvec result;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (i != without) result = arma::join_cols(result, all[i]);
    return result;
}

}  // namespace

std::size_t parallel_analysis(const arma::mat& block, const ResamplingAddress& address,
                              const ParallelAnalysisOptions& options) {
    if (options.draws < 1 || options.draws > std::numeric_limits<std::uint16_t>::max())
        throw usage_error("parallel analysis with {} draws is not possible: choose 1 to 65535", options.draws);
    if (!(options.quantile > 0.0 && options.quantile <= 1.0))
        throw usage_error("parallel analysis: quantile {} is not possible: choose above 0, at most 1",
                          options.quantile);
    const std::vector<double> observed = singular_values(block);
    const stream::Stream stream = stream_of(address);
    std::vector<std::vector<double>> null(observed.size());
    for (std::size_t draw = 0; draw < options.draws; ++draw) {
        const auto s = singular_values(options.null == NullBlock::signflip ? flipped(block, stream, draw)
                                                                           : permuted(block, stream, draw));
        for (std::size_t i = 0; i < s.size(); ++i) null[i].push_back(options.against_top ? s[0] : s[i]);
    }
    const auto place = static_cast<std::size_t>(std::ceil(options.quantile * static_cast<double>(options.draws))) - 1;
    std::size_t rank = 0;
    for (; rank < observed.size(); ++rank) {
        std::nth_element(null[rank].begin(), null[rank].begin() + static_cast<std::ptrdiff_t>(place), null[rank].end());
        if (!(observed[rank] > null[rank][place])) break;
    }
    return rank;
}

std::size_t bi_cross_validation(const arma::mat& block, const ResamplingAddress& address, std::size_t most,
                                std::size_t folds) {
    if (folds < 2 || folds > std::min(block.n_rows, block.n_cols))
        throw usage_error(
            "bi-cross-validation of a {} x {} block in {} parts is not possible: choose from 2 to the "
            "shorter side",
            block.n_rows, block.n_cols, folds);
    const stream::Stream stream = stream_of(address);
    const auto rows = parts(block.n_rows, folds, stream, 0);
    const auto columns = parts(block.n_cols, folds, stream, 1);
    const std::size_t largest_rows = (block.n_rows + folds - 1) / folds;
    const std::size_t largest_columns = (block.n_cols + folds - 1) / folds;
    most = std::min<std::size_t>({most, block.n_rows - largest_rows, block.n_cols - largest_columns});
    std::vector<double> errors(most + 1, 0.0);
    const double scale = block.is_empty() ? 0.0 : arma::abs(block).max();
    if (scale == 0.0) return 0;
    for (std::size_t i = 0; i < folds; ++i)
        for (std::size_t j = 0; j < folds; ++j) {
            const arma::uvec other_rows = others(rows, i);
            const arma::uvec other_columns = others(columns, j);
            arma::mat error = block.submat(rows[i], columns[j]) / scale;
            const arma::mat beside = block.submat(rows[i], other_columns) / scale;
            const arma::mat above = block.submat(other_rows, columns[j]) / scale;
            const arma::mat rest = block.submat(other_rows, other_columns) / scale;
            const auto s = singular_values(rest);
            const auto vectors = leading_vectors(rest, most);
            errors[0] += arma::accu(arma::square(error));
            for (std::size_t k = 1; k <= most; ++k) {
                const double floor = static_cast<double>(s.size()) * std::numeric_limits<double>::epsilon() * s[0];
                if (s[k - 1] > floor)
                    error -= (beside * vectors.right.col(k - 1)) * (vectors.left.col(k - 1).t() * above) / s[k - 1];
                errors[k] += arma::accu(arma::square(error));
            }
        }
    return static_cast<std::size_t>(std::min_element(errors.begin(), errors.end()) - errors.begin());
}

}  // namespace spiked::estimators
