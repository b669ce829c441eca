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

/// A pair of covariances that claims are asked under.
enum class Noise {
    white,     ///< A = B = I
    coloured,  ///< A = AR(1) with .5, B = exp(-3 (j - 1/2) / d)
    columns,   ///< A = I, B = exp(-3 (j - 1/2) / d)
    strong,    ///< A and B = AR(1) with .7
};
[[nodiscard]] std::string_view name_of(Noise noise);

/// A spiked model at one size with its law: where the trials of a criterion take their blocks from.
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
};

struct BedShape {
    Noise noise = Noise::white;
    double aspect = 1.0;                  ///< n / d
    std::vector<double> thresholds = {};  ///< strengths, in units of the detection threshold
};

[[nodiscard]] Fixture make_fixture(const BedShape& shape, std::size_t columns);
[[nodiscard]] std::shared_ptr<const theory::SeparableLaw> make_law(const sim::SpikedModel& model);

using EmptyLines = estimators::AnalysedBlock::EmptyLines;
/// A block with its decomposition, kept a while: what the criterion has asked of a block its controls ask again. Valid
/// until this thread has asked for four other blocks.
[[nodiscard]] estimators::AnalysedBlock& analysed(const arma::mat& block, EmptyLines empty_lines = EmptyLines::strip);

/// Squared singular values, largest first.
[[nodiscard]] arma::vec eigenvalues_of(const arma::mat& block);

/// eOptShrink told the rank.
[[nodiscard]] estimators::Shrinkage shrink_at_rank(const std::vector<double>& singular_values, estimators::Shape shape,
                                                   std::size_t rank, theory::Loss loss = theory::Loss::frobenius);

/// Norms stored exactly and a rotation of the replicate's own.
[[nodiscard]] estimators::QuantizerOptions rotation_of_trial(const TrialPlace& place, std::uint64_t replicate);
/// Rows sent through a quantizer and back.
[[nodiscard]] arma::mat coded(const estimators::RowQuantizer& quantizer, const arma::mat& rows);

/// margin at d = 128 that shrinks like d^-rate.
[[nodiscard]] double margin_at(std::size_t size, double at_128, double rate);

/// The lists of the files beside this one.
[[nodiscard]] std::vector<Claim> outlier_claims();
[[nodiscard]] std::vector<Claim> vector_claims();
[[nodiscard]] std::vector<Claim> shrinkage_claims();
[[nodiscard]] std::vector<Claim> rank_claims();
[[nodiscard]] std::vector<Claim> white_noise_claims();
[[nodiscard]] std::vector<Claim> residual_claims();
[[nodiscard]] std::vector<Claim> row_claims();
[[nodiscard]] std::vector<Claim> quantizer_claims();
[[nodiscard]] std::vector<Claim> compression_claims();

}  // namespace spiked::validation
