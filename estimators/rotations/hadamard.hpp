#pragma once
#include <armadillo>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "sim/random/address.hpp"

namespace spiked::estimators {

/// A random rotation R that costs d log d additions per vector instead of the d^2 products of a Haar rotation: `rounds`
/// times random signs, then the Walsh-Hadamard transform H (Sylvester's order) over sqrt(d),
///
///     R = d^(-rounds/2) H D_rounds .. H D_1.
///
/// One round maps a vector with a single nonzero entry to entries of equal magnitude, for which the error of a
/// quantizer designed for spread-out entries is up to twice as large; with two or more rounds it is as good as Haar
/// there (research note quantizers.md 1.10).
///
/// For other dimensions, `kac` (RaBitQ's FHT-Kac) has four rounds of signs, the transform of the first 2^k entries (of
/// the last 2^k in every second round), where 2^k <= d is as large as possible, and a rotation by 45 degrees of entry i
/// against entry d - floor(d / 2) + i. Where d is a power of two it has four plain rounds. Errors of vectors with a
/// single nonzero entry are a few percent larger than under Haar: the squared error of tq-mse at 2 bits is 2 % (d = 80)
/// to 6 % (d = 96) larger.
///
/// Sign j of a round is bit j mod 32 of word (j mod 128) / 32 of element j / 128 and draw `round` of the stream: 1 is
/// minus.
class HadamardRotation {
public:
    /// Throws usage_error when the dimension is not a power of two.
    HadamardRotation(const stream::Stream& stream, std::size_t dimension, unsigned rounds = 2);

    [[nodiscard]] static HadamardRotation kac(const stream::Stream& stream, std::size_t dimension);

    [[nodiscard]] std::size_t dimension() const { return dimension_; }

    /// Every row x of an m x dimension block becomes R x, or R^T x, in place. The result is bit-identical on every
    /// processor. Costs about 0.7 ns per entry in float with AVX2 (two rounds, dimension 128).
    void rotate(arma::mat& rows) const;
    void rotate(arma::fmat& rows) const;
    void rotate_back(arma::mat& rows) const;
    void rotate_back(arma::fmat& rows) const;
    [[nodiscard]] arma::fmat rotated(const arma::fmat& rows) const;

    static constexpr std::size_t strip_rows = 32;
    /// Gets rows first, .., first + count - 1, column-major with strip_rows rows; rows from `count` on hold arbitrary
    /// numbers.
    using TakeStrip = std::function<void(std::size_t first, std::size_t count, std::span<const float> strip)>;
    /// Computes R x of every row and passes it to `take` while it is in the first cache, instead of writing it.
    void rotate_strips(const arma::fmat& rows, const TakeStrip& take) const;

private:
    HadamardRotation(const stream::Stream& stream, std::size_t dimension, unsigned rounds, bool walks);

    std::size_t dimension_;
    unsigned rounds_;
    bool walks_;
    std::vector<float> signs_;  // the signs of round 1, then those of round 2, and so on
};

}  // namespace spiked::estimators
