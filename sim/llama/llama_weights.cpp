#include "sim/llama/llama_weights.hpp"

#include <sys/stat.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <new>
#include <span>
#include <string_view>

#include "core/files/mapped_file.hpp"
#include "core/files/text_file.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/memory.hpp"
#include "core/runtime/processor.hpp"
#include "core/text/json.hpp"
#include "core/text/printable.hpp"

namespace spiked::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_index_bytes = 1 << 24;

/// The number of outputs that a product converts at a time: enough for products of many rows to be fast, and few enough
/// for the converted weights to stay in the cache of a processor core where there are few rows.
std::size_t panel_outputs(std::size_t inputs, std::size_t rows) {
    constexpr std::size_t few_rows = 16;
    constexpr std::size_t most_weights = 1 << 18;
    return rows >= few_rows ? 256 : std::max<std::size_t>(16, most_weights / inputs);
}

#if defined(__x86_64__)
/// Converts all but the last few numbers and returns how many.
__attribute__((target("avx2,f16c"))) std::size_t f16c_from_f16(const std::uint16_t* from, std::size_t count,
                                                               float* to) {
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
    return i;
}

__attribute__((target("avx2"))) std::size_t avx2_from_bf16(const std::uint16_t* from, std::size_t count, float* to) {
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_slli_epi32(wide, 16));
    }
    return i;
}
#endif

/// Converts finite numbers. The bits of F16 without the sign, moved to those of float, are the number times 2^-112,
/// also where it is subnormal.
void from_f16(const std::uint16_t* from, std::size_t count, float* to) {
    std::size_t i = 0;
#if defined(__x86_64__)
    if (processor().avx2 && processor().f16c) i = f16c_from_f16(from, count, to);
#endif
    for (; i < count; ++i) {
        const std::uint32_t bits = from[i];
        const float magnitude = std::bit_cast<float>((bits & 0x7fffU) << 13U) * 0x1p112F;
        to[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | (bits & 0x8000U) << 16U);
    }
}

void from_bf16(const std::uint16_t* from, std::size_t count, float* to) {
    std::size_t i = 0;
#if defined(__x86_64__)
    if (processor().avx2) i = avx2_from_bf16(from, count, to);
#endif
    for (; i < count; ++i) to[i] = std::bit_cast<float>(std::uint32_t{from[i]} << 16U);
}

std::shared_ptr<std::byte[]> aligned_bytes(std::size_t count) {
    constexpr std::align_val_t alignment{64};
    auto* const bytes = static_cast<std::byte*>(::operator new(count, alignment));
    return {bytes, [](std::byte* at) { ::operator delete(at, alignment); }};
}

/// Whether all numbers of 16 or 32 bits are finite: whether no exponent has all bits set.
template <class Word>
bool all_finite(const std::byte* bytes, std::size_t count, Word exponent) {
    const auto* words = reinterpret_cast<const Word*>(bytes);
    Word largest = 0;
    for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, static_cast<Word>(words[i] & exponent));
    return largest != exponent;
}

bool all_finite(const std::byte* bytes, std::size_t count, DType dtype) {
    if (dtype == DType::f32) return all_finite<std::uint32_t>(bytes, count, 0x7f800000U);
    return all_finite<std::uint16_t>(bytes, count, dtype == DType::f16 ? 0x7c00U : 0x7f80U);
}

/// Reads a tensor of doubles as floats.
void read_rounded(const SafetensorsFile& file, const TensorInfo& tensor, std::span<float> out) {
    std::vector<double> part(std::min<std::size_t>(out.size(), 1 << 16));
    for (std::size_t first = 0; first < out.size(); first += part.size()) {
        const auto some = std::span(part).first(std::min(part.size(), out.size() - first));
        file.read(tensor, first, some);
        std::transform(some.begin(), some.end(), out.begin() + static_cast<std::ptrdiff_t>(first),
                       [](double value) { return static_cast<float>(value); });
    }
}

/// Whether the mapped bytes at both ends of a tensor are those of the opened file. They are not if another file has
/// taken its name between.
bool is_of_file(const std::byte* mapped, const SafetensorsFile& file, const TensorInfo& tensor) {
    std::vector<std::byte> end(std::min<std::uint64_t>(tensor.bytes, 64));
    for (const std::uint64_t first : {std::uint64_t{0}, tensor.bytes - end.size()}) {
        file.read_bytes(tensor, first, end);
        if (!std::equal(end.begin(), end.end(), mapped + first)) return false;
    }
    return true;
}

