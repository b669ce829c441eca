#pragma once
#include <string>
#include <vector>

#include "estimators/compressors/compressor.hpp"
#include "estimators/transforms/spectral_method.hpp"
#include "validation/engine/experiment.hpp"
#include "validation/trials/block_source.hpp"

namespace spiked::validation {

/// One cell of a study whose blocks come from a BlockSource.
struct StudyPoint {
    BlockSource source;
    std::vector<Factor> factors;  ///< of the sweep
    std::string label;
};

struct NamedEstimator {
    std::string label;
    estimators::SpectralMethod method;
    theory::Loss loss = theory::Loss::frobenius;
    bool known_law = false;  ///< an oracle: it is told the noise covariances of each cell
};

struct NamedCodec {
    std::string label;  ///< bits are appended
    estimators::Method method;
    std::vector<double> bits;
};

/// How many replicates a cell gets: `most`, or as few as `least` where the experiment has stop rules.
struct Replicates {
    std::size_t least = 200;
    std::size_t most = 200;
};

/// Adds methods, cells with their predictions, and the worker of a study to an experiment that has its name and seed.
/// Every method sees the same blocks.
void make_block_experiment(Experiment& experiment, const std::string& kind, std::vector<StudyPoint> points,
                           const std::vector<NamedEstimator>& estimators, const std::vector<NamedCodec>& codecs,
                           Replicates replicates, estimators::Precision precision);

}  // namespace spiked::validation
