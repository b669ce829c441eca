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
    [[nodiscard]] const std::vector<double>& singular_values();
    /// The first `count` left and right vectors, with zeros where lines were stripped.
    [[nodiscard]] SingularVectors vectors(std::size_t count);
    /// The estimate of the signal: sum of shrunk value times left times right vector, in the shape of the whole block.
    [[nodiscard]] arma::mat denoised(const Shrinkage& shrinkage);

private:
    [[nodiscard]] bool complete() const { return rows_.n_elem == block_.n_rows && columns_.n_elem == block_.n_cols; }
    [[nodiscard]] arma::mat core() const;

    arma::mat block_;
    arma::uvec rows_;  ///< kept
    arma::uvec columns_;
    std::optional<std::vector<double>> values_;
    SingularVectors vectors_;
};

}  // namespace spiked::estimators
