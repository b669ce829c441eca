#include "codec/container/kv_codec_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/runtime/parallel.hpp"
#include "core/text/printable.hpp"
#include "estimators/svd/batch_decomposition.hpp"
#include "sim/kv/dump_view.hpp"

namespace spiked::codec {
namespace {

std::uint64_t square(std::uint64_t dim) { return dim * dim; }

}  // namespace

std::vector<BlockPlace> next_batch(BlockOrder& order, const KvContainerHeader& header, std::size_t most,
                                   std::uint64_t most_entries) {
    std::vector<BlockPlace> batch;
    std::uint64_t entries = 0;
    std::uint64_t rotations = 0;
    while (!order.at_end() && batch.size() < most && entries < most_entries && rotations < most_entries) {
        const std::uint64_t channels = order.place().channels(header);
        entries += order.place().tokens(header) * channels;
        rotations += square(channels);
        batch.push_back(order.place());
        order.next();
    }
    return batch;
}

std::uint64_t block_count(const KvContainerHeader& header) {
    std::uint64_t count = 0;
    for (std::size_t t = 0; t < header.tensors.size(); ++t)
        if (header.tensors[t].coded) count += blocks_of(header, t);
    return count;
}

estimators::QuantizerOptions options_of(const KvContainerHeader& header, const CodedTensor& coded, std::size_t head) {
    estimators::QuantizerOptions options = header.quantizer;
    options.axis = coded.side == sim::Side::key ? estimators::GroupAxis::key : estimators::GroupAxis::value;
    options.rotation_index = coded.rotations[head];
    return options;
}

estimators::CacheCoder sequence_coder(const KvContainerHeader& header, const BlockPlace& place,
                                      std::vector<arma::mat> queries) {
    estimators::CacheGroup group{0, 0, std::move(queries)};
    for (const std::size_t tensor : place.tensors(header))
        (header.tensors[tensor].coded->side == sim::Side::key ? group.keys : group.values) += place.heads(header);
    return estimators::cache_coder(header.cache.value(), place.channels(header), header.bits,
                                   options_of(header, *header.tensors[place.tensor].coded, place.head), {}, group);
}

void Compressors::prepare(const std::vector<BlockPlace>& batch, std::size_t threads) {
    if (batch.empty() || header_.cache) return;
    std::erase_if(made_, [&](const auto& entry) { return entry.first.first < batch.front().tensor; });
    std::uint64_t held = 0;
    for (const auto& [key, compressor] : made_) held += square(header_.tensors[key.first].coded->dim);
    if (held > 4 * batch_entries) made_.clear();
    std::vector<std::pair<Key, std::unique_ptr<estimators::HeadCodec>*>> missing;
    for (const auto& place : batch) {
        if (!place.full(header_)) continue;
        const Key key{place.tensor, place.head};
        const auto [slot, added] = made_.try_emplace(key);
        if (added) missing.emplace_back(key, &slot->second);
    }
    for_each_parallel(missing.size(), threads, [&](std::size_t i) {
        *missing[i].second = std::make_unique<estimators::HeadCodec>(make(missing[i].first));
    });
}

estimators::HeadCodec Compressors::make(const Key& key) const {
    const CodedTensor& coded = *header_.tensors[key.first].coded;
    return spiked::located(
        [&] { return fmt::format("{}: tensor {}", file_, in_quotes(header_.tensors[key.first].name)); },
        [&] {
            return estimators::HeadCodec(header_.method, coded.dim, header_.bits,
                                         options_of(header_, coded, key.second), coded.tokens, header_.block_tokens);
        });
}

KeyRotary::KeyRotary(const KvContainerHeader& header, const std::string& where) : header_(header) {
    const auto has_keys = [](const ContainedTensor& tensor) {
        return tensor.coded && tensor.coded->side == sim::Side::key;
    };
    if ((header.method.unrope || header.derotated) && std::ranges::any_of(header.tensors, has_keys))
        rotary_ = sim::dump_rotary(header.metadata, where);
}

arma::mat KeyRotary::derotated(const BlockPlace& place, arma::mat rows) const {
    if (!is_derotated(place)) return rows;
    return sim::undo_rope(rows, rotary_->rope, position(place));
}

arma::mat KeyRotary::applied(const BlockPlace& place, arma::mat rows) const {
    if (!is_derotated(place)) return rows;
    return sim::apply_rope(rows, rotary_->rope, position(place));
}

bool KeyRotary::is_derotated(const BlockPlace& place) const {
    return rotary_ && place.full(header_) && header_.tensors[place.tensor].coded->side == sim::Side::key;
}

double KeyRotary::position(const BlockPlace& place) const {
    return rotary_->position_start + static_cast<double>(place.first_token(header_));
}

std::size_t most_blocks(std::size_t threads) {
    return 2 * thread_count(threads) * estimators::BatchDecomposition<double>::lanes;
}

}  // namespace spiked::codec
