#include "codec/container/kv_container.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"
#include "sim/io/safetensors.hpp"

namespace spiked::codec {
namespace {

constexpr std::string_view magic = "SPIKEDKV";
constexpr std::size_t preamble_bytes = 24;
constexpr std::size_t frame_bytes = 8;
constexpr std::size_t checksum_bytes = 4;
constexpr std::uint64_t largest_header = 100'000'000;

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

/// A lower bound on the bytes of a tensor in a container. Every stored entry takes some bits; an eighth of a bit per
/// entry is less than any method needs for data that are not nearly constant.
std::uint64_t least_bytes(const KvContainerHeader& header, std::size_t index) {
    constexpr std::uint64_t entries_a_byte = 64;
    const ContainedTensor& tensor = header.tensors[index];
    if (!tensor.coded) return tensor.bytes + checksum_bytes;
    return blocks_of(header, index) + tensor.bytes / (sim::dtype_bits(tensor.dtype) / 8) / entries_a_byte;
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
    for (std::size_t t = 0; t < header.tensors.size(); ++t) least_bytes_ += least_bytes(header, t);
    const std::string text = header.json().text();
    const auto bytes = std::as_bytes(std::span(text));
    if (bytes.size() > largest_header)
        throw input_error(
            "a header of {} bytes is too long (at most {}, and the dump has too many tensors): divide it into several "
            "dumps",
            bytes.size(), largest_header);
    put(std::as_bytes(std::span(magic)));
    put(little_endian(header.version()));
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
    for (std::size_t t = 0; t < header_.tensors.size(); ++t) {
        const std::uint64_t needed = least_bytes(header_, t);
        if (needed > left) reject_short(header_.tensors[t]);
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
        const bool begins_blocks = tensor.coded && blocks_of(header_, t) > 0;
        for (BlockPlace place{t}; begins_blocks && place.first_token(header_) < tensor.coded->tokens; ++place.block)
            for (place.head = 0; place.head < tensor.coded->heads; place.head += place.heads(header_)) {
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
    const std::uint64_t entries = place.tokens(header_) * place.channels(header_);
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
