#include "theory/quantization/quantizer_errors.hpp"

#include <algorithm>
#include <array>
#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <string_view>
#include <vector>

#include "theory/quantization/rate_distortion.hpp"
#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

using test::expect_rejected;
using test::expect_relative;
using test::infinite;
using test::not_a_number;

constexpr double pi = std::numbers::pi;
constexpr std::array every_kind{RowQuantizerKind::tq_mse, RowQuantizerKind::tq_prod, RowQuantizerKind::eden,
                                RowQuantizerKind::eden_mmse, RowQuantizerKind::eden_norm};

// ---- samples ----------------------------------------------------------------------------------------------------

/// The false-alarm rate of each of the about 200 comparisons in this file.
constexpr double false_alarm_rate = 1e-7;

class Sample {
public:
    void add(double value) {
        count_ += 1.0;
        const double before = value - mean_;
        mean_ += before / count_;
        square_ += before * (value - mean_);
    }
    [[nodiscard]] double mean() const { return mean_; }
    /// The deviation of the mean that is exceeded at the false-alarm rate when the law is correct.
    [[nodiscard]] double limit() const {
        const double normal = std::numbers::sqrt2 * boost::math::erfc_inv(false_alarm_rate);
        return normal * std::sqrt(square_ / (count_ - 1.0) / count_);
    }

private:
    double count_ = 0.0;
    double mean_ = 0.0;
    double square_ = 0.0;
};

/// `margin` is the error of the expected value itself.
void expect_law(const Sample& sample, double expected, double margin, const std::string& what) {
    EXPECT_NEAR(sample.mean(), expected, sample.limit() + margin) << what << "; sampling alone " << sample.limit();
}

void expect_detectable(const Sample& sample, double wrong, double margin, const std::string& what) {
    EXPECT_GT(std::abs(sample.mean() - wrong), sample.limit() + margin) << what << " should have been rejected";
}

double level_of(double value, const Codebook& book) {
    const auto bin = std::lower_bound(book.thresholds.begin(), book.thresholds.end(), value);
    return book.levels[static_cast<std::size_t>(bin - book.thresholds.begin())];
}

/// A unit row, a unit vector orthogonal to it, and the row's codewords, all in the rotated domain.
struct RandomRow {
    std::vector<double> unit;
    std::vector<double> across;
    std::vector<double> code;  ///< levels over sqrt(d), so that scale 1 reconstructs the unit row
    double gain = 0.0;         ///< <z, c> / d
    double energy = 0.0;       ///< |c|^2 / d
    double across_code = 0.0;  ///< <across, code>
};

double dot(const std::vector<double>& left, const std::vector<double>& right) {
    double sum = 0.0;
    for (std::size_t i = 0; i < left.size(); ++i) sum += left[i] * right[i];
    return sum;
}

void normalise(std::vector<double>& vector) {
    const double length = std::sqrt(dot(vector, vector));
    for (double& value : vector) value /= length;
}

class RowSampler {
public:
    RowSampler(int dimension, Codebook book, unsigned seed)
        : dimension_(dimension), book_(std::move(book)), random_(seed) {}

    RandomRow draw() {
        RandomRow row;
        row.unit = normals();
        normalise(row.unit);
        row.across = normals();
        const double along = dot(row.across, row.unit);
        for (std::size_t i = 0; i < row.unit.size(); ++i) row.across[i] -= along * row.unit[i];
        normalise(row.across);
        const double root = std::sqrt(static_cast<double>(dimension_));
        row.code.resize(row.unit.size());
        for (std::size_t i = 0; i < row.unit.size(); ++i) row.code[i] = level_of(root * row.unit[i], book_) / root;
        row.gain = dot(row.unit, row.code);
        row.energy = dot(row.code, row.code);
        row.across_code = dot(row.across, row.code);
        return row;
    }
    std::vector<double> normals() {
        std::vector<double> values(static_cast<std::size_t>(dimension_));
        for (double& value : values) value = normal_(random_);
        return values;
    }

private:
    int dimension_;
    Codebook book_;
    std::mt19937_64 random_;
    std::normal_distribution<double> normal_;
};

double row_scale(const RandomRow& row, RowQuantizerKind kind) {
    switch (kind) {
        case RowQuantizerKind::eden:
            return 1.0 / row.gain;
        case RowQuantizerKind::eden_mmse:
            return row.gain / row.energy;
        case RowQuantizerKind::eden_norm:
            return 1.0 / std::sqrt(row.energy);
        default:
            return 1.0;
    }
}

double squared_error(const RandomRow& row, double scale) {
    return 1.0 - 2.0 * scale * row.gain + scale * scale * row.energy;
}

// ---- codebooks on a law -----------------------------------------------------------------------------------------

/// The expectation under the law, by adaptive quadrature between the thresholds.
double expectation(const Codebook& book, int dimension, const std::function<double(double, double)>& value) {
    const double d = dimension;
    const double end = std::sqrt(d);
    const double constant = std::lgamma(d / 2.0) - std::lgamma((d - 1.0) / 2.0) - 0.5 * std::log(pi * d);
    const auto density = [&](double x) {
        return std::exp(constant + (d - 3.0) / 2.0 * std::log1p(-std::min(1.0, x * x / d)));
    };
    std::vector<double> edges{-end};
    for (const double threshold : book.thresholds)
        if (std::abs(threshold) < end) edges.push_back(threshold);
    edges.push_back(end);
    double sum = 0.0;
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
        const double level = level_of((edges[i] + edges[i + 1]) / 2.0, book);
        const auto integrand = [&](double x) { return value(x, level) * density(x); };
        sum +=
            boost::math::quadrature::gauss_kronrod<double, 31>::integrate(integrand, edges[i], edges[i + 1], 12, 1e-13);
    }
    return sum;
}

