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

/// What every trial of `spiked bench trial` starts from, in this program and in others: blocks of 128 x 128 with noise
/// of two dense covariances (AR(1) with rho 0.4; exponential decay 2 on a Haar basis), a fixed signal of rank 4 at 4,
/// 3.5, 3 and 2.5 times the detection threshold, a fixed Haar rotation, 4 bits.
struct TrialSetup {
    sim::SpikedModel model;
    arma::mat left;      ///< n x r, true vectors
    arma::mat right;     ///< d x r
    arma::mat rotation;  ///< d x d, a row x becomes rotation x
    theory::Codebook codebook;
};
[[nodiscard]] TrialSetup trial_setup();

/// The random words of a trial, for this program and its reference.
[[nodiscard]] stream::Stream trial_noise(std::uint64_t replicate);
[[nodiscard]] stream::Stream trial_rotation();

struct TrialOutcome {
    std::size_t rank = 0;
    std::vector<double> shrunk;
    double mean_squared_error = 0.0;  ///< an entry, of the residual against what its codes stand for
    double residual_energy = 0.0;     ///< an entry; a NumPy program leaves it out
};

/// Whole trials in float, several at a time: standard normals, colouring, signal, all singular values, eOptShrink, the
/// leading vectors, residual, rotation, Lloyd-Max codes of the rows at unit variance, their mean squared error.
///
/// Dense colouring goes with a Haar rotation, colouring in the eigenbasis with two rounds of Hadamard.
class Trials {
public:
    static constexpr std::size_t together = estimators::BatchDecomposition<float>::lanes;

    Trials(const TrialSetup& setup, sim::Colouring colouring);

    /// Trials first, first + 1, ..: as many as stand together.
    [[nodiscard]] std::vector<TrialOutcome> run(std::uint64_t first);

    /// The steps of `run`, in its order, of trial `at` of the batch (the values of all at once). Each can be repeated:
    /// it reads what earlier ones left and changes none of it.
    void draw(std::uint64_t replicate);
    void colour(std::size_t at);
    void find_values();
    void estimate(std::size_t at);
    void find_vectors(std::size_t at);
    void subtract(std::size_t at);
    void rotate();
    void quantize();

    /// The normals of a trial, whenever it runs.
    [[nodiscard]] static arma::fmat white(std::uint64_t replicate);

private:
    sim::Colouring colouring_;
    arma::fmat row_root_;  ///< dense, over sqrt(d); in the eigenbasis its diagonal
    arma::fmat column_root_;
    arma::fmat left_;  ///< times the strengths
    arma::fmat right_;
    arma::fmat rotation_;
    estimators::HadamardRotation hadamard_;
    estimators::CellSearch search_;
    estimators::BatchDecomposition<float> decomposition_;

    arma::fcube observed_;
    // Of the trial under way:
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
