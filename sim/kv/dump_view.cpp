#include "sim/kv/dump_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/random/permutation.hpp"

namespace spiked::sim {
namespace {

double number_of(const std::string& where, std::string_view key, const std::string& text) {
    const auto value = to_number(text);
    if (!value)
        throw input_error("{}: metadata {} is \"{}\", not a number: correct it where the dump is made", where, key,
                          text);
    return *value;
}

/// The scaling that metadata rope_scaling states, as JSON of a config.json.
std::optional<RopeScaling> scaling_of(const std::string& where, const std::string& text, double base) {
    const std::string what = where + ": metadata rope_scaling";
    if (text.empty() || text == "None" || text == "none") return std::nullopt;
    Json object;
    try {
        object = Json::parse(text, what);
    } catch (const Error&) {
        throw input_error(
            "{} is {} (the object of the model's config.json is needed, as JSON and with its numbers): write "
            "json.dumps(config.rope_scaling)",
            what, in_quotes(text));
    }
    if (const Json* other = object.find("rope_theta"); other != nullptr && to_number(other->text()) != base)
        throw input_error("{} has rope_theta {} and metadata rope_base is {}: correct one where the dump is made", what,
                          printable(other->text()), base);
    return read_rope_scaling(object, what);
}

}  // namespace

DumpRotary dump_rotary(const KvDump& dump) { return dump_rotary(dump.metadata(), dump.path()); }

DumpRotary dump_rotary(const Metadata& metadata, const std::string& where) {
    const auto given = [&](std::string_view key) -> std::optional<std::string> {
        const std::string* value = find_metadata(metadata, key);
        return value == nullptr ? std::nullopt : std::optional(*value);
    };
    const auto required = [&](std::string_view key) {
        const auto text = given(key);
        if (!text)
            throw input_error(
                "{}: the rotary embedding cannot be undone (metadata \"{}\" is missing): add it where the dump is made",
                where, key);
        return *text;
    };
    if (const std::string keys = required("keys"); keys != "post-rope")
        throw input_error(
            "{}: the rotary embedding cannot be undone (metadata keys is \"{}\", not post-rope): study the keys as "
            "they are",
            where, keys);
    DumpRotary rotary;
    rotary.rope.base = number_of(where, "rope_base", required("rope_base"));
    if (!(rotary.rope.base > 1.0))
        throw input_error("{}: metadata rope_base is {} (it must be above 1): correct it where the dump is made", where,
                          rotary.rope.base);
    try {
        rotary.rope.style = parse_rope_style(required("rope_style"));
    } catch (const Error& error) {
        throw input_error("{}: metadata rope_style: {}", where, error.what());
    }
    if (const auto scaling = given("rope_scaling")) rotary.rope.scaling = scaling_of(where, *scaling, rotary.rope.base);
    rotary.position_start = number_of(where, "position_start", given("position_start").value_or("0"));
    return rotary;
}

bool has_rotary(const KvDump& dump) {
    if (dump.metadata("keys") != "post-rope") return false;
    try {
        (void)dump_rotary(dump);
        return true;
    } catch (const Error&) {
        return false;
    }
}

std::vector<std::int32_t> token_ids(const KvDump& dump, const DumpTensor& tensor) {
    const auto& stored = dump.file().tensors();
    const auto found = std::ranges::find(stored, token_ids_name, &StoredTensor::name);
    if (found == stored.end() || tensor.tokens == 0) return {};
    const std::string where = fmt::format("{}: tensor {}", dump.path(), token_ids_name);
    const std::size_t end = tensor.stored_token(tensor.tokens - 1) + 1;
    const bool integers = found->dtype && (*found->dtype == DType::i32 || *found->dtype == DType::i64);
    const bool of_batch = found->shape.size() == 2 && found->shape[0] == dump.sequences() && !found->fortran_order;
    if (!integers || !(of_batch || (found->shape.size() == 1 && dump.sequences() == 1)) || found->shape.back() < end)
        throw input_error(
            "{} has shape {} and dtype {} (expected I32 or I64, an id for each of {} tokens or more, a row for each "
            "sequence): correct it where the dump is made",
            where, shape_text(found->shape), found->dtype_text, end);
    const std::size_t size = dtype_bits(*found->dtype) / 8;
    std::vector<std::byte> bytes(end * size);
    dump.file().read_bytes(static_cast<std::size_t>(found - stored.begin()),
                           dump.sequence() * found->shape.back() * size, bytes);
    std::vector<double> numbers(end);
    decode(bytes, *found->dtype, numbers);
    std::vector<std::int32_t> ids;
    for (std::size_t t = 0; t < tensor.tokens; ++t) {
        const double id = numbers[tensor.stored_token(t)];
        if (!(id >= 0.0 && id <= std::numeric_limits<std::int32_t>::max()))
            throw input_error(
                "{} has the entry {} at token {} (a token id is 0 to 2^31 - 1): correct it where the dump is made",
                where, id, tensor.stored_token(t));
        ids.push_back(static_cast<std::int32_t>(id));
    }
    return ids;
}

DumpHead::DumpHead(const KvDump& dump, const DumpTensor& tensor, std::size_t head, DumpView view,
                   const stream::Stream& order)
    : dump_(&dump), tensor_(&tensor), head_(head) {
    if (view.undo_rotary && tensor.side == Side::key) rotary_ = dump_rotary(dump);
    if (view.shuffle) order_ = stream::random_order(order, tensor.tokens);
}

arma::mat DumpHead::read_block(std::size_t first_token, std::size_t tokens) const {
    std::vector<double> positions(tokens);
    arma::mat block;
    if (order_.empty()) {
        block = dump_->read_block(*tensor_, head_, first_token, tokens);
        std::iota(positions.begin(), positions.end(), static_cast<double>(first_token));
    } else {
        block.set_size(tokens, tensor_->dim);
        for (std::size_t i = 0; i < tokens; ++i) {
            const std::size_t token = order_.at(first_token + i);
            block.row(i) = dump_->read_block(*tensor_, head_, token, 1);
            positions[i] = static_cast<double>(token);
        }
    }
    if (!rotary_) return block;
    for (double& position : positions) position += rotary_->position_start;
    return undo_rope(block, rotary_->rope, positions);
}

}  // namespace spiked::sim
