#pragma once
#include <armadillo>
#include <optional>
#include <vector>

#include "estimators/decomposition.hpp"
#include "estimators/shrinkage.hpp"

namespace spiked::estimators {

/// A block with what several methods need of it, computed once and only when asked: singular values, leading vectors.
/// Exactly zero rows and columns are left out of the spectrum, because they would change the shape it is judged by.
class AnalysedBlock {
public:
    enum class EmptyLines { strip, keep };

    explicit AnalysedBlock(arma::mat block, EmptyLines empty_lines = EmptyLines::strip);

    [[nodiscard]] const arma::mat& block() const { return block_; }
    /// Shape of what was decomposed.
    [[nodiscard]] Shape shape() const { return {rows_.n_elem, columns_.n_elem}; }
    /// What was decomposed: the block without stripped lines.
    [[nodiscard]] arma::mat core() const;
    [[nodiscard]] const arma::uvec& kept_rows() const { return rows_; }
    [[nodiscard]] const arma::uvec& kept_columns() const { return columns_; }

    [[nodiscard]] const std::vector<double>& singular_values();
    /// The first `count` left and right vectors, with zeros where lines were stripped.
    [[nodiscard]] SingularVectors vectors(std::size_t count);
    /// Vectors of the core, with zeros where lines were stripped.
    [[nodiscard]] SingularVectors at_full_length(SingularVectors of_core) const;

    /// The estimate of the signal, in the shape of the whole block: Y V diag(shrunk / observed) V^T, or the same from
    /// the left where rows are fewer. Only the short side's vectors enter, and what is kept of a component is a share
    /// of the data itself, so it is as accurate at the smallest singular values.
    [[nodiscard]] arma::mat denoised(const Shrinkage& shrinkage);
    /// The block without it.
    [[nodiscard]] arma::mat residual(const Shrinkage& shrinkage);

private:
    [[nodiscard]] bool complete() const { return rows_.n_elem == block_.n_rows && columns_.n_elem == block_.n_cols; }

    arma::mat block_;
    arma::uvec rows_;  ///< kept
    arma::uvec columns_;
    std::optional<std::vector<double>> values_;
    SingularVectors vectors_;
};

}  // namespace spiked::estimators
