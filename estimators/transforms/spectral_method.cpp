#include "estimators/transforms/spectral_method.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <span>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"

namespace spiked::estimators {
namespace {

/// Orthonormal factors of left diag(values) right^T for any left and right.
LowRank orthonormal(const arma::mat& left, const arma::vec& values, const arma::mat& right) {
    if (values.is_empty()) return {left, values, right};
    arma::mat q_left, r_left, q_right, r_right, u, v;
    arma::vec s;
    const double unit = values.max();
    if (unit == 0.0) return {arma::orth(left), values, arma::orth(right)};
    if (!arma::qr_econ(q_left, r_left, left) || !arma::qr_econ(q_right, r_right, right) ||
        !arma::svd(u, s, v, arma::mat(r_left * arma::diagmat(values / unit) * r_right.t())))
        throw input_error("the estimate cannot be decomposed (LAPACK did not converge): check the block's values");
    return {q_left * u, s * unit, q_right * v};
}

SpectralMethod::Factors through(std::span<const Transform> transforms, const SpectralEstimator& estimator,
                                AnalysedBlock& block) {
    if (transforms.empty()) {
        Shrinkage shrinkage = estimator.of(block);
        SingularVectors vectors = block.vectors(shrinkage.rank);
        LowRank signal{std::move(vectors.left), arma::vec(shrinkage.shrunk), std::move(vectors.right)};
        return {std::move(shrinkage), std::move(signal)};
    }
    const Transform& outer = transforms.front();
    WhiteCoordinates white = outer.enter(block);
    AnalysedBlock inner_block(std::move(white.block), AnalysedBlock::EmptyLines::keep);
    const SpectralMethod::Factors inner = through(transforms.subspan(1), estimator, inner_block);
    LowRank signal = orthonormal(white.left.root_times(inner.signal.left), inner.signal.values * white.unit,
                                 white.right.root_times(inner.signal.right));
    SingularVectors whole = block.at_full_length({std::move(signal.left), std::move(signal.right)});
    signal.left = std::move(whole.left);
    signal.right = std::move(whole.right);

    Shrinkage shrinkage;
    shrinkage.rank = inner.shrinkage.rank;
    shrinkage.shrunk.assign(signal.values.begin(), signal.values.end());
    shrinkage.strengths.assign(shrinkage.rank, std::numeric_limits<double>::quiet_NaN());
    shrinkage.overlap_left = shrinkage.overlap_right = shrinkage.strengths;
    shrinkage.note = "strengths and overlaps belong to the coordinates of " + outer.name;
    if (inner.shrinkage.bulk_edge)
        shrinkage.note +=
            fmt::format(", where the bulk edge is at singular value {:.6g}", root(*inner.shrinkage.bulk_edge).value);
    for (const auto& note : {white.note, inner.shrinkage.note})
        if (!note.empty()) shrinkage.note += "; " + note;
    return {std::move(shrinkage), std::move(signal)};
}

}  // namespace

void SpectralMethod::check_room(std::size_t rows, std::size_t columns) const {
    if (estimator.least_side > 0 && std::min(rows, columns) == 0)
        throw usage_error(
            "\"{}\" is not possible for data of zeros alone (it needs {} on the shorter side): check them", name,
            estimator.least_side);
    if (estimator.least_side > std::min(rows, columns))
        throw usage_error(
            "\"{}\" is not possible for a block of {} x {} (it needs {} on the shorter side): lower the rank", name,
            rows, columns, estimator.least_side);
}

Shrinkage SpectralMethod::estimate(AnalysedBlock& block) const {
    if (transforms.empty()) return estimator.of(block);
    return through(transforms, estimator, block).shrinkage;
}

SpectralMethod::Factors SpectralMethod::factors(AnalysedBlock& block) const {
    return through(transforms, estimator, block);
}

SpectralMethod::Applied SpectralMethod::apply(AnalysedBlock& block) const {
    if (transforms.empty()) {
        Shrinkage shrinkage = estimate(block);
        arma::mat signal = block.denoised(shrinkage.shrunk);
        return {std::move(shrinkage), std::move(signal)};
    }
    Factors found = factors(block);
    return {std::move(found.shrinkage), found.signal.matrix()};
}

bool SpectralMethod::takes_noise_law() const {
    return outermost ? outermost->entry().takes_noise_law : spec.entry().takes_noise_law;
}

SpectralMethod SpectralMethod::knowing(const KnownNoise& noise) const {
    SpectralMethod method = *this;
    KnownLaw law;
    if (outermost) {
        method.transforms.front() = outermost->make(noise);
        if (transforms.size() == 1 && method.transforms.front().exact)
            law.row = law.column = theory::identity_spectrum();
    } else {
        if (noise.row) law.row = noise.row->spectrum();
        if (noise.column) law.column = noise.column->spectrum();
    }
    method.estimator = spec.make(loss, law);
    return method;
}

SpectralMethod spectral_method(std::string_view text, theory::Loss loss) {
    SpectralMethod method;
    method.name = text;
    method.loss = loss;
    std::vector<std::string> parts = split(text, '+');
    if (parts.size() > most_transforms + 1)
        throw usage_error("an estimator with {} transforms (at most {} are applied): leave some out", parts.size() - 1,
                          most_transforms);
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        TransformSpec spec = transform_spec(parts[i]);
        method.transforms.push_back(spec.make());
        if (i == 0) method.outermost = std::move(spec);
    }
    if (is_transform(parts.back()))
        throw usage_error("\"{}\" lacks an estimator after its transform: write {}+gd-shrink", text, text);
    method.spec = spectral_spec(parts.back());
    method.estimator = method.spec.make(loss);
    return method;
}

std::string users_of_noise_law() {
    std::vector<std::string> names;
    for (const auto& entry : spectral_estimators())
        if (entry.takes_noise_law) names.push_back(entry.name);
    for (const auto& entry : transforms())
        if (entry.takes_noise_law) names.push_back(entry.name + "+NAME");
    return fmt::format("{}", fmt::join(names, " and "));
}

}  // namespace spiked::estimators
