#include "estimators/pca/decomposed_samples.hpp"

namespace spiked::estimators {

DecomposedSamples decomposed_samples(const arma::mat& prepared, std::size_t degrees_of_freedom) {
    const arma::uvec kept = arma::find(arma::any(prepared != 0.0, 0));
    DecomposedSamples found{AnalysedBlock(prepared.cols(kept), AnalysedBlock::EmptyLines::keep), {}, {}};
    found.shape = {degrees_of_freedom, kept.n_elem};
    found.singular_values = found.block.singular_values();
    found.singular_values.resize(found.shape.short_side());
    return found;
}

}  // namespace spiked::estimators
