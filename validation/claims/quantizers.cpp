#include <fmt/format.h>

#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <numbers>

#include "estimators/rotations/row_rotation.hpp"
#include "sim/spiked/entry_law.hpp"
#include "theory/quantization/lloyd_max.hpp"
#include "theory/quantization/rate_distortion.hpp"
#include "validation/claims/parts/coded_rows.hpp"

// Claims on tq-mse for given rows.

namespace spiked::validation {
namespace {

/// A second implementation of TurboQuant for defects that the production code has no option for: other levels, another
/// rotation in the decoder.
struct Handmade {
    theory::Codebook codebook;
    double scale = 1.0;              ///< scale of the levels
    std::uint64_t index_offset = 0;  ///< the decoder uses the rotation with this offset in the index
    bool inverse = false;            ///< the rotation and its inverse are exchanged, which is Haar as well
};
arma::mat coded_by_hand(const arma::mat& rows, const Handmade& made, const TrialPlace& place, std::uint64_t replicate) {
    const auto rotation = [&](std::uint64_t index) {
        return estimators::RowRotation(estimators::RotationKind::haar,
                                       stream::Stream(place.seed, place.cell, stream::Role::rotation, index),
                                       rows.n_cols);
    };
    const arma::vec norms = arma::sqrt(arma::sum(arma::square(rows), 1) / static_cast<double>(rows.n_cols));
    arma::mat rotated = made.inverse ? rotation(replicate).rotate_back(rows) : rotation(replicate).rotate(rows);
    rotated.each_col() /= norms;
    rotated.transform([&](double z) {
        const auto& thresholds = made.codebook.thresholds;
        const auto above = std::upper_bound(thresholds.begin(), thresholds.end(), z / made.scale);
        return made.scale * made.codebook.levels[static_cast<std::size_t>(above - thresholds.begin())];
    });
    rotated.each_col() %= norms;
    const auto back = rotation(replicate + made.index_offset);
    return made.inverse ? back.rotate(rotated) : back.rotate_back(std::move(rotated));
}

/// The same bins, each decoded at its lower edge; the lowest bin, which has none, gets a level one bin width below the
/// lowest threshold.
theory::Codebook lower_edges(theory::Codebook codebook) {
    const auto& thresholds = codebook.thresholds;
    for (std::size_t i = 1; i < codebook.levels.size(); ++i) codebook.levels[i] = thresholds[i - 1];
    codebook.levels[0] = 2.0 * thresholds[0] - thresholds[1];
    return codebook;
}

/// The Walsh-Hadamard matrix divided by sqrt(d).
arma::mat walsh(std::size_t d) {
    arma::mat matrix(1, 1, arma::fill::ones);
    const arma::mat two = {{1.0, 1.0}, {1.0, -1.0}};
    while (matrix.n_rows < d) matrix = arma::kron(two, matrix);
    return matrix / std::sqrt(static_cast<double>(d));
}

/// Bins of equal probability for a normal coordinate, each with its median as level.
theory::Codebook equal_probability_bins(unsigned bits) {
    const boost::math::normal law;
    const unsigned bins = 1U << bits;
    theory::Codebook codebook;
    for (unsigned i = 0; i < bins; ++i) {
        codebook.levels.push_back(boost::math::quantile(law, (i + 0.5) / bins));
        if (i > 0) codebook.thresholds.push_back(boost::math::quantile(law, static_cast<double>(i) / bins));
    }
    return codebook;
}

/// Levels and thresholds a part of the way from those of one codebook to those of another.
theory::Codebook part_way(theory::Codebook from, const theory::Codebook& to, double part) {
    for (std::size_t i = 0; i < from.levels.size(); ++i) from.levels[i] += part * (to.levels[i] - from.levels[i]);
    for (std::size_t i = 0; i < from.thresholds.size(); ++i)
        from.thresholds[i] += part * (to.thresholds[i] - from.thresholds[i]);
    return from;
}

/// Clustered rows have 94 % of their energy on one direction, the diagonal, in the mean.
enum class Rows { gaussian, one_hot, clustered };

/// Rows through tq-mse, with a new rotation in each trial.
Decoded through_tq_mse(const TrialPlace& place, std::uint64_t replicate, Rows kind, unsigned bits) {
    const std::size_t d = place.size;
    const auto rows_of = [&]() -> arma::mat {
        if (kind == Rows::one_hot) return arma::mat(d, d, arma::fill::eye);
        const arma::mat gaussian = gaussian_rows(place, replicate, 64, d);
        if (kind == Rows::clustered) return 1.0 + 0.25 * gaussian;
        return gaussian;
    };
    Decoded result{rows_of(), {}};
    auto options = rotation_of_trial(place, replicate);
    if (place.control_is("no-rotation")) options.rotation = estimators::RotationKind::identity;
    if (place.control_is("one-round")) options.rotation = estimators::RotationKind::rht1;
    const auto levels = [&](std::size_t dimension) {
        return theory::lloyd_max_sphere(static_cast<int>(dimension), static_cast<int>(bits));
    };
    const auto by_levels = [&](const theory::Codebook& wrong) {
        return coded_by_hand(result.rows, {part_way(levels(d), wrong, place.fault)}, place, replicate);
    };
    if (place.control_is("half-variance"))
        result.decoded = coded_by_hand(result.rows, {levels(d), 1.0 - (1.0 - 1.0 / std::numbers::sqrt2) * place.fault},
                                       place, replicate);
    else if (place.control_is("other-dimension"))
        result.decoded = by_levels(levels(4));
    else if (place.control_is("unscaled")) {
        theory::Codebook wrong = levels(512);
        const double scale = std::sqrt(static_cast<double>(d) / 512.0);
        for (double& level : wrong.levels) level *= scale;
        for (double& threshold : wrong.thresholds) threshold *= scale;
        result.decoded = by_levels(wrong);
    } else if (place.control_is("equal-cells"))
        result.decoded = by_levels(equal_probability_bins(bits));
    else if (place.control_is("lower-edge"))
        result.decoded = by_levels(lower_edges(levels(d)));
    else if (place.control_is("no-signs")) {
        result.rows.fill(1.0);
        options.rotation = estimators::RotationKind::identity;
        result.decoded = coded_by("tq-mse", result.rows * walsh(d), bits, options) * walsh(d).t();
    } else if (place.control_is("wrong-inverse"))
        result.decoded = coded_by_hand(result.rows, {levels(d), 1.0, 1}, place, replicate);
    else if (place.control_is("shared-seed")) {
        // These rows are the columns that were orthogonalised to make the rotation, so it maps them to a triangular
        // matrix.
        result.rows.set_size(d, d);
        sim::fill_entries({}, stream::Stream(place.seed, place.cell, stream::Role::rotation, replicate),
                          {result.rows.memptr(), result.rows.n_elem});
        result.rows = result.rows.t();
        result.decoded = coded_by_hand(result.rows, {levels(d), 1.0, 0, true}, place, replicate);
    } else {
        result.decoded = coded_by("tq-mse", result.rows, bits, options);
        const auto moved_to = [&](const arma::mat& wrong) {
            result.decoded = (1.0 - place.fault) * result.decoded + place.fault * wrong;
        };
        if (place.control_is("norm-lost"))
            moved_to(arma::normalise(result.decoded, 2, 1) * arma::norm(result.rows.row(0)));
        if (place.control_is("unbiased")) moved_to(coded_by("eden", result.rows, bits, options));
    }
    return result;
}

const Control half_variance{
    "half-variance", "levels for coordinates of variance 1/(2d)",
    FaultSize{1.0 - 1.0 / std::numbers::sqrt2, "of the levels, too small", 0.0, "levels {} % too small"}};

/// A control whose codebook is a wrong one, or lies on the way there.
Control wrong_levels(std::string name, std::string description, const std::string& where) {
    return {std::move(name), std::move(description),
            FaultSize{1.0, "of the way to the wrong levels", 0.0, "levels {} % of the way to " + where}};
}

/// The bound over that which some other programs state, sqrt(3 pi) / 2.
const double copied_bound = std::sqrt(std::numbers::pi);

Criterion distortion(Form form, Rows kind, unsigned bits, std::function<AcceptanceRegion(std::size_t)> region,
                     std::vector<Control> negative_controls) {
    const std::string rows = kind == Rows::gaussian ? "Gaussian" : "one-hot";
    return {.form = form,
            .name = fmt::format("{}-{}-{}", name_of(form), kind == Rows::gaussian ? "gaussian" : "one-hot", bits),
            .measures = fmt::format("relative squared error of tq-mse at {} bits, {} rows", bits, rows),
            .summary = Summary::mean,
            .prepare = [=](const TrialPlace& place) -> Trial {
                const double scale = 1.0 + place.fault_of("copied-bound") * (copied_bound - 1.0);
                return [=](std::uint64_t replicate) {
                    return scale * relative_error(through_tq_mse(place, replicate, kind, bits));
                };
            },
            .region = std::move(region),
            .quick = {{64, 600}},
            .full = {{64, 1050}, {128, 380}, {256, 170}},
            .negative_controls = std::move(negative_controls)};
}

Criterion exact_distortion(Rows kind, unsigned bits, std::vector<Control> negative_controls) {
    return distortion(
        Form::corrected, kind, bits,
        [=](std::size_t d) {
            const double predicted = distortion_of(d, bits);
            return around(predicted, 0.02 * predicted);
        },
        std::move(negative_controls));
}

/// The error of clustered rows over that of a uniform row, minus 1.
Criterion excess_of_clustered(Form form, AcceptanceRegion region, std::vector<Control> negative_controls,
                              std::vector<Control> positive_controls = {}) {
    constexpr unsigned bits = 2;
    return {.form = form,
            .name = std::string(name_of(form)),
            .measures = fmt::format("relative squared error of tq-mse at {} bits over that of a uniform row, minus 1, "
                                    "rows with 94 % of their energy on one direction",
                                    bits),
            .summary = Summary::mean,
            .prepare = [](const TrialPlace& place) -> Trial {
                const double uniform = distortion_of(place.size, bits);
                return [=](std::uint64_t replicate) {
                    return relative_error(through_tq_mse(place, replicate, Rows::clustered, bits)) / uniform - 1.0;
                };
            },
            .region = [=](std::size_t) { return region; },
            .quick = {{64, 1600}},
            .full = {{64, 3000}, {128, 1500}},
            .negative_controls = std::move(negative_controls),
            .positive_controls = std::move(positive_controls)};
}

Claim linear_bias() {
    constexpr unsigned bits = 2;
    return {.id = "bias.linear",
            .place = "paper, proof of the proposition, part 3",
            .statement = "the bias of an inner product with a row of norm rho is at most C_b rho^2 / d",
            .plain = {"The bias of an inner product falls like 1/d.", "exponent of d times the bias", "over-d"},
            .corrected = "it is -D_b <q, x>: linear in the row and the query, without the factor 1/d",
            .expected_verdict = PrintedVerdict::refuted,
            .refuted_as = ClaimKind::untrue,
            .note = "for a unit row and q = x the bias is D_b at every d, against C_b / d",
            .criteria = {{.form = Form::printed,
                          .name = "over-d",
                          .measures = "d |<x, x~ - x>| / |x|^2 against d, tq-mse at 2 bits",
                          .summary = Summary::rate,
                          .prepare = [](const TrialPlace& place) -> Trial {
                              const auto d = static_cast<double>(place.size);
                              const double kept = place.control_is("fades") ? 16.0 / d : 1.0;
                              return [=](std::uint64_t replicate) {
                                  Decoded block = through_tq_mse(place, replicate, Rows::gaussian, bits);
                                  block.decoded = block.rows + kept * (block.decoded - block.rows);
                                  return d * (1.0 - self_gain(block));
                              };
                          },
                          .region = [](std::size_t) { return at_most(0.0, 0.2); },
                          .quick = {{32, 400}, {64, 300}, {128, 150}},
                          .full = {{32, 1000}, {64, 1000}, {128, 500}, {256, 200}},
                          .positive_controls = {{"fades", "every error smaller by 16/d"}}},
                         {.form = Form::corrected,
                          .name = "gain",
                          .measures = "<x, x~> / |x|^2, tq-mse at 2 bits",
                          .summary = Summary::mean,
                          .prepare = [](const TrialPlace& place) -> Trial {
                              return [=](std::uint64_t replicate) {
                                  return self_gain(through_tq_mse(place, replicate, Rows::gaussian, bits));
                              };
                          },
                          .region = [](std::size_t d) { return around(1.0 - distortion_of(d, bits), 0.004); },
                          .quick = {{64, 750}},
                          .full = {{64, 1000}, {128, 350}},
                          .negative_controls = {with_equal_trials(linear({"unbiased", "a quantizer without bias",
                                                                          FaultSize{1.0, "of the bias, too small", 0.0,
                                                                                    "a bias {} % too small"}})),
                                                half_variance}}},
            .in_study = {}};
}

}  // namespace

std::vector<Claim> quantizer_claims() {
    return {
        {.id = "lloyd-max.distortion",
         .place = "TurboQuant, Theorem 1; paper, Section 2.2",
         .statement = "tq-mse with b bits has relative squared error at most sqrt(3) pi / 2 4^-b",
         .plain = {"The error of the quantizer is known in advance.", "relative squared error at 2 bits",
                   "corrected-gaussian-2"},
         .corrected = "it is D_b(d), the Lloyd-Max distortion of a coordinate of the sphere, whatever the row",
         .criteria =
             {distortion(Form::printed, Rows::gaussian, 4,
                         [](std::size_t) { return at_most(theory::panter_dite_constant * std::pow(4.0, -4)); },
                         {half_variance, linear({"copied-bound", "sqrt(3 pi) / 2 in the bound",
                                                 FaultSize{copied_bound - 1.0, "of the error over the bound, too large",
                                                           0.0, "an error over the bound {} % too large"}})}),
              exact_distortion(Rows::gaussian, 1, {half_variance}),
              exact_distortion(
                  Rows::gaussian, 2,
                  {half_variance,
                   {"norm-lost", "one norm for all rows",
                    FaultSize{1.0, "of the way to the norm of the first row", 0.0,
                              "norms {} % of the way to that of the first row"}},
                   wrong_levels("other-dimension", "the levels of d = 4", "those of d = 4"),
                   wrong_levels("unscaled", "a table of levels for d = 512, not scaled to d",
                                "those for d = 512, not scaled to d"),
                   wrong_levels("equal-cells", "cells of equal probability", "cells of equal probability"),
                   wrong_levels("lower-edge", "cells decoded at their lower edge", "the lower edges of their cells"),
                   {"wrong-inverse", "another rotation undone"},
                   {"shared-seed", "rows drawn from the numbers of the rotation"}}),
              exact_distortion(Rows::gaussian, 4, {half_variance}),
              exact_distortion(
                  Rows::one_hot, 2,
                  {with_equal_trials({"no-rotation", "rows coded as they are"}),
                   with_equal_trials({"one-round", "one round of the randomised Hadamard transform"}),
                   with_equal_trials({"no-signs", "constant rows, the Hadamard transform without signs"})})}},
        {.id = "clustered-rows",
         .place = "paper, Section 2.2 and on why shrinkage helps",
         .statement = "for rows that cluster about a direction the codebook becomes suboptimal: after the rotation "
                      "their coordinates are no longer normal",
         .plain = {"Rows that resemble each other are coded worse than rows in all directions.",
                   "error over that of a uniform row, minus 1", "printed"},
         .corrected = "their mean error is that of uniform rows, since each of them has the sphere's law; only the "
                      "errors of rows that resemble each other rise and fall together",
         .expected_verdict = PrintedVerdict::refuted,
         .refuted_as = ClaimKind::ambiguous,
         .note = "refuted where it means a larger error: over rotations there is none. Given the rotation that a block "
                 "shares, its coordinates are not normal, and a codebook of its own would have an error 8 % smaller at "
                 "d = 64 and 4 % at 128 (uniform rows: .3 and .1 %), before what that codebook costs. The mean error "
                 "of a block of 64 such rows varies 6.5 times as much over rotations as that of 64 uniform rows (11 % "
                 "against 1.7 % at d = 128). Removing the signal helps because less is left to quantize",
         .criteria = {excess_of_clustered(Form::printed, at_least(0.05), {},
                                          {{"no-rotation", "rows coded as they are"}}),
                      excess_of_clustered(Form::corrected, around(0.0, 0.03),
                                          {{"no-rotation", "rows coded as they are"},
                                           {"unbiased", "a quantizer without bias, whose error is larger",
                                            FaultSize{1.0, "of the way to a quantizer without bias", 0.0,
                                                      "rows {} % of the way to those of a quantizer without bias"}}})}},
        linear_bias(),
    };
}

}  // namespace spiked::validation
