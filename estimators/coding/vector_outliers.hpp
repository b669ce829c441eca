#pragma once
#include <armadillo>
#include <string_view>
#include <vector>

#include "estimators/coding/byte_stream.hpp"

namespace spiked::estimators {

inline constexpr std::string_view outlier_advice = "keep no outliers (outliers=0) or scale the data";

/// The outliers of the vectors (columns here) of a block, which are stored in fp16 beside the code of the other
/// entries: of m entries the round(m fraction / 2) smallest and as many largest. The vectors are stored one after the
/// other, each with the smallest entries first: the index in ceil(log2 m) bits, then the value. Throws what fp16_bits
/// throws.
class VectorOutliers {
public:
    /// Number of outliers at either end of a vector of this length.
    static std::size_t count_per_end(double fraction, std::size_t length);

    VectorOutliers(const arma::mat& vectors, double fraction);

    /// Indices of the outliers of a vector.
    [[nodiscard]] const std::vector<std::size_t>& places(std::size_t vector) const { return places_[vector]; }
    [[nodiscard]] double largest() const { return largest_; }
    void write(BitWriter& writer) const;
    /// Reads outliers that write() wrote into the vectors.
    static void read(BitReader& reader, double fraction, arma::mat& vectors);

private:
    std::size_t length_;
    std::vector<std::vector<std::size_t>> places_;
    std::vector<std::vector<double>> values_;
    double largest_ = 0.0;
};

}  // namespace spiked::estimators
