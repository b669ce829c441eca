#pragma once
#include <armadillo>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "estimators/svd/decomposition.hpp"
#include "estimators/svd/shape.hpp"

namespace spiked::estimators {

/// What blocks are decomposed in. Singular values come in double either way; those of float within its rounding of 0,
/// long side times epsilon of the largest, are 0.
enum class Precision { float32, float64 };
[[nodiscard]] std::string_view name_of(Precision precision);  ///< float, double

/// A block with what several methods need of it, computed once and only when asked: singular values, leading vectors.
/// Exactly zero rows and columns are left out of the spectrum, because they would change the shape it is judged by.
///
/// Decomposed by BatchDecomposition up to a short side of 1024, beyond it by LAPACK in double. Objects that were made
/// together share one workspace: they are for one thread.
class AnalysedBlock {
public:
    enum class EmptyLines { strip, keep };

    explicit AnalysedBlock(arma::mat block, EmptyLines empty_lines = EmptyLines::strip,
                           Precision precision = Precision::float64);
    /// The same blocks, the same numbers, found faster: those of one shape are decomposed at once, when the first of
    /// them is asked.
    [[nodiscard]] static std::vector<AnalysedBlock> together(std::vector<arma::mat> blocks,
                                                             EmptyLines empty_lines = EmptyLines::strip,
                                                             Precision precision = Precision::float64);

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
    /// the left where rows are fewer. `shrunk` replaces as many of the largest singular values, the others become 0.
    /// Only the short side's vectors enter, and what is kept of a component is a share of the data itself, so it is as
    /// accurate at the smallest singular values.
    [[nodiscard]] arma::mat denoised(std::span<const double> shrunk);
    /// The block without it.
    [[nodiscard]] arma::mat residual(std::span<const double> shrunk);

private:
    [[nodiscard]] bool complete() const { return rows_.n_elem == block_.n_rows && columns_.n_elem == block_.n_cols; }

    class Decomposition;
    struct Place {
        std::shared_ptr<Decomposition> in;
        std::size_t at = 0;
    };
    struct Unplaced {};
    AnalysedBlock(Unplaced, arma::mat block, EmptyLines empty_lines);
    static void decompose_together(std::vector<AnalysedBlock*> blocks, Precision precision);

    arma::mat block_;
    arma::uvec rows_;  ///< kept
    arma::uvec columns_;
    Place place_;
    std::optional<std::vector<double>> values_;
    SingularVectors vectors_;
};

}  // namespace spiked::estimators
