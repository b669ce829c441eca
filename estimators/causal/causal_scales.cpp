#include "estimators/causal/causal_scales.hpp"

#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"

namespace spiked::estimators {
namespace {

constexpr double exponents_per_octave = 16.0;

std::int8_t nearest_exponent(double octaves) {
    return static_cast<std::int8_t>(std::clamp(std::nearbyint(exponents_per_octave * octaves), -128.0, 127.0));
}

double factor_of(std::int8_t exponent) { return std::exp2(exponent / exponents_per_octave); }

void require_pairs(std::size_t dimension) {
    if (dimension == 0 || dimension % 2 != 0)
        throw usage_error("rows of {} entries have no rotary pairs (an odd or zero number): give an even number",
                          dimension);
}

}  // namespace

std::vector<std::int8_t> query_exponents(const arma::mat& queries) {
    require_pairs(queries.n_cols);
    if (!queries.is_finite()) throw input_error("queries have entries that are not finite: remove or replace them");
    const arma::uword pairs = queries.n_cols / 2;
    const arma::rowvec squares = arma::mean(arma::square(queries), 0);
    arma::rowvec gains = 0.5 * (squares.head(pairs) + squares.tail(pairs));
    if (queries.n_rows == 0 || arma::mean(gains) == 0.0) return std::vector<std::int8_t>(pairs, 0);
    gains = arma::clamp(gains, 1e-3 * arma::mean(gains), arma::datum::inf);
    arma::rowvec octaves = 0.25 * arma::log2(gains);
    octaves -= arma::mean(octaves);
    std::vector<std::int8_t> exponents;
    for (const double octave : octaves) exponents.push_back(nearest_exponent(octave));
    return exponents;
}

CausalShape joined_shape(const JoinedHeads& heads) {
    if (heads.keys > 0) require_pairs(heads.dimension);
    const std::size_t pairs = heads.dimension / 2;
    CausalShape shape{(heads.keys + heads.values) * heads.dimension};
    for (std::size_t head = 0; head < heads.keys; ++head)
        for (std::size_t i = 0; i < heads.dimension; ++i)
            shape.scale_of.push_back(static_cast<std::uint16_t>(head * pairs + i % pairs));
    for (std::size_t head = 0; head < heads.values; ++head)
        shape.scale_of.insert(shape.scale_of.end(), heads.dimension,
                              static_cast<std::uint16_t>(heads.keys * pairs + head));
    return shape;
}

std::vector<std::int8_t> joined_exponents(const arma::mat& rows, const JoinedHeads& heads,
                                          std::span<const std::vector<std::int8_t>> weights) {
    const std::size_t dimension = heads.dimension;
    if (heads.keys > 0) require_pairs(dimension);
    if (rows.n_cols != (heads.keys + heads.values) * dimension || (!weights.empty() && weights.size() != heads.keys))
        throw precondition_error("{} columns and {} weights for {} heads of {}", rows.n_cols, weights.size(),
                                 heads.keys + heads.values, dimension);
    if (!rows.is_finite()) throw input_error("rows have entries that are not finite: remove or replace them");
    const arma::rowvec deviations =
        rows.n_rows > 1 ? arma::rowvec(arma::stddev(rows, 1, 0)) : arma::rowvec(rows.n_cols, arma::fill::ones);
    std::vector<std::int8_t> exponents;
    for (std::size_t head = 0; head < heads.keys + heads.values; ++head) {
        const bool keys = head < heads.keys;
        arma::rowvec spread = deviations.subvec(head * dimension, (head + 1) * dimension - 1);
        std::vector<std::int8_t> own(keys ? dimension / 2 : 1, 0);
        if (keys && !weights.empty()) own = weights[head];
        for (std::size_t i = 0; i < dimension; ++i) spread(i) *= factor_of(own[i % own.size()]);
        const double mean = arma::mean(spread);
        const double octaves = mean > 0.0 ? std::log2(mean) : 0.0;
        for (const std::int8_t exponent : own)
            exponents.push_back(nearest_exponent(exponent / exponents_per_octave - octaves));
    }
    return exponents;
}

}  // namespace spiked::estimators
