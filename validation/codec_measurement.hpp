#pragma once
#include "estimators/compressor.hpp"
#include "sim/stream/address.hpp"
#include "validation/block_metrics.hpp"
#include "validation/experiment.hpp"

namespace spiked::validation {

/// Random directions from the stream and the direction of the block's strongest component: what every method is asked
/// about the block. The dumped queries are left empty.
[[nodiscard]] BlockQueries queries_for(estimators::AnalysedBlock& block, const stream::Stream& stream);

/// Sends a block through a codec and back and appends what is measured: bits by item, rank, errors. Used by every kind
/// of study, so a metric means the same everywhere.
void observe_codec(const estimators::Compressor& codec, estimators::AnalysedBlock& block, const BlockQueries& queries,
                   std::size_t method, std::vector<Observation>& to);

}  // namespace spiked::validation