void expect_moments(const Codebook& book, int dimension) {
    const CodebookOnLaw found = codebook_on_sphere(book, dimension);
    const std::string what = "dimension " + std::to_string(dimension);
    const auto mean = [&](const std::function<double(double, double)>& value) {
        return expectation(book, dimension, value);
    };
    constexpr double tolerance = 2e-11;
    const double gain = mean([](double z, double c) { return z * c; });
    const double energy = mean([](double, double c) { return c * c; });
    EXPECT_NEAR(found.linear_gain, gain, tolerance) << what;
    EXPECT_NEAR(found.energy, energy, tolerance) << what;
    EXPECT_NEAR(found.distortion, mean([](double z, double c) { return (z - c) * (z - c); }), tolerance) << what;
    // The residuals of the regression on z^2 are formed before they are squared.
    const double spread = mean([](double z, double) { return (z * z - 1.0) * (z * z - 1.0); });
    const double gain_slope = mean([](double z, double c) { return z * c * (z * z - 1.0); }) / spread;
    const double energy_slope = mean([](double z, double c) { return c * c * (z * z - 1.0); }) / spread;
    const auto gain_rest = [&](double z, double c) { return z * c - gain - gain_slope * (z * z - 1.0); };
    const auto energy_rest = [&](double z, double c) { return c * c - energy - energy_slope * (z * z - 1.0); };
    EXPECT_NEAR(found.gain_variance, mean([&](double z, double c) { return std::pow(gain_rest(z, c), 2); }), 1e-9)
        << what;
    EXPECT_NEAR(found.energy_variance, mean([&](double z, double c) { return std::pow(energy_rest(z, c), 2); }), 1e-9)
        << what;
    EXPECT_NEAR(found.gain_energy_covariance,
                mean([&](double z, double c) { return gain_rest(z, c) * energy_rest(z, c); }), 1e-9)
        << what;
    double entropy = 0.0;
    for (std::size_t i = 0; i < book.levels.size(); ++i) {
        const double level = book.levels[i];
        const double mass = mean([&](double, double c) { return c == level ? 1.0 : 0.0; });
        if (mass > 0.0) entropy -= mass * std::log2(mass);
    }
    EXPECT_NEAR(found.entropy_bits, entropy, tolerance) << what;
}

TEST(QuantizerErrors, MatchedCodebooksKeepTheirOwnNumbers) {
    for (const int dimension : {1, 2, 3, 5, 64, 128, 100000, 1000000000}) {
        for (int bits = 1; bits <= (dimension == 1 ? 1 : 8); ++bits) {
            const Codebook book = lloyd_max_sphere(dimension, bits);
            const CodebookOnLaw found = codebook_on_sphere(book, dimension);
            EXPECT_NEAR(found.distortion, book.distortion, 1e-15) << dimension << " " << bits;
            EXPECT_NEAR(found.linear_gain, book.linear_gain, 1e-15);
            EXPECT_NEAR(found.energy, 1.0 - book.distortion, 1e-15);
            EXPECT_NEAR(found.entropy_bits, book.entropy_bits, 2e-14);
        }
    }
}

TEST(QuantizerErrors, NormalCodebookOnDimension128MatchesTheTable) {
    // Distortion and 1 - gain, computed with mpmath. For the last two of 2 and 3 bits the note prints .114732 and
    // .032725.
    const double table[][3] = {{1, 0.360891026898, 0.362135627265},
                               {2, 0.116005101303, 0.114734152719},
                               {3, 0.0339790684672, 0.0327272110259},
                               {4, 0.0093248616313, 0.00873077593926}};
    for (const auto& [bits, distortion, shortfall] : table) {
        const CodebookOnLaw found = codebook_on_sphere(lloyd_max_normal(static_cast<int>(bits)), 128);
        EXPECT_NEAR(found.distortion, distortion, 1e-12);
        EXPECT_NEAR(1.0 - found.linear_gain, shortfall, 1e-12);
        EXPECT_NEAR(found.distortion, 1.0 - 2.0 * found.linear_gain + found.energy, 1e-15);
        EXPECT_GT(found.distortion, lloyd_max_sphere(128, static_cast<int>(bits)).distortion);
        // With one bit the levels of the two laws differ by only 0.2 %.
        EXPECT_LT(found.distortion, lloyd_max_sphere(128, static_cast<int>(bits)).distortion * 1.0015);
    }
}

TEST(QuantizerErrors, MomentsOfAnyCodebookMatchQuadrature) {
    Codebook irregular;
    irregular.levels = {-2.5, -1.1, -0.2, 0.15, 0.1, 1.7, 3.0};  // neither sorted nor symmetric
    irregular.thresholds = {-1.9, -0.7, -0.1, 0.3, 1.2, 2.2};
    Codebook single;
    single.levels = {0.4};
    Codebook wide;
    wide.levels = {-9.0, 0.0, 9.0};
    wide.thresholds = {-8.0, 8.0};
    for (const int dimension : {5, 16, 128})
        for (const Codebook& book :
             {irregular, single, wide, lloyd_max_normal(3), uniform_quantizer_normal(4).codebook})
            expect_moments(book, dimension);
}

TEST(QuantizerErrors, DimensionOneIsTheLawOfASign) {
    Codebook book;
    book.levels = {-0.5, 0.25, 2.0};
    book.thresholds = {-0.1, 0.6};
    const CodebookOnLaw found = codebook_on_sphere(book, 1);
    EXPECT_DOUBLE_EQ(found.linear_gain, 1.25);
    EXPECT_DOUBLE_EQ(found.energy, (0.25 + 4.0) / 2.0);
    EXPECT_DOUBLE_EQ(found.distortion, (0.25 + 1.0) / 2.0);
    EXPECT_DOUBLE_EQ(found.entropy_bits, 1.0);
    const RowReconstruction row =
        row_reconstruction(codebook_on_sphere(lloyd_max_sphere(1, 1), 1), 1, RowQuantizerKind::eden);
    EXPECT_EQ(row.relative_mse, 0.0);
    EXPECT_EQ(row.gain, 1.0);
}

// ---- scales -----------------------------------------------------------------------------------------------------

constexpr int long_row = std::numeric_limits<int>::max();

/// The limit of long rows, which depends on the moments and not on the variances.
RowReconstruction limit_of(double gain, double energy, RowQuantizerKind kind) {
    CodebookOnLaw moments;
    moments.linear_gain = gain;
    moments.energy = energy;
    moments.distortion = 1.0 - 2.0 * gain + energy;
    return row_reconstruction(moments, long_row, kind);
}

