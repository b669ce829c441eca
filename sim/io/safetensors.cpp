#include "sim/io/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/io/file_formats.hpp"

namespace spiked::sim {
namespace {

constexpr std::uint64_t largest_safetensors_header = 100'000'000;  // the limit of the format's reference implementation
constexpr std::uint64_t length_bytes = 8;
constexpr std::size_t chunk_elements = 8192;
constexpr std::string_view metadata_key = "__metadata__";

/// The product; empty on overflow of 64 bits.
std::optional<std::uint64_t> product(std::span<const std::size_t> factors) {
    std::uint64_t result = 1;
    for (const std::uint64_t factor : factors)
        if (__builtin_mul_overflow(result, factor, &result)) return std::nullopt;
    return result;
}

std::uint64_t little_endian(std::span<const std::byte, length_bytes> bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < length_bytes; ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    return value;
}

/// The entries of a JSON list of non-negative integers; empty for anything else.
std::optional<std::vector<std::size_t>> sizes_of(const Json* list) {
    if (list == nullptr || list->items() == nullptr) return std::nullopt;
    std::vector<std::size_t> sizes;
    for (const auto& item : *list->items()) {
        const auto* value = item.integer();
        if (value == nullptr || *value < 0) return std::nullopt;
        sizes.push_back(static_cast<std::size_t>(*value));
    }
    return sizes;
}

Metadata parse_metadata(const Json& json, const std::string& path) {
    if (json.members() == nullptr)
        throw input_error(
            "{}: __metadata__ is not an object (it maps names to texts): the file is damaged or was written by a "
            "faulty program",
            path);
    Metadata metadata;
    for (const auto& [key, value] : *json.members()) {
        if (value.string() == nullptr)
            throw input_error("{}: metadata {} is not a text (the format allows only texts): write it as a string",
                              path, in_quotes(key));
        metadata.emplace_back(key, *value.string());
    }
    return metadata;
}

/// Parses the entry of one tensor; its `offset` is relative to the beginning of the data.
TensorInfo parse_tensor(const std::string& name, const Json& json, const std::string& path) {
    const std::string where = fmt::format("{}: tensor {}", path, in_quotes(name));
    const auto* dtype_text = json.find("dtype") != nullptr ? json.find("dtype")->string() : nullptr;
    const auto shape = sizes_of(json.find("shape"));
    const auto offsets = sizes_of(json.find("data_offsets"));
    if (dtype_text == nullptr)
        throw input_error("{} has no dtype (a text such as \"F16\" is needed): the header is damaged", where);
    if (!shape)
        throw input_error(
            "{} has no usable shape (a list of integers, none negative, is needed): the header is damaged", where);
    if (!offsets || offsets->size() != 2)
        throw input_error(
            "{} has no usable data_offsets (two integers, none negative, are needed): the header is damaged", where);
    const auto dtype = dtype_of_name(*dtype_text);
    if (!dtype)
        throw input_error(
            "{} has unknown dtype {} (F16, BF16, F32 and F64 are read, the format's other types are skipped): write it "
            "again with one of these",
            where, in_quotes(*dtype_text));
    const std::uint64_t begin = (*offsets)[0];
    const std::uint64_t end = (*offsets)[1];
    if (begin > end)
        throw input_error(
            "{} has reversed data_offsets [{}, {}] (the end lies before the beginning): the header is damaged", where,
            begin, end);
    const auto needed = tensor_bytes(*shape, *dtype);
    if (!needed)
        throw input_error(
            "{} has shape {} of {} (its size overflows 64 bits or is not a whole number of bytes): the header is "
            "damaged or forged",
            where, shape_text(*shape), *dtype_text);
    if (*needed != end - begin)
        throw input_error(
            "{} of shape {} and dtype {} needs {} bytes (its data_offsets [{}, {}] hold {}): the header is damaged",
            where, shape_text(*shape), *dtype_text, *needed, begin, end, end - begin);
    return {name, *dtype, *shape, begin, *needed};
}

/// Throws unless the tensors, in some order, cover the data exactly once. `data_begin` is the data's offset in the
/// file.
void check_tiling(const std::vector<TensorInfo>& tensors, const ByteFile& file, std::uint64_t data_begin) {
    const std::uint64_t present = file.size() - data_begin;
    std::vector<const TensorInfo*> order;
    for (const auto& tensor : tensors) order.push_back(&tensor);
    std::sort(order.begin(), order.end(), [](const TensorInfo* a, const TensorInfo* b) {
        return std::pair(a->offset, a->bytes) < std::pair(b->offset, b->bytes);
    });
    std::uint64_t end = 0;
    const TensorInfo* before = nullptr;
    const TensorInfo* cut = nullptr;
    for (const auto* tensor : order) {
        const std::uint64_t tensor_end = tensor->offset + tensor->bytes;
        if (tensor->offset > end && tensor_end > present)
            throw input_error(
                "{}: tensor {} is out of range (its data_offsets [{}, {}] end beyond the {} of data, and no tensor "
                "fills the gap before it): the header is damaged or forged",
                file.path(), in_quotes(tensor->name), tensor->offset, tensor_end, bytes_text(present));
        if (tensor->offset > end)
            throw input_error(
                "{}: a hole of {} bytes before tensor {} (data from {} to {} belong to no tensor): the header is "
                "damaged or forged",
                file.path(), tensor->offset - end, in_quotes(tensor->name), end, tensor->offset);
        if (tensor->offset < end)
            throw input_error(
                "{}: tensors {} and {} overlap (one ends at {}, the other begins at {}): the header is damaged or "
                "forged",
                file.path(), in_quotes(before->name), in_quotes(tensor->name), end, tensor->offset);
        if (cut == nullptr && tensor_end > present) cut = tensor;
        end = tensor_end;
        before = tensor;
    }
    if (cut != nullptr)
        throw input_error(
            "{}: truncated in tensor {} (expected {}, found {}): likely an incomplete download, fetch it again",
            file.path(), in_quotes(cut->name), bytes_text(data_begin + end), bytes_text(file.size()));
    if (end < present)
        throw input_error(
            "{}: {} after the last tensor (expected {}, found {}): the header is damaged or two files were joined",
            file.path(), bytes_text(present - end), bytes_text(data_begin + end), bytes_text(file.size()));
}

Json header_entry(const TensorForm& tensor, std::uint64_t begin, std::uint64_t end) {
    Json::Array shape(tensor.shape.begin(), tensor.shape.end());
    return Json::object({{"dtype", Json(dtype_name(tensor.dtype))},
                         {"shape", Json(std::move(shape))},
                         {"data_offsets", Json(Json::Array{Json(std::size_t{begin}), Json(std::size_t{end})})}});
}

SafetensorsWriter::Plan plan_file(const Metadata& metadata, const std::vector<TensorForm>& tensors) {
    SafetensorsWriter::Plan plan;
    plan.order.resize(tensors.size());
    std::iota(plan.order.begin(), plan.order.end(), std::size_t{0});
    std::stable_sort(plan.order.begin(), plan.order.end(), [&](std::size_t a, std::size_t b) {
        return dtype_bits(tensors[a].dtype) > dtype_bits(tensors[b].dtype);
    });
    plan.offsets.resize(tensors.size());
    std::uint64_t data_bytes = 0;
    for (const std::size_t i : plan.order) {
        const auto bytes = tensor_bytes(tensors[i].shape, tensors[i].dtype);
        if (!bytes || tensors[i].name == metadata_key)
            throw precondition_error("tensor {} of shape {} and dtype {} cannot be written", in_quotes(tensors[i].name),
                                     shape_text(tensors[i].shape), dtype_name(tensors[i].dtype));
        plan.offsets[i] = data_bytes;
        data_bytes += *bytes;
    }
    Json::Object header;
    if (!metadata.empty()) {
        Json::Object texts;
        for (const auto& [key, value] : metadata) texts.emplace_back(key, Json(value));
        header.emplace_back(metadata_key, Json::object(std::move(texts)));
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const auto& tensor = tensors[i];
        if (!names.insert(tensor.name).second)
            throw precondition_error("two tensors named {} to write", in_quotes(tensor.name));
        const std::uint64_t end = plan.offsets[i] + *tensor_bytes(tensor.shape, tensor.dtype);
        header.emplace_back(tensor.name, header_entry(tensor, plan.offsets[i], end));
    }
    std::string text = Json::object(std::move(header)).text();
    text.append((8 - text.size() % 8) % 8, ' ');

    plan.head.assign(length_bytes, '\0');
    for (std::size_t i = 0; i < length_bytes; ++i) plan.head[i] = static_cast<char>(text.size() >> (8 * i) & 0xFFU);
    plan.head += text;
    for (auto& offset : plan.offsets) offset += plan.head.size();
    plan.size = plan.head.size() + data_bytes;
    return plan;
}

void write_values(OutputFile& out, const TensorSource& tensor, std::uint64_t elements, const std::string& path) {
    std::vector<double> values(static_cast<std::size_t>(std::min<std::uint64_t>(elements, chunk_elements)));
    std::vector<std::byte> bytes(values.size() * (dtype_bits(tensor.dtype) / 8));
    for (std::uint64_t first = 0; first < elements; first += chunk_elements) {
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(chunk_elements, elements - first));
        const auto part = std::span(values).first(count);
        const auto encoded = std::span(bytes).first(count * (dtype_bits(tensor.dtype) / 8));
        tensor.values(first, part);
        if (const auto lost = encode(part, tensor.dtype, encoded))
            throw output_error(
                "{}: tensor {} cannot be written as {} (element {} is {}, too large for it): choose a wider dtype",
                path, in_quotes(tensor.name), dtype_name(tensor.dtype), first + *lost, part[*lost]);
        out.write(encoded);
    }
}

}  // namespace

