#pragma once
#include <numbers>
#include <optional>
#include <string_view>

#include "theory/quantization/lloyd_max.hpp"

namespace spiked::theory {

// The error of row quantizers. A row x of length d is rotated by a Haar matrix and scaled to z of length sqrt(d), whose
// coordinates have the law of lloyd_max_sphere(d, .) for every row x; c is the row of codebook levels. Errors are
// relative to |x|^2, inner-product errors to |q| |x|. Norms are assumed to be stored exactly (fp16 changes the squared
// error by less than 1e-7). Every function throws usage_error for NaN, infinity and values outside its stated range.

/// The errors of a codebook on a law of variance 1, which need not be the law it is designed for.
struct CodebookOnLaw {
    double distortion = 0.0;    ///< E[(z - c)^2] = 1 - 2 linear_gain + energy
    double linear_gain = 0.0;   ///< E[z c]; 1 - distortion when the levels are centroids of this law
    double energy = 0.0;        ///< E[c^2]; equal to linear_gain in that case
    double entropy_bits = 0.0;  ///< entropy of the bin index
    /// Variances and covariance of z c and c^2 after their regression on z^2: in a row of length d, whose squares sum
    /// to d, the means of z c and of c^2 fluctuate by these numbers over d, up to O(1/d^2).
    double gain_variance = 0.0;
    double energy_variance = 0.0;
    double gain_energy_covariance = 0.0;
};

/// The codebook on sqrt(dimension) times a coordinate of a uniform point of the sphere (density proportional to
/// (1 - x^2/dimension)^((dimension-3)/2); dimension 1 is the law of a sign). A value on a threshold takes the lower
/// bin. Levels need not be centroids or symmetric, and their number need not be a power of two. Method: tails of the
/// law in closed form, summed by parts. Accuracy: 1e-15 absolute where long double has 64 bits of mantissa. Cost: 3
/// microseconds per level. Throws usage_error for a codebook without levels, with non-finite levels, with thresholds
/// that do not increase or are not one fewer than the levels, and for dimension < 1.
[[nodiscard]] CodebookOnLaw codebook_on_sphere(const Codebook& codebook, int dimension);

/// Row quantizers with one codebook index per coordinate; they differ in the scale that multiplies the levels.
enum class RowQuantizerKind {
    tq_mse,   ///< scale 1, times the norm of the row (TurboQuant, Algorithm 1)
    tq_prod,  ///< tq_mse plus the signs of a Gaussian sketch of the residual (Algorithm 2); bits count the indices only
    eden,     ///< scale |z|^2 / <z, c>: <x, xhat> = |x|^2 for every row, hence unbiased (EDEN, ICML 2022)
    eden_mmse,  ///< scale <z, c> / |c|^2: least squares for every row
    eden_norm,  ///< scale |z| / |c|: |xhat| = |x| for every row
};
[[nodiscard]] std::string_view name_of(RowQuantizerKind kind);  ///< the name in options: `tq-mse`, `eden-norm`

/// The law of xhat given x, over the rotation (and the sketch): xhat = gain x + an error of uniform direction
/// orthogonal to x.
struct RowReconstruction {
    double scale = 1.0;          ///< scale of the levels in the limit of long rows; each row stores its own
    double gain = 1.0;           ///< E <x, xhat> / |x|^2; inner products are biased by gain - 1
    double gain_variance = 0.0;  ///< of <x, xhat> / |x|^2 from row to row
    double relative_mse = 0.0;   ///< E |x - xhat|^2 / |x|^2
};

/// The reconstruction of rows of length `dimension`; `codebook` is the codebook on the law of that sphere
/// (quantizers.md 1.1, 1.2). Exact for every dimension: relative_mse (the distortion) and gain of tq_mse; relative_mse
/// of tq_prod, distortion times pi/2 - 1/d; gain 1 of eden and tq_prod; gain_variance 0 of eden; 1 - relative_mse and 1
/// - relative_mse / 2 as gains of eden_mmse and eden_norm. Expanded to first order in 1/d: relative_mse of the three
/// eden scales, and every other gain_variance (tq_prod inherits that of tq_mse). In the limit of long rows the squared
/// errors are, for centroids with distortion D: D, pi/2 D, D / (1 - D), D, 2 - 2 sqrt(1 - D). The neglected terms are
/// O(1/d^2): for d >= 16 they were measured to be at most 5 distortion / d^2 of relative_mse and 3/d of the
/// gain_variance of tq_mse; for smaller d both are only rough. Throws usage_error for dimension < 1 and, in the eden
/// scales, for a codebook with no positive gain.
[[nodiscard]] RowReconstruction row_reconstruction(const CodebookOnLaw& codebook, int dimension, RowQuantizerKind kind);

/// The error <q, xhat> - <q, x> relative to |q| |x|.
struct InnerProductError {
    double bias = 0.0;
    double standard_deviation = 0.0;
};

/// The error for a query at a given cosine in [-1, 1] with the row: bias (gain - 1) cosine, variance
/// cosine^2 gain_variance + sine^2 (relative_mse - (1 - gain)^2 - gain_variance) / (d - 1). It is as exact as the
/// numbers of the row.
[[nodiscard]] InnerProductError inner_product_error(const RowReconstruction& row, int dimension, double cosine);

/// The error for a query of uniform direction, independent of the row: bias 0, variance exactly relative_mse / d, for
/// relative_mse >= 0.
[[nodiscard]] InnerProductError random_query_error(double relative_mse, int dimension);

/// The mean of |g| for a standard normal g. The mean of (1/m) <S y, sign(S r)> for a Gaussian S is this factor (and not
/// 2/pi) times |y| times the cosine of y and r.
inline constexpr double sign_correlation = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;

/// E sqrt(d) |x_1| on the unit sphere of R^d: sqrt(d/pi) Gamma(d/2) / Gamma((d+1)/2), from 1 (d = 1) to
/// sign_correlation. dimension >= 1. Accuracy: 1e-15.
[[nodiscard]] double mean_absolute_coordinate(int dimension);

enum class SketchRows {
    gaussian,    ///< independent N(0, 1) entries
    orthogonal,  ///< sqrt(d) times the rows of Haar matrices, with a new matrix after every d rows
};

/// The error of the estimate sqrt(pi/2) (|r| / m) <S y, sign(S r)> of <y, r> (QJL, arXiv 2406.03482;
/// quantizers.md 1.3).
struct SketchError {
    double mean_factor = 1.0;  ///< mean of the estimate divided by <y, r>
    double variance = 0.0;     ///< variance divided by |y|^2 |r|^2
};

/// The error of a sketch with m = `sketch_rows` >= 1 rows, for y and r at the given cosine in [-1, 1]. Gaussian rows:
/// unbiased, variance (pi/2 - cosine^2) / m. Orthogonal rows: factor sqrt(pi/2) mean_absolute_coordinate(d) = 1 +
/// 1/(4d)
/// + ..., and at cosine 0 and m = d a variance that is smaller by the factor pi/2 / (pi/2 - 1) = 2.75. Both are exact
/// for every dimension >= 1.
[[nodiscard]] SketchError qjl_error(SketchRows rows, int dimension, int sketch_rows, double cosine);

/// The expected squared error per entry of min-max quantization of `group` independent N(0, 1) entries: the step is
/// (max - min) / (2^bits - 1), entries are rounded to the nearest min + k step, and step and min are stored exactly
/// (KIVI; quantizers.md 1.4). The extremes have no error, and given them the other entries are independent truncated
/// normal; the error is integrated over the joint law of the extremes. It is also the error energy of many groups
/// divided by their energy. group is 1 to 2^20 (the result is 0 for 1 and 2), bits 1 to 8. Accuracy: 1e-10 relative.
/// Cost: 1 ms (2 bits) to 100 ms (8 bits).
[[nodiscard]] double min_max_relative_mse(int group, int bits);

/// The law for which the codebook of a quantizer is designed.
enum class CodebookLaw { sphere, normal };

/// A row quantizer for n x d blocks, applied to the block itself or to the residual of a low-rank part.
struct CompressorSetting {
    RowQuantizerKind quantizer = RowQuantizerKind::tq_mse;
    CodebookLaw codebook = CodebookLaw::sphere;
    int bits = 4;                           ///< bits of an index, 1 to 8, without the sign bit of tq_prod
    int rows = 128;                         ///< n
    int dimension = 128;                    ///< d, length of a row
    double residual_energy_fraction = 1.0;  ///< |R|_F^2 / |X|_F^2, in [0, 1]; 1 without a low-rank part
    int rank = 0;                           ///< rank of the low-rank part, at most min(n, d)
    int factor_bits = 4;                    ///< bits per entry of its singular vectors, 1 to 64
    int norm_bits = 16;                     ///< bits of every stored norm or scale and of every singular value, 1 to 64
};

/// Errors relative to |X|_F (block) or to |q| |x| (inner products), bits per entry of the block.
struct CompressorPrediction {
    double relative_l2 = 0.0;        ///< square root of the expected |X - Xhat|_F^2 / |X|_F^2
    InnerProductError random_query;  ///< for a query of uniform direction
    InnerProductError along_row;  ///< for a query along the row itself, as in the retrieval of a token by its own key
    double row_bits = 0.0;        ///< indices, signs and norms: b + 16/d, or b + 1 + 32/d for tq_prod
    double factor_bits = 0.0;     ///< low-rank part: rank (factor_bits (n + d) + norm_bits) / (n d)
    double bits_per_entry = 0.0;  ///< sum of these two; without rank field, header and padding
};

/// The predicted error and size of a compressor (quantizers.md 1.2, 2, 7). The residual is formed after the factors are
/// decoded, so the quantizer's error on it is the whole error: relative_l2 = sqrt(f * relative_mse) with f =
/// residual_energy_fraction, for every block, as exactly as row_reconstruction. Inner-product errors are for a row
/// whose own residual has the fraction f of its energy. along_row also assumes that the residual is orthogonal to the
/// low-rank part of its row, as for a plain truncated SVD (cosine of row and residual sqrt(f)); it is approximate for a
/// shrinker. Throws usage_error for a setting out of range. Cost: the codebook, at most 3 ms.
[[nodiscard]] CompressorPrediction predict_compressor(const CompressorSetting& setting);

}  // namespace spiked::theory