TEST(QuantizerErrors, LimitsForCentroidsAreFunctionsOfTheDistortion) {
    for (int bits = 1; bits <= 8; ++bits) {
        const double distortion = lloyd_max_normal(bits).distortion;
        const double gain = 1.0 - distortion;
        const auto limit = [&](RowQuantizerKind kind) { return limit_of(gain, gain, kind); };
        EXPECT_NEAR(limit(RowQuantizerKind::tq_mse).relative_mse, distortion, 1e-15);
        EXPECT_NEAR(limit(RowQuantizerKind::tq_prod).relative_mse, (pi / 2.0 - 1.0 / long_row) * distortion, 1e-15);
        expect_relative(limit(RowQuantizerKind::eden).relative_mse, distortion / (1.0 - distortion), 1e-11, "eden");
        expect_relative(limit(RowQuantizerKind::eden_mmse).relative_mse, distortion, 1e-11, "eden-mmse");
        expect_relative(limit(RowQuantizerKind::eden_norm).relative_mse, 2.0 - 2.0 * std::sqrt(gain), 1e-11,
                        "eden-norm");
        EXPECT_EQ(limit(RowQuantizerKind::eden).gain, 1.0);
        EXPECT_NEAR(limit(RowQuantizerKind::tq_mse).gain, gain, 1e-15);
        EXPECT_NEAR(limit(RowQuantizerKind::eden_norm).gain, std::sqrt(gain), 1e-14);
        // The norm-preserving scale is the geometric mean of the other two.
        EXPECT_NEAR(std::pow(limit(RowQuantizerKind::eden_norm).scale, 2),
                    limit(RowQuantizerKind::eden).scale * limit(RowQuantizerKind::eden_mmse).scale, 1e-14);
    }
    // A one-bit index with the unbiased scale has the error of the sketch with two bits in all.
    EXPECT_NEAR(limit_of(2.0 / pi, 2.0 / pi, RowQuantizerKind::eden).relative_mse, pi / 2.0 - 1.0, 1e-14);
}

TEST(QuantizerErrors, LimitsMinimiseOrBalanceOverEveryScale) {
    const double gain = 0.7;
    const double energy = 0.9;
    const auto error = [&](double scale) { return 1.0 - 2.0 * scale * gain + scale * scale * energy; };
    for (const RowQuantizerKind kind :
         {RowQuantizerKind::tq_mse, RowQuantizerKind::eden, RowQuantizerKind::eden_mmse, RowQuantizerKind::eden_norm}) {
        const RowReconstruction row = limit_of(gain, energy, kind);
        EXPECT_NEAR(row.relative_mse, error(row.scale), 1e-14) << name_of(kind);
        EXPECT_NEAR(row.gain, row.scale * gain, 1e-14) << name_of(kind);
    }
    const RowReconstruction best = limit_of(gain, energy, RowQuantizerKind::eden_mmse);
    EXPECT_LT(best.relative_mse, error(best.scale * 1.001));
    EXPECT_LT(best.relative_mse, error(best.scale * 0.999));
    EXPECT_NEAR(std::pow(limit_of(gain, energy, RowQuantizerKind::eden_norm).scale, 2) * energy, 1.0, 1e-14);
}

TEST(QuantizerErrors, ScalesMatchTheMeasuredTableOfDimension128) {
    // The columns are the bits, and then tq-mse, eden-norm, eden-mmse and eden measured on the same rows (quantizers.md
    // 1.2).
    const double table[][5] = {{1, 0.36098, 0.40123, 0.36064, 0.56744},
                               {2, 0.11572, 0.11851, 0.11494, 0.13020},
                               {3, 0.03382, 0.03365, 0.03336, 0.03455},
                               {4, 0.00932, 0.00917, 0.00915, 0.00924}};
    for (const auto& [bits, plain, norm, least, unbiased] : table) {
        const CodebookOnLaw book = codebook_on_sphere(lloyd_max_sphere(128, static_cast<int>(bits)), 128);
        const auto mse = [&](RowQuantizerKind kind) { return row_reconstruction(book, 128, kind).relative_mse; };
        const double exact = mse(RowQuantizerKind::tq_mse);
        // The error of tq-mse is known exactly, which shows the error of the measurement: up to 2.8e-4.
        EXPECT_NEAR(exact, plain, 4e-4) << bits;
        const double second_order = 5.0 * exact / (128.0 * 128.0);
        const double digits = 1.5e-4;  // rounding of a difference of two measured numbers
        const auto expect_difference = [&, bits = bits, plain = plain](RowQuantizerKind kind, double measured) {
            EXPECT_NEAR(mse(kind) - exact, measured - plain, digits + second_order) << bits << " " << name_of(kind);
            EXPECT_NEAR(mse(kind), measured, 4e-4 + second_order);
        };
        expect_difference(RowQuantizerKind::eden_norm, norm);
        expect_difference(RowQuantizerKind::eden_mmse, least);
        expect_difference(RowQuantizerKind::eden, unbiased);
    }
    // Negative control: without the term in 1/d the table is not reproduced.
    const CodebookOnLaw two = codebook_on_sphere(lloyd_max_sphere(128, 2), 128);
    const double limit = limit_of(two.linear_gain, two.energy, RowQuantizerKind::eden).relative_mse;
    EXPECT_GT(std::abs(limit - two.distortion - (0.13020 - 0.11572)), 2e-4);
}

