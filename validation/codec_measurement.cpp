#include "validation/codec_measurement.hpp"

#include <limits>

#include "validation/block_metrics.hpp"

namespace spiked::validation {

void observe_codec(const estimators::Compressor& codec, estimators::AnalysedBlock& block, std::size_t method,
                   std::vector<Observation>& to, const TurnedBlock& turned) {
    const arma::mat& original = block.block();
    const auto [encoded, rank] = codec.encode(turned.coded != nullptr ? *turned.coded : block);
    arma::mat decoded = codec.decode(encoded.bytes, original.n_rows);
    if (turned.coded != nullptr) decoded = turned.back(decoded);
    const BlockMetrics found = measure_block(original, decoded);
    const double entries = static_cast<double>(original.n_elem);
    const double energy = arma::accu(arma::square(original));
    const auto add = [&](std::string_view metric, double value) {
        to.push_back({method, metric_index(metric), 0, value});
    };

    add("rank", static_cast<double>(rank));
    add("paper_bits", codec.paper_bits(rank, original.n_rows));
    add("bits_per_entry", static_cast<double>(encoded.ledger.total()) / entries);
    for (std::size_t item = 0; item < estimators::item_count; ++item)
        add("bits." + std::string(estimators::item_names[item]),
            static_cast<double>(encoded.ledger.bits(static_cast<estimators::Item>(item))) / entries);
    // Of a block of zeros no share can be lost.
    const double relative_l2 = energy > 0.0 ? found.relative_l2 : std::numeric_limits<double>::quiet_NaN();
    add("relative_l2", relative_l2);
    add("distortion", relative_l2 * relative_l2);
    add("linear_gain", arma::dot(original, decoded) / energy);
    add("ip_bias", found.ip_bias);
    add("ip_std", found.ip_std);
    add("ip_bias_plain", found.ip_bias_plain);
    add("ip_std_plain", found.ip_std_plain);
}

}  // namespace spiked::validation
