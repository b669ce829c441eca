#pragma once
#include <functional>

#include "estimators/compressors/compressor.hpp"
#include "sim/random/address.hpp"
#include "validation/metrics/block_metrics.hpp"
#include "validation/metrics/metric_table.hpp"

namespace spiked::validation {

/// What a codec sees of a block in the place of it (unrope), and how what it decodes is turned back.
struct TurnedBlock {
    estimators::AnalysedBlock* coded = nullptr;
    std::function<arma::mat(const arma::mat& rows)> back;
};

/// Random directions from the stream and the direction of the block's strongest component: what every method is asked
/// about the block. The dumped queries are left empty.
[[nodiscard]] BlockQueries queries_for(estimators::AnalysedBlock& block, const stream::Stream& stream);

/// Sends a block through a codec and back and appends what is measured: bits by item, rank, errors. Used by every kind
/// of study, so a metric means the same everywhere.
void observe_codec(const estimators::Compressor& codec, estimators::AnalysedBlock& block, const BlockQueries& queries,
                   std::size_t method, std::vector<Observation>& to, const TurnedBlock& turned = {});

/// What a code takes: rank, bits by the paper's formula and by item.
void observe_bits(std::size_t rank, double paper_bits, const estimators::Ledger& ledger, double entries,
                  std::size_t method, std::vector<Observation>& to);
/// What was measured of a block that came back; `relative_l2` NaN for a block of zeros.
void observe_metrics(const BlockMetrics& metrics, bool dumped_queries, std::size_t method,
                     std::vector<Observation>& to);

/// The errors of a block that came back, whoever coded it.
void observe_errors(const arma::mat& original, const arma::mat& decoded, const BlockQueries& queries,
                    std::size_t method, std::vector<Observation>& to);

}  // namespace spiked::validation
