#pragma once
#include <span>
#include <vector>

#include "theory/quantization/lloyd_max.hpp"
#include "theory/quantization/quantizer_errors.hpp"

namespace spiked::theory {

/// A row quantizer of one width on blocks of one size.
struct QuantizerOverview {
    RowQuantizerKind kind = RowQuantizerKind::tq_mse;
    RowReconstruction reconstruction;
    CompressorPrediction prediction;
};

/// Squared errors per unit of energy at one width, and what row quantizers make of them.
struct WidthOverview {
    Codebook codebook;  ///< Lloyd-Max on the sphere
    double normal_distortion = 0.0;
    double uniform_distortion = 0.0;
    double min_max_distortion = 0.0;
    double shannon_distortion = 0.0;
    double entropy_coded_distortion = 0.0;
    std::vector<QuantizerOverview> quantizers;
};

/// What quantization theory says about blocks of one size, width by width.
struct QuantizationOverview {
    static constexpr int min_max_group = 64;

    CompressorSetting setting;  ///< its quantizer and bits are those of the last width
    std::vector<WidthOverview> widths;
    SketchError gaussian_sketch;    ///< QJL with one sketch row an entry, the query across the row
    SketchError orthogonal_sketch;  ///< the same of orthogonal rows
};

/// Throws usage_error for a setting or width out of range. Cost: that of its codebooks, and 1 to 100 ms a width.
[[nodiscard]] QuantizationOverview quantization_overview(CompressorSetting setting, std::span<const int> widths);

}  // namespace spiked::theory
