#pragma once
#include <string>
#include <vector>

#include "estimators/compressor.hpp"
#include "estimators/spectral_estimator.hpp"
#include "validation/experiment.hpp"

namespace spiked::validation {

/// A covariance of a model, as data.
struct CovarianceSpec {
    std::string kind = "identity";  ///< identity | ar1 | exponential
    double parameter = 0.0;         ///< rho, or the decay c
};

/// One point of a synthetic study.
struct SpikedPoint {
    std::size_t rows = 0;
    std::size_t columns = 0;
    CovarianceSpec row;
    CovarianceSpec column;
    std::vector<double> strengths;
    std::string unit = "threshold";  ///< threshold | absolute | sqrt_n
    std::vector<Factor> factors;     ///< of the sweep
    std::string label;
};

struct NamedEstimator {
    std::string label;
    estimators::SpectralEstimator estimator;
    theory::Loss loss = theory::Loss::frobenius;
};

struct NamedCodec {
    std::string label;  ///< base name; bits are appended
    estimators::Method method;
    std::vector<unsigned> bits;
};

/// Adds methods, cells with their predictions, and the worker of a synthetic study to an experiment that has its name,
/// seed and replicates. Every method sees the same samples.
void make_spiked_experiment(Experiment& experiment, const std::vector<SpikedPoint>& points,
                            const std::vector<NamedEstimator>& estimators, const std::vector<NamedCodec>& codecs,
                            std::size_t replicates);

}  // namespace spiked::validation
