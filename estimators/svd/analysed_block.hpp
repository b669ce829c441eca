#pragma once
#include <armadillo>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/text/enum_names.hpp"
#include "estimators/svd/decomposition.hpp"
#include "estimators/svd/shape.hpp"

namespace spiked::estimators {

/// Precision of a decomposition. Singular values are returned in double either way; values of a float decomposition
/// within its rounding error of 0, long side times float epsilon times the largest value, become 0.
enum class Precision { float32, float64 };

/// A block with its singular values and leading vectors, which several methods need and which are computed once, when
/// they are first requested. Rows and columns that are exactly zero are left out of the spectrum, because they would
/// change the shape that the spectrum is judged by.
///
/// Blocks are decomposed by BatchDecomposition, those with a short side beyond 1024 one by one and in double. Objects
/// that come from the same call of as_batch share a workspace and must be used by one thread.
class AnalysedBlock {
public:
    enum class EmptyLines { strip, keep };

    /// A block of which a decomposition holds 1.1 to 2.5 times the memory beside it, see BatchDecomposition; `threads`
    /// as there.
    explicit AnalysedBlock(arma::mat block, EmptyLines empty_lines = EmptyLines::strip,
                           Precision precision = Precision::float64, std::size_t threads = 1);
    /// The same blocks with the same results, computed faster: all blocks of one shape are decomposed at once, when a
    /// result of one of them is first requested.
    [[nodiscard]] static std::vector<AnalysedBlock> as_batch(std::vector<arma::mat> blocks,
                                                             EmptyLines empty_lines = EmptyLines::strip,
                                                             Precision precision = Precision::float64);

    [[nodiscard]] const arma::mat& block() const { return block_; }
    /// Shape of the core.
    [[nodiscard]] Shape shape() const { return {rows_.n_elem, columns_.n_elem}; }
    /// The matrix that is decomposed: the block without its stripped rows and columns.
    [[nodiscard]] arma::mat core() const;
    [[nodiscard]] const arma::uvec& kept_rows() const { return rows_; }
    [[nodiscard]] const arma::uvec& kept_columns() const { return columns_; }

    [[nodiscard]] const std::vector<double>& singular_values();
    /// The first `count` left and right vectors, with zeros for stripped rows and columns.
    [[nodiscard]] SingularVectors vectors(std::size_t count);
    /// Extends vectors of the core by zeros for stripped rows and columns.
    [[nodiscard]] SingularVectors at_full_length(SingularVectors of_core) const;

    /// The estimate of the signal, in the shape of the whole block: Y V diag(shrunk / observed) V^T, or the same from
    /// the left where there are fewer rows than columns. `shrunk` replaces as many of the largest singular values; the
    /// others become 0. Only vectors of the short side are used, and the retained part of a component is a fraction of
    /// the data itself, so the estimate is equally accurate for the smallest singular values.
    [[nodiscard]] arma::mat denoised(std::span<const double> shrunk);
    /// The block minus this estimate.
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
    static void prepare_decompositions(std::vector<AnalysedBlock*> blocks, Precision precision, std::size_t threads);

    arma::mat block_;
    arma::uvec rows_;  ///< indices of the kept rows
    arma::uvec columns_;
    Place place_;
    std::optional<std::vector<double>> values_;
    SingularVectors vectors_;
};

/// The same estimate from leading vectors of the whole block's length that come from elsewhere, at least as many as
/// `shrunk`, with their values.
[[nodiscard]] arma::mat shrunk_block(const arma::mat& block, std::span<const double> observed,
                                     const SingularVectors& vectors, std::span<const double> shrunk);

}  // namespace spiked::estimators

template <>
struct spiked::EnumNames<spiked::estimators::Precision> {
    static constexpr EnumName<spiked::estimators::Precision> table[] = {
        {spiked::estimators::Precision::float64, "double"}, {spiked::estimators::Precision::float32, "float"}};
};
