#pragma once
#include <armadillo>
#include <string_view>
#include <vector>

#include "estimators/coding/byte_stream.hpp"

namespace spiked::estimators {

inline constexpr std::string_view outlier_advice = "keep no outliers (outliers=0) or scale the data";

/// The outermost entries of the lines (columns here) of a block, kept in fp16 beside what codes the others: of m
/// entries the round(m share / 2) smallest and as many largest. Stored a line after another, the smallest first: place
/// in ceil(log2 m) bits, value. Throws what half_of throws.
class VectorOutliers {
public:
    /// At either end of a line of that many entries.
    static std::size_t at_an_end(double share, std::size_t length);

    VectorOutliers(const arma::mat& lines, double share);

    /// Places of a line's outliers.
    [[nodiscard]] const std::vector<std::size_t>& places(std::size_t line) const { return places_[line]; }
    [[nodiscard]] double largest() const { return largest_; }
    void write(BitWriter& writer) const;
    /// Puts what write() wrote into the lines.
    static void read(BitReader& reader, double share, arma::mat& lines);

private:
    std::size_t length_;
    std::vector<std::vector<std::size_t>> places_;
    std::vector<std::vector<double>> values_;
    double largest_ = 0.0;
};

}  // namespace spiked::estimators
