#include "theory/quantization/quantization_overview.hpp"

#include "theory/quantization/rate_distortion.hpp"

namespace spiked::theory {

QuantizationOverview quantization_overview(CompressorSetting setting, std::span<const int> widths) {
    using Kind = RowQuantizerKind;
    QuantizationOverview overview;
    for (const int bits : widths) {
        setting.bits = bits;
        WidthOverview width;
        width.codebook = lloyd_max_sphere(setting.dimension, bits);
        width.normal_distortion = lloyd_max_normal(bits).distortion;
        width.uniform_distortion = uniform_quantizer_normal(bits).codebook.distortion;
        width.min_max_distortion = min_max_relative_mse(QuantizationOverview::min_max_group, bits);
        width.shannon_distortion = shannon_distortion(bits);
        width.entropy_coded_distortion = entropy_coded_normal_at_rate(bits).distortion;
        const auto on_law = codebook_on_sphere(width.codebook, setting.dimension);
        for (const Kind kind : {Kind::tq_mse, Kind::tq_prod, Kind::eden, Kind::eden_mmse, Kind::eden_norm}) {
            setting.quantizer = kind;
            width.quantizers.push_back(
                {kind, row_reconstruction(on_law, setting.dimension, kind), predict_compressor(setting)});
        }
        overview.widths.push_back(std::move(width));
    }
    overview.setting = setting;
    overview.gaussian_sketch = qjl_error(SketchRows::gaussian, setting.dimension, setting.dimension, 0.0);
    overview.orthogonal_sketch = qjl_error(SketchRows::orthogonal, setting.dimension, setting.dimension, 0.0);
    return overview;
}

}  // namespace spiked::theory
