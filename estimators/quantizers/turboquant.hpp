#pragma once
#include "estimators/coding/row_scale.hpp"
#include "estimators/quantizers/row_quantizer.hpp"
#include "estimators/quantizers/sign_sketch.hpp"

namespace spiked::estimators {

struct TurboquantOptions {
    RotationOptions rotation;
    CodebookKind codebook = CodebookKind::sphere;
    ScalarOptions norms;
    RowScale scale = RowScale::norm;                         ///< used by turboquant_mse
    ProjectionKind projection = SketchOptions{}.projection;  ///< used by turboquant_prod
};

/// TurboQuant and EDEN: one scale per row, random rotation, Lloyd-Max index of every coordinate.
///
/// Source: Zandieh et al., "TurboQuant", Algorithm 1; Vargaftik et al., "EDEN", 2022. Rows are m x d, any scale; bits =
/// index bits, 1..8. Stored: scale of each row (format of the options), then m d indices packed without gaps,
/// coordinate after coordinate. Zero rows are decoded as zero. Relative squared error of a Haar-rotated row with
/// RowScale::norm: the distortion of theory::lloyd_max_sphere(d, bits), for any row. Throws input_error for NaN,
/// infinity, or a scale beyond the format. Cost: one m x d x d product to encode and one to decode.
[[nodiscard]] RowQuantizer turboquant_mse(std::size_t dimension, unsigned bits, const TurboquantOptions& options);

/// TurboQuant for inner products: the same with RowScale::norm, then the norm of the residual and the signs of its
/// random projection to d dimensions; E x^ = x.
///
/// Source: the same, Algorithm 2, where B includes the sign; here `bits` are the index bits, and the sign is one more.
/// Stored after the data above: norm of each residual, d signs per row. Relative squared error: that of tq-mse times
/// pi/2 - 1/d with a Gaussian projection. Cost: twice that of tq-mse.
[[nodiscard]] RowQuantizer turboquant_prod(std::size_t dimension, unsigned bits, const TurboquantOptions& options);

}  // namespace spiked::estimators