const std::string* find_metadata(const Metadata& metadata, std::string_view key) {
    for (const auto& [name, value] : metadata)
        if (name == key) return &value;
    return nullptr;
}

std::optional<std::uint64_t> tensor_bytes(std::span<const std::size_t> shape, DType dtype) {
    const auto elements = product(shape);
    std::uint64_t bits = 0;
    if (!elements || __builtin_mul_overflow(*elements, std::uint64_t{dtype_bits(dtype)}, &bits)) return std::nullopt;
    if (bits % 8 != 0) return std::nullopt;
    return bits / 8;
}

SafetensorsFile::SafetensorsFile(std::string path) : file_(std::move(path)) {
    reject_other_format(file_, ".safetensors");
    if (file_.size() < length_bytes)
        throw input_error(
            "{}: truncated (expected at least {} bytes, the length of the header, found {}): likely an incomplete "
            "download, fetch it again",
            file_.path(), length_bytes, file_.size());
    std::array<std::byte, length_bytes> length{};
    file_.read(0, length);
    const std::uint64_t header_bytes = little_endian(length);
    if (header_bytes > largest_safetensors_header)
        throw input_error("{}: header of {} bytes (at most {} are legal): the file is damaged or not safetensors",
                          file_.path(), header_bytes, largest_safetensors_header);
    if (header_bytes > file_.size() - length_bytes)
        throw input_error(
            "{}: truncated in its header (expected {} bytes of header, found {}): likely an incomplete download, fetch "
            "it again",
            file_.path(), header_bytes, file_.size() - length_bytes);
    parse_header(header_bytes);
}