/// The stored bytes of a tensor in the mapped file; null where it is not mapped or does not align the numbers.
std::shared_ptr<const std::byte[]> bytes_in(const std::shared_ptr<const MappedFile>& mapped,
                                            const SafetensorsFile& file, const TensorInfo& tensor) {
    if (mapped == nullptr || tensor.offset % (dtype_bits(tensor.dtype) / 8) != 0 ||
        tensor.offset + tensor.bytes > mapped->bytes().size())
        return nullptr;
    const std::byte* const begin = mapped->bytes().data() + tensor.offset;
    if (!is_of_file(begin, file, tensor)) return nullptr;
    return {mapped, begin};
}

/// The numbers of a tensor as they are computed with: mapped, or read and rounded where they cannot be.
std::shared_ptr<const std::byte[]> bytes_of(const SafetensorsFile& file,
                                            const std::shared_ptr<const MappedFile>& mapped, const TensorInfo& tensor) {
    const bool round = tensor.dtype == DType::f64;
    if (auto bytes = round ? nullptr : bytes_in(mapped, file, tensor)) return bytes;
    const std::shared_ptr<std::byte[]> bytes = aligned_bytes(round ? tensor.bytes / 2 : tensor.bytes);
    if (round)
        read_rounded(file, tensor, {reinterpret_cast<float*>(bytes.get()), tensor.elements()});
    else
        file.read_bytes(tensor, 0, {bytes.get(), tensor.bytes});
    return bytes;
}

}  // namespace

WeightMatrix::WeightMatrix(std::shared_ptr<const std::byte[]> bytes, DType dtype, std::size_t inputs,
                           std::size_t outputs)
    : bytes_(std::move(bytes)), inputs_(inputs), outputs_(outputs), dtype_(dtype) {}

WeightMatrix WeightMatrix::part(std::size_t first, std::size_t count) const {
    WeightMatrix result(bytes_, dtype_, inputs_, count);
    result.first_ = first_ + first;
    return result;
}

void WeightMatrix::convert(std::size_t first, std::size_t count, float* out) const {
    const std::size_t at = (first_ + first) * inputs_;
    const std::size_t entries = count * inputs_;
    const std::byte* from = bytes_.get();
    if (dtype_ == DType::f16)
        from_f16(reinterpret_cast<const std::uint16_t*>(from) + at, entries, out);
    else if (dtype_ == DType::bf16)
        from_bf16(reinterpret_cast<const std::uint16_t*>(from) + at, entries, out);
    else
        std::memcpy(out, reinterpret_cast<const float*>(from) + at, entries * sizeof(float));
}

arma::fmat WeightMatrix::product(const arma::fmat& rows) const {
    arma::fmat result(rows.n_rows, outputs_, arma::fill::none);
    // Columns are outputs: the file has the inputs of an output side by side.
    if (dtype_ == DType::f32) {
        auto* from = reinterpret_cast<float*>(const_cast<std::byte*>(bytes_.get())) + first_ * inputs_;
        const arma::fmat weights(from, inputs_, outputs_, false, true);
        result = rows * weights;
    } else {
        const std::size_t most = std::min(panel_outputs(inputs_, rows.n_rows), outputs_);
        arma::fmat panel(inputs_, most, arma::fill::none);
        for (std::size_t first = 0; first < outputs_; first += most) {
            const std::size_t count = std::min(most, outputs_ - first);
            convert(first, count, panel.memptr());
            const arma::fmat weights(panel.memptr(), inputs_, count, false, true);
            arma::fmat part(result.colptr(first), rows.n_rows, count, false, true);
            part = rows * weights;
        }
    }
    if (!bias_.is_empty()) result.each_row() += bias_.t();
    return result;
}

arma::frowvec WeightMatrix::weights_of(std::size_t output) const {
    arma::frowvec result(inputs_, arma::fill::none);
    convert(output, 1, result.memptr());
    return result;
}

