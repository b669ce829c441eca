#pragma once
#include "estimators/compressor.hpp"
#include "validation/experiment.hpp"

namespace spiked::validation {

/// Sends a block through a codec and back and appends what is measured: bits by item, rank, errors. Used by every kind
/// of study, so a metric means the same everywhere.
void observe_codec(const estimators::Compressor& codec, estimators::AnalysedBlock& block, std::size_t method,
                   std::vector<Observation>& to);

}  // namespace spiked::validation
