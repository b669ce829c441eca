#pragma once
#include <armadillo>
#include <cstddef>
#include <vector>

#include "sim/llama/llama.hpp"

namespace spiked::sim {

/// The cache of one kv head, to which rows are appended. A row is a column of the storage, head_dim x capacity, so rows
/// that follow each other are contiguous and read without a copy. The storage grows to twice its size at least, so a
/// row is copied about once however many are appended.
class HeadCache {
public:
    [[nodiscard]] std::size_t rows() const { return tokens_.size(); }
    /// The token of each row, ascending.
    [[nodiscard]] const std::vector<std::size_t>& tokens() const { return tokens_; }

    /// The keys or values of all rows, head_dim x rows: a view that is valid until the next change.
    [[nodiscard]] arma::fmat view(Side side) const;
    /// A copy of `count` rows from row `first` on, count x head_dim.
    [[nodiscard]] arma::fmat copied(Side side, std::size_t first, std::size_t count) const;

    /// Makes room for this many rows in all.
    void reserve(std::size_t rows, std::size_t head_dim);
    /// Appends the rows of tokens `first`, `first` + 1, ..., each tokens x head_dim.
    void append(const arma::fmat& keys, const arma::fmat& values, std::size_t first);
    /// Writes rows x head_dim over the rows from row `first` on.
    void overwrite(Side side, std::size_t first, const arma::fmat& rows);
    /// Replaces all rows.
    void assign(const CachedHead& rows);

private:
    [[nodiscard]] const arma::fmat& stored(Side side) const { return side == Side::key ? keys_ : values_; }

    arma::fmat keys_, values_;  ///< head_dim x capacity
    std::vector<std::size_t> tokens_;
};

}  // namespace spiked::sim
