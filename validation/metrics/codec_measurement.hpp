#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "estimators/coding/ledger.hpp"
#include "estimators/compressors/compressor.hpp"
#include "sim/random/address.hpp"
#include "validation/metrics/block_metrics.hpp"
#include "validation/metrics/metric_table.hpp"

namespace spiked::validation {

/// The de-rotated keys that a codec with `unrope` codes in place of the block, and the function that applies RoPE to
/// the decoded rows again. Null: the codec codes the block itself.
struct DerotatedBlock {
    estimators::AnalysedBlock* coded = nullptr;
    std::function<arma::mat(const arma::mat& rows)> back;
};

/// The queries that every method is measured with: 128 random directions from the stream, and the leading right
/// singular vector of the block. The dumped queries are left empty.
[[nodiscard]] BlockQueries queries_for(estimators::AnalysedBlock& block, const stream::Stream& stream);

/// Encodes and decodes a block and appends the measurements: bits by item, rank, errors. Every kind of study uses this
/// function, so a metric means the same everywhere.
void observe_codec(const estimators::Compressor& codec, estimators::AnalysedBlock& block, const BlockQueries& queries,
                   std::size_t method, std::vector<Observation>& to, const DerotatedBlock& derotated = {});

/// Whether the codes that a method, as users write it, makes of blocks of one shape all have the same size: a row
/// quantizer alone that codes no entropies. Behind a spectral method the size follows the rank. False for a name that
/// this program does not know.
[[nodiscard]] bool has_constant_size(std::string_view method);

/// The size of a code, in bits per entry of the block.
struct CodeSize {
    std::size_t rank = 0;
    std::optional<double> paper_bits = {};   ///< by the paper's formula, if it has one for the method
    double bits_per_entry = 0.0;             ///< all stored bits
    estimators::PerItem<double> items = {};  ///< stored bits by item
    std::optional<double> shared_bits = {};  ///< of a calibrated basis, which is not among the stored bits
};
/// Appends the size of a code.
void observe_size(const CodeSize& size, std::size_t method, std::vector<Observation>& to);
/// The same, from the counts of its bits and the number of entries of the block.
void observe_bits(std::size_t rank, double paper_bits, const estimators::Ledger& ledger, double entries,
                  std::size_t method, std::vector<Observation>& to);
/// Appends the errors of a decoded block. `metrics.relative_l2` must be NaN for a block of zeros.
void observe_metrics(const BlockMetrics& metrics, std::size_t method, std::vector<Observation>& to);

/// Measures and appends the errors of a decoded block.
void observe_errors(const arma::mat& original, const arma::mat& decoded, const BlockQueries& queries,
                    std::size_t method, std::vector<Observation>& to);

}  // namespace spiked::validation
