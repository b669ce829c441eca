#pragma once
#include <armadillo>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "estimators/quantizers/row_quantizer.hpp"
#include "estimators/spectral/shrinkage.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "theory/laws/separable_law.hpp"
#include "validation/claims/claims.hpp"

namespace spiked::validation {

/// A pair of noise covariances under which claims are judged.
enum class Noise {
    white,     ///< A = B = I
    coloured,  ///< A = AR(1) with .5, B = exp(-3 (j - 1/2) / d)
    columns,   ///< A = I, B = exp(-3 (j - 1/2) / d)
    strong,    ///< A and B = AR(1) with .7
};
[[nodiscard]] std::string_view name_of(Noise noise);

/// A drawn block and its decomposition.
struct DrawnBlock {
    const sim::SpikedSample& sample;
    estimators::AnalysedBlock& block;  ///< of sample.observed

    /// The squared inner product of the first true and the first observed vector of a side, row for left ones.
    [[nodiscard]] double squared_overlap(sim::MatrixSide side) const;
};

/// A spiked model at one size with its law, from which the trials of a criterion draw their blocks.
struct Fixture {
    sim::SpikedModel model;
    std::shared_ptr<const theory::SeparableLaw> law;

    [[nodiscard]] std::size_t rows() const { return model.row.size(); }
    [[nodiscard]] std::size_t columns() const { return model.column.size(); }
    [[nodiscard]] double d() const { return static_cast<double>(columns()); }
    [[nodiscard]] double strength(std::size_t i) const { return model.strengths[i].value; }
    [[nodiscard]] theory::SpikePrediction spike(std::size_t i) const { return law->spike(model.strengths[i]); }
    /// An eigenvalue of Z Z^T in Tracy-Widom units.
    [[nodiscard]] double tracy_widom(double eigenvalue) const;
    [[nodiscard]] sim::SpikedSample draw(const TrialPlace& place, std::uint64_t replicate) const {
        return sim::sample(model, place.seed, place.cell, replicate);
    }
    /// The same with its decomposition. Each thread draws and decomposes the next blocks together, 2 MiB of them and at
    /// most 16, and keeps them for the controls of the criterion that draw the same blocks. The references are valid
    /// until the same thread calls this for another replicate or another place.
    [[nodiscard]] DrawnBlock decomposed(const TrialPlace& place, std::uint64_t replicate) const;
};

struct FixtureShape {
    Noise noise = Noise::white;
    double aspect = 1.0;                  ///< n / d
    std::vector<double> thresholds = {};  ///< signal strengths in units of the detection threshold
    std::string entries = "gaussian";     ///< a law of entries
};

[[nodiscard]] Fixture make_fixture(const FixtureShape& shape, std::size_t columns);
[[nodiscard]] std::shared_ptr<const theory::SeparableLaw> make_law(const sim::SpikedModel& model);

using EmptyLines = estimators::AnalysedBlock::EmptyLines;
/// A block with its decomposition, cached because the controls of a criterion use the same blocks. The reference stays
/// valid until the same thread has called this for four other blocks.
[[nodiscard]] estimators::AnalysedBlock& analysed(const arma::mat& block, EmptyLines empty_lines = EmptyLines::strip);

/// Squared singular values, largest first.
[[nodiscard]] arma::vec eigenvalues_of(estimators::AnalysedBlock& block);
[[nodiscard]] arma::vec eigenvalues_of(const arma::mat& block);

/// eOptShrink with a known rank.
[[nodiscard]] estimators::Shrinkage shrink_at_rank(const std::vector<double>& singular_values, estimators::Shape shape,
                                                   std::size_t rank, theory::Loss loss = theory::Loss::frobenius);

/// Options with exactly stored norms and a separate rotation for each replicate.
[[nodiscard]] estimators::QuantizerOptions rotation_of_trial(const TrialPlace& place, std::uint64_t replicate);
/// Rows after encoding and decoding by a quantizer.
[[nodiscard]] arma::mat coded(const estimators::RowQuantizer& quantizer, const arma::mat& rows);

/// A margin that is `at_128` at d = 128 and shrinks like d^-rate.
[[nodiscard]] double margin_at(std::size_t size, double at_128, double rate);

}  // namespace spiked::validation