TEST(QuantizerErrors, ScalesMatchSimulatedRows) {
    constexpr int dimension = 16;
    constexpr int rows = 60000;
    for (int bits = 1; bits <= 4; ++bits) {
        const Codebook codebook = lloyd_max_sphere(dimension, bits);
        const CodebookOnLaw book = codebook_on_sphere(codebook, dimension);
        RowSampler sampler(dimension, codebook, 20u + static_cast<unsigned>(bits));
        Sample plain, plain_gain;
        std::array<Sample, every_kind.size()> excess, gains;
        for (int i = 0; i < rows; ++i) {
            const RandomRow row = sampler.draw();
            const double base = squared_error(row, 1.0);
            plain.add(base);
            plain_gain.add(row.gain);
            for (std::size_t k = 0; k < every_kind.size(); ++k) {
                const double scale = row_scale(row, every_kind[k]);
                excess[k].add(squared_error(row, scale) - base);
                gains[k].add(scale * row.gain);
            }
        }
        expect_law(plain, book.distortion, 0.0, "tq-mse is exact");
        expect_law(plain_gain, book.linear_gain, 0.0, "so is its gain");
        const double second_order = 5.0 * book.distortion / (dimension * dimension);
        for (std::size_t k = 0; k < every_kind.size(); ++k) {
            const RowQuantizerKind kind = every_kind[k];
            if (kind == RowQuantizerKind::tq_mse || kind == RowQuantizerKind::tq_prod) continue;
            const RowReconstruction row = row_reconstruction(book, dimension, kind);
            const std::string what = std::string(name_of(kind)) + " " + std::to_string(bits);
            expect_law(excess[k], row.relative_mse - book.distortion, second_order, what);
            expect_law(gains[k], row.gain, second_order, what + " gain");
            // Negative control: the limit has an error of O(1/d), larger than the neglected terms of the expansion.
            // With one bit every |c| is the same, and eden-norm has no term in 1/d.
            const double limit = limit_of(book.linear_gain, book.energy, kind).relative_mse;
            const bool fixed = bits == 1 && kind != RowQuantizerKind::eden;
            if (!fixed) expect_detectable(excess[k], limit - book.distortion, second_order, what + " limit");
        }
    }
}

TEST(QuantizerErrors, InnerProductsMatchSimulatedRows) {
    constexpr int dimension = 64;
    constexpr int rows = 40000;
    constexpr int bits = 2;
    const Codebook codebook = lloyd_max_sphere(dimension, bits);
    const CodebookOnLaw book = codebook_on_sphere(codebook, dimension);
    for (const RowQuantizerKind kind :
         {RowQuantizerKind::tq_mse, RowQuantizerKind::eden, RowQuantizerKind::eden_mmse, RowQuantizerKind::eden_norm}) {
        const RowReconstruction row = row_reconstruction(book, dimension, kind);
        RowSampler sampler(dimension, codebook, 31);
        constexpr std::array cosines{0.0, 0.5, -0.8, 1.0};
        std::array<Sample, cosines.size()> bias, square;
        for (int i = 0; i < rows; ++i) {
            const RandomRow drawn = sampler.draw();
            const double scale = row_scale(drawn, kind);
            for (std::size_t k = 0; k < cosines.size(); ++k) {
                const double cosine = cosines[k];
                const double sine = std::sqrt(1.0 - cosine * cosine);
                const double error = scale * (cosine * drawn.gain + sine * drawn.across_code) - cosine;
                bias[k].add(error);
                const double centred = error - inner_product_error(row, dimension, cosine).bias;
                square[k].add(centred * centred);
            }
        }
        for (std::size_t k = 0; k < cosines.size(); ++k) {
            const InnerProductError expected = inner_product_error(row, dimension, cosines[k]);
            const std::string what = std::string(name_of(kind)) + " cosine " + std::to_string(cosines[k]);
            const double variance = expected.standard_deviation * expected.standard_deviation;
            const double second_order = 5.0 * book.distortion / (dimension * dimension);
            expect_law(bias[k], expected.bias, kind == RowQuantizerKind::tq_mse ? 0.0 : second_order, what);
            expect_law(square[k], variance, 1e-15 + 3.0 / dimension * variance, what + " variance");
        }
        if (kind == RowQuantizerKind::tq_mse) {
            // Negative controls: the bias is not always negative, and the factor is not 2/pi.
            expect_detectable(bias[2], -std::abs(inner_product_error(row, dimension, -0.8).bias), 0.0, "negative bias");
            expect_detectable(bias[3], 2.0 / pi - 1.0, 0.0, "bias of 2/pi");
            // Negative control: the means of z c do not fluctuate as if coordinates were independent.
            double free = -book.linear_gain * book.linear_gain;
            free += expectation(codebook, dimension, [](double z, double c) { return z * z * c * c; });
            expect_detectable(square[3], free / dimension, 3.0 / dimension * free / dimension,
                              "independent coordinates");
        }
    }
}

TEST(QuantizerErrors, SketchedResidualMatchesSimulatedRows) {
    constexpr int dimension = 12;
    constexpr int rows = 60000;
    constexpr double cosine = 0.6;
    const Codebook codebook = lloyd_max_sphere(dimension, 1);
    const CodebookOnLaw book = codebook_on_sphere(codebook, dimension);
    const RowReconstruction row = row_reconstruction(book, dimension, RowQuantizerKind::tq_prod);
    RowSampler sampler(dimension, codebook, 41);
    Sample error, along, slanted, along_square, slanted_square;
    for (int i = 0; i < rows; ++i) {
        const RandomRow drawn = sampler.draw();
        std::vector<double> residual(drawn.unit.size());
        for (std::size_t k = 0; k < residual.size(); ++k) residual[k] = drawn.unit[k] - drawn.code[k];
        const double weight = std::sqrt(pi / 2.0) / dimension * std::sqrt(dot(residual, residual));
        std::vector<double> rebuilt = drawn.code;
        for (int k = 0; k < dimension; ++k) {
            const std::vector<double> direction = sampler.normals();
            const double sign = dot(direction, residual) > 0.0 ? 1.0 : -1.0;
            for (std::size_t j = 0; j < rebuilt.size(); ++j) rebuilt[j] += weight * sign * direction[j];
        }
        double square = 0.0;
        for (std::size_t k = 0; k < rebuilt.size(); ++k) square += std::pow(rebuilt[k] - drawn.unit[k], 2);
        error.add(square);
        const double ahead = dot(rebuilt, drawn.unit) - 1.0;
        const double across = dot(rebuilt, drawn.across);
        along.add(ahead);
        along_square.add(ahead * ahead);
        const double tilted = cosine * ahead + std::sqrt(1.0 - cosine * cosine) * across;
        slanted.add(tilted);
        slanted_square.add(tilted * tilted);
    }
    expect_law(error, row.relative_mse, 0.0, "squared error is exact");
    expect_law(along, 0.0, 0.0, "unbiased along the row");
    expect_law(slanted, 0.0, 0.0, "unbiased at an angle");
    const double margin = 3.0 / dimension * book.gain_variance / dimension / dimension;
    expect_law(along_square, std::pow(inner_product_error(row, dimension, 1.0).standard_deviation, 2), margin, "along");
    expect_law(slanted_square, std::pow(inner_product_error(row, dimension, cosine).standard_deviation, 2), margin,
               "slanted");
    expect_detectable(error, book.distortion * pi / 2.0, 0.0, "the error without 1/d");
    expect_detectable(error, book.distortion, 0.0, "the error of the levels alone");
    expect_detectable(slanted_square, row.relative_mse / dimension, margin, "the variance of a random query");
}

