#pragma once
#include <armadillo>
#include <vector>

#include "estimators/svd/analysed_block.hpp"
#include "estimators/svd/shape.hpp"

namespace spiked::estimators {

/// Samples (rows) without their constant features, decomposed once for `spiked_pca` and `check_samples`.
struct DecomposedSamples {
    AnalysedBlock block;
    std::vector<double> singular_values;  ///< min(degrees of freedom, features) of them, descending
    Shape shape;                          ///< degrees of freedom x features
};

/// Decomposes prepared samples, whose constant features centring has made zero; zero features of others
/// are left out too. `degrees_of_freedom` is the number of samples, less one where they are centred: such samples have
/// rank n - 1 at most, and the last value of wide data, a rounding error, is left out. Samples of zero alone have no
/// values. Throws input_error for NaN and infinity. Cost and accuracy are those of AnalysedBlock, of values alone.
[[nodiscard]] DecomposedSamples decomposed_samples(const arma::mat& prepared, std::size_t degrees_of_freedom);

}  // namespace spiked::estimators
