#pragma once
#include <string>
#include <vector>

#include "estimators/compressors/compressor.hpp"
#include "estimators/transforms/spectral_method.hpp"
#include "validation/store/experiment.hpp"
#include "validation/trials/block_source.hpp"

namespace spiked::validation {

/// One cell of a study whose blocks come from a BlockSource.
struct StudyPoint {
    BlockSource source;
    std::vector<Factor> factors;  ///< the values of the swept parameters
    std::string label;
};

struct NamedEstimator {
    std::string label;
    estimators::SpectralMethod method;
    bool known_law = false;  ///< an oracle that knows the noise covariances of each cell
};

struct NamedCodec {
    std::string label;  ///< without bits; they are appended
    estimators::MethodSpec method;
    std::vector<double> bits;
};

/// Replicates of a cell: `most`, or at least `least` if the experiment has stop rules.
struct Replicates {
    std::size_t least = 200;
    std::size_t most = 200;
};

/// Adds the methods, the cells with their predictions and the worker of a study to an experiment whose name and seed
/// are set. All methods get the same blocks.
void make_block_experiment(Experiment& experiment, const std::string& kind, std::vector<StudyPoint> points,
                           const std::vector<NamedEstimator>& estimators, const std::vector<NamedCodec>& codecs,
                           Replicates replicates, estimators::Precision precision);

}  // namespace spiked::validation