TEST(QuantizerErrors, InnerProductsMatchTheTablesOfTheNote) {
    // Standard deviations over random unit queries at d = 128, for 2, 3 and 4 bits.
    const double plain[] = {0.0301, 0.0163, 0.0085};
    const double sketched[] = {0.0377, 0.0204, 0.0107};
    const double unbiased[] = {0.0319, 0.0165, 0.0086};
    const double along[] = {0.0333, 0.0246, 0.0138};
    const double sketched_l2[] = {0.426, 0.230, 0.121};
    for (int bits = 2; bits <= 4; ++bits) {
        const CodebookOnLaw book = codebook_on_sphere(lloyd_max_sphere(128, bits), 128);
        const auto row = [&](RowQuantizerKind kind) { return row_reconstruction(book, 128, kind); };
        const auto random = [&](RowQuantizerKind kind) {
            const InnerProductError error = random_query_error(row(kind).relative_mse, 128);
            EXPECT_EQ(error.bias, 0.0);
            return error.standard_deviation;
        };
        const int i = bits - 2;
        EXPECT_NEAR(random(RowQuantizerKind::tq_mse), plain[i], 5e-5);
        EXPECT_NEAR(random(RowQuantizerKind::tq_prod), sketched[i], 1e-4) << "the note neglects the term -1/d";
        EXPECT_NEAR(random(RowQuantizerKind::eden), unbiased[i], 2e-4) << "the note uses the limit of long rows";
        const InnerProductError self = inner_product_error(row(RowQuantizerKind::tq_mse), 128, 1.0);
        EXPECT_NEAR(self.standard_deviation, along[i], 0.02 * along[i]) << "measured";
        EXPECT_NEAR(self.bias, -book.distortion, 1e-15);
        EXPECT_EQ(inner_product_error(row(RowQuantizerKind::eden), 128, 1.0).standard_deviation, 0.0);
        EXPECT_NEAR(std::sqrt(row(RowQuantizerKind::tq_prod).relative_mse), sketched_l2[i], 5e-4);
    }
}

TEST(QuantizerErrors, QueriesOfUniformDirectionAverageOverTheCosine) {
    // cosine^2 has mean 1/d, so averaging the error at a given cosine must give the error of a random query.
    for (const int dimension : {1, 2, 16, 128}) {
        const int bits = dimension == 1 ? 1 : 2;
        const CodebookOnLaw book = codebook_on_sphere(lloyd_max_sphere(dimension, bits), dimension);
        for (const RowQuantizerKind kind : every_kind) {
            const RowReconstruction row = row_reconstruction(book, dimension, kind);
            const InnerProductError along = inner_product_error(row, dimension, 1.0);
            const InnerProductError across = inner_product_error(row, dimension, 0.0);
            const double square =
                (along.bias * along.bias + along.standard_deviation * along.standard_deviation) / dimension +
                across.standard_deviation * across.standard_deviation * (1.0 - 1.0 / dimension);
            const double expected = random_query_error(row.relative_mse, dimension).standard_deviation;
            EXPECT_NEAR(square, expected * expected, 1e-15) << dimension << " " << name_of(kind);
        }
    }
}

// ---- sign sketches ----------------------------------------------------------------------------------------------

TEST(QuantizerErrors, MeanAbsoluteCoordinate) {
    EXPECT_NEAR(mean_absolute_coordinate(1), 1.0, 1e-15);
    EXPECT_NEAR(mean_absolute_coordinate(2), 2.0 * std::numbers::sqrt2 / pi, 1e-15);
    EXPECT_NEAR(mean_absolute_coordinate(3), std::numbers::sqrt3 / 2.0, 1e-15);
    EXPECT_NEAR(mean_absolute_coordinate(128), 0.799444436, 5e-10);
    for (const int dimension : {2, 7, 128, 4096})  // the centroid of the positive half
        EXPECT_NEAR(mean_absolute_coordinate(dimension), lloyd_max_sphere(dimension, 1).levels[1], 2e-15);
    EXPECT_NEAR(sign_correlation, 0.7978845608028654, 1e-15);
    EXPECT_NEAR(mean_absolute_coordinate(1000000000), sign_correlation * (1.0 + 0.25e-9), 1e-15);
}

