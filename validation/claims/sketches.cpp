#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "estimators/quantizers/sign_sketch.hpp"
#include "validation/claims/parts/coded_rows.hpp"

// Claims on the sign sketch (QJL) and on tq-prod, which has one.

namespace spiked::validation {
namespace {

constexpr double pi = std::numbers::pi;

/// The scale of the sketch with the fault of the control `constant`, over the right one.
double scale_of_sketch(const TrialPlace& place) { return 1.0 + (std::numbers::sqrt2 - 1.0) * place.fault; }
const Control wrong_scale{"constant", "the scale of the sketch off by sqrt(2)",
                          FaultSize{std::numbers::sqrt2 - 1.0, "of the scale of the sketch, too large", 0.0,
                                    "a scale of the sketch {} % too large"}};

/// Cosine of the angle between the unit vectors y and r.
constexpr double cosine = 0.6;
/// Estimate of <y, r> from the signs of the sketch of r.
double sketched_product(const TrialPlace& place, std::uint64_t replicate) {
    const std::size_t d = place.size;
    arma::mat r(1, d, arma::fill::zeros);
    arma::rowvec y(d, arma::fill::zeros);
    r(0, 0) = 1.0;
    y(0) = cosine;
    y(d - 1) = std::sqrt(1.0 - cosine * cosine);
    const auto options = rotation_of_trial(place, replicate);
    const estimators::SignSketch sketch({.seed = options.seed, .index = options.rotation_index}, d, d);
    estimators::BitWriter writer;
    sketch.write_signs(writer, r);
    const auto bytes = writer.bytes();
    estimators::BitReader reader(bytes);
    arma::mat estimate(1, d, arma::fill::zeros);
    sketch.add_directions(reader, {1.0}, estimate);
    const double factor = place.control_is("constant") ? scale_of_sketch(place)
                          : place.control_is("dead")   ? 1.0 - place.fault
                          : place.control_is("twice")  ? std::sqrt(2.0 / pi)
                          : place.control_is("root-d") ? std::pow(static_cast<double>(d), -0.5 * place.fault)
                                                       : 1.0;
    return factor * arma::dot(y, estimate.row(0));
}

Criterion sketch_mean(Form form, double constant, std::vector<Control> negative_controls,
                      std::vector<Control> positive_controls = {}) {
    return {.form = form,
            .name = std::string(name_of(form)),
            .measures = fmt::format("mean of <Phi y, sign(Phi r)> / d for unit y, r of cosine {}", cosine),
            .summary = Summary::mean,
            .prepare = [](const TrialPlace& place) -> Trial {
                return
                    [=](std::uint64_t replicate) { return sketched_product(place, replicate) / std::sqrt(pi / 2.0); };
            },
            .region = [=](std::size_t) { return around(constant * cosine, 0.015); },
            .quick = {{32, 10000}},
            .full = {{32, 50000}, {128, 5000}},
            .negative_controls = std::move(negative_controls),
            .positive_controls = std::move(positive_controls)};
}

Criterion sketch_variance(Form form, AcceptanceRegion region) {
    return {
        .form = form,
        .name = std::string(name_of(form)),
        .measures = fmt::format("d times the squared error of the sketched product, unit vectors of cosine {}", cosine),
        .summary = Summary::mean,
        .prepare = [](const TrialPlace& place) -> Trial {
            return [=](std::uint64_t replicate) {
                const double error = sketched_product(place, replicate) - cosine;
                return static_cast<double>(place.size) * error * error;
            };
        },
        .region = [=](std::size_t) { return region; },
        .quick = {{32, 20000}},
        .full = {{32, 100000}, {128, 10000}},
        .negative_controls = {wrong_scale}};
}

/// Rows before and after tq-prod, with the sign part changed by the control.
Decoded through_tq_prod(const TrialPlace& place, std::uint64_t replicate, unsigned bits) {
    Decoded block{gaussian_rows(place, replicate, 64, place.size), {}};
    const auto options = rotation_of_trial(place, replicate);
    block.decoded = coded_by("tq-prod", block.rows, bits, options);
    if (place.control.empty()) return block;
    const arma::mat first = coded_by("tq-mse", block.rows, bits, options);
    arma::mat signs = block.decoded - first;
    if (place.control_is("constant")) signs *= scale_of_sketch(place);
    signs *= 1.0 - place.fault_of("no-sign");
    if (place.control_is("norm-lost")) {
        const arma::vec stretch = arma::sqrt(arma::sum(arma::square(block.rows), 1)) /
                                  arma::sqrt(arma::sum(arma::square(block.rows - first), 1));
        signs.each_col() %= 1.0 + place.fault * (stretch - 1.0);
    }
    block.decoded = first + signs;
    return block;
}

const Control no_sign{"no-sign", "the sign left out",
                      FaultSize{1.0, "of the part of the signs, too small", 0.0, "a part of the signs {} % too small"}};

/// With `sign` the error is that of the full reconstruction, otherwise that of the reconstruction from the index bits.
Criterion bit_cost(Form form, bool sign, std::function<AcceptanceRegion(std::size_t)> region,
                   std::vector<Control> negative_controls, std::vector<Control> positive_controls = {}) {
    constexpr unsigned few = 2;
    return {
        .form = form,
        .name = fmt::format("{}{}", name_of(form), sign ? "" : "-index-bits"),
        .measures = fmt::format("squared error of tq-prod with 2 index bits and a sign{} over that of tq-mse with 3",
                                sign ? "" : ", the sign not decoded,"),
        .summary = Summary::mean,
        .prepare = [=](const TrialPlace& place) -> Trial {
            return [=](std::uint64_t replicate) {
                const unsigned bits = place.control_is("many-bits") ? 7 : few;
                Decoded with_sign = through_tq_prod(place, replicate, bits);
                if (!sign)
                    with_sign.decoded = coded_by("tq-mse", with_sign.rows, bits, rotation_of_trial(place, replicate));
                const Decoded three_bits{
                    with_sign.rows, coded_by("tq-mse", with_sign.rows, bits + 1, rotation_of_trial(place, replicate))};
                return relative_error(with_sign) / relative_error(three_bits);
            };
        },
        .region = std::move(region),
        .quick = {{64, 300}},
        .full = {{64, 500}, {128, 175}},
        .negative_controls = std::move(negative_controls),
        .positive_controls = std::move(positive_controls)};
}

}  // namespace

std::vector<Claim> sketch_claims() {
    return {
        {.id = "qjl.mean",
         .place = "paper, Section 2.2, QJL",
         .statement = "<Phi y, sign(Phi r)> / d estimates 2/pi <y, r/|r|> without bias",
         .plain = {"The sign sketch estimates 2/pi of the inner product.", "mean of the sketch", "printed"},
         .corrected = "it estimates sqrt(2/pi) <y, r/|r|>, which the scale sqrt(pi/2) of the method undoes",
         .expected_verdict = PrintedVerdict::refuted,
         .refuted_as = ClaimKind::misprint,
         .note = "a root is missing in one sentence; the paper's method and its scale are right",
         .criteria = {sketch_mean(Form::printed, 2.0 / pi, {}, {{"twice", "the factor sqrt(2/pi) applied once more"}}),
                      sketch_mean(Form::corrected, std::sqrt(2.0 / pi),
                                  {linear(wrong_scale),
                                   with_equal_trials(linear(
                                       {"dead", "the sketch contributes nothing",
                                        FaultSize{1.0, "of the sketch, too small", 0.0, "a sketch {} % too small"}})),
                                   {"root-d", "the sketch too small by sqrt(d)",
                                    FaultSize{0.5, "as power of d, by which the sketch is too small", 0.0,
                                              "a sketch too small by d to the power of {}"}}})}},
        {.id = "qjl.variance",
         .place = "TurboQuant, Lemma 4",
         .statement = "the variance of the sketched product is at most pi/(2d) |y|^2 |r|^2",
         .plain = {"The squared error of the sign sketch, of unit vectors, is at most pi/(2d).",
                   "d times its squared error", "printed"},
         .corrected = "it is (pi/2 - cos^2) |y|^2 |r|^2 / d",
         .criteria = {sketch_variance(Form::printed, at_most(pi / 2.0)),
                      sketch_variance(Form::corrected, around(pi / 2.0 - cosine * cosine, 0.12))}},
        {.id = "tq-prod.unbiased",
         .place = "paper, Section 2.2; TurboQuant, Theorem 2",
         .statement = "inner products with what tq-prod gives back are unbiased",
         .plain = {"The sketch removes the bias of inner products.", "gain of a row", "own-row"},
         .criteria = {{.form = Form::printed,
                       .name = "own-row",
                       .measures = "<x, x^> / |x|^2, tq-prod with 1 index bit",
                       .summary = Summary::mean,
                       .prepare = [](const TrialPlace& place) -> Trial {
                           return
                               [=](std::uint64_t replicate) { return self_gain(through_tq_prod(place, replicate, 1)); };
                       },
                       .region = [](std::size_t) { return around(1.0, 0.01); },
                       .quick = {{64, 750}},
                       .full = {{64, 1000}, {128, 350}},
                       .negative_controls =
                           {linear(no_sign), linear(wrong_scale),
                            linear({"norm-lost", "the norm of the row in place of the residual's",
                                    FaultSize{1.0, "of the way to the norm of the row", 0.0,
                                              "norms of the residual {} % of the way to those of the rows"}})}}}},
        {.id = "tq-prod.bit-cost",
         .place = "paper, Section 2.2 and remark on QJL",
         .statement = "the bit of the sign costs a factor of 4 in squared error",
         .plain = {"The bit of the sketch costs a factor of 4 in squared error.", "factor from 2 bits to 3",
                   "printed-index-bits"},
         .corrected = "the index bit that it replaces is worth D_b / D_(b+1), 3.4 from 2 bits to 3; where the sign is "
                      "decoded too, the error is (pi/2 - 1/d) times as large, 5.3",
         .expected_verdict = PrintedVerdict::refuted,
         .refuted_as = ClaimKind::overstated,
         .note = "4 is the law of many bits, 3.98 from 7 bits to 8; the paper uses 2 to 4",
         .criteria = {bit_cost(Form::printed, false, [](std::size_t) { return around(4.0, 0.4); }, {},
                               {{"many-bits", "7 index bits against 8"}}),
                      bit_cost(Form::corrected, false,
                               [](std::size_t d) { return around(distortion_of(d, 2) / distortion_of(d, 3), 0.1); },
                               {{"many-bits", "7 index bits against 8"}}),
                      bit_cost(Form::corrected, true,
                               [](std::size_t d) {
                                   const double ratio = (pi / 2.0 - 1.0 / static_cast<double>(d)) *
                                                        distortion_of(d, 2) / distortion_of(d, 3);
                                   return around(ratio, 0.15);
                               },
                               {no_sign})}},
    };
}

}  // namespace spiked::validation
