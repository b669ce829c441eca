#include "codec/cache/layer_streams.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/runtime/error.hpp"
#include "sim/kv/rope.hpp"

namespace spiked::codec {

using sim::Side;

std::vector<LayerStreams::Part> LayerStreams::parts(const Bits& bits) const {
    std::vector<Part> parts;
    Part all;
    const std::size_t together = method_.heads == 0 ? model_.kv_heads : method_.heads;
    for (const Side side : {Side::key, Side::value})
        for (std::size_t head = 0; head < model_.kv_heads && (side == Side::key ? bits.keys : bits.values); ++head) {
            if (head % together == 0) parts.emplace_back();
            parts.back().emplace_back(side, head);
            all.emplace_back(side, head);
        }
    if (method_.sides && !all.empty()) return {all};
    return parts;
}

arma::span LayerStreams::columns(std::size_t head) const {
    return arma::span(head * model_.head_dim, (head + 1) * model_.head_dim - 1);
}

void LayerStreams::note(const sim::LayerBlock& at) {
    if (at.first_token == ids_.size()) ids_.insert(ids_.end(), at.tokens.begin(), at.tokens.end());
    if (at.first_token >= estimators::causal_block) return;
    arma::fmat& rows = first_queries_[at.layer];
    rows = at.first_token == 0 ? at.queries : arma::fmat(arma::join_cols(rows, at.queries));
}

std::vector<arma::mat> LayerStreams::queries_of(std::size_t layer, const Part& part) const {
    std::vector<arma::mat> queries;
    const auto found = first_queries_.find(layer);
    if (found == first_queries_.end()) return queries;
    const std::size_t group = model_.heads / model_.kv_heads;
    for (const auto& [side, head] : part) {
        if (side != Side::key) continue;
        arma::mat all;
        for (std::size_t q = head * group; q < (head + 1) * group; ++q) {
            const arma::fmat own = found->second.cols(columns(q));
            all = arma::join_cols(all, sim::undo_rope(arma::conv_to<arma::mat>::from(own), model_.rope, 0.0));
        }
        queries.push_back(std::move(all));
    }
    return queries;
}

estimators::CausalStream LayerStreams::begun(std::size_t layer, const Part& part, const arma::mat& rows, double bits,
                                             estimators::TokenIds ids) const {
    const auto keys = static_cast<std::size_t>(
        std::count_if(part.begin(), part.end(), [](const Head& head) { return head.first == Side::key; }));
    const estimators::CacheGroup group{keys, part.size() - keys, queries_of(layer, part), {ids.begin(), ids.end()}};
    return {method_, bits, rows, group, tokens_};
}

double LayerStreams::expected_bytes(const Bits& bits) const {
    constexpr double counts = 52e3;  // of the indices, now and at the freeze
    double sum = sizeof(float) * static_cast<double>(estimators::causal_block * model_.heads * model_.head_dim);
    for (const Part& part : parts(bits)) {
        const auto columns = static_cast<double>(part.size() * model_.head_dim);
        if (method_.needs_token_ids()) sum += 2.0 * sizeof(double) * columns * static_cast<double>(tokens_);
        sum += 2.0 * (4.0 * sizeof(double) * columns * columns + counts);  // sums and basis; encoder and decoder
    }
    return sum;
}

LayerStreams::Coded LayerStreams::code(std::size_t layer, std::size_t first_token, const sim::LayerRows& exact,
                                       const Bits& bits) {
    Coded coded{exact};
    const std::size_t tokens = exact.keys.n_rows;
    const auto first = static_cast<double>(first_token);
    estimators::TokenIds ids;
    if (method_.needs_token_ids()) ids = estimators::TokenIds(ids_).subspan(first_token, tokens);
    for (const Part& part : parts(bits)) {
        arma::mat rows;
        for (const auto& [side, head] : part) {
            const arma::fmat own = (side == Side::key ? exact.keys : exact.values).cols(columns(head));
            const auto entries = arma::conv_to<arma::mat>::from(own);
            rows = arma::join_rows(rows, side == Side::key ? sim::undo_rope(entries, model_.rope, first) : entries);
        }
        const auto place = [&] {
            return fmt::format("layer {}, {} of head {}{}, {} tokens from {} to {}", layer,
                               sim::side_name(part.front().first), part.front().second,
                               part.size() > 1 ? fmt::format(" and the {} coded with it", part.size() - 1) : "", tokens,
                               first_token, first_token + tokens - 1);
        };
        const arma::mat back = spiked::located(place, [&] {
            auto& stream = streams_[{layer, part.front()}];
            if (first_token == 0)
                stream = std::make_shared<estimators::CausalStream>(
                    begun(layer, part, rows, part.front().first == Side::key ? *bits.keys : *bits.values, ids));
            if (stream == nullptr) throw precondition_error("the first block of a sequence was not coded");
            return stream->code(rows, coded.bits, ids);
        });
        coded.entries += static_cast<double>(rows.n_elem);
        for (std::size_t i = 0; i < part.size(); ++i) {
            const auto& [side, head] = part[i];
            arma::mat own = back.cols(columns(i));
            if (side == Side::key) own = sim::apply_rope(own, model_.rope, first);
            (side == Side::key ? coded.rows.keys : coded.rows.values).cols(columns(head)) =
                arma::conv_to<arma::fmat>::from(own);
        }
    }
    return coded;
}

}  // namespace spiked::codec