void SafetensorsFile::parse_header(std::uint64_t header_bytes) {
    std::string text(header_bytes, '\0');
    file_.read(length_bytes, std::as_writable_bytes(std::span(text)));
    if (!text.starts_with('{'))
        throw input_error(
            "{}: header is not a JSON object (it must begin with a brace): the file is damaged or not safetensors",
            path());
    constexpr int max_depth = 8;  // a legal header has 3 levels
    const Json header = Json::parse(text, path() + ": header", max_depth);
    const std::uint64_t data_begin = length_bytes + header_bytes;
    for (const auto& [name, value] : *header.members()) {
        if (name == metadata_key)
            metadata_ = parse_metadata(value, path());
        else
            tensors_.push_back(parse_tensor(name, value, path()));
    }
    check_tiling(tensors_, file_, data_begin);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        tensors_[i].offset += data_begin;
        index_.emplace(tensors_[i].name, i);
    }
}

const TensorInfo& SafetensorsFile::tensor(const std::string& name) const {
    if (const auto found = index_.find(name); found != index_.end()) return tensors_[found->second];
    std::vector<std::string> names;
    for (const auto& known : tensors_) names.push_back(known.name);
    throw input_error("{}: no tensor {} in it{}", path(), in_quotes(name), name_hint(name, names));
}