TEST(QuantizerErrors, SketchMatchesClosedForms) {
    for (const double cosine : {0.0, 0.3, 0.9, 1.0}) {
        const SketchError found = qjl_error(SketchRows::gaussian, 128, 256, cosine);
        EXPECT_EQ(found.mean_factor, 1.0);
        EXPECT_NEAR(found.variance * 256.0, pi / 2.0 - cosine * cosine, 1e-14);
    }
    const SketchError square = qjl_error(SketchRows::orthogonal, 128, 128, 0.0);
    EXPECT_NEAR(square.mean_factor, 1.00195, 1e-5);
    EXPECT_NEAR(square.mean_factor, 1.0 + 1.0 / 512.0, 5e-6);
    EXPECT_NEAR(square.variance * 128.0, pi / 2.0 - 1.0, 1e-12);
    // A square orthogonal sketch is the 1-bit codebook with another scale, so its error orthogonal to the row is the
    // same.
    for (const int dimension : {2, 5, 128}) {
        const CodebookOnLaw book = codebook_on_sphere(lloyd_max_sphere(dimension, 1), dimension);
        const double across =
            inner_product_error(row_reconstruction(book, dimension, RowQuantizerKind::tq_mse), dimension, 0.0)
                .standard_deviation;
        const double level = mean_absolute_coordinate(dimension);
        const double exact = level * level * (1.0 - 2.0 / pi) / dimension;
        EXPECT_NEAR(qjl_error(SketchRows::orthogonal, dimension, dimension, 0.0).variance * level * level / (pi / 2.0),
                    exact, 1e-14);
        EXPECT_NEAR(across * across, exact, exact * 0.1 / dimension);
    }
    // Two matrices halve the variance, and a single row of an orthogonal sketch has the same error as a Gaussian row.
    EXPECT_NEAR(qjl_error(SketchRows::orthogonal, 128, 256, 0.4).variance * 2.0,
                qjl_error(SketchRows::orthogonal, 128, 128, 0.4).variance, 1e-15);
    EXPECT_NEAR(qjl_error(SketchRows::orthogonal, 1, 3, 1.0).variance, 0.0, 1e-15);
}

TEST(QuantizerErrors, SketchMatchesSimulation) {
    constexpr int dimension = 6;
    constexpr int draws = 40000;
    constexpr double cosine = 0.45;
    std::mt19937_64 random(51);
    std::normal_distribution<double> normal;
    const std::size_t size = dimension;
    for (const SketchRows rows : {SketchRows::gaussian, SketchRows::orthogonal}) {
        for (const int sketch_rows : {1, 4, 6, 12, 15}) {
            Sample mean, square;
            const SketchError expected = qjl_error(rows, dimension, sketch_rows, cosine);
            for (int draw = 0; draw < draws; ++draw) {
                double sum = 0.0;
                std::vector<std::vector<double>> block;
                for (int i = 0; i < sketch_rows; ++i) {
                    std::vector<double> row(size);
                    for (double& value : row) value = normal(random);
                    if (rows == SketchRows::orthogonal) {
                        if (block.size() == size) block.clear();
                        for (const auto& other : block) {
                            const double part = dot(row, other);
                            for (std::size_t k = 0; k < size; ++k) row[k] -= part * other[k];
                        }
                        normalise(row);
                        block.push_back(row);
                        for (double& value : row) value *= std::sqrt(static_cast<double>(dimension));
                    }
                    // r is the first axis; y lies in the plane of the first two.
                    sum += (cosine * row[0] + std::sqrt(1.0 - cosine * cosine) * row[1]) * (row[0] > 0.0 ? 1.0 : -1.0);
                }
                const double estimate = std::sqrt(pi / 2.0) * sum / sketch_rows;
                mean.add(estimate);
                square.add(std::pow(estimate - expected.mean_factor * cosine, 2));
            }
            const std::string what =
                (rows == SketchRows::gaussian ? "gaussian " : "orthogonal ") + std::to_string(sketch_rows);
            expect_law(mean, expected.mean_factor * cosine, 0.0, what);
            expect_law(square, expected.variance, 0.0, what + " variance");
            expect_detectable(mean, 2.0 / pi * std::sqrt(pi / 2.0) * cosine, 0.0, what + " with the constant 2/pi");
            if (rows == SketchRows::orthogonal && sketch_rows > 1) {
                const double gaussian = qjl_error(SketchRows::gaussian, dimension, sketch_rows, cosine).variance;
                expect_detectable(square, gaussian, 0.0, what + " with the variance of Gaussian rows");
            }
        }
    }
}

// ---- min-max ----------------------------------------------------------------------------------------------------

double normal_tail(double x) { return std::erfc(x / std::numbers::sqrt2) / 2.0; }
double normal_density(double x) { return std::exp(-x * x / 2.0) / std::sqrt(2.0 * pi); }

/// The same expectation in the coordinates minimum and maximum, integrated bin by bin around each level.
double min_max_by_bins(int group, int bits) {
    using Rule = boost::math::quadrature::gauss<double, 20>;
    const int count = (1 << bits) - 1;
    const auto error = [&](double low, double high) {
        const double step = (high - low) / count;
        double sum = 0.0;
        for (int k = 0; k <= count; ++k) {
            const double level = low + k * step;
            const auto integrand = [&](double x) { return (x - level) * (x - level) * normal_density(x); };
            sum += boost::math::quadrature::gauss<double, 15>::integrate(integrand, std::max(low, level - step / 2.0),
                                                                         std::min(high, level + step / 2.0));
        }
        return sum;
    };
    const auto over_maximum = [&](double low) {
        const auto integrand = [&](double high) {
            const double inside = normal_tail(low) - normal_tail(high);
            return normal_density(low) * normal_density(high) * std::pow(inside, group - 3) * error(low, high);
        };
        double sum = 0.0;
        for (double width = 0.0; width < 12.0; width += 0.75)
            sum += Rule::integrate(integrand, low + width, low + width + 0.75);
        return sum;
    };
    double sum = 0.0;
    for (double low = -8.0; low < 5.0; low += 0.8125) sum += Rule::integrate(over_maximum, low, low + 0.8125);
    return (group - 1.0) * (group - 2.0) * sum;
}

TEST(QuantizerErrors, MinMaxMatchesAnotherQuadrature) {
    for (const auto& [group, bits] :
         {std::pair<int, int>{3, 1}, {3, 3}, {4, 2}, {7, 1}, {32, 2}, {64, 2}, {64, 3}, {128, 1}})
        expect_relative(min_max_relative_mse(group, bits), min_max_by_bins(group, bits), 1e-9,
                        std::to_string(group) + " entries, bits " + std::to_string(bits));
}

