#pragma once
#include <armadillo>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "estimators/coding/byte_stream.hpp"
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {

/// Rows of a sketch: independent N(0, 1) entries, or sqrt(d) times rows of independent Haar matrices, d at a time,
/// which make the sketch's error up to 2.8 times smaller.
using ProjectionKind = theory::SketchRows;

struct SketchOptions {
    ProjectionKind projection = ProjectionKind::gaussian;
    stream::StudySeed seed;
    std::uint64_t index = 0;  ///< which projection of the seed
    ScalarOptions norms;      ///< used by qjl
};

/// Quantized Johnson-Lindenstrauss: of a row r only |r| and the signs of its sketch S r are stored; it is decoded as
/// |r| factor S^T sign(S r), whose mean over sketches is r.
///
/// Source: Zandieh et al., "QJL", 2024. factor = sqrt(pi/2) / m for Gaussian sketches of m rows; for orthogonal ones
/// 1 / (m E sqrt(d) |u_1|), u uniform on the sphere. A sign is one bit: 1 for > 0.
class SignSketch {
public:
    SignSketch(const SketchOptions& options, std::size_t dimension, std::size_t sketch_rows);

    [[nodiscard]] std::size_t sketch_rows() const { return sketch_.n_cols; }
    /// factor S, m x d: the contribution of a positive sign of each sketch row when |r| = 1.
    [[nodiscard]] arma::mat directions() const { return factor_ * sketch_.t(); }
    /// Signs of the sketches of all rows, sketch row after sketch row.
    void write_signs(BitWriter& writer, const arma::mat& rows) const;
    void write_signs(BitWriter& writer, const arma::fmat& rows) const;
    /// Adds to every row the vector that its signs encode, with |r| = norms[row].
    void add_directions(BitReader& reader, const std::vector<double>& norms, arma::mat& rows) const;
    void add_directions(BitReader& reader, const std::vector<double>& norms, arma::fmat& rows) const;

private:
    arma::mat sketch_;  ///< d x m: S^T
    arma::fmat sketch_float_;
    double factor_;
};

/// The directions of the sketch that these options select, by its name in test vectors.
[[nodiscard]] std::map<std::string, arma::mat> sketch_matrix(const SketchOptions& options, std::size_t dimension,
                                                             std::size_t sketch_rows);

/// The sketch alone as a row quantizer: norm and bits * d signs per row. Relative squared error pi/2 - 1/d at one bit
/// with a Gaussian sketch: it is for inner products, not for reconstruction.
[[nodiscard]] RowQuantizer qjl(std::size_t dimension, unsigned bits, const SketchOptions& options);

}  // namespace spiked::estimators
