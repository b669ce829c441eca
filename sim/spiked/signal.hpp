#pragma once
#include <armadillo>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/enum_names.hpp"
#include "core/text/registry.hpp"
#include "sim/random/address.hpp"
#include "sim/spiked/covariance.hpp"
#include "sim/spiked/entry_law.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::sim {

/// The unit of strengths: 1, the detection threshold of the noise, or sqrt(n), with which the fraction of a token's
/// energy that is signal stays fixed as n grows.
enum class StrengthUnit { absolute, threshold, sqrt_n };

/// A strength on the scale of singular values. Throws usage_error when it is negative or not finite.
[[nodiscard]] SignalStrength absolute_strength(double value, StrengthUnit unit, SignalStrength detection_threshold,
                                               std::size_t rows);

/// How the r singular vectors of one side of the signal are drawn. But for `scores` they are orthonormal. The laws are
///   haar           uniform under rotation;
///   qr:ENTRY       Q of the QR decomposition (diagonal of R positive) of a matrix with entries of that law (paper,
///                  assumption (v)); a matrix that is not of full rank is drawn again;
///   localised:J    vector i is +-J^(-1/2) on coordinates (i-1) J + 1 .. i J, with random signs; J = 1 gives e_i;
///   sparse:K       each vector is uniform on the sphere over K random coordinates, disjoint from those of the others;
///   eigen:row:INDEX, eigen:col:INDEX   eigenvectors INDEX, INDEX + 1, .. of the covariance of the same side, number 1
///                  of the largest eigenvalue: row for left vectors (of A), col for right ones (of B);
///   smooth         left vectors only: a slow wave over the tokens times a rotary one,
///                  cos(pi (i - 1 + a) (t - 1/2) / n + p) cos(10000^(-b) t + q) with a, b uniform on (0, 1) and p, q
///                  uniform phases, t = 1..n, then QR. The frequency of the slow wave grows with i, so few vectors are
///                  smooth and n of them span everything;
///   scores:ENTRY   left vectors only: independent entries of that law and variance 1/n, neither orthogonal nor of
///                  length 1: the scores of samples of a spiked covariance (Johnstone 2001). With white noise of
///                  variance 1/d the rows times sqrt(d) are samples of the covariance I + sum_i (d s_i^2 / n) v_i v_i^T
///                  for strengths s_i, and Gaussian scores those of Gaussian samples.
/// The first r vectors do not depend on the rank (up to rounding, and to redraws of qr).
class VectorLaw {
public:
    VectorLaw();  ///< haar

    /// Throws usage_error on an unknown name (the nearest is suggested), malformed parts, and a law of the other side.
    [[nodiscard]] static VectorLaw parse(std::string_view text, MatrixSide side);

    [[nodiscard]] const std::string& text() const { return text_; }  ///< as written
    /// Whether the squares of the entries are spread evenly over the coordinates of a large matrix.
    [[nodiscard]] bool spread_evenly() const;
    /// Whether vectors are orthonormal, as all but `scores` are.
    [[nodiscard]] bool orthonormal() const;

    /// Throws usage_error when `rank` such vectors do not fit into `size` coordinates: rank > size, rank J > size,
    /// rank K > size, INDEX + rank - 1 > size.
    void require_room(std::size_t size, std::size_t rank) const;

    /// size x rank columns, orthonormal but for `scores`, a pure function of the stream; `covariance` belongs to the
    /// same side and gives size. Throws like require_room, and input_error when 64 draws of qr:ENTRY had no full rank.
    /// Cost: one QR, or less.
    [[nodiscard]] arma::mat draw(const stream::Stream& stream, const Covariance& covariance, std::size_t rank) const;

    struct Kind;

private:
    friend struct SignalVectors parse_signal_vectors(std::string_view text);
    [[nodiscard]] static VectorLaw of_any_side(std::string_view text);

    const Kind* kind_;
    std::size_t number_ = 0;  ///< J, K, INDEX
    EntryLaw entries_;        ///< only for qr and scores
    std::string text_;
};

struct SignalVectors {
    VectorLaw left;
    VectorLaw right;
};

/// Parses one text for both sides, `vectors = ".."` of a study file. With a law of one side (eigen:row, eigen:col,
/// smooth) the other side is Haar. Study files that give left_vectors and right_vectors use VectorLaw::parse instead.
[[nodiscard]] SignalVectors parse_signal_vectors(std::string_view text);

[[nodiscard]] const std::vector<RegistryEntry>& vector_laws();

}  // namespace spiked::sim

template <>
struct spiked::EnumNames<spiked::sim::StrengthUnit> {
    static constexpr EnumName<spiked::sim::StrengthUnit> table[] = {{spiked::sim::StrengthUnit::threshold, "threshold"},
                                                                    {spiked::sim::StrengthUnit::absolute, "absolute"},
                                                                    {spiked::sim::StrengthUnit::sqrt_n, "sqrt_n"}};
};
