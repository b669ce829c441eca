#include "theory/quantization/quantizer_errors.hpp"

#include <algorithm>
#include <array>
#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/runtime/error.hpp"

namespace spiked::theory {
namespace {

using Real = long double;

void require_dimension(int dimension) {
    if (dimension < 1)
        throw usage_error("row of dimension {} is not usable (a vector has at least one coordinate): give d >= 1",
                          dimension);
}

void require_cosine(double cosine) {
    if (!(cosine >= -1.0 && cosine <= 1.0))
        throw usage_error("cosine {} is impossible (it lies between -1 and 1): check the query", cosine);
}

void require_bits(int bits, const char* what) {
    if (bits < 1 || bits > 8)
        throw usage_error("{} of {} bits is not available (1 to 8 are): choose one of them", what, bits);
}

void require_stored_bits(int bits, const char* what) {
    if (bits < 1 || bits > 64)
        throw usage_error("{} of {} bits is not available (1 to 64 are): choose one of them", what, bits);
}

void require_codebook(const Codebook& codebook) {
    const auto finite = [](double value) { return std::isfinite(value); };
    if (codebook.levels.empty() || !std::all_of(codebook.levels.begin(), codebook.levels.end(), finite))
        throw usage_error("codebook of {} levels is not usable (it needs at least one, all finite): check its levels",
                          codebook.levels.size());
    if (codebook.thresholds.size() + 1 != codebook.levels.size())
        throw usage_error(
            "codebook with {} levels and {} thresholds is not usable (there must be one threshold fewer than levels): "
            "give {}",
            codebook.levels.size(), codebook.thresholds.size(), codebook.levels.size() - 1);
    const auto& thresholds = codebook.thresholds;
    for (std::size_t i = 0; i < thresholds.size(); ++i)
        if (!std::isfinite(thresholds[i]) || (i > 0 && !(thresholds[i] > thresholds[i - 1])))
            throw usage_error("threshold {} of the codebook is {} (thresholds are finite and increase): sort them", i,
                              thresholds[i]);
}

/// Integrals of z^k over the tail of the law beyond t >= 0, k = 0..3.
struct Tail {
    std::array<Real, 4> power{};
};

class SphereTails {
public:
    explicit SphereTails(int dimension)
        : dimension_(dimension),
          peak_(1.0L / (boost::math::tgamma_delta_ratio((dimension_ - 1.0L) / 2.0L, 0.5L) *
                        std::sqrt(std::numbers::pi_v<Real> * dimension_))) {}

