#include "validation/trials/bench/trial.hpp"

#include <array>
#include <cmath>

#include "estimators/spectral/eoptshrink.hpp"
#include "sim/random/haar.hpp"
#include "sim/random/normal.hpp"
#include "theory/laws/separable_law.hpp"

namespace spiked::validation {
namespace {

constexpr std::size_t side = 128;
constexpr int bits = 4;
constexpr double thresholds_of_signal[] = {4.0, 3.5, 3.0, 2.5};

stream::Stream trial_stream(stream::Role role, std::uint64_t replicate) {
    static const auto seed = stream::StudySeed::parse("0x5eed");
    return {seed, "bench trial", role, replicate};
}

arma::mat identity() { return arma::mat(side, side, arma::fill::eye); }

arma::fmat to_float(const arma::mat& matrix) { return arma::conv_to<arma::fmat>::from(matrix); }

}  // namespace

stream::Stream trial_noise(std::uint64_t replicate) { return trial_stream(stream::Role::noise, replicate); }
stream::Stream trial_rotation() { return trial_stream(stream::Role::rotation, 0); }

TrialSetup trial_setup() {
    const auto column_values = sim::Covariance::exponential(2.0, side).eigenvalues();
    TrialSetup setup{
        .model = {.row = sim::Covariance::ar1(0.4, side),
                  .column = sim::Covariance::on_basis(
                      column_values, stream::haar_frame(trial_stream(stream::Role::column_basis, 0), side, side))},
        .left = stream::haar_frame(trial_stream(stream::Role::left_vectors, 0), side, std::size(thresholds_of_signal)),
        .right =
            stream::haar_frame(trial_stream(stream::Role::right_vectors, 0), side, std::size(thresholds_of_signal)),
        .rotation = stream::haar_frame(trial_rotation(), side, side),
        .codebook = theory::lloyd_max_sphere(side, bits)};
    const theory::SeparableLaw law(setup.model.row.spectrum(), setup.model.column.spectrum(),
                                   AspectRatio::of(side, side));
    for (const double ratio : thresholds_of_signal)
        setup.model.strengths.push_back({ratio * law.detection_threshold().value});
    return setup;
}

Trials::Trials(const TrialSetup& setup, sim::Colouring colouring)
    : colouring_(colouring),
      rotation_(to_float(setup.rotation)),
      hadamard_(trial_rotation(), side),
      search_(setup.codebook),
      decomposition_(estimators::Shape{side, side}),
      observed_(side, side, batch_size),
      white_(side, side),
      codes_(side, side) {
    const sim::SpikedModel& model = setup.model;
    const double noise_scale = 1.0 / std::sqrt(static_cast<double>(side));
    arma::mat left = setup.left;
    for (arma::uword i = 0; i < left.n_cols; ++i) left.col(i) *= model.strengths[i].value;
    if (colouring == sim::Colouring::dense) {
        row_root_ = to_float(noise_scale * model.row.root_times(identity()));
        column_root_ = to_float(model.column.root_times(identity()));
        left_ = to_float(left);
        right_ = to_float(setup.right);
    } else {
        row_root_ = to_float(noise_scale * arma::sqrt(model.row.eigenvalues()));
        column_root_ = to_float(arma::sqrt(model.column.eigenvalues()));
        left_ = to_float(model.row.to_eigenbasis(left));
        right_ = to_float(model.column.to_eigenbasis(setup.right));
    }
}

std::vector<TrialOutcome> Trials::run(std::uint64_t first) {
    for (std::size_t at = 0; at < batch_size; ++at) {
        draw(first + at);
        colour(at);
    }
    find_values();
    std::vector<TrialOutcome> outcomes;
    for (std::size_t at = 0; at < batch_size; ++at) {
        estimate(at);
        find_vectors(at);
        subtract(at);
        rotate();
        quantize();
        outcomes.push_back(outcome_);
    }
    return outcomes;
}

arma::fmat Trials::white(std::uint64_t replicate) {
    arma::fmat normals(side, side);
    stream::fill_normal(trial_noise(replicate), std::span<float>(normals.memptr(), normals.n_elem));
    return normals;
}

void Trials::draw(std::uint64_t replicate) {
    stream::fill_normal(trial_noise(replicate), std::span<float>(white_.memptr(), white_.n_elem));
}

void Trials::colour(std::size_t at) {
    arma::fmat& observed = observed_.slice(at);
    if (colouring_ == sim::Colouring::dense) {
        half_coloured_ = row_root_ * white_;
        observed = half_coloured_ * column_root_;
    } else {
        const float* row = row_root_.memptr();
        for (arma::uword j = 0; j < side; ++j) {
            const float column = column_root_.at(j);
            const float* from = white_.colptr(j);
            float* to = observed.colptr(j);
            for (arma::uword i = 0; i < side; ++i) to[i] = from[i] * row[i] * column;
        }
    }
    observed += left_ * right_.t();
}

void Trials::find_values() { decomposition_.decompose({observed_.memptr(), observed_.n_elem}); }

void Trials::estimate(std::size_t at) {
    shrinkage_ = estimators::eoptshrink(decomposition_.singular_values(at), {side, side});
    outcome_.rank = shrinkage_.rank;
    outcome_.shrunk = shrinkage_.shrunk;
}

void Trials::find_vectors(std::size_t at) { decomposition_.leading_vectors(at, shrinkage_.rank, nullptr, &vectors_); }

void Trials::subtract(std::size_t at) {
    const arma::fmat& observed = observed_.slice(at);
    residual_ = observed;
    if (shrinkage_.rank == 0) return;
    arma::fmat scaled = observed * vectors_;
    const auto values = decomposition_.singular_values(at);
    for (arma::uword i = 0; i < scaled.n_cols; ++i)
        scaled.col(i) *= static_cast<float>(shrinkage_.shrunk[i] / values[i]);
    residual_ -= scaled * vectors_.t();
}

void Trials::rotate() {
    if (colouring_ == sim::Colouring::dense) {
        rotated_ = residual_ * rotation_.t();
    } else {
        rotated_ = residual_;
        hadamard_.rotate(rotated_);
    }
}

void Trials::quantize() {
    std::array<float, side> squares{};
    std::array<float, side> to_unit_variance;
    std::array<float, side> errors{};
    std::array<float, side> coordinates;
    std::array<float, side> levels;
    for (arma::uword j = 0; j < side; ++j) {
        const float* column = rotated_.colptr(j);
        for (std::size_t i = 0; i < side; ++i) squares[i] += column[i] * column[i];
    }
    for (std::size_t i = 0; i < side; ++i)
        to_unit_variance[i] = squares[i] > 0.0F ? std::sqrt(static_cast<float>(side) / squares[i]) : 0.0F;
    for (arma::uword j = 0; j < side; ++j) {
        const float* column = rotated_.colptr(j);
        for (std::size_t i = 0; i < side; ++i) coordinates[i] = column[i] * to_unit_variance[i];
        search_.quantize(coordinates, {codes_.colptr(j), side}, levels);
        for (std::size_t i = 0; i < side; ++i) {
            const float error = coordinates[i] - levels[i];
            errors[i] += error * error;
        }
    }
    double error = 0.0;
    double energy = 0.0;
    for (std::size_t i = 0; i < side; ++i) {
        error += static_cast<double>(errors[i]) * static_cast<double>(squares[i]);
        energy += static_cast<double>(squares[i]);
    }
    outcome_.mean_squared_error = error / static_cast<double>(side * side * side);
    outcome_.residual_energy = energy / static_cast<double>(side * side);
}

}  // namespace spiked::validation
