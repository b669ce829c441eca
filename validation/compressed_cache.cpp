#include "validation/compressed_cache.hpp"

#include "theory/base/error.hpp"

namespace spiked::validation {
namespace {

using sim::Side;

std::size_t codec_index(const sim::LlamaConfig& model, const sim::CachePlace& at) {
    return (at.layer * 2 + (at.side == Side::key ? 0 : 1)) * model.kv_heads + at.head;
}

}  // namespace

CompressedCache::CompressedCache(const sim::LlamaConfig& model, const estimators::Method& method, double bits,
                                 const estimators::QuantizerOptions& options, const CachePart& only)
    : model_(model), method_(method), only_(only) {
    for (const auto& [layer, side] : only)
        if (layer >= model.layers)
            throw usage_error("--only {}:{}: the model has layers 0 to {}", layer, sim::side_name(side),
                              model.layers - 1);
    auto codecs = std::make_shared<std::vector<estimators::Compressor>>();
    for (std::size_t layer = 0; layer < model.layers; ++layer)
        for (const Side side : {Side::key, Side::value})
            for (std::size_t head = 0; head < model.kv_heads; ++head) {
                auto own = options;
                own.axis = side == Side::key ? estimators::GroupAxis::key : estimators::GroupAxis::value;
                own.rotation_index = codec_index(model, {layer, side, head, 0});
                codecs->emplace_back(method, model.head_dim, bits, own);
            }
    codecs_ = std::move(codecs);
}

arma::fmat CompressedCache::keep(const sim::CachePlace& place, const arma::fmat& exact) {
    if (!only_.empty() && !only_.contains({place.layer, place.side})) return exact;
    const auto& codec = (*codecs_)[codec_index(model_, place)];
    const bool turned = method_.unrope && place.side == Side::key;
    const auto first = static_cast<double>(place.first_token);
    auto rows = arma::conv_to<arma::mat>::from(exact);
    if (turned) rows = sim::undo_rope(rows, model_.rope, first);
    try {
        estimators::AnalysedBlock block(std::move(rows));
        const auto encoded = codec.encode(block).encoded;
        bits_ += 8.0 * static_cast<double>(encoded.bytes.size());
        entries_ += static_cast<double>(exact.n_elem);
        arma::mat back = codec.decode(encoded.bytes, exact.n_rows);
        if (turned) back = sim::apply_rope(back, model_.rope, first);
        return arma::conv_to<arma::fmat>::from(back);
    } catch (const Error& error) {
        throw Error(error.code(),
                    fmt::format("layer {}, {} of head {}, tokens {} to {}: {}", place.layer, sim::side_name(place.side),
                                place.head, place.first_token, place.first_token + exact.n_rows - 1, error.what()));
    }
}

std::vector<CacheVersion> cache_versions(const sim::LlamaConfig& model, const std::vector<NamedCodec>& codecs,
                                         const estimators::QuantizerOptions& options, const CachePart& only) {
    std::vector<CacheVersion> versions(1);
    for (const auto& codec : codecs)
        for (const double bits : codec.bits)
            versions.push_back({codec.label, bits, CompressedCache(model, codec.method, bits, options, only)});
    return versions;
}

}  // namespace spiked::validation
