#include "sim/llama/head_cache.hpp"

#include <algorithm>

namespace spiked::sim {

arma::fmat HeadCache::view(Side side) const {
    const arma::fmat& all = stored(side);
    return {const_cast<float*>(all.memptr()), all.n_rows, rows(), false, true};
}

arma::fmat HeadCache::copied(Side side, std::size_t first, std::size_t count) const {
    return stored(side).cols(first, first + count - 1).t();
}

void HeadCache::reserve(std::size_t rows, std::size_t head_dim) {
    if (rows <= keys_.n_cols) return;
    const std::size_t capacity = std::max<std::size_t>(rows, 2 * keys_.n_cols);
    for (arma::fmat* side : {&keys_, &values_}) {
        arma::fmat grown(head_dim, capacity, arma::fill::none);
        if (!tokens_.empty()) grown.head_cols(tokens_.size()) = side->head_cols(tokens_.size());
        *side = std::move(grown);
    }
}

void HeadCache::append(const arma::fmat& keys, const arma::fmat& values, std::size_t first) {
    const std::size_t begin = rows();
    reserve(begin + keys.n_rows, keys.n_cols);
    for (std::size_t t = 0; t < keys.n_rows; ++t) tokens_.push_back(first + t);
    overwrite(Side::key, begin, keys);
    overwrite(Side::value, begin, values);
}

void HeadCache::overwrite(Side side, std::size_t first, const arma::fmat& rows) {
    (side == Side::key ? keys_ : values_).cols(first, first + rows.n_rows - 1) = rows.t();
}

void HeadCache::assign(const CachedHead& rows) {
    tokens_.clear();
    reserve(rows.tokens.size(), rows.keys.n_cols);
    tokens_ = rows.tokens;
    if (tokens_.empty()) return;
    overwrite(Side::key, 0, rows.keys);
    overwrite(Side::value, 0, rows.values);
}

}  // namespace spiked::sim
