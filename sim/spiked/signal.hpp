#pragma once
#include <armadillo>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/catalogue.hpp"
#include "sim/random/address.hpp"
#include "sim/spiked/covariance.hpp"
#include "sim/spiked/entry_law.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::sim {

/// How strengths are written: as they are, in units of the detection threshold of their noise, or of sqrt(n), which
/// keeps the share of a token's energy that is signal fixed as n grows.
enum class StrengthUnit { absolute, threshold, sqrt_n };

/// `absolute`, `threshold` or `sqrt_n`; throws usage_error with the nearest.
[[nodiscard]] StrengthUnit parse_strength_unit(std::string_view text);

/// A strength on the scale of singular values. Throws usage_error on one that is negative or not finite.
[[nodiscard]] SignalStrength absolute_strength(double value, StrengthUnit unit, SignalStrength detection_threshold,
                                               std::size_t rows);

/// How the r singular vectors of one side of the signal are drawn; always orthonormal columns. Written
///   haar           uniform under rotation;
///   qr:ENTRY       QR, signs of R's diagonal positive, of a matrix with entries of that law (paper, assumption (v));
///                  given that it has full rank: a matrix without is drawn again;
///   localised:J    vector i is +-J^(-1/2) on coordinates (i-1) J + 1 .. i J, with random signs; J = 1: e_i;
///   sparse:K       K random coordinates each, disjoint, and uniform on the sphere over them;
///   eigen:row:INDEX, eigen:col:INDEX   eigenvectors INDEX, INDEX + 1, .. of the side's own covariance, 1 the largest
///                  eigenvalue: row for left vectors (of A), col for right ones (of B);
///   smooth         left vectors only: a slow wave over the tokens times a rotary one,
///                  cos(pi (i - 1 + a) (t - 1/2) / n + p) cos(10000^(-b) t + q) with a, b uniform on (0, 1) and p, q
///                  uniform phases, t = 1..n, then QR. i stays the scale of the slow wave, so few vectors are smooth
///                  and n of them are any basis.
/// Vectors 1..r are the same whatever the rank is (up to rounding, and to redraws of qr).
class VectorLaw {
public:
    VectorLaw();  ///< haar

    /// Throws usage_error on an unknown name (the nearest is suggested), malformed parts, and a law of the other side.
    [[nodiscard]] static VectorLaw parse(std::string_view text, MatrixSide side);

    [[nodiscard]] const std::string& text() const { return text_; }  ///< as typed

    /// Throws usage_error when `rank` such vectors do not fit into `size` coordinates: rank > size, rank J > size,
    /// rank K > size, INDEX + rank - 1 > size.
    void require_room(std::size_t size, std::size_t rank) const;

    /// size x rank orthonormal columns, a pure function of the stream; `covariance` is that of the side, of that size.
    /// Throws like require_room, and input_error when 64 draws of qr:ENTRY had no full rank. Cost: one QR, or less.
    [[nodiscard]] arma::mat draw(const stream::Stream& stream, const Covariance& covariance, std::size_t rank) const;

    struct Kind;

private:
    const Kind* kind_;
    std::size_t number_ = 0;  ///< J, K, INDEX
    EntryLaw entries_;        ///< of qr
    std::string text_;
};

struct SignalVectors {
    VectorLaw left;
    VectorLaw right;
};

/// One word for both sides, `vectors = ".."` of a study file. Laws of one side (eigen:row, eigen:col, smooth) leave the
/// other one Haar; with left_vectors and right_vectors each side is parsed by VectorLaw::parse.
[[nodiscard]] SignalVectors parse_signal_vectors(std::string_view text);

[[nodiscard]] const std::vector<CatalogueLine>& vector_laws();

}  // namespace spiked::sim