TEST(QuantizerErrors, MinMaxMatchesTheNoteAndItsSmallCases) {
    const double l2 = std::sqrt(min_max_relative_mse(64, 2));
    EXPECT_GT(l2, 0.449);
    EXPECT_LT(l2, 0.454);
    EXPECT_LT(min_max_relative_mse(32, 2), min_max_relative_mse(64, 2));
    for (int bits = 1; bits <= 8; ++bits) {
        EXPECT_EQ(min_max_relative_mse(1, bits), 0.0);
        EXPECT_EQ(min_max_relative_mse(2, bits), 0.0);
        for (const int group : {4, 64, 1 << 20})
            EXPECT_GT(min_max_relative_mse(group, bits), min_max_relative_mse(group / 2, bits));
        if (bits > 1) {
            EXPECT_LT(min_max_relative_mse(64, bits), min_max_relative_mse(64, bits - 1));
        }
    }
    // With many levels the error is uniform in every bin. The mean d2 and standard deviation d3 of the range of 5
    // normal values are the constants of control charts.
    const double range_square = 2.32592894 * 2.32592894 + 0.864081941 * 0.864081941;
    expect_relative(min_max_relative_mse(5, 8), 3.0 / 5.0 * range_square / (255.0 * 255.0) / 12.0, 1e-4, "8 bits");
}

TEST(QuantizerErrors, MinMaxMatchesSimulation) {
    std::mt19937_64 random(61);
    std::normal_distribution<double> normal;
    for (const auto& [group, bits] : {std::pair<int, int>{64, 2}, {32, 3}, {5, 1}}) {
        constexpr int groups = 20000;
        Sample error, uniform;
        std::vector<double> entries(static_cast<std::size_t>(group));
        for (int i = 0; i < groups; ++i) {
            for (double& entry : entries) entry = normal(random);
            const auto [low, high] = std::minmax_element(entries.begin(), entries.end());
            const double step = (*high - *low) / ((1 << bits) - 1);
            double sum = 0.0;
            for (const double entry : entries)
                sum += std::pow(*low + std::nearbyint((entry - *low) / step) * step - entry, 2);
            error.add(sum / group);
            uniform.add(step * step / 12.0);
        }
        const std::string what = std::to_string(group) + " entries, bits " + std::to_string(bits);
        expect_law(error, min_max_relative_mse(group, bits), 0.0, what);
        expect_detectable(error, min_max_relative_mse(group - 1, bits + 1), 0.0, what + " with a bit more");
        expect_detectable(error, min_max_relative_mse(group == 5 ? 6 : group + 16, bits), 0.0,
                          what + " in larger groups");
        expect_detectable(error, uniform.mean(), uniform.limit(), what + " as uniform error of step^2 / 12");
    }
}

// ---- compressors ------------------------------------------------------------------------------------------------

TEST(QuantizerErrors, CompressorMatchesThePrintedTables) {
    CompressorSetting setting;
    setting.bits = 2;
    EXPECT_NEAR(predict_compressor(setting).relative_l2, 0.3406, 5e-5);
    EXPECT_DOUBLE_EQ(predict_compressor(setting).bits_per_entry, 2.125);
    setting.quantizer = RowQuantizerKind::tq_prod;
    EXPECT_NEAR(predict_compressor(setting).relative_l2, 0.426, 5e-4);
    EXPECT_DOUBLE_EQ(predict_compressor(setting).bits_per_entry, 3.25);
    setting.quantizer = RowQuantizerKind::tq_mse;
    setting.residual_energy_fraction = 0.519 * 0.519;
    setting.rank = 1;
    const CompressorPrediction found = predict_compressor(setting);
    EXPECT_NEAR(found.relative_l2, 0.177, 5e-4);
    EXPECT_DOUBLE_EQ(found.row_bits, 2.125);
    EXPECT_DOUBLE_EQ(found.factor_bits, 0.0625 + 16.0 / 16384.0);
    EXPECT_DOUBLE_EQ(found.bits_per_entry, found.row_bits + found.factor_bits);
    EXPECT_NEAR(found.random_query.standard_deviation, 0.519 * 0.0301, 3e-5);
    EXPECT_NEAR(found.along_row.bias, -0.519 * 0.519 * 0.116, 2e-6);
    setting.rows = 512;
    setting.rank = 3;
    EXPECT_DOUBLE_EQ(predict_compressor(setting).factor_bits, 3.0 * (4.0 * 640.0 + 16.0) / 65536.0);
    setting.factor_bits = 16;
    setting.norm_bits = 32;
    EXPECT_DOUBLE_EQ(predict_compressor(setting).factor_bits, 3.0 * (16.0 * 640.0 + 32.0) / 65536.0);
    EXPECT_DOUBLE_EQ(predict_compressor(setting).row_bits, 2.25);
}

TEST(QuantizerErrors, CompressorWithNothingLeftHasNoError) {
    CompressorSetting setting;
    setting.residual_energy_fraction = 0.0;
    setting.rank = 128;
    for (const RowQuantizerKind kind : every_kind) {
        setting.quantizer = kind;
        const CompressorPrediction found = predict_compressor(setting);
        EXPECT_EQ(found.relative_l2, 0.0);
        EXPECT_EQ(found.random_query.standard_deviation, 0.0);
        EXPECT_EQ(found.along_row.bias, 0.0);
        EXPECT_EQ(found.along_row.standard_deviation, 0.0);
    }
}

