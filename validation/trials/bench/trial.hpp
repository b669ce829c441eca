#pragma once
#include <armadillo>
#include <cstdint>
#include <vector>

#include "estimators/coding/cell_search.hpp"
#include "estimators/rotations/hadamard.hpp"
#include "estimators/spectral/shrinkage.hpp"
#include "estimators/svd/batch_decomposition.hpp"
#include "sim/random/address.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "theory/quantization/lloyd_max.hpp"

namespace spiked::validation {

/// The fixed inputs of every trial of `spiked bench trial`, here and in NumPy: blocks of 128 x 128, noise with two
/// dense covariances (AR(1) with rho 0.4; exponential decay 2 on a Haar basis), a signal of rank 4 at 4, 3.5, 3 and 2.5
/// times the detection threshold, a Haar rotation, and a codebook of 4 bits.
struct TrialSetup {
    sim::SpikedModel model;
    arma::mat left;      ///< n x r, true vectors
    arma::mat right;     ///< d x r
    arma::mat rotation;  ///< d x d; maps a row x to rotation x
    theory::Codebook codebook;
};
[[nodiscard]] TrialSetup trial_setup();

/// The random streams of a trial, shared with the reference.
[[nodiscard]] stream::Stream trial_noise(std::uint64_t replicate);
[[nodiscard]] stream::Stream trial_rotation();

struct TrialOutcome {
    std::size_t rank = 0;
    std::vector<double> shrunk;
    double mean_squared_error = 0.0;  ///< per entry, of the decoded residual
    double residual_energy = 0.0;     ///< per entry; 0 for the NumPy program
};

/// Whole trials in float, in batches: standard normals, colouring, signal, all singular values, eOptShrink, leading
/// vectors, residual, rotation, Lloyd-Max codes of the rows at unit variance, and their mean squared error.
///
/// Dense colouring uses a Haar rotation, colouring in the eigenbasis a Hadamard rotation of two rounds.
class Trials {
public:
    static constexpr std::size_t batch_size = estimators::BatchDecomposition<float>::lanes;

    Trials(const TrialSetup& setup, sim::Colouring colouring);

    /// Runs trials first, .., first + batch_size - 1.
    [[nodiscard]] std::vector<TrialOutcome> run(std::uint64_t first);

    /// The steps of `run` in order, for trial `at` of the batch; find_values handles all trials at once. Each step can
    /// be repeated, because it does not change its input, the results of earlier steps.
    void draw(std::uint64_t replicate);
    void colour(std::size_t at);
    void find_values();
    void estimate(std::size_t at);
    void find_vectors(std::size_t at);
    void subtract(std::size_t at);
    void rotate();
    void quantize();

    /// The standard normals of a replicate.
    [[nodiscard]] static arma::fmat white(std::uint64_t replicate);

private:
    sim::Colouring colouring_;
    arma::fmat row_root_;  ///< divided by sqrt(d); in the eigenbasis only the diagonal
    arma::fmat column_root_;
    arma::fmat left_;  ///< times the strengths
    arma::fmat right_;
    arma::fmat rotation_;
    estimators::HadamardRotation hadamard_;
    estimators::CellSearch search_;
    estimators::BatchDecomposition<float> decomposition_;

    arma::fcube observed_;
    // The current trial:
    arma::fmat white_;
    arma::fmat half_coloured_;
    estimators::Shrinkage shrinkage_;
    arma::fmat vectors_;
    arma::fmat residual_;
    arma::fmat rotated_;
    arma::Mat<std::uint8_t> codes_;
    TrialOutcome outcome_;
};

}  // namespace spiked::validation
