#pragma once
#include <numbers>
#include <optional>
#include <string_view>

#include "theory/quantization/lloyd_max.hpp"

namespace spiked::theory {

// What a row quantizer costs in accuracy. A row x of length d is rotated by a Haar matrix and scaled to z of length
// sqrt(d), whose coordinates have the law of lloyd_max_sphere(d, .) whatever the row was; c is the row of codebook
// levels. Errors are relative to |x|^2, inner-product errors to |q| |x|. Norms count as stored exactly (fp16 changes
// the squared error by less than 1e-7). Every function throws usage_error on NaN, infinity and values outside its
// stated range.

/// A codebook used on a law of variance 1, its own or another.
struct CodebookOnLaw {
    double distortion = 0.0;    ///< E[(z - c)^2] = 1 - 2 linear_gain + energy
    double linear_gain = 0.0;   ///< E[z c]; 1 - distortion when the levels are centroids of this law
    double energy = 0.0;        ///< E[c^2]; equal to linear_gain then
    double entropy_bits = 0.0;  ///< of the cell index
    /// Variances and covariance of z c and c^2 after their regression on z^2: in a row of length d, whose squares sum
    /// to d, the means of z c and of c^2 fluctuate by these numbers over d, up to O(1/d^2).
    double gain_variance = 0.0;
    double energy_variance = 0.0;
    double gain_energy_covariance = 0.0;
};

/// The codebook on sqrt(dimension) times a coordinate of a uniform point of the sphere (density proportional to
/// (1 - x^2/dimension)^((dimension-3)/2); dimension 1 is the law of a sign). A value on a threshold takes the lower
/// cell. Levels need be neither centroids nor symmetric, their number no power of two. Source: tails of the law in
/// closed form, summed by parts. Accuracy: 1e-15 absolute where long double has 64 bits of mantissa. Cost: 3
/// microseconds per level. Throws usage_error on a codebook without levels, with non-finite levels, with thresholds
/// that do not increase or are not one fewer than the levels, and on dimension < 1.
[[nodiscard]] CodebookOnLaw codebook_on_sphere(const Codebook& codebook, int dimension);

/// Row quantizers with one codebook index a coordinate; they differ in the number that multiplies the levels.
enum class RowQuantizerKind {
    tq_mse,   ///< the norm of the row: scale 1 (TurboQuant, Algorithm 1)
    tq_prod,  ///< tq_mse plus the signs of a Gaussian sketch of the residual (Algorithm 2); bits count the indices only
    eden,     ///< scale |z|^2 / <z, c>: <x, xhat> = |x|^2 for every row, hence unbiased (EDEN, ICML 2022)
    eden_mmse,  ///< scale <z, c> / |c|^2: least squares for every row
    eden_norm,  ///< scale |z| / |c|: |xhat| = |x| for every row
};
[[nodiscard]] std::string_view name_of(RowQuantizerKind kind);  ///< as typed: `tq-mse`, `eden-norm`

/// Law of xhat given x, over the rotation (and the sketch): xhat = gain x + an error of uniform direction across x.
struct RowReconstruction {
    double scale = 1.0;          ///< of the levels, in the limit of long rows; each row stores its own
    double gain = 1.0;           ///< E <x, xhat> / |x|^2; inner products are biased by gain - 1
    double gain_variance = 0.0;  ///< of <x, xhat> / |x|^2 from row to row
    double relative_mse = 0.0;   ///< E |x - xhat|^2 / |x|^2
};

/// Rows of length `dimension`, `codebook` being the codebook on that sphere's law (quantizers.md 1.1, 1.2).
/// Exact for every dimension: relative_mse (the distortion) and gain of tq_mse; relative_mse of tq_prod, distortion
/// times pi/2 - 1/d; gain 1 of eden and tq_prod; gain_variance 0 of eden; 1 - relative_mse and 1 - relative_mse / 2 as
/// gains of eden_mmse and eden_norm. Expanded to first order in 1/d: relative_mse of the three eden scales, and
/// every other gain_variance (tq_prod inherits that of tq_mse). In the limit of long rows the squared errors are, for
/// centroids with distortion D: D, pi/2 D, D / (1 - D), D, 2 - 2 sqrt(1 - D). Left out is O(1/d^2): measured, at most
/// 5 distortion / d^2 of relative_mse from d = 16 on and 3/d of the gain_variance of tq_mse; below, take both as rough.
/// Throws usage_error for dimension < 1 and, in the eden scales, for a codebook with no positive gain.
[[nodiscard]] RowReconstruction row_reconstruction(const CodebookOnLaw& codebook, int dimension, RowQuantizerKind kind);

/// Error <q, xhat> - <q, x> over |q| |x|.
struct InnerProductError {
    double bias = 0.0;
    double standard_deviation = 0.0;
};

/// For a query whose cosine with the row is given, in [-1, 1]: bias (gain - 1) cosine, variance cosine^2 gain_variance
/// + sine^2 (relative_mse - (1 - gain)^2 - gain_variance) / (d - 1). As exact as the numbers of the row.
[[nodiscard]] InnerProductError inner_product_error(const RowReconstruction& row, int dimension, double cosine);

/// For a query of uniform direction, independent of the row: bias 0, variance exactly relative_mse / d.
/// relative_mse >= 0.
[[nodiscard]] InnerProductError random_query_error(double relative_mse, int dimension);

/// Mean of |g| for a standard normal g: what (1/m) <S y, sign(S r)> with Gaussian S says of |y| times the cosine. Not
/// 2/pi.
inline constexpr double sign_correlation = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;

/// E sqrt(d) |x_1| on the unit sphere of R^d: sqrt(d/pi) Gamma(d/2) / Gamma((d+1)/2), from 1 (d = 1) to
/// sign_correlation. dimension >= 1. Accuracy: 1e-15.
[[nodiscard]] double mean_absolute_coordinate(int dimension);

enum class SketchRows {
    gaussian,    ///< independent N(0, 1) entries
    orthogonal,  ///< sqrt(d) times rows of Haar matrices: a new matrix after every d rows
};

/// Estimate sqrt(pi/2) (|r| / m) <S y, sign(S r)> of <y, r> (QJL, arXiv 2406.03482; quantizers.md 1.3).
struct SketchError {
    double mean_factor = 1.0;  ///< mean of the estimate over <y, r>
    double variance = 0.0;     ///< over |y|^2 |r|^2
};

/// Sketch of `sketch_rows` >= 1 rows, y and r at the given cosine in [-1, 1]. Gaussian rows: unbiased, variance
/// (pi/2 - cosine^2) / m. Orthogonal rows: factor sqrt(pi/2) mean_absolute_coordinate(d) = 1 + 1/(4d) + ..., variance
/// at cosine 0 and m = d smaller by pi/2 / (pi/2 - 1) = 2.75. Both exact for every dimension >= 1.
[[nodiscard]] SketchError qjl_error(SketchRows rows, int dimension, int sketch_rows, double cosine);

/// Expected squared error per entry of min-max quantization of `group` independent N(0, 1) entries: step =
/// (max - min) / (2^bits - 1), rounding to the nearest min + k step, step and min stored exactly (KIVI; quantizers.md
/// 1.4). Extremes are exact, the other entries given them are independent truncated normal; integrated over the joint
/// law of the extremes. Also the mean over many groups of error energy over their energy. group 1 to 2^20 (0 for 1 and
/// 2), bits 1 to 8. Accuracy: 1e-10 relative. Cost: 1 ms (2 bits) to 100 ms (8 bits).
[[nodiscard]] double min_max_relative_mse(int group, int bits);

/// Which codebook a quantizer applies to rotated coordinates.
enum class CodebookLaw { sphere, normal };

/// A row quantizer, alone or behind a low-rank part, on n x d blocks.
struct CompressorSetting {
    RowQuantizerKind quantizer = RowQuantizerKind::tq_mse;
    CodebookLaw codebook = CodebookLaw::sphere;
    int bits = 4;         ///< of an index, 1 to 8; the sign of tq_prod is one more
    int rows = 128;       ///< n
    int dimension = 128;  ///< d, length of a row
    double residual_energy_fraction =
        1.0;              ///< |R|_F^2 / |X|_F^2, in [0, 1]; 1 when nothing stands before the quantizer
    int rank = 0;         ///< of the low-rank part, at most min(n, d)
    int factor_bits = 4;  ///< per entry of its singular vectors, 1 to 64
    int norm_bits = 16;   ///< of every stored norm or scale and of every singular value, 1 to 64
};

/// Errors relative to |X|_F (block) or to |q| |x| (inner products), bits per entry of the block.
struct CompressorPrediction {
    double relative_l2 = 0.0;        ///< square root of the expected |X - Xhat|_F^2 / |X|_F^2
    InnerProductError random_query;  ///< query of uniform direction
    InnerProductError along_row;     ///< query along the row itself, for the retrieval of a token by its own key
    double row_bits = 0.0;           ///< indices, signs and norms: b + 16/d, or b + 1 + 32/d for tq_prod
    double factor_bits = 0.0;        ///< of the low-rank part: rank (factor_bits (n + d) + norm_bits) / (n d)
    double bits_per_entry = 0.0;     ///< their sum; rank field, header and padding are not in it
};

/// Predicted error and size of a compressor (quantizers.md 1.2, 2, 7). The residual is formed after the factors are
/// decoded, so the quantizer's error on it is the whole error: relative_l2 = sqrt(share * relative_mse) exactly as far
/// as row_reconstruction is exact, whatever the block. Inner-product errors are for a row whose own residual has the
/// share of the block; along_row also takes the residual as orthogonal to the low-rank part of its row, as behind a
/// plain truncated SVD (cosine of row and residual = sqrt(share)), and is approximate behind a shrinker. Throws
/// usage_error for a setting out of range. Cost: the codebook, at most 3 ms.
[[nodiscard]] CompressorPrediction predict_compressor(const CompressorSetting& setting);

}  // namespace spiked::theory
