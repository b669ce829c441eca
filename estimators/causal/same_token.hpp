#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "estimators/causal/causal_basis.hpp"

namespace spiked::estimators {

/// How the channels of a row are predicted, and the variance that this leaves of each.
struct ChannelPredictor {
    std::vector<double> before;    ///< factor of the row before
    std::vector<double> same;      ///< factor of the last row of the same token id; empty: not used
    std::vector<double> variance;  ///< above 0
    std::size_t tokens = 0;        ///< decoded rows that it was found on
};

/// The predictors of rows whose token id has occurred before, and of the others.
struct SameTokenPredictors {
    ChannelPredictor repeated, fresh;
};

/// The decoded rows of a sequence by their token ids. Memory: all of the rows, which later ones may refer to.
class SameTokens {
public:
    /// `sink`: whether row 0 stands for no token, so that none refers to it.
    SameTokens(std::size_t channels, bool sink) : channels_(channels), sink_(sink) {}

    /// The next rows, which are decoded in this basis, are those of these tokens.
    void begin(const ChannelBasis& basis, std::span<const std::int32_t> ids);
    /// The last row of the same token id as row i of those begun, in channels; null for none. `begun` has the channels
    /// of the rows before row i.
    [[nodiscard]] const double* last(std::size_t i, const RowMatrix& begun) const;
    /// The rows that were begun, decoded.
    void add(const RowMatrix& rows);

    /// For each channel the factors a and b of a y(t - 1) + b y(s) by least squares over the last 512 decoded rows,
    /// where s is the last row of the same token id; for rows without one, b = 0. To the sums of squares on the
    /// diagonal 4/n of them and .08 D^2 a row are added, and a and b are divided by |a| + |b| where that exceeds 1. The
    /// variance is the mean square of what is left, with the basis' own for 8 rows more, and .06 D^2. Where fewer than
    /// 16 rows are of one kind, its predictor is that of the basis. Without `before`, a = 0. Cost: 512 m^2
    /// multiplications.
    [[nodiscard]] SameTokenPredictors predictors(const ChannelBasis& basis, double step, bool before) const;
    [[nodiscard]] std::size_t bytes() const;  ///< in memory

private:
    [[nodiscard]] std::size_t tokens() const { return rows_.size() / channels_; }
    /// Rows from `first` on in the channels of a basis.
    [[nodiscard]] RowMatrix in_channels(const ChannelBasis& basis, const std::vector<std::size_t>& places) const;

    static constexpr std::size_t none = ~std::size_t{0};
    std::size_t channels_;
    bool sink_;
    std::vector<double> rows_;                  ///< decoded
    std::vector<std::size_t> last_;             ///< of each row, also those begun: the last one of its token id
    std::map<std::int32_t, std::size_t> seen_;  ///< the last row of each token id
    std::vector<std::size_t> projected_;        ///< of each row begun: its row in earlier_
    RowMatrix earlier_;                         ///< rows that those begun refer to, in channels
};

}  // namespace spiked::estimators
