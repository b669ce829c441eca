#include <gtest/gtest.h>

#include <map>
#include <numbers>

#include "estimators/tests/quantizer_samples.hpp"
#include "theory/quantization/lloyd_max.hpp"
#include "theory/quantization/quantizer_errors.hpp"

namespace spiked::estimators {
namespace {

using theory::RowQuantizerKind;

arma::vec shares(const arma::mat& decoded, const arma::mat& rows) {
    return arma::sum(arma::square(decoded - rows), 1) / arma::sum(arma::square(rows), 1);
}

theory::CodebookOnLaw sphere_law(std::size_t d, unsigned bits) {
    return theory::codebook_on_sphere(theory::lloyd_max_sphere(static_cast<int>(d), static_cast<int>(bits)),
                                      static_cast<int>(d));
}

// The squared error of a row on the sphere has the mean D_b(d) exactly, for any rotation; rows are independent.
TEST(RowQuantizerLaw, TurboQuantHasTheDistortionOfTheSphereAtEveryWidthAndRate) {
    double worst = 0.0;
    for (const std::size_t d : {32, 64, 128, 256}) {
        const arma::mat rows = gaussian(4096 * 128 / d, d, d);
        for (unsigned bits = 1; bits <= 8; ++bits) {
            const double expected = sphere_law(d, bits).distortion;
            const MeanTest found(
                shares(through(row_quantizer("tq-mse", d, bits, {.norm = NumberFormat::fp64, .seed = test_seed}), rows),
                       rows),
                expected, 4 * 8);
            EXPECT_TRUE(found.agrees()) << "d=" << d << " b=" << bits << ": " << found;
            worst = std::max(worst, found.detectable() / expected);
        }
    }
    std::cout << "detectable: " << worst << " of the distortion, or less\n";
}

TEST(RowQuantizerControl, TheLimitLawIsDistinguishedFromTheExactOne) {
    const arma::mat rows = gaussian(16384, 16, 16);
    const MeanTest found(
        shares(through(row_quantizer("tq-mse", 16, 2, {.norm = NumberFormat::fp64, .seed = test_seed}), rows), rows),
        theory::lloyd_max_normal(2).distortion, 4 * 8);
    EXPECT_FALSE(found.agrees()) << found;
}

/// Means over the rows x of a block for many rotations (and sketches): <x, x^> / |x|^2, <q, x^> / (|q| |x|) for a q
/// orthogonal to x, |x - x^|^2 / |x|^2.
struct Samples {
    arma::vec gain;
    arma::vec across;
    arma::vec error;
};

Samples sample(const std::string& method, unsigned bits, const arma::mat& rows, std::size_t rotations,
               RotationKind kind = RotationKind::haar) {
    const std::size_t d = rows.n_cols;
    const arma::vec energy = arma::sum(arma::square(rows), 1);
    arma::mat across = gaussian(1, d, 77);
    across = arma::repmat(across, rows.n_rows, 1);
    for (std::size_t t = 0; t < rows.n_rows; ++t) {
        across.row(t) -= arma::dot(across.row(t), rows.row(t)) / energy(t) * rows.row(t);
        across.row(t) *= std::sqrt(energy(t)) / arma::norm(across.row(t));
    }
    Samples samples{arma::vec(rotations), arma::vec(rotations), arma::vec(rotations)};
    for (std::size_t r = 0; r < rotations; ++r) {
        const arma::mat decoded = through(
            row_quantizer(method, d, bits,
                          {.rotation = kind, .norm = NumberFormat::fp64, .seed = test_seed, .rotation_index = r}),
            rows);
        samples.gain(r) = arma::mean(arma::vec(arma::sum(rows % decoded, 1) / energy));
        samples.across(r) = arma::mean(arma::vec(arma::sum(across % decoded, 1) / energy));
        samples.error(r) = arma::mean(shares(decoded, rows));
    }
    return samples;
}

/// Rows that are similar (cosine .99), rows along an axis, rows without structure.
std::map<std::string, arma::mat> inputs(std::size_t d) {
    arma::mat one_hot(4, d);
    for (std::size_t t = 0; t < 4; ++t) one_hot(t, 5 * t) = 3.0;
    return {{"gaussian", gaussian(4, d, 1)},
            {"one-hot", one_hot},
            {"clustered", arma::repmat(gaussian(1, d, 2), 4, 1) + 0.1 * gaussian(4, d, 3)}};
}

TEST(RowQuantizerLaw, GainIsOneMinusTheDistortionForTurboQuantAndOneForTheUnbiased) {
    constexpr std::size_t d = 32;
    constexpr double tests = 3 * 3 * 3 * 3;
    double worst = 0.0;
    for (const unsigned bits : {1U, 2U, 4U})
        for (const auto& [name, rows] : inputs(d)) {
            const theory::CodebookOnLaw law = sphere_law(d, bits);
            for (const char* method : {"tq-mse", "eden", "tq-prod"}) {
                const Samples found = sample(method, bits, rows, 300);
                const double gain = std::string_view(method) == "tq-mse" ? law.linear_gain : 1.0;
                if (std::string_view(method) == "eden") {
                    EXPECT_LT(arma::abs(found.gain - 1.0).max(), 1e-12) << "<x, x^> = |x|^2 for every row";
                } else {
                    const MeanTest along(found.gain, gain, tests);
                    EXPECT_TRUE(along.agrees()) << method << " " << bits << " " << name << ": " << along;
                    worst = std::max(worst, along.detectable());
                }
                if (std::string_view(method) == "tq-mse") {
                    const MeanTest error(found.error, law.distortion, tests);
                    EXPECT_TRUE(error.agrees()) << bits << " " << name << ": " << error;
                }
                const MeanTest across(found.across, 0.0, tests);
                EXPECT_TRUE(across.agrees()) << method << " " << bits << " " << name << " across: " << across;
                worst = std::max(worst, across.detectable());
            }
            EXPECT_NEAR(law.linear_gain, 1.0 - law.distortion, 1e-12);
        }
    std::cout << "detectable gain or bias across the row: " << worst << " or less\n";
}

TEST(RowQuantizerControl, TheBiasOfTurboQuantAndOfNoRotationIsDetected) {
    const MeanTest biased(sample("tq-mse", 2, gaussian(4, 32, 1), 300).gain, 1.0, 54);
    EXPECT_FALSE(biased.agrees()) << biased;
    // With one round of signs on one-hot rows the distortion is not that of the sphere.
    const MeanTest flat(sample("tq-mse", 2, inputs(32).at("one-hot"), 20, RotationKind::rht1).error,
                        sphere_law(32, 2).distortion, 54);
    EXPECT_FALSE(flat.agrees()) << flat;
}

TEST(RowQuantizerLaw, TheThreeScalesOfEdenHaveTheErrorsOfTheory) {
    constexpr std::size_t d = 128;
    constexpr double tests = 16;
    const arma::mat rows = gaussian(6000, d, 4);
    // Research note quantizers.md 1.2, where these were measured to .0001: tq-mse, eden-norm, eden-mmse, eden.
    const double table[4][4] = {{.36098, .40123, .36064, .56744},
                                {.11572, .11851, .11494, .13020},
                                {.03382, .03365, .03336, .03455},
                                {.00932, .00917, .00915, .00924}};
    const std::pair<const char*, RowQuantizerKind> methods[4] = {{"tq-mse", RowQuantizerKind::tq_mse},
                                                                 {"eden-norm", RowQuantizerKind::eden_norm},
                                                                 {"eden-mmse", RowQuantizerKind::eden_mmse},
                                                                 {"eden", RowQuantizerKind::eden}};
    for (unsigned bits = 1; bits <= 4; ++bits) {
        arma::vec plain;
        for (int m = 0; m < 4; ++m) {
            const auto& [name, kind] = methods[m];
            const double expected = theory::row_reconstruction(sphere_law(d, bits), d, kind).relative_mse;
            const arma::vec found = shares(
                through(row_quantizer(name, d, bits, {.norm = NumberFormat::fp64, .seed = test_seed}), rows), rows);
            const MeanTest test(found, expected, tests);
            // The theory leaves out at most 5 D / d^2.
            EXPECT_LT(std::abs(test.deviation), test.limit + 5.0 * expected / (d * d)) << name << bits << ": " << test;
            EXPECT_LT(std::abs(test.mean - table[bits - 1][m]), test.limit + 4e-4) << name << bits;
            std::cout << name << " " << bits << " bits: " << test << "\n";
            // For every row least squares has the smallest error of them, and no other scale has this error.
            if (m == 0) plain = found;
            if (kind == RowQuantizerKind::eden_mmse) {
                EXPECT_TRUE(arma::all(found <= plain + 1e-12));
            }
        }
    }
    const MeanTest control(
        shares(through(row_quantizer("eden-norm", d, 2, {.norm = NumberFormat::fp64, .seed = test_seed}), rows), rows),
        sphere_law(d, 2).distortion, tests);
    EXPECT_FALSE(control.agrees()) << control;
}

TEST(RowQuantizerIdentity, EdenScalesHaveTheirDefiningProperties) {
    const arma::mat rows = gaussian(50, 48, 5);
    for (unsigned bits = 1; bits <= 8; ++bits) {
        const auto decoded = [&](const char* name) {
            return through(row_quantizer(name, 48, bits, {.norm = NumberFormat::fp64, .seed = test_seed}), rows);
        };
        const arma::vec energy = arma::sum(arma::square(rows), 1);
        const arma::vec unbiased = arma::sum(rows % decoded("eden"), 1) / energy;
        EXPECT_LT(arma::abs(unbiased - 1.0).max(), 1e-12);
        const arma::mat least = decoded("eden-mmse");
        EXPECT_LT(arma::abs(arma::vec(arma::sum((rows - least) % least, 1) / energy)).max(), 1e-12);
        const arma::vec norm = arma::sum(arma::square(decoded("eden-norm")), 1) / energy;
        EXPECT_LT(arma::abs(norm - 1.0).max(), 1e-12);
        // With fp16 the same holds up to its rounding error, 2^-11.
        const arma::vec rounded =
            arma::sum(rows % through(row_quantizer("eden", 48, bits, {.seed = test_seed}), rows), 1) / energy;
        EXPECT_LT(arma::abs(rounded - 1.0).max(), 0x1p-11 + 1e-12);
    }
}

TEST(RowQuantizerLaw, TurboQuantProdHasTheErrorOfItsSketch) {
    constexpr std::size_t d = 128;
    const double printed[3] = {.426, .230, .121};  // research note quantizers.md 2
    for (unsigned bits = 2; bits <= 4; ++bits) {
        const double expected =
            theory::row_reconstruction(sphere_law(d, bits), d, RowQuantizerKind::tq_prod).relative_mse;
        EXPECT_NEAR(expected, sphere_law(d, bits).distortion * (std::numbers::pi / 2.0 - 1.0 / d), 1e-12);
        const Samples found = sample("tq-prod", bits, gaussian(64, d, 6), 60);
        const MeanTest test(found.error, expected, 6);
        EXPECT_TRUE(test.agrees()) << bits << ": " << test;
        EXPECT_NEAR(std::sqrt(test.mean), printed[bits - 2], 0.002) << bits;
        std::cout << "tq-prod at " << bits << " bits: " << test << "\n";
        // With rows of a Haar matrix the sketch's part of the error is smaller.
        const Samples orthogonal = sample("tq-prod:projection=orthogonal", bits, gaussian(64, d, 6), 60);
        EXPECT_LT(arma::mean(orthogonal.error), 0.7 * expected);
        EXPECT_TRUE(MeanTest(orthogonal.gain, 1.0, 6).agrees());
        EXPECT_FALSE(MeanTest(orthogonal.error, expected, 6).agrees());
    }
}

}  // namespace
}  // namespace spiked::estimators
