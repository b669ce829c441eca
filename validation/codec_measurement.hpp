#pragma once
#include <functional>

#include "estimators/compressor.hpp"
#include "validation/experiment.hpp"

namespace spiked::validation {

/// What a codec sees of a block in the place of it (unrope), and how what it decodes is turned back.
struct TurnedBlock {
    estimators::AnalysedBlock* coded = nullptr;
    std::function<arma::mat(const arma::mat& rows)> back;
};

/// Sends a block through a codec and back and appends what is measured: bits by item, rank, errors. Used by every kind
/// of study, so a metric means the same everywhere.
void observe_codec(const estimators::Compressor& codec, estimators::AnalysedBlock& block, std::size_t method,
                   std::vector<Observation>& to, const TurnedBlock& turned = {});

}  // namespace spiked::validation
