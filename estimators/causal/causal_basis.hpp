#pragma once
#include <cstddef>
#include <vector>

#include "estimators/causal/ordered_products.hpp"

namespace spiked::estimators {

/// What decoded rows say about the next one: their mean, the eigenvectors of their covariance, and for each eigenvector
/// (a channel) the correlation of a row with the one before and the variance that this leaves.
struct ChannelBasis {
    std::vector<double> mean;         ///< m
    RowMatrix vectors;                ///< row k is channel k, by falling variance
    RowMatrix columns;                ///< its transpose
    std::vector<double> correlation;  ///< 0 to .95
    std::vector<double> variance;     ///< of what the prediction leaves, with a prior, above 0
    std::vector<double> last;         ///< the last decoded row in channels
    std::size_t tokens = 0;           ///< decoded rows that it was made from

    [[nodiscard]] std::size_t bytes() const;  ///< in memory
};

/// Sums over decoded rows, from which a basis follows with the same bits on every machine. Memory: 2 m^2 doubles.
class DecodedMoments {
public:
    /// `step` is the quantizer's step D: variances below D^2 are mostly its error.
    DecodedMoments(std::size_t channels, double step, bool rotate, bool correlate);

    /// Costs 2 m^2 multiplications a row.
    void add(const RowMatrix& rows);
    [[nodiscard]] std::size_t tokens() const { return tokens_; }
    /// The memory that its sums take.
    [[nodiscard]] std::size_t bytes() const;
    void set_step(double step) { step_ = step; }
    /// Before any row: the identity and a variance of 4 D^2. Without `rotate` the channels stay the columns; without
    /// `correlate`, and before 16 rows, the correlations are 0. Costs an eigendecomposition and m^3 multiplications.
    [[nodiscard]] ChannelBasis basis() const;

private:
    void correlate(ChannelBasis& basis, const std::vector<double>& eigenvalues) const;

    double step_;
    bool rotate_;
    bool correlate_;
    std::size_t tokens_ = 0;
    std::vector<double> sum_;
    std::vector<double> first_;
    std::vector<double> last_;
    RowMatrix products_;  ///< sum of x(t) x(t)'
    RowMatrix lagged_;    ///< sum of x(t) x(t - 1)'
};

}  // namespace spiked::estimators
