#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "codec/container/kv_container.hpp"
#include "core/runtime/error.hpp"
#include "core/text/json_fields.hpp"
#include "core/text/printable.hpp"
#include "estimators/caches/method_name.hpp"
#include "estimators/causal/causal_codec.hpp"

// The header of a container, and the blocks that follow from it.
namespace spiked::codec {
namespace {

constexpr std::string_view format_name = "spiked-kv";
constexpr std::array coded_sides = {sim::Side::key, sim::Side::value};
constexpr std::size_t longest_row = 1024;
constexpr std::uint64_t largest_slab = std::uint64_t{1} << 26;

bool joins_heads(const KvContainerHeader& header) { return header.cache && !header.cache->heads_apart(); }

/// The reason why a tensor of keys or values is not supported, and advice for the user; both are empty if it is
/// supported.
struct Unsupported {
    std::string why;
    std::string advice;
};
Unsupported beyond_bounds(const KvContainerHeader& header, std::size_t index) {
    const CodedTensor& coded = *header.tensors[index].coded;
    if (coded.dim > longest_row)
        return {fmt::format("its rows have {} entries, at most {} are coded", coded.dim, longest_row),
                "give the head axis its own dimension with --layout"};
    const std::uint64_t tokens_at_once = std::min(coded.tokens, header.block_tokens);
    const std::uint64_t most_entries = largest_slab / (coded.other_side ? 2 : 1);
    std::uint64_t slab = 0;
    if (__builtin_mul_overflow(tokens_at_once, std::uint64_t{coded.heads}, &slab) ||
        __builtin_mul_overflow(slab, std::uint64_t{coded.dim}, &slab) || slab > most_entries)
        return {fmt::format("{} heads of {} tokens of {} are more than {} entries at once", coded.heads, tokens_at_once,
                            coded.dim, most_entries),
                "choose a smaller --block or dump fewer heads a tensor"};
    const std::size_t channels = BlockPlace{index}.channels(header);
    if (joins_heads(header) && channels > estimators::most_causal_columns)
        return {fmt::format("{} joins {} channels, at most {} are coded", header.method.text, channels,
                            estimators::most_causal_columns),
                "choose causal-klt, for several heads with heads=G"};
    return {};
}

std::vector<std::uint64_t> parse_rotations(const JsonFields& fields) {
    std::vector<std::uint64_t> rotations;
    for (const auto& item : fields.items("rotations")) {
        const auto* text = item.string();
        constexpr std::size_t digits = 18;  // with 0x
        if (text == nullptr || text->size() != digits || !text->starts_with("0x") ||
            text->find_first_not_of("0123456789abcdef", 2) != std::string::npos)
            fields.reject("has a rotation that is not 0x and 16 hexadecimal digits");
        rotations.push_back(std::stoull(text->substr(2), nullptr, 16));
    }
    return rotations;
}

ContainedTensor parse_tensor(const Json& json, const KvContainerHeader& header, const std::string& where) {
    const JsonFields unnamed(json, where + ": a tensor");
    ContainedTensor tensor;
    tensor.name = unnamed.text("name");
    const JsonFields fields(json, fmt::format("{}: tensor {}", where, in_quotes(tensor.name)));
    const auto dtype = sim::dtype_of_name(fields.text("dtype"));
    if (!dtype) fields.reject("has an unknown dtype");
    tensor.dtype = *dtype;
    for (const auto& size : fields.items("shape")) {
        if (size.integer() == nullptr || *size.integer() < 0)
            fields.reject("has an axis whose size is not a whole number of at least 0");
        tensor.shape.push_back(static_cast<std::size_t>(*size.integer()));
    }
    const auto bytes = sim::tensor_bytes(tensor.shape, tensor.dtype);
    if (!bytes) fields.reject("has a shape whose size overflows or is not a whole number of bytes");
    tensor.bytes = *bytes;
    if (json.find("side") == nullptr) return tensor;

    CodedTensor coded;
    coded.layer = fields.number("layer");
    const auto side = std::ranges::find(coded_sides, fields.text("side"), sim::side_name);
    if (side == coded_sides.end()) fields.reject("has an unknown side");
    coded.side = *side;
    if (!sim::is_block_dtype(tensor.dtype)) fields.reject("is coded but its dtype is not F16, BF16, F32 or F64");
    if (!header.layout.fits(tensor.shape)) fields.reject("does not fit the layout");
    const auto axes = sim::axes_of(header.layout, tensor.shape);
    coded.heads = axes.heads;
    coded.tokens = axes.tokens;
    coded.dim = axes.dim;
    if (tensor.bytes == 0) fields.reject("is coded but empty");
    if (header.cache && coded.tokens > header.block_tokens)
        fields.reject(fmt::format("has {} tokens and a block {} (the method codes whole sequences)", coded.tokens,
                                  header.block_tokens));
    coded.rotations = parse_rotations(fields);
    if (coded.rotations.size() != coded.heads)
        fields.reject(fmt::format("has {} heads and {} rotations", coded.heads, coded.rotations.size()));
    tensor.coded = std::move(coded);
    return tensor;
}

/// Rejects a tensor that is too large, or whose channels do not suit the options of the method.
void check_tensor(const KvContainerHeader& header, std::size_t index, const JsonFields& fields) {
    const auto& coded = header.tensors[index].coded;
    if (!coded) return;
    if (const auto beyond = beyond_bounds(header, index); !beyond.why.empty())
        fields.reject("is too large (" + beyond.why + ")");
    if (!header.cache) return;
    const std::size_t sides = coded->other_side ? 2 : 1;
    const std::size_t heads = sides * BlockPlace{index}.heads(header);
    fields.parsed([&] {
        return estimators::cache_coder(*header.cache, heads * coded->dim, header.bits, {}, {}, {0, heads, {}}).rank;
    });
}

Json json_of(const ContainedTensor& tensor) {
    Json json = Json::object({{"name", tensor.name},
                              {"dtype", sim::dtype_name(tensor.dtype)},
                              {"shape", Json(Json::Array(tensor.shape.begin(), tensor.shape.end()))}});
    if (!tensor.coded) return json;
    Json rotations = Json::array();
    for (const auto rotation : tensor.coded->rotations) rotations.push(fmt::format("0x{:016x}", rotation));
    json.set("layer", tensor.coded->layer).set("side", sim::side_name(tensor.coded->side));
    json.set("rotations", std::move(rotations));
    return json;
}

}  // namespace

std::uint32_t KvContainerHeader::version() const {
    if (!cache) return 2;
    return joins_heads(*this) ? kv_container_version : 3;
}

Json KvContainerHeader::json() const {
    Json::Object texts;
    for (const auto& [key, value] : metadata) texts.emplace_back(key, value);
    Json list = Json::array();
    for (const auto& tensor : tensors) list.push(json_of(tensor));
    Json json = Json::object({{"format", format_name},
                              {"version", static_cast<std::int64_t>(version())},
                              {"method", method.text},
                              {"bits", bits_json(bits)},
                              {"options", estimators::quantizer_json(quantizer, estimators::options_in_containers)},
                              {"seed", quantizer.seed.text()},
                              {"block", block_tokens},
                              {"dump_sha256", dump_sha256},
                              {"layout", layout.text()},
                              {"metadata", Json::object(std::move(texts))},
                              {"tensors", std::move(list)}});
    if (cache) json.set("derotated", derotated);
    return json;
}

KvContainerHeader KvContainerHeader::parse(const Json& json, const std::string& where) {
    const JsonFields fields(json, where + ": the header");
    if (fields.text("format") != format_name) fields.reject("is of another format");
    KvContainerHeader header;
    const std::string method_text = fields.text("method");
    header.bits = fields.real("bits");
    header.cache = fields.parsed([&] { return estimators::causal_cache(method_text); });
    header.method = fields.parsed([&] {
        if (header.cache) {
            header.cache->check_bits(header.bits);
            return estimators::MethodSpec{.text = method_text};
        }
        auto named = estimators::method_named(method_text);
        named.quantizer.check_bits(header.bits);
        return named;
    });
    if (header.cache) header.derotated = fields.boolean("derotated");
    const JsonFields options(fields.member("options"), where + ": options of the header");
    header.quantizer = estimators::parse_quantizer_json(options, estimators::options_in_containers);
    header.quantizer.seed = fields.parsed([&] { return stream::StudySeed::parse(fields.text("seed")); });
    header.block_tokens = fields.number("block", 1);
    header.dump_sha256 = fields.text("dump_sha256");
    const auto layout = sim::parse_layout(fields.text("layout"));
    if (!layout) fields.reject("has an unknown layout");
    header.layout = *layout;
    const Json& metadata = fields.member("metadata");
    if (metadata.members() == nullptr) fields.reject("has metadata that is not an object");
    for (const auto& [key, value] : *metadata.members()) {
        if (value.string() == nullptr) fields.reject("has metadata whose values are not strings");
        header.metadata.emplace_back(key, *value.string());
    }
    std::set<std::string> names{"__metadata__"};
    for (const auto& item : fields.items("tensors")) {
        header.tensors.push_back(parse_tensor(item, header, where));
        if (!names.insert(header.tensors.back().name).second) fields.reject("names a tensor twice");
    }
    fields.parsed([&] { join_sides(header); });
    for (std::size_t t = 0; t < header.tensors.size(); ++t)
        check_tensor(
            header, t,
            {fields.items("tensors")[t], fmt::format("{}: tensor {}", where, in_quotes(header.tensors[t].name))});
    return header;
}

std::size_t BlockPlace::tokens(const KvContainerHeader& header) const {
    return std::min(header.block_tokens, header.tensors[tensor].coded->tokens - first_token(header));
}

std::vector<std::size_t> BlockPlace::tensors(const KvContainerHeader& header) const {
    const CodedTensor& coded = *header.tensors[tensor].coded;
    if (!coded.other_side) return {tensor};
    return coded.side == sim::Side::key ? std::vector{tensor, *coded.other_side}
                                        : std::vector{*coded.other_side, tensor};
}

std::size_t BlockPlace::heads(const KvContainerHeader& header) const {
    if (!header.cache) return 1;
    const std::size_t all = header.tensors[tensor].coded->heads;
    return header.cache->heads == 0 ? all : std::min(header.cache->heads, all - head);
}

std::size_t BlockPlace::channels(const KvContainerHeader& header) const {
    const CodedTensor& coded = *header.tensors[tensor].coded;
    return (coded.other_side ? 2 : 1) * heads(header) * coded.dim;
}

std::string BlockPlace::text(const KvContainerHeader& header) const {
    std::vector<std::string> names;
    for (const std::size_t part : tensors(header)) names.push_back(in_quotes(header.tensors[part].name));
    const std::size_t count = heads(header);
    const std::size_t first = first_token(header);
    return fmt::format("tensor{} {}, head{}, block {} (tokens {} to {})", names.size() > 1 ? "s" : "",
                       fmt::join(names, " and "),
                       count > 1 ? fmt::format("s {} to {}", head, head + count - 1) : fmt::format(" {}", head), block,
                       first, first + tokens(header) - 1);
}

std::size_t blocks_of(const KvContainerHeader& header, std::size_t tensor) {
    const CodedTensor& coded = *header.tensors[tensor].coded;
    if (coded.other_side && *coded.other_side < tensor) return 0;
    // No product overflows: heads, tokens and their product are at most the tensor's bytes.
    const std::size_t at_once = BlockPlace{tensor}.heads(header);
    return ((coded.heads - 1) / at_once + 1) * ((coded.tokens - 1) / header.block_tokens + 1);
}

void join_sides(KvContainerHeader& header) {
    if (!header.cache || !header.cache->sides) return;
    std::map<std::size_t, std::vector<std::size_t>> layers;
    for (std::size_t t = 0; t < header.tensors.size(); ++t)
        if (header.tensors[t].coded) layers[header.tensors[t].coded->layer].push_back(t);
    for (const auto& [layer, tensors] : layers) {
        CodedTensor& one = *header.tensors[tensors.front()].coded;
        CodedTensor& other = *header.tensors[tensors.back()].coded;
        if (tensors.size() != 2 || one.side == other.side)
            throw input_error("layer {} has not one tensor of keys and one of values ({} joins them): use causal-klt",
                              layer, header.method.text);
        if (one.heads != other.heads || one.tokens != other.tokens || one.dim != other.dim)
            throw input_error(
                "keys and values of layer {} differ in heads, tokens or channels ({} joins them): use causal-klt",
                layer, header.method.text);
        one.other_side = tensors.back();
        other.other_side = tensors.front();
    }
}

void check_bounds(const KvContainerHeader& header) {
    for (std::size_t t = 0; t < header.tensors.size(); ++t)
        if (header.tensors[t].coded)
            if (const auto beyond = beyond_bounds(header, t); !beyond.why.empty())
                throw usage_error("tensor {} cannot be coded ({}): {}", in_quotes(header.tensors[t].name), beyond.why,
                                  beyond.advice);
}

}  // namespace spiked::codec