std::vector<std::string> weight_files(const std::string& folder) {
    const std::string single = folder + "/model.safetensors";
    const std::string index = single + ".index.json";
    std::set<std::string> names;
    if (fs::exists(single) || !fs::exists(index)) {
        names.insert(single);
    } else {
        const Json json = Json::parse(read_text_file(index, most_index_bytes, "an index of weights"), index);
        const Json* map = json.find("weight_map");
        if (map == nullptr || map->members() == nullptr)
            throw input_error("{}: weight_map is missing: is this an index of safetensors files?", index);
        for (const auto& [tensor, at] : *map->members()) {
            if (at.string() == nullptr || !at.string()->ends_with(".safetensors") ||
                at.string()->find_first_of(std::string_view("/\0\n", 3)) != std::string::npos)
                throw input_error(
                    "{}: weight_map of {} is {} (expected a .safetensors file of the same folder): fetch the index "
                    "again",
                    index, in_quotes(tensor), in_quotes(at.string() == nullptr ? at.text() : *at.string()));
            names.insert(folder + "/" + *at.string());
        }
    }
    constexpr std::size_t most_files = 1000;
    if (names.size() > most_files)
        throw input_error("{}: weight_map names {} files (at most {}): is this an index of a model?", index,
                          names.size(), most_files);
    std::set<std::pair<dev_t, ino_t>> known;
    for (const auto& name : names)
        if (struct stat status{};
            ::stat(name.c_str(), &status) == 0 && !known.emplace(status.st_dev, status.st_ino).second)
            throw input_error("{}: weight_map names one file twice ({}, by a link): fetch the index again", index,
                              name);
    return {names.begin(), names.end()};
}

LlamaWeights::LlamaWeights(std::string folder) : folder_(std::move(folder)) {
    for (const auto& name : weight_files(folder_)) {
        files_.push_back(std::make_unique<SafetensorsFile>(name));
        mapped_.emplace(files_.back().get(), MappedFile::of(name));
        for (const auto& tensor : files_.back()->tensors()) {
            if (!location_of_.try_emplace(tensor.name, files_.back().get(), &tensor).second)
                throw input_error("{}: tensor {} is in two of the files (one would be read): leave it in one", folder_,
                                  printable(tensor.name));
            bytes_ += tensor.dtype == DType::f64 ? tensor.bytes / 2 : tensor.bytes;
        }
    }
    if (const std::uint64_t allowed = allowed_memory(); bytes_ > allowed)
        throw Error(ErrorKind::memory,
                    fmt::format("{}: out of memory (the weights take {:.1f} GB, {:.1f} GB are allowed): take a smaller "
                                "model, or a machine with more memory",
                                folder_, static_cast<double>(bytes_) / 1e9, static_cast<double>(allowed) / 1e9));
}

LlamaWeights::Stored LlamaWeights::read(const std::string& name, const std::vector<std::size_t>& shape) const {
    const auto at = location_of_.find(name);
    if (at == location_of_.end())
        throw input_error("{}: tensor {} is missing: is this a Llama-shaped model in Hugging Face's names?", folder_,
                          name);
    const auto& [file, tensor] = at->second;
    read_.insert(name);
    if (tensor->shape != shape)
        throw input_error("{}: {} is {} (expected {} from config.json): do the two files belong together?",
                          file->path(), name, shape_text(tensor->shape), shape_text(shape));
    if (!is_block_dtype(tensor->dtype))
        throw input_error("{}: {} is stored as {} (F16, BF16, F32 or F64 are expected): save the model in bfloat16",
                          file->path(), name, dtype_name(tensor->dtype));
    const std::size_t entries = tensor->elements();
    const DType dtype = tensor->dtype == DType::f64 ? DType::f32 : tensor->dtype;
    const auto bytes = bytes_of(*file, mapped_.at(file), *tensor);
    if (!all_finite(bytes.get(), entries, dtype))
        throw input_error("{}: {} holds NaN or infinity: the file is damaged", file->path(), name);
    return {bytes, dtype};
}

WeightMatrix LlamaWeights::matrix(const std::string& name, std::size_t inputs, std::size_t outputs) const {
    const Stored stored = read(name, {outputs, inputs});
    return {stored.bytes, stored.dtype, inputs, outputs};
}

arma::fvec LlamaWeights::vector(const std::string& name, std::size_t size) const {
    const Stored stored = read(name, {size});
    return WeightMatrix(stored.bytes, stored.dtype, size, 1).weights_of(0).t();
}

void LlamaWeights::require_all_read(bool tied) const {
    for (const auto& file : files_) {
        std::vector<std::string> unused;
        for (const auto& tensor : file->tensors())
            // Tables of the rotary embedding follow from config.json, and a tied head equals the embedding.
            if (!read_.contains(tensor.name) && !tensor.name.ends_with("rotary_emb.inv_freq") &&
                !(tied && tensor.name == head_name))
                unused.push_back(tensor.name);
        if (!unused.empty())
            throw input_error(
                "{}: {} tensors do not belong to a model of the type and sizes in config.json ({}): other biases, "
                "other norms and more layers are not computed",
                file->path(), unused.size(), list_text(unused));
    }
}

}  // namespace spiked::sim
