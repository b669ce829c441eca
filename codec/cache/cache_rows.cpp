#include "codec/cache/cache_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/files/sha256.hpp"
#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"
#include "estimators/causal/causal_codec.hpp"

namespace spiked::codec {
namespace {

using sim::Side;

/// The rotary embedding that a method takes off the keys of a group; none where the group has none.
std::optional<sim::DumpRotary> rotary_of(const sim::KvDump& dump, Side side, const estimators::CacheMethod& method) {
    if (side != Side::key || !(method.unrope || (method.derotates && sim::has_rotary(dump)))) return std::nullopt;
    return sim::dump_rotary(dump);
}

/// The tensors of one side in the order of the layers.
std::vector<const sim::DumpTensor*> layers_of(const sim::KvDump& dump, Side side) {
    std::vector<const sim::DumpTensor*> layers;
    for (const auto& tensor : dump.tensors())
        if (tensor.side == side) layers.push_back(&tensor);
    return layers;
}

}  // namespace

arma::mat joined_rows(const sim::KvDump& dump, const std::vector<const sim::DumpTensor*>& tensors,
                      std::size_t first_head, std::size_t heads, const std::optional<sim::DumpRotary>& rotary) {
    const std::size_t dim = tensors.front()->dim;
    arma::mat rows(tensors.front()->tokens, tensors.size() * heads * dim);
    std::size_t at = 0;
    for (const auto* tensor : tensors)
        for (std::size_t h = 0; h < heads; ++h, at += dim) {
            arma::mat head = dump.read_block(*tensor, first_head + h, 0, tensor->tokens);
            if (rotary && tensor->side == Side::key) head = sim::undo_rope(head, rotary->rope, rotary->position_start);
            rows.cols(at, at + dim - 1) = head;
        }
    return rows;
}

std::vector<arma::mat> first_queries(const sim::KvDump& dump, const std::vector<const sim::DumpTensor*>& tensors,
                                     std::size_t first_head, std::size_t heads,
                                     const std::optional<sim::DumpRotary>& rotary) {
    std::vector<arma::mat> all;
    if (rotary && rotary->rope.style != sim::RopeStyle::rotate_half) return all;
    for (const auto* keys : tensors) {
        if (keys->side != Side::key) continue;
        const auto* queries = dump.find(keys->layer, Side::query);
        if (queries == nullptr || queries->heads % keys->heads != 0 || queries->dim != keys->dim ||
            queries->tokens != keys->tokens || queries->dim % 2 != 0)
            return {};
        const std::size_t readers = queries->heads / keys->heads;
        const std::size_t tokens = std::min<std::size_t>(queries->tokens, estimators::causal_block);
        for (std::size_t h = first_head; h < first_head + heads; ++h) {
            arma::mat& of_head = all.emplace_back();
            for (std::size_t q = h * readers; q < (h + 1) * readers; ++q) {
                arma::mat rows = dump.read_block(*queries, q, 0, tokens);
                if (rotary) rows = sim::undo_rope(rows, rotary->rope, rotary->position_start);
                of_head = arma::join_cols(of_head, rows);
            }
        }
    }
    return all;
}

Calibration::Calibration(const std::vector<std::string>& paths, const sim::DumpOptions& options,
                         const std::vector<std::unique_ptr<sim::KvDump>>& tested,
                         const std::vector<std::string>& tested_sums) {
    for (const auto& path : paths) {
        const auto& dump = *dumps_.emplace_back(std::make_unique<sim::KvDump>(path, options));
        sums_.push_back(hex(sha256_of_file(path)));
        if (std::find(tested_sums.begin(), tested_sums.end(), sums_.back()) != tested_sums.end())
            throw usage_error(
                "{}: calibrated and tested on the same content (a basis fits the tokens it comes from): give another "
                "dump to --calibrate",
                path);
        for (const auto& other : tested)
            if (dump.prompt_id() && dump.prompt_id() == other->prompt_id() && dump.model() == other->model())
                throw usage_error(
                    "{}: calibrated and tested on prompt {} of the same model (a basis fits the tokens it comes from): "
                    "give another dump to --calibrate, or --prompt-id with the key that tells them apart",
                    path, in_quotes(*dump.prompt_id()));
    }
}

arma::mat Calibration::rows(const std::vector<const sim::DumpTensor*>& tensors, std::size_t first_head,
                            std::size_t heads, const estimators::CacheMethod& method) const {
    arma::mat all;
    for (const auto& dump : dumps_) {
        std::vector<const sim::DumpTensor*> same;
        for (const auto* tensor : tensors) {
            const auto* other = dump->find(tensor->layer, tensor->side);
            if (other == nullptr || other->heads != tensor->heads || other->dim != tensor->dim)
                throw input_error(
                    "{}: no {} of layer {} with {} heads of {} channels to calibrate on (the tested dump has them): "
                    "calibrate on a dump of the same model",
                    dump->path(), side_name(tensor->side), tensor->layer, tensor->heads, tensor->dim);
            if (!same.empty() && other->tokens != same.front()->tokens)
                throw input_error("{}: its layers have {} and {} tokens (layers are joined): dump them together",
                                  dump->path(), same.front()->tokens, other->tokens);
            same.push_back(other);
        }
        all = arma::join_cols(
            all, joined_rows(*dump, same, first_head, heads, rotary_of(*dump, same.front()->side, method)));
    }
    return all;
}

CacheRows::CacheRows(estimators::CacheMethod method, double bits, const estimators::QuantizerOptions& options,
                     const Calibration& calibration)
    : method_(std::move(method)), bits_(bits), options_(options), calibration_(&calibration) {
    if (method_.calibrated && calibration.empty())
        throw usage_error("\"{}\": its basis comes from other tokens (none are given): give --calibrate OTHER",
                          method_.text);
}

const CachedHead& CacheRows::of(const sim::KvDump& dump, const sim::DumpTensor& tensor, std::size_t head) {
    const auto layers = layers_of(dump, tensor.side);
    const auto place = static_cast<std::size_t>(std::find(layers.begin(), layers.end(), &tensor) - layers.begin());
    const std::size_t joined_layers = method_.layers == 0 ? layers.size() : method_.layers;
    const std::size_t joined_heads = method_.heads == 0 ? tensor.heads : method_.heads;
    const std::size_t first_layer = place / joined_layers * joined_layers;
    const std::size_t first_head = head / joined_heads * joined_heads;
    const std::size_t heads = std::min(joined_heads, tensor.heads - first_head);
    std::vector<const sim::DumpTensor*> joined(
        layers.begin() + static_cast<std::ptrdiff_t>(first_layer),
        layers.begin() + static_cast<std::ptrdiff_t>(std::min(first_layer + joined_layers, layers.size())));
    if (method_.sides) joined = sides_of(dump, tensor.layer);
    Group* group = nullptr;
    {
        const std::lock_guard lock(mutex_);
        group = &groups_[{&dump, joined.front()->side, first_layer, first_head}];
    }
    group->once([&] { code(*group, dump, joined, first_head, heads); });
    const auto tensors_before = std::find(joined.begin(), joined.end(), &tensor) - joined.begin();
    return group->heads[static_cast<std::size_t>(tensors_before) * heads + head - first_head];
}

std::vector<const sim::DumpTensor*> CacheRows::sides_of(const sim::KvDump& dump, std::size_t layer) const {
    const auto* keys = dump.find(layer, Side::key);
    const auto* values = dump.find(layer, Side::value);
    if (keys == nullptr || values == nullptr)
        throw input_error("{}: layer {} has no {} ({} joins keys and values): use causal-klt", dump.path(), layer,
                          side_name(keys == nullptr ? Side::key : Side::value), method_.text);
    return {keys, values};
}

void CacheRows::code(Group& group, const sim::KvDump& dump, const std::vector<const sim::DumpTensor*>& tensors,
                     std::size_t first_head, std::size_t heads) const {
    const sim::DumpTensor& first = *tensors.front();
    for (const auto* tensor : tensors)
        if (tensor->heads != first.heads || tensor->dim != first.dim || tensor->tokens != first.tokens)
            throw input_error("{}: tensors {} and {} differ in heads, tokens or channels ({} joins them): choose {}",
                              dump.path(), first.name, tensor->name, method_.text,
                              method_.sides ? "causal-klt" : "layers=1");
    const auto rotary = rotary_of(dump, first.side, method_);
    const arma::mat rows = joined_rows(dump, tensors, first_head, heads, rotary);
    estimators::QuantizerOptions options = options_;
    options.axis = first.side == Side::key ? estimators::GroupAxis::key : estimators::GroupAxis::value;
    options.rotation_index = 0;
    const arma::mat calibration =
        method_.calibrated ? calibration_->rows(tensors, first_head, heads, method_) : arma::mat();
    try {
        const std::size_t all = tensors.size() * heads;
        estimators::CacheGroup joint{.keys = method_.sides ? heads : (first.side == Side::key ? all : 0)};
        joint.values = all - joint.keys;
        if (method_.derotates) joint.queries = first_queries(dump, tensors, first_head, heads, rotary);
        if (method_.needs_token_ids()) joint.ids = sim::token_ids(dump, first);
        const auto coder = estimators::cache_coder(method_, rows.n_cols, bits_, options, calibration, joint);
        const estimators::Encoded encoded = coder.sequence.encode(rows);
        const arma::mat decoded = coder.sequence.decode(encoded.bytes, rows.n_rows);
        const double entries = static_cast<double>(rows.n_elem);
        for (std::size_t h = 0; h < all; ++h) {
            arma::mat back = decoded.cols(h * first.dim, (h + 1) * first.dim - 1);
            if (rotary && tensors[h / heads]->side == Side::key)
                back = sim::apply_rope(back, rotary->rope, rotary->position_start);
            CachedHead& head = group.heads.emplace_back();
            head.rows = arma::conv_to<arma::fmat>::from(back);
            head.bits_per_entry = encoded.ledger.per_entry(entries);
            head.shared_bits_per_entry = static_cast<double>(coder.shared_bits) / entries;
            head.rank = coder.rank;
        }
    } catch (const Error& error) {
        throw Error(error.kind(), fmt::format("{}: tensor {}, heads {} to {}: {}", dump.path(), first.name, first_head,
                                              first_head + heads - 1, error.what()));
    }
}

}  // namespace spiked::codec