    [[nodiscard]] Tail beyond(Real t) const {
        const Real square = t * t / dimension_;
        if (square >= 1.0L) return {};
        const Real other = (dimension_ - 1.0L) / 2.0L;
        const Real odd = peak_ * dimension_ / (dimension_ - 1.0L) * std::exp(other * std::log1p(-square));
        return {{boost::math::ibetac(0.5L, other, square) / 2.0L, odd, boost::math::ibetac(1.5L, other, square) / 2.0L,
                 odd * (dimension_ / (dimension_ + 1.0L)) * (2.0L + (dimension_ - 1.0L) * square)}};
    }
    [[nodiscard]] Real variance_of_square() const { return 2.0L * (dimension_ - 1.0L) / (dimension_ + 2.0L); }

private:
    Real dimension_;
    Real peak_;
};

/// The law of dimension 1: atoms at -1 and 1 of mass 1/2 each.
class SignTails {
public:
    [[nodiscard]] Tail beyond(Real t) const {
        if (t >= 1.0L) return {};
        return {{0.5L, 0.5L, 0.5L, 0.5L}};
    }
    [[nodiscard]] Real variance_of_square() const { return 0.0L; }
};

template <class Tails>
CodebookOnLaw codebook_on(const Codebook& codebook, const Tails& tails) {
    require_codebook(codebook);
    const auto& levels = codebook.levels;
    // E[z^j c^k] is summed by parts for odd j, since levels change only at thresholds and the tail integrals are even
    // functions. For even j it is summed over bins, each as a difference of tails on its own side of zero.
    std::vector<Tail> tail;
    tail.reserve(codebook.thresholds.size());
    for (const double threshold : codebook.thresholds)
        tail.push_back(tails.beyond(std::abs(static_cast<Real>(threshold))));

    Real gain = 0.0L, gain_cube = 0.0L, cubed_gain = 0.0L;  // E[z c], E[z c^3], E[z^3 c]
    for (std::size_t i = 0; i < tail.size(); ++i) {
        const Real low = levels[i];
        const Real high = levels[i + 1];
        const Real rise = high - low;
        gain += rise * tail[i].power[1];
        gain_cube += rise * (high * high + high * low + low * low) * tail[i].power[1];
        cubed_gain += rise * tail[i].power[3];
    }
    const auto in_bin = [&](std::size_t bin, std::size_t power) -> Real {
        const bool first = bin == 0;
        const bool last = bin == tail.size();
        const bool starts_low = first || codebook.thresholds[bin - 1] < 0.0;
        const bool ends_high = last || codebook.thresholds[bin] >= 0.0;
        const Real before = first ? 0.0L : tail[bin - 1].power[power];
        const Real after = last ? 0.0L : tail[bin].power[power];
        if (starts_low && ends_high) return 1.0L - before - after;
        return starts_low ? after - before : before - after;
    };
    Real energy = 0.0L, fourth = 0.0L, mixed = 0.0L, entropy = 0.0L;  // E[c^2], E[c^4], E[z^2 c^2]
    for (std::size_t bin = 0; bin < levels.size(); ++bin) {
        const Real square = static_cast<Real>(levels[bin]) * levels[bin];
        const Real mass = in_bin(bin, 0);
        energy += square * mass;
        fourth += square * square * mass;
        mixed += square * in_bin(bin, 2);
        if (mass > 0.0L) entropy -= mass * std::log2(mass);
    }

    const Real square_variance = tails.variance_of_square();
    const Real gain_slope = cubed_gain - gain;  // covariance of z c with z^2
    const Real energy_slope = mixed - energy;   // covariance of c^2 with z^2
    const auto residual = [&](Real covariance, Real first, Real second) {
        return static_cast<double>(square_variance > 0.0L ? covariance - first * second / square_variance : covariance);
    };
    CodebookOnLaw result;
    result.distortion = static_cast<double>(std::max(0.0L, 1.0L - 2.0L * gain + energy));
    result.linear_gain = static_cast<double>(gain);
    result.energy = static_cast<double>(energy);
    result.entropy_bits = static_cast<double>(std::max(0.0L, entropy));
    result.gain_variance = std::max(0.0, residual(mixed - gain * gain, gain_slope, gain_slope));
    result.energy_variance = std::max(0.0, residual(fourth - energy * energy, energy_slope, energy_slope));
    result.gain_energy_covariance = residual(gain_cube - gain * energy, gain_slope, energy_slope);
    return result;
}

constexpr std::array<std::pair<RowQuantizerKind, std::string_view>, 5> kind_names{{
    {RowQuantizerKind::tq_mse, "tq-mse"},
    {RowQuantizerKind::tq_prod, "tq-prod"},
    {RowQuantizerKind::eden, "eden"},
    {RowQuantizerKind::eden_mmse, "eden-mmse"},
    {RowQuantizerKind::eden_norm, "eden-norm"},
}};

/// Evaluates the scales by the delta method. Let g and e be the means of z c and c^2 over one row: their means are
/// exactly gain and energy, and their covariances are those of the codebook over d. The squared error of a row is a
/// function f(g, e), and its gain a function h(g, e). per_dimension is 1/d; 0 gives the limit of long rows.
RowReconstruction reconstruct(const CodebookOnLaw& codebook, double per_dimension, RowQuantizerKind kind) {
    const double gain = codebook.linear_gain;
    const double energy = codebook.energy;
    const double vary_gain = codebook.gain_variance * per_dimension;
    const double vary_energy = codebook.energy_variance * per_dimension;
    const double vary_both = codebook.gain_energy_covariance * per_dimension;
    const auto variance = [&](double by_gain, double by_energy) {
        return std::max(0.0, by_gain * by_gain * vary_gain + 2.0 * by_gain * by_energy * vary_both +
                                 by_energy * by_energy * vary_energy);
    };
    const auto require_gain = [&] {
        if (!(gain > 0.0 && energy > 0.0))
            throw usage_error("{} has no scale (the codebook has gain {}, energy {}): use levels that follow the data",
                              name_of(kind), gain, energy);
    };
    switch (kind) {
        case RowQuantizerKind::tq_mse:
            return {1.0, gain, vary_gain, codebook.distortion};
        case RowQuantizerKind::tq_prod: {
            const double half_pi = std::numbers::pi / 2.0;
            const double along = (1.0 - gain) * (1.0 - gain) + vary_gain;  // E <x, r>^2 / |x|^4, r the residual
            return {1.0, 1.0, std::max(0.0, half_pi * codebook.distortion - along) * per_dimension,
                    codebook.distortion * (half_pi - per_dimension)};
        }
        case RowQuantizerKind::eden: {
            require_gain();
            const double square = gain * gain;
            const double mse = (energy - square) / square + 3.0 * energy / (square * square) * vary_gain -
                               2.0 / (square * gain) * vary_both;
            return {1.0 / gain, 1.0, 0.0, std::max(0.0, mse)};
        }
        case RowQuantizerKind::eden_mmse: {
            require_gain();
            const double scale = gain / energy;
            const double mse = (energy - gain * gain) / energy - variance(1.0, -scale) / energy;
            const double bounded = std::clamp(mse, 0.0, 1.0);
            return {scale, 1.0 - bounded, variance(2.0 * scale, -scale * scale), bounded};
        }
        case RowQuantizerKind::eden_norm: {
            require_gain();
            const double scale = 1.0 / std::sqrt(energy);
            const double mse = 2.0 * (1.0 - gain * scale) + scale / energy * vary_both -
                               0.75 * gain * scale / (energy * energy) * vary_energy;
            const double bounded = std::clamp(mse, 0.0, 4.0);
            return {scale, 1.0 - bounded / 2.0, variance(scale, -0.5 * gain * scale / energy), bounded};
        }
    }
    throw precondition_error("row quantizer {} has no error (a value outside the enumeration)", static_cast<int>(kind));
}

/// The squared error of rounding to begin + k step, integrated over the normal density from begin to
/// begin + count step.
double rounding_error(double begin, double step, int count) {
    const auto density = [](double x) { return std::exp(-x * x / 2.0) / std::sqrt(2.0 * std::numbers::pi); };
    const auto tail = [](double x) { return std::erfc(x / std::numbers::sqrt2) / 2.0; };
    const double end = begin + count * step;
    const double end_density = density(end);
    const double end_tail = tail(end);
    const double begin_density = density(begin);
    const double mass = tail(begin) - end_tail;
    // With y = x - begin the integrand is y^2 - 2 (step k) y + (step k)^2, where k is the number of thresholds below y.
    double error = (1.0 + begin * begin) * mass - begin * begin_density + (2.0 * begin - end) * end_density;
    for (int k = 1; k <= count; ++k) {
        const double threshold = begin + (k - 0.5) * step;
        const double beyond = tail(threshold) - end_tail;
        const double first = density(threshold) - end_density - begin * beyond;
        error += step * (step * (2.0 * k - 1.0) * beyond - 2.0 * first);
    }
    return error;
}

}  // namespace

CodebookOnLaw codebook_on_sphere(const Codebook& codebook, int dimension) {
    require_dimension(dimension);
    return dimension == 1 ? codebook_on(codebook, SignTails()) : codebook_on(codebook, SphereTails(dimension));
}

std::string_view name_of(RowQuantizerKind kind) {
    for (const auto& [known, name] : kind_names)
        if (known == kind) return name;
    throw precondition_error("row quantizer {} has no name (a value outside the enumeration)", static_cast<int>(kind));
}

RowReconstruction row_reconstruction(const CodebookOnLaw& codebook, int dimension, RowQuantizerKind kind) {
    require_dimension(dimension);
    const auto moment = [](const char* name, double value, bool signed_value) {
        if (!std::isfinite(value) || (value < 0.0 && !signed_value))
            throw usage_error("codebook has {} {} (impossible): take its moments from codebook_on_sphere", name, value);
    };
    moment("distortion", codebook.distortion, false);
    moment("gain", codebook.linear_gain, true);
    moment("energy", codebook.energy, false);
    moment("gain variance", codebook.gain_variance, false);
    moment("energy variance", codebook.energy_variance, false);
    moment("covariance", codebook.gain_energy_covariance, true);
    return reconstruct(codebook, 1.0 / dimension, kind);
}

InnerProductError inner_product_error(const RowReconstruction& row, int dimension, double cosine) {
    require_dimension(dimension);
    require_cosine(cosine);
    if (!std::isfinite(row.gain) || !(row.gain_variance >= 0.0) || !(row.relative_mse >= 0.0) ||
        !std::isfinite(row.gain_variance + row.relative_mse))
        throw usage_error(
            "row with gain {}, variance {}, squared error {} is impossible (finite, and the last two not negative): "
            "take it from row_reconstruction",
            row.gain, row.gain_variance, row.relative_mse);
    const double shortfall = row.gain - 1.0;
    const double across = std::max(0.0, row.relative_mse - shortfall * shortfall - row.gain_variance);
    const double sine_square = (1.0 - cosine) * (1.0 + cosine);
    const double square_variance = dimension > 1 ? sine_square * across / (dimension - 1.0) : 0.0;
    return {shortfall * cosine, std::sqrt(cosine * cosine * row.gain_variance + square_variance)};
}

InnerProductError random_query_error(double relative_mse, int dimension) {
    require_dimension(dimension);
    if (!(relative_mse >= 0.0) || !std::isfinite(relative_mse))
        throw usage_error("relative squared error {} is impossible (finite and not negative): check the quantizer",
                          relative_mse);
    return {0.0, std::sqrt(relative_mse / dimension)};
}

double mean_absolute_coordinate(int dimension) {
    require_dimension(dimension);
    const Real half = static_cast<Real>(dimension) / 2.0L;
    return static_cast<double>(std::sqrt(dimension / std::numbers::pi_v<Real>) *
                               boost::math::tgamma_delta_ratio(half, 0.5L));
}

SketchError qjl_error(SketchRows rows, int dimension, int sketch_rows, double cosine) {
    require_dimension(dimension);
    require_cosine(cosine);
    if (sketch_rows < 1)
        throw usage_error("sketch of {} rows is empty (an inner product needs one sign): give at least one",
                          sketch_rows);
    const double half_pi = std::numbers::pi / 2.0;
    const double square = cosine * cosine;
    if (rows == SketchRows::gaussian) return {1.0, (half_pi - square) / sketch_rows};

    // Two rows of one Haar matrix are dependent: E|z_1 z_2| = 2/pi along r, and orthogonal to r their components along
    // y have mean product -z_1 z_2 / (d - 1). Different matrices are independent.
    const double factor = std::sqrt(half_pi) * mean_absolute_coordinate(dimension);
    const double across = dimension > 1 ? (1.0 - cosine) * (1.0 + cosine) / (dimension - 1.0) : 0.0;
    const auto sum_variance = [&](double count) {
        return count * (half_pi + (count - 1.0) * (square - across)) - count * count * factor * factor * square;
    };
    const double matrices = sketch_rows / dimension;
    const double total = matrices * sum_variance(dimension) + sum_variance(sketch_rows % dimension);
    return {factor, std::max(0.0, total / sketch_rows / sketch_rows)};
}

double min_max_relative_mse(int group, int bits) {
    require_bits(bits, "min-max quantizer");
    constexpr int largest_group = 1 << 20;
    if (group < 1 || group > largest_group)
        throw usage_error("group of {} entries is not usable (1 to {} are): choose one in this range", group,
                          largest_group);
    if (group <= 2) return 0.0;

    // The extremes m - h and m + h have joint density group (group - 1) phi(m - h) phi(m + h) P^(group - 2), where P is
    // the mass between them; phi phi = exp(-m^2 - h^2) / (2 pi), da db = 2 dm dh, and an entry between has density
    // phi / P. The integrand is even and analytic in m, so the trapezoidal rule is used there; h, whose range starts at
    // zero, is integrated in panels.
    using Rule = boost::math::quadrature::gauss<double, 10>;
    const double concentration = std::sqrt(2.0 * std::log(std::max(64.0, static_cast<double>(group))));
    const double middle_step = 0.28 / concentration;  // extremes of many entries vary by 1 / concentration
    const double panel = 1.4 / concentration;
    constexpr double negligible = 1e-18;
    const int count = (1 << bits) - 1;
    const double power = group - 3.0;
    const double end = std::sqrt(2.0 * std::log(group / negligible));
    const auto over_middles = [&](double half_range, double enough) {
        double sum = 0.0;
        for (double k = 0.0;; k += 1.0) {
            const double middle = k * middle_step;
            const double outside = (std::erfc((half_range - middle) / std::numbers::sqrt2) +
                                    std::erfc((half_range + middle) / std::numbers::sqrt2)) /
                                   2.0;
            const double weight = (k > 0.0 ? 2.0 : 1.0) * std::exp(-middle * middle - half_range * half_range +
                                                                   power * std::log1p(-std::min(1.0, outside)));
            // The error integral is below the squared half step, at most half_range^2.
            if (!(weight * half_range * half_range > negligible * (sum + enough))) return sum * middle_step;
            sum += weight * rounding_error(middle - half_range, 2.0 * half_range / count, count);
        }
    };
    double total = 0.0;
    for (double begin = 0.0; begin < end; begin += panel) {
        for (std::size_t i = 0; i < Rule::abscissa().size(); ++i) {
            const double offset = panel / 2.0 * Rule::abscissa()[i];
            const double weight = panel / 2.0 * Rule::weights()[i];
            const double middle = begin + panel / 2.0;
            total += weight * over_middles(middle - offset, total);
            total += weight * over_middles(middle + offset, total);
        }
    }
    return (group - 1.0) * (group - 2.0) / std::numbers::pi * total;
}

CompressorPrediction predict_compressor(const CompressorSetting& setting) {
    require_bits(setting.bits, "index");
    require_dimension(setting.dimension);
    if (setting.rows < 1)
        throw usage_error("block of {} rows is empty (errors are per row): give at least one", setting.rows);
    const double fraction = setting.residual_energy_fraction;
    if (!(fraction >= 0.0 && fraction <= 1.0))
        throw usage_error("residual energy fraction {} is impossible (it lies between 0 and 1): divide |R|^2 by |X|^2",
                          fraction);
    if (setting.rank < 0 || setting.rank > std::min(setting.rows, setting.dimension))
        throw usage_error("rank {} does not fit {} x {} (a block has at most min(n, d) components): lower it",
                          setting.rank, setting.rows, setting.dimension);
    require_stored_bits(setting.factor_bits, "factor entry");
    require_stored_bits(setting.norm_bits, "norm");

    const Codebook codebook = setting.codebook == CodebookLaw::sphere
                                  ? lloyd_max_sphere(setting.dimension, setting.bits)
                                  : lloyd_max_normal(setting.bits);
    const RowReconstruction row =
        row_reconstruction(codebook_on_sphere(codebook, setting.dimension), setting.dimension, setting.quantizer);
    const double length = std::sqrt(fraction);  // norm of the residual relative to the row
    const auto scaled = [&](InnerProductError error) {
        return InnerProductError{length * error.bias, length * error.standard_deviation};
    };
    CompressorPrediction prediction;
    prediction.relative_l2 = length * std::sqrt(row.relative_mse);
    prediction.random_query = scaled(random_query_error(row.relative_mse, setting.dimension));
    prediction.along_row = scaled(inner_product_error(row, setting.dimension, length));

    const double rows = setting.rows;
    const double dimension = setting.dimension;
    const double extra = setting.quantizer == RowQuantizerKind::tq_prod ? 1.0 : 0.0;
    prediction.row_bits = setting.bits + extra + (1.0 + extra) * setting.norm_bits / dimension;
    prediction.factor_bits =
        setting.rank * (setting.factor_bits * (rows + dimension) + setting.norm_bits) / (rows * dimension);
    prediction.bits_per_entry = prediction.row_bits + prediction.factor_bits;
    return prediction;
}

}  // namespace spiked::theory