void SafetensorsFile::read(const TensorInfo& tensor, std::uint64_t first_element, std::span<double> out) const {
    if (!is_block_dtype(tensor.dtype) && !is_code_dtype(tensor.dtype))
        throw input_error(
            "{}: tensor {} has dtype {} (F16, BF16, F32, F64, F8_E4M3, F8_E5M2, I8 and U8 are read as numbers): "
            "convert it first",
            path(), in_quotes(tensor.name), dtype_name(tensor.dtype));
    const std::uint64_t elements = tensor.elements();
    if (first_element > elements || out.size() > elements - first_element)
        throw precondition_error("{}: tensor {}: {} elements are requested at {} of {}", path(), in_quotes(tensor.name),
                                 out.size(), first_element, elements);
    const std::size_t width = dtype_bits(tensor.dtype) / 8;
    std::vector<std::byte> bytes(std::min(out.size(), chunk_elements) * width);
    std::uint64_t offset = tensor.offset + first_element * width;
    while (!out.empty()) {
        const std::size_t count = std::min(out.size(), chunk_elements);
        const auto part = std::span(bytes).first(count * width);
        file_.read(offset, part);
        decode(part, tensor.dtype, out.first(count));
        offset += part.size();
        out = out.subspan(count);
    }
}

void SafetensorsFile::read_bytes(const TensorInfo& tensor, std::uint64_t first_byte, std::span<std::byte> out) const {
    if (first_byte > tensor.bytes || out.size() > tensor.bytes - first_byte)
        throw precondition_error("{}: tensor {}: {} bytes are requested at {} of {}", path(), in_quotes(tensor.name),
                                 out.size(), first_byte, tensor.bytes);
    file_.read(tensor.offset + first_byte, out);
}

TensorSource tensor_of(std::string name, DType dtype, std::vector<std::size_t> shape, std::vector<double> values) {
    if (product(shape) != values.size())
        throw precondition_error("tensor {} of shape {} got {} values", in_quotes(name), shape_text(shape),
                                 values.size());
    const auto kept = std::make_shared<const std::vector<double>>(std::move(values));
    return {std::move(name), dtype, std::move(shape), [kept](std::uint64_t first, std::span<double> out) {
                std::copy_n(kept->begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
            }};
}

void write_safetensors(const std::string& path, const Metadata& metadata, const std::vector<TensorSource>& tensors) {
    std::vector<TensorForm> forms;
    for (const auto& tensor : tensors) {
        if (!(is_block_dtype(tensor.dtype) || tensor.dtype == DType::i32))
            throw precondition_error("tensor {} of dtype {} has no values to write", in_quotes(tensor.name),
                                     dtype_name(tensor.dtype));
        forms.push_back({tensor.name, tensor.dtype, tensor.shape});
    }
    const auto plan = plan_file(metadata, forms);
    OutputFile out(path, plan.size);
    out.write(plan.head);
    for (const std::size_t i : plan.order) write_values(out, tensors[i], *product(tensors[i].shape), path);
    out.commit();
}

SafetensorsWriter::SafetensorsWriter(const std::string& path, const Metadata& metadata,
                                     const std::vector<TensorForm>& tensors)
    : plan_(plan_file(metadata, tensors)), out_(path, plan_.size) {
    out_.write_at(0, std::as_bytes(std::span(plan_.head)));
}

void SafetensorsWriter::write(std::size_t tensor, std::uint64_t first_byte, std::span<const std::byte> bytes) {
    out_.write_at(plan_.offsets.at(tensor) + first_byte, bytes);
}

}  // namespace spiked::sim
