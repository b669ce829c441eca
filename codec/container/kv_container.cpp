#include "codec/container/kv_container.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/text/json_fields.hpp"
#include "core/text/printable.hpp"
#include "estimators/caches/method_name.hpp"
#include "sim/io/safetensors.hpp"

namespace spiked::codec {
namespace {

constexpr std::string_view magic = "SPIKEDKV";
constexpr std::string_view format_name = "spiked-kv";
constexpr std::size_t preamble_bytes = 24;
constexpr std::size_t frame_bytes = 8;
constexpr std::size_t checksum_bytes = 4;
constexpr std::uint64_t largest_header = 100'000'000;
constexpr std::array coded_sides = {sim::Side::key, sim::Side::value};
constexpr std::size_t longest_row = 1024;
constexpr std::uint64_t largest_slab = std::uint64_t{1} << 26;

template <class Number>
std::array<std::byte, sizeof(Number)> little_endian(Number number) {
    std::array<std::byte, sizeof(Number)> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(number >> (8 * i) & 0xFFU);
    return bytes;
}

std::uint64_t number_at(std::span<const std::byte> bytes) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) number |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    return number;
}

std::uint32_t crc(std::uint32_t sum, std::span<const std::byte> bytes) {
    return static_cast<std::uint32_t>(crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::uint32_t block_checksum(const BlockPlace& place, std::span<const std::byte> payload) {
    std::uint32_t checksum = 0;
    for (const std::size_t part : {place.tensor, place.head, place.block})
        checksum = crc(checksum, little_endian(static_cast<std::uint32_t>(part)));
    return crc(checksum, payload);
}

std::uint64_t most_payload(std::uint64_t entries) { return 32 * entries + (std::uint64_t{64} << 10); }

/// The reason why a tensor of keys or values is not supported, and advice for the user; both are empty if it is
/// supported.
struct Unsupported {
    std::string why;
    std::string advice;
};
Unsupported beyond_bounds(const ContainedTensor& tensor, std::size_t block_tokens) {
    const CodedTensor& coded = *tensor.coded;
    if (coded.dim > longest_row)
        return {fmt::format("its rows have {} entries, at most {} are coded", coded.dim, longest_row),
                "give the head axis its own dimension with --layout"};
    const std::uint64_t tokens_at_once = std::min(coded.tokens, block_tokens);
    std::uint64_t slab = 0;
    if (__builtin_mul_overflow(tokens_at_once, std::uint64_t{coded.heads}, &slab) ||
        __builtin_mul_overflow(slab, std::uint64_t{coded.dim}, &slab) || slab > largest_slab)
        return {fmt::format("{} heads of {} tokens of {} are more than {} entries at once", coded.heads, tokens_at_once,
                            coded.dim, largest_slab),
                "choose a smaller --block or dump fewer heads a tensor"};
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

std::uint32_t version_of(const KvContainerHeader& header) { return header.cache ? kv_container_version : 2; }

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
    // The options of the method may not suit the number of channels.
    if (header.cache)
        fields.parsed([&] { return estimators::cache_coder(*header.cache, coded.dim, header.bits, {}, {}).rank; });
    coded.rotations = parse_rotations(fields);
    if (coded.rotations.size() != coded.heads)
        fields.reject(fmt::format("has {} heads and {} rotations", coded.heads, coded.rotations.size()));
    tensor.coded = std::move(coded);
    if (const auto beyond = beyond_bounds(tensor, header.block_tokens); !beyond.why.empty())
        fields.reject("is too large (" + beyond.why + ")");
    return tensor;
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

Json KvContainerHeader::json() const {
    Json::Object texts;
    for (const auto& [key, value] : metadata) texts.emplace_back(key, value);
    Json list = Json::array();
    for (const auto& tensor : tensors) list.push(json_of(tensor));
    Json json = Json::object({{"format", format_name},
                              {"version", static_cast<std::int64_t>(version_of(*this))},
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
    header.cache = fields.parsed([&] { return estimators::cache_of_heads(method_text); });
    header.method = fields.parsed([&] {
        if (header.cache) {
            header.cache->check_bits(header.bits);
            return estimators::MethodSpec{.text = method_text};
        }
        auto method = estimators::method_named(method_text);
        method.quantizer.check_bits(header.bits);
        return method;
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
    return header;
}

std::size_t BlockPlace::tokens(const KvContainerHeader& header) const {
    return std::min(header.block_tokens, header.tensors[tensor].coded->tokens - first_token(header));
}

std::string BlockPlace::text(const KvContainerHeader& header) const {
    const std::size_t first = first_token(header);
    return fmt::format("tensor {}, head {}, block {} (tokens {} to {})", in_quotes(header.tensors[tensor].name), head,
                       block, first, first + tokens(header) - 1);
}

void check_bounds(const KvContainerHeader& header) {
    for (const auto& tensor : header.tensors)
        if (tensor.coded)
            if (const auto beyond = beyond_bounds(tensor, header.block_tokens); !beyond.why.empty())
                throw usage_error("tensor {} cannot be coded ({}): {}", in_quotes(tensor.name), beyond.why,
                                  beyond.advice);
}

namespace {

/// A lower bound on the bytes of a tensor in a container. Every stored entry takes some bits; an eighth of a bit per
/// entry is less than any method needs for data that are not nearly constant.
std::uint64_t least_bytes(const KvContainerHeader& header, const ContainedTensor& tensor) {
    constexpr std::uint64_t entries_a_byte = 64;
    if (!tensor.coded) return tensor.bytes + checksum_bytes;
    const auto& coded = *tensor.coded;
    const std::uint64_t blocks = (coded.tokens - 1) / header.block_tokens + 1;
    // No product overflows: heads, tokens and their product are at most the tensor's bytes.
    return coded.heads * blocks + tensor.bytes / (sim::dtype_bits(tensor.dtype) / 8) / entries_a_byte;
}

/// Gives the `kivi-hf` of version 1 its name of today.
void rename_kivi_hf(Json& header) {
    constexpr std::string_view then = "kivi-hf";
    const Json* const method = header.find("method");
    if (method == nullptr || method->string() == nullptr) return;
    std::string text = *method->string();
    const std::size_t at = text.find(then);
    if (at != std::string::npos) header.set("method", text.replace(at, then.size(), "kivi:axis=key"));
}

}  // namespace

KvContainerWriter::KvContainerWriter(const std::string& path, const KvContainerHeader& header,
                                     std::uint64_t expected_bytes)
    : file_(path, expected_bytes) {
    for (const auto& tensor : header.tensors) least_bytes_ += least_bytes(header, tensor);
    const std::string text = header.json().text();
    const auto bytes = std::as_bytes(std::span(text));
    if (bytes.size() > largest_header)
        throw input_error(
            "a header of {} bytes is too long (at most {}, and the dump has too many tensors): divide it into several "
            "dumps",
            bytes.size(), largest_header);
    put(std::as_bytes(std::span(magic)));
    put(little_endian(version_of(header)));
    put(little_endian(crc(0, bytes)));
    put(little_endian(std::uint64_t{bytes.size()}));
    put(bytes);
    ledger_.add(estimators::Item::header, 8 * bytes_);
    least_bytes_ += bytes_;
}

void KvContainerWriter::put(std::span<const std::byte> bytes) {
    file_.write(bytes);
    bytes_ += bytes.size();
}

void KvContainerWriter::block(const BlockPlace& place, const estimators::Encoded& encoded) {
    const auto payload = std::as_bytes(std::span(encoded.bytes));
    std::array<std::byte, frame_bytes> frame;
    std::ranges::copy(little_endian(static_cast<std::uint32_t>(payload.size())), frame.begin());
    std::ranges::copy(little_endian(block_checksum(place, payload)), frame.begin() + 4);
    tensor_checksum_ = crc(crc(tensor_checksum_, frame), payload);
    put(frame);
    put(payload);
    ledger_.add(estimators::Item::header, 8 * frame_bytes);
    ledger_ += encoded.ledger;
}

void KvContainerWriter::raw(std::span<const std::byte> bytes) {
    tensor_checksum_ = crc(tensor_checksum_, bytes);
    put(bytes);
    kept_bytes_ += bytes.size();
}

void KvContainerWriter::end_tensor() {
    put(little_endian(std::exchange(tensor_checksum_, 0)));
    ledger_.add(estimators::Item::header, 8 * checksum_bytes);
}

void KvContainerWriter::commit() {
    if (ledger_.total() + 8 * kept_bytes_ != 8 * bytes_)
        throw postcondition_error("{} bits are counted for a file of {} bytes, {} of them of tensors kept as they are",
                                  ledger_.total(), bytes_, kept_bytes_);
    if (bytes_ < least_bytes_)
        throw input_error(
            "the dump is nearly constant (its code takes {}, and readers reject a file of fewer than {} as forged): "
            "choose a method with a whole number of bits per entry, for example tq-mse",
            bytes_text(bytes_), bytes_text(least_bytes_));
    file_.commit();
}

KvContainerReader::KvContainerReader(const std::string& path) : file_(path) {
    read_header();
    check_length();
}

void KvContainerReader::reject_checksum(const std::string& what) const {
    throw input_error("{}: {} does not match its checksum: the file was altered or damaged, fetch it again", path(),
                      what);
}

void KvContainerReader::read_header() {
    std::array<std::byte, preamble_bytes> preamble;
    const auto present = std::span(preamble).first(std::min<std::uint64_t>(preamble.size(), file_.size()));
    file_.read(0, present);
    const auto expected = std::as_bytes(std::span(magic));
    const std::size_t compared = std::min(expected.size(), present.size());
    if (!std::ranges::equal(expected.first(compared), present.first(compared)))
        throw input_error("{}: not a coded dump (it does not begin with {}): make one with spiked kv encode", path(),
                          magic);
    if (present.size() < preamble.size())
        throw input_error("{}: truncated in its first {} bytes (it has {}): fetch it again", path(), preamble.size(),
                          file_.size());
    const auto version = number_at(std::span(preamble).subspan(8, 4));
    if (version == 0 || version > kv_container_version)
        throw input_error("{}: version {} of the format (this program reads 1 to {}): use the program that wrote it",
                          path(), version, kv_container_version);
    const std::uint64_t length = number_at(std::span(preamble).subspan(16, 8));
    if (length > largest_header || length > file_.size() - preamble.size())
        throw input_error("{}: header of {} bytes (the file has {}, a header at most {}): truncated or damaged", path(),
                          length, file_.size(), largest_header);
    std::string text(length, '\0');
    file_.read(preamble.size(), std::as_writable_bytes(std::span(text)));
    if (crc(0, std::as_bytes(std::span(text))) != number_at(std::span(preamble).subspan(12, 4)))
        reject_checksum("the header");
    at_ = preamble.size() + length;
    Json header = Json::parse(text, path() + ": the header", 8);
    // The checksum does not cover the number in front of it.
    if (const Json* stated = header.find("version");
        stated != nullptr && stated->integer() != nullptr && static_cast<std::uint64_t>(*stated->integer()) != version)
        reject_checksum("the header");
    if (version == 1) rename_kivi_hf(header);
    header_ = KvContainerHeader::parse(header, path());
}

void KvContainerReader::check_length() const {
    std::uint64_t left = file_.size() - at_;
    for (const auto& tensor : header_.tensors) {
        const std::uint64_t needed = least_bytes(header_, tensor);
        if (needed > left) reject_short(tensor);
        left -= needed;
    }
}

/// Finds and reports the place where the file ends, reading the frames without their payloads.
void KvContainerReader::reject_short(const ContainedTensor& too_long) const {
    std::uint64_t at = at_;
    const auto skip = [&](std::uint64_t bytes, const auto& what) {
        if (bytes > file_.size() - at)
            throw input_error("{}: truncated in {} (the file has {}): fetch it again", path(), what(),
                              bytes_text(file_.size()));
        at += bytes;
    };
    for (std::size_t t = 0; t < header_.tensors.size(); ++t) {
        const auto& tensor = header_.tensors[t];
        const auto name = [&] { return "tensor " + in_quotes(tensor.name); };
        if (!tensor.coded) skip(tensor.bytes, name);
        for (BlockPlace place{t}; tensor.coded && place.first_token(header_) < tensor.coded->tokens; ++place.block)
            for (place.head = 0; place.head < tensor.coded->heads; ++place.head) {
                const auto where = [&] { return place.text(header_); };
                std::array<std::byte, frame_bytes> frame;
                skip(frame.size(), where);
                file_.read(at - frame.size(), frame);
                skip(number_at(std::span(frame).first(4)), where);
            }
        skip(checksum_bytes, name);
    }
    throw input_error(
        "{}: too short for tensor {} of shape {} (every entry takes some bits, the file has {}): the header is forged",
        path(), in_quotes(too_long.name), shape_text(too_long.shape), bytes_text(file_.size()));
}

void KvContainerReader::take(std::span<std::byte> out, const std::string& what) {
    if (out.size() > file_.size() - at_)
        throw input_error("{}: truncated in {} ({} bytes are needed from byte {} on, the file has {}): fetch it again",
                          path(), what, out.size(), at_, file_.size());
    file_.read(at_, out);
    at_ += out.size();
}

std::vector<std::uint8_t> KvContainerReader::block(const BlockPlace& place) {
    const std::string where = place.text(header_);
    std::array<std::byte, frame_bytes> frame;
    take(frame, where);
    const std::uint64_t length = number_at(std::span(frame).first(4));
    const std::uint64_t entries = place.tokens(header_) * header_.tensors[place.tensor].coded->dim;
    if (length > most_payload(entries))
        throw input_error("{}: {} says it takes {} bytes (at most {} are possible): the file was altered or damaged",
                          path(), where, length, most_payload(entries));
    if (length > file_.size() - at_)
        throw input_error("{}: truncated in {} (it takes {} bytes from byte {} on, the file has {}): fetch it again",
                          path(), where, length, at_, file_.size());
    std::vector<std::uint8_t> payload(length);
    const auto bytes = std::as_writable_bytes(std::span(payload));
    take(bytes, where);
    if (block_checksum(place, bytes) != number_at(std::span(frame).subspan(4))) reject_checksum(where);
    tensor_checksum_ = crc(crc(tensor_checksum_, frame), bytes);
    return payload;
}

void KvContainerReader::raw(std::size_t tensor, std::span<std::byte> out) {
    take(out, fmt::format("tensor {}", in_quotes(header_.tensors[tensor].name)));
    tensor_checksum_ = crc(tensor_checksum_, out);
}

void KvContainerReader::end_tensor(std::size_t tensor) {
    const std::string where = fmt::format("tensor {}", in_quotes(header_.tensors[tensor].name));
    std::array<std::byte, checksum_bytes> stored;
    take(stored, "the checksum of " + where);
    if (number_at(stored) != std::exchange(tensor_checksum_, 0)) reject_checksum(where);
}

void KvContainerReader::finish() const {
    if (at_ != file_.size())
        throw input_error("{}: {} after the last tensor: the file was altered or two files were joined", path(),
                          bytes_text(file_.size() - at_));
}

}  // namespace spiked::codec
