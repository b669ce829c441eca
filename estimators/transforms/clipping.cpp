#include "estimators/transforms/clipping.hpp"

#include "core/runtime/error.hpp"
#include "estimators/spectral/eoptshrink.hpp"

namespace spiked::estimators {

WhiteCoordinates clip_outliers(AnalysedBlock& block, double limit) {
    const arma::mat core = block.core();
    if (!core.is_finite())
        throw input_error("a block holds NaN or infinity (no deviation exists): clean the data first");
    WhiteCoordinates result{core, NoiseCovariance::identity(core.n_rows), NoiseCovariance::identity(core.n_cols), 1.0,
                            ""};
    const double unit = core.is_empty() ? 0.0 : arma::abs(core).max();
    const double rounding = static_cast<double>(block.shape().long_side()) * 1e-15;
    if (unit > 0.0) {
        const std::vector<double>& values = block.singular_values();
        if (values[values.size() / 2] <= rounding * values.front()) result.note = "no noise to clip";
    } else {
        result.note = "the block is zero or empty";
    }
    if (!result.note.empty()) return result;
    const arma::mat data = core / unit;
    arma::mat pilot(arma::size(data), arma::fill::zeros);
    for (int round = 0; round < 4; ++round) {
        arma::mat residual = data - pilot;
        const double deviation = 1.4826 * arma::median(arma::vec(arma::abs(arma::vectorise(residual))));
        if (!(deviation > rounding)) {
            result.note = "more than half of the block has no noise";
            return result;
        }
        const double most = limit * deviation;
        const double kept =
            static_cast<double>(arma::accu(arma::abs(residual) < most)) / static_cast<double>(residual.n_elem);
        residual = arma::clamp(residual, -most, most) / kept;
        AnalysedBlock clipped(pilot + residual, AnalysedBlock::EmptyLines::keep);
        result.block = clipped.block();
        if (round == 3) break;
        const Shrinkage signal = eoptshrink(clipped.singular_values(), clipped.shape(), EOptShrinkOptions::edge_fit());
        pilot = clipped.denoised(signal.shrunk);
    }
    result.unit = unit;
    return result;
}

}  // namespace spiked::estimators
