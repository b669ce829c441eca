#pragma once
#include <armadillo>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "sim/random/address.hpp"

namespace spiked::estimators {

/// A random rotation R that costs d log d additions a vector instead of the d^2 products of a Haar one: `rounds` times
/// random signs, then the Walsh-Hadamard transform H (Sylvester's order) over sqrt(d),
///   R = d^(-rounds/2) H D_rounds .. H D_1.
/// One round maps a vector with one entry onto entries of one size, which a quantizer for spread-out entries codes up
/// to twice as badly; from two rounds on it is as good as Haar there (research note quantizers.md 1.10).
///
/// For other dimensions, `kac` (RaBitQ's FHT-Kac): four rounds of signs, the transform of the first 2^k entries, or of
/// the last 2^k in every second round, 2^k <= d being as large as fits, and a rotation by 45 degrees of entry i against
/// entry d - floor(d / 2) + i; four plain rounds where d is a power of two. Vectors with one entry cost a few percent
/// more than under Haar: the squared error of tq-mse at 2 bits is 2 % (d = 80) to 6 % (d = 96) larger.
///
/// Sign j of a round is bit j mod 32 of word (j mod 128) / 32 of element j / 128 and draw `round` of the stream: 1 is
/// minus.
class HadamardRotation {
public:
    /// Throws usage_error when the dimension is no power of two.
    HadamardRotation(const stream::Stream& stream, std::size_t dimension, unsigned rounds = 2);

    [[nodiscard]] static HadamardRotation kac(const stream::Stream& stream, std::size_t dimension);

    [[nodiscard]] std::size_t dimension() const { return dimension_; }

    /// Every row x of an m x dimension block becomes R x, or R^T x, in place. Bit-equal on every processor.
    /// About 0.7 ns an entry in float with AVX2 (two rounds, dimension 128).
    void rotate(arma::mat& rows) const;
    void rotate(arma::fmat& rows) const;
    void rotate_back(arma::mat& rows) const;
    void rotate_back(arma::fmat& rows) const;
    [[nodiscard]] arma::fmat rotated(const arma::fmat& rows) const;

    static constexpr std::size_t strip_rows = 32;
    /// Rows first, .., first + count - 1, column-major with strip_rows rows; those from `count` on hold any numbers.
    using TakeStrip = std::function<void(std::size_t first, std::size_t count, std::span<const float> strip)>;
    /// R x of every row, handed over while it lies in the first cache instead of being written.
    void rotate_strips(const arma::fmat& rows, const TakeStrip& take) const;

private:
    HadamardRotation(const stream::Stream& stream, std::size_t dimension, unsigned rounds, bool walks);

    std::size_t dimension_;
    unsigned rounds_;
    bool walks_;
    std::vector<float> signs_;  // round after round
};

}  // namespace spiked::estimators
