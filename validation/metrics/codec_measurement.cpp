#include "validation/metrics/codec_measurement.hpp"

#include <limits>

#include "core/runtime/error.hpp"
#include "sim/random/normal.hpp"

namespace spiked::validation {

BlockQueries queries_for(estimators::AnalysedBlock& block, const stream::Stream& stream) {
    constexpr arma::uword count = 128;
    const arma::mat& rows = block.block();
    BlockQueries queries;
    queries.random.set_size(count, rows.n_cols);
    stream::fill_normal(stream, {queries.random.memptr(), queries.random.n_elem});
    if (block.singular_values().empty() || block.singular_values().front() == 0.0) return queries;
    const arma::vec direction = block.vectors(1).right.col(0);
    queries.aligned = (arma::accu(rows * direction) < 0.0 ? -1.0 : 1.0) * direction.t();
    return queries;
}

void observe_codec(const estimators::Compressor& codec, estimators::AnalysedBlock& block, const BlockQueries& queries,
                   std::size_t method, std::vector<Observation>& to, const DerotatedBlock& derotated) {
    const arma::mat& original = block.block();
    const auto [encoded, rank] = codec.encode(derotated.coded != nullptr ? *derotated.coded : block);
    arma::mat decoded = codec.decode(encoded.bytes, original.n_rows);
    if (derotated.coded != nullptr) decoded = derotated.back(decoded);
    observe_bits(rank, codec.paper_bits(rank, original.n_rows), encoded.ledger, static_cast<double>(original.n_elem),
                 method, to);
    observe_errors(original, decoded, queries, method, to);
}

bool has_constant_size(std::string_view method) {
    try {
        const estimators::MethodSpec spec = estimators::parse_method(method);
        // Bits that are a rate are a mean over blocks.
        return !spec.spectral && !spec.quantizer.entry().fractions;
    } catch (const Error&) {
        return false;
    }
}

void observe_size(const CodeSize& size, std::size_t method, std::vector<Observation>& to) {
    observe(&MetricMeasures::size, size, method, to);
}

void observe_bits(std::size_t rank, double paper_bits, const estimators::Ledger& ledger, double entries,
                  std::size_t method, std::vector<Observation>& to) {
    CodeSize size{.rank = rank, .paper_bits = paper_bits};
    size.bits_per_entry = static_cast<double>(ledger.total()) / entries;
    size.items = ledger.per_entry(entries);
    observe_size(size, method, to);
}

void observe_errors(const arma::mat& original, const arma::mat& decoded, const BlockQueries& queries,
                    std::size_t method, std::vector<Observation>& to) {
    BlockMetrics found = measure_block(original, decoded, queries);
    // A relative error of a block of zeros is not defined.
    if (original.is_zero()) found.relative_l2 = std::numeric_limits<double>::quiet_NaN();
    observe_metrics(found, method, to);
}

void observe_metrics(const BlockMetrics& metrics, std::size_t method, std::vector<Observation>& to) {
    observe(&MetricMeasures::errors, metrics, method, to);
}

}  // namespace spiked::validation
