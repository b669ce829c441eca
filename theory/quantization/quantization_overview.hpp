#pragma once
#include <span>
#include <vector>

#include "theory/quantization/lloyd_max.hpp"
#include "theory/quantization/quantizer_errors.hpp"

namespace spiked::theory {

/// One row quantizer at one bit width for blocks of one size.
struct QuantizerOverview {
    RowQuantizerKind kind = RowQuantizerKind::tq_mse;
    RowReconstruction reconstruction;
    CompressorPrediction prediction;
};

/// Squared errors per unit variance at one bit width, and the row quantizers at this width.
struct WidthOverview {
    Codebook codebook;  ///< Lloyd-Max on the sphere
    double normal_distortion = 0.0;
    double uniform_distortion = 0.0;
    double min_max_distortion = 0.0;
    double shannon_distortion = 0.0;
    double entropy_coded_distortion = 0.0;
    std::vector<QuantizerOverview> quantizers;
};

/// The predictions of quantization theory for blocks of one size, for each bit width.
struct QuantizationOverview {
    static constexpr int min_max_group = 64;

    CompressorSetting setting;  ///< as given, but with the quantizer and bits of the last width
    std::vector<WidthOverview> widths;
    SketchError gaussian_sketch;    ///< QJL with one sketch row per entry, for a query orthogonal to the row
    SketchError orthogonal_sketch;  ///< the same with orthogonal sketch rows
};

/// Throws usage_error for a setting or width out of range. Cost: the codebooks, and 1 to 100 ms per width.
[[nodiscard]] QuantizationOverview quantization_overview(CompressorSetting setting, std::span<const int> widths);

}  // namespace spiked::theory