TEST(QuantizerErrors, CompressorMatchesSimulatedRowsBehindAProjection) {
    // A row is the sum of a low-rank part and an orthogonal residual with a third of the energy; only the residual is
    // quantized.
    constexpr int dimension = 64;
    constexpr int rows = 30000;
    CompressorSetting setting;
    setting.dimension = dimension;
    setting.residual_energy_fraction = 1.0 / 3.0;
    setting.rank = 2;
    for (const CodebookLaw law : {CodebookLaw::sphere, CodebookLaw::normal}) {
        for (const RowQuantizerKind kind : {RowQuantizerKind::tq_mse, RowQuantizerKind::eden_mmse}) {
            setting.quantizer = kind;
            setting.codebook = law;
            setting.bits = 1;
            const CompressorPrediction expected = predict_compressor(setting);
            const Codebook codebook = law == CodebookLaw::sphere ? lloyd_max_sphere(dimension, 1) : lloyd_max_normal(1);
            RowSampler sampler(dimension, codebook, 71);
            Sample error, along, along_square;
            const double length = std::sqrt(setting.residual_energy_fraction);
            for (int i = 0; i < rows; ++i) {
                const RandomRow drawn =
                    sampler.draw();  // the direction of the residual; the low-rank part is orthogonal to it
                const double scale = row_scale(drawn, kind);
                error.add(length * length * squared_error(drawn, scale));
                const double ahead = length * (length * (scale * drawn.gain - 1.0) +
                                               std::sqrt(1.0 - length * length) * scale * drawn.across_code);
                along.add(ahead);
                along_square.add(std::pow(ahead - expected.along_row.bias, 2));
            }
            const double second_order = 5.0 * expected.relative_l2 * expected.relative_l2 / (dimension * dimension);
            expect_law(error, expected.relative_l2 * expected.relative_l2, second_order, "squared error");
            expect_law(along, expected.along_row.bias, second_order, "bias");
            const double variance = expected.along_row.standard_deviation * expected.along_row.standard_deviation;
            expect_law(along_square, variance, 3.0 / dimension * variance, "variance");
            expect_detectable(along, 0.0, second_order, "no bias");
            expect_detectable(along, expected.along_row.bias / length, second_order, "a bias of |r|/|x|");
        }
    }
}

TEST(QuantizerErrors, NamesAreThoseOfTheOptions) {
    EXPECT_EQ(name_of(RowQuantizerKind::eden_norm), "eden-norm");
    std::set<std::string_view> names;
    for (const RowQuantizerKind kind : every_kind) EXPECT_TRUE(names.insert(name_of(kind)).second) << name_of(kind);
}

TEST(QuantizerErrors, RejectsImpossibleInput) {
    Codebook book = lloyd_max_normal(2);
    const CodebookOnLaw moments = codebook_on_sphere(book, 128);
    for (const int dimension : {0, -3}) {
        expect_rejected([&] { (void)codebook_on_sphere(book, dimension); }, "dimension");
        expect_rejected([&] { (void)row_reconstruction(moments, dimension, RowQuantizerKind::eden); }, "dimension");
        expect_rejected([&] { (void)inner_product_error({}, dimension, 0.0); }, "dimension");
        expect_rejected([&] { (void)random_query_error(0.1, dimension); }, "dimension");
        expect_rejected([&] { (void)mean_absolute_coordinate(dimension); }, "dimension");
        expect_rejected([&] { (void)qjl_error(SketchRows::gaussian, dimension, 8, 0.0); }, "dimension");
    }
    for (const double cosine : {1.1, -1.1, not_a_number, infinite}) {
        expect_rejected([&] { (void)inner_product_error({}, 8, cosine); }, "cosine");
        expect_rejected([&] { (void)qjl_error(SketchRows::orthogonal, 8, 8, cosine); }, "cosine");
    }
    expect_rejected([] { (void)qjl_error(SketchRows::gaussian, 8, 0, 0.0); }, "at least one");
    for (const double mse : {-0.1, not_a_number, infinite}) {
        expect_rejected([&] { (void)random_query_error(mse, 8); }, "squared error");
        expect_rejected([&] { (void)inner_product_error({1.0, 1.0, 0.0, mse}, 8, 0.5); }, "impossible");
        expect_rejected([&] { (void)inner_product_error({1.0, 1.0, mse, 0.1}, 8, 0.5); }, "impossible");
    }
    for (const RowQuantizerKind kind :
         {RowQuantizerKind::eden, RowQuantizerKind::eden_mmse, RowQuantizerKind::eden_norm})
        expect_rejected([&] { (void)limit_of(0.0, 1.0, kind); }, "no scale");
    CodebookOnLaw broken = moments;
    broken.gain_variance = not_a_number;
    expect_rejected([&] { (void)row_reconstruction(broken, 8, RowQuantizerKind::tq_mse); }, "gain variance");

    expect_rejected([] { (void)codebook_on_sphere({}, 8); }, "at least one");
    book.levels[1] = not_a_number;
    expect_rejected([&] { (void)codebook_on_sphere(book, 8); }, "finite");
    book = lloyd_max_normal(2);
    book.thresholds.pop_back();
    expect_rejected([&] { (void)codebook_on_sphere(book, 8); }, "2 thresholds");
    book = lloyd_max_normal(2);
    book.thresholds[1] = book.thresholds[0];
    expect_rejected([&] { (void)codebook_on_sphere(book, 8); }, "increase");
    book.thresholds[1] = not_a_number;
    expect_rejected([&] { (void)codebook_on_sphere(book, 1); }, "increase");

    for (const int bits : {0, 9}) expect_rejected([&] { (void)min_max_relative_mse(64, bits); }, "1 to 8");
    for (const int group : {0, -1, (1 << 20) + 1})
        expect_rejected([&] { (void)min_max_relative_mse(group, 2); }, "group");

    const auto expect_setting_rejected = [](auto change, const char* text) {
        CompressorSetting setting;
        change(setting);
        expect_rejected([&] { (void)predict_compressor(setting); }, text);
    };
    for (const double fraction : {-0.01, 1.01, not_a_number, infinite})
        expect_setting_rejected([&](CompressorSetting& s) { s.residual_energy_fraction = fraction; }, "fraction");
    for (const int bits : {0, 9}) expect_setting_rejected([&](CompressorSetting& s) { s.bits = bits; }, "1 to 8");
    for (const int rank : {-1, 129}) expect_setting_rejected([&](CompressorSetting& s) { s.rank = rank; }, "rank");
    for (const int bits : {0, 65}) {
        expect_setting_rejected([&](CompressorSetting& s) { s.factor_bits = bits; }, "factor entry");
        expect_setting_rejected([&](CompressorSetting& s) { s.norm_bits = bits; }, "norm");
    }
    expect_setting_rejected([](CompressorSetting& s) { s.rows = 0; }, "rows");
    expect_setting_rejected([](CompressorSetting& s) { s.dimension = 0; }, "dimension");
}

}  // namespace
}  // namespace spiked::theory
