#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/io/tensor_container.hpp"

// Prompt caches of mlx-lm with QuantizedKVCache (mlx_lm/models/cache.py of commit 02901f4): mx.quantize of keys and
// values gives words with codes, scales and biases, saved as `layer.side.0`, `.1` and `.2`. A code of b bits begins at
// bit b c of its row of little-endian words, for channel c (the packing of mlx, all widths), and stands for scale code
// + bias.

namespace spiked::sim {
namespace {

/// The three tensors of one layer and side.
struct PackedCache {
    std::size_t words = 0, scales = 0, biases = 0;  ///< in the list of the file
    std::size_t bits = 0, group = 0;
    std::size_t row_words = 0;  ///< of a token of a head
    std::size_t dim = 0;
};

class MlxCache : public TensorContainer {
public:
    explicit MlxCache(std::unique_ptr<TensorContainer> file) : file_(std::move(file)) {
        std::map<std::string, std::size_t> by_name;
        for (std::size_t i = 0; i < file_->tensors().size(); ++i) by_name.emplace(file_->tensors()[i].name, i);
        for (const auto& [name, index] : by_name) {
            const auto parts = split(name, '.');
            if (parts.size() != 3 || parts[2] != "0" || !is_quantized(parts[0])) continue;
            const std::string stem = parts[0] + "." + parts[1];
            const auto scales = by_name.find(stem + ".1"), biases = by_name.find(stem + ".2");
            if (scales == by_name.end() || biases == by_name.end()) reject(name, "its scales or biases are missing");
            add(stem, parts[0], {index, scales->second, biases->second});
        }
        std::map<std::size_t, bool> used;
        for (const auto& cache : packed_)
            for (const std::size_t index : {cache.words, cache.scales, cache.biases}) used[index] = true;
        for (std::size_t i = 0; i < file_->tensors().size(); ++i)
            if (!used.contains(i)) {
                tensors_.push_back(file_->tensors()[i]);
                plain_.push_back(i);
            }
    }
    /// Whether a file has a cache that this class unpacks.
    [[nodiscard]] bool unpacks() const { return !packed_.empty(); }
    [[nodiscard]] std::unique_ptr<TensorContainer> take_file() { return std::move(file_); }

    [[nodiscard]] const std::string& path() const override { return file_->path(); }
    [[nodiscard]] const Metadata& metadata() const override { return file_->metadata(); }
    [[nodiscard]] const std::vector<StoredTensor>& tensors() const override { return tensors_; }
    [[nodiscard]] const std::vector<std::string>& notes() const override { return file_->notes(); }

    void read(std::size_t index, std::uint64_t first, std::span<double> out) const override {
        if (index >= packed_.size()) return file_->read(plain_[index - packed_.size()], first, out);
        if (out.empty()) return;  // a shape without elements may have rows of any length
        const PackedCache& cache = packed_[index];
        std::vector<std::byte> packed(cache.row_words * sizeof(std::uint32_t));
        std::vector<double> words(cache.row_words), scales(cache.dim / cache.group), biases(scales.size());
        for (std::size_t done = 0; done < out.size();) {
            const std::uint64_t row = (first + done) / cache.dim;
            std::size_t channel = (first + done) % cache.dim;
            file_->read_bytes(cache.words, row * packed.size(), packed);
            decode(packed, DType::u32, words);
            file_->read(cache.scales, row * scales.size(), scales);
            file_->read(cache.biases, row * scales.size(), biases);
            for (; channel < cache.dim && done < out.size(); ++channel, ++done) {
                const std::size_t group = channel / cache.group;
                out[done] = scales[group] * code_at(words, channel * cache.bits, cache.bits) + biases[group];
            }
        }
    }
    void read_bytes(std::size_t index, std::uint64_t first_byte, std::span<std::byte> out) const override {
        if (index < packed_.size())
            throw input_error("{}: tensor {} is packed and cannot be copied byte by byte: store its numbers", path(),
                              in_quotes(tensors_[index].name));
        file_->read_bytes(plain_[index - packed_.size()], first_byte, out);
    }

private:
    static double code_at(std::span<const double> words, std::size_t bit, std::size_t bits) {
        constexpr std::size_t word_bits = 32;
        auto window = static_cast<std::uint64_t>(words[bit / word_bits]);
        if (bit % word_bits + bits > word_bits)
            window |= static_cast<std::uint64_t>(words[bit / word_bits + 1]) << word_bits;
        return static_cast<double>((window >> bit % word_bits) & ((std::uint64_t{1} << bits) - 1));
    }
    [[noreturn]] void reject(const std::string& name, const std::string& why) const {
        throw input_error(
            "{}: tensor {} is part of a QuantizedKVCache of mlx-lm that is not read ({}): save its numbers, "
            "mx.dequantize(*cache.keys, group_size=cache.group_size, bits=cache.bits)",
            path(), in_quotes(name), why);
    }
    [[nodiscard]] bool is_quantized(const std::string& layer) const {
        const std::string* kind = find_metadata(metadata(), "2." + layer);
        return kind != nullptr && *kind == "QuantizedKVCache";
    }
    /// A number of its meta_state: (offset, group size, bits), in older versions with the step in front.
    [[nodiscard]] std::size_t stated(const std::string& layer, std::size_t from_end) const {
        const bool has_step = find_metadata(metadata(), fmt::format("0.{}.3", layer)) != nullptr;
        const auto* text = find_metadata(metadata(), fmt::format("0.{}.{}", layer, (has_step ? 4 : 3) - from_end));
        const auto number = text == nullptr ? std::nullopt : to_integer(*text);
        return number && *number > 0 && *number <= 4096 ? static_cast<std::size_t>(*number) : 0;
    }
    void add(const std::string& stem, const std::string& layer, std::array<std::size_t, 3> indices) {
        const auto& held = file_->tensors();
        const StoredTensor &words = held[indices[0]], &scales = held[indices[1]], &biases = held[indices[2]];
        PackedCache cache{indices[0], indices[1], indices[2], stated(layer, 1), stated(layer, 2)};
        const bool known_bits = cache.bits >= 2 && cache.bits <= 8 && cache.bits != 7;
        if (!known_bits || cache.group == 0) reject(words.name, "its metadata do not state group_size and bits");
        if (words.dtype != DType::u32 || !scales.dtype || !is_block_dtype(*scales.dtype) || !biases.dtype ||
            !is_block_dtype(*biases.dtype))
            reject(words.name, fmt::format("dtypes {}, {} and {}; U32 and two floating-point ones are needed",
                                           printable(words.dtype_text), printable(scales.dtype_text),
                                           printable(biases.dtype_text)));
        auto shape = words.shape;
        const bool rows_agree = !shape.empty() && shape.size() == scales.shape.size() &&
                                std::equal(shape.begin(), shape.end() - 1, scales.shape.begin());
        std::size_t word_bits = 0, code_bits = 0;
        if (!rows_agree || scales.shape != biases.shape ||
            __builtin_mul_overflow(shape.back(), std::size_t{32}, &word_bits) ||
            __builtin_mul_overflow(scales.shape.back(), cache.group * cache.bits, &code_bits) || word_bits != code_bits)
            reject(words.name,
                   fmt::format("shapes {}, {} and {} do not agree for groups of {} and {} bits", shape_text(shape),
                               shape_text(scales.shape), shape_text(biases.shape), cache.group, cache.bits));
        cache.row_words = shape.back();
        cache.dim = scales.shape.back() * cache.group;
        shape.back() = cache.dim;
        tensors_.push_back({stem, DType::f32, "F32", shape, false, std::nullopt});
        packed_.push_back(cache);
    }

    std::unique_ptr<TensorContainer> file_;
    std::vector<StoredTensor> tensors_;  ///< unpacked ones first
    std::vector<PackedCache> packed_;
    std::vector<std::size_t> plain_;  ///< numbers in the file of the others
};

}  // namespace

std::unique_ptr<TensorContainer> unpack_mlx_cache(std::unique_ptr<TensorContainer> file) {
    const bool quantized = std::ranges::any_of(file->metadata(), [](const auto& entry) {
        return entry.first.starts_with("2.") && entry.second == "QuantizedKVCache";
    });
    if (!quantized) return file;
    auto cache = std::make_unique<MlxCache>(std::move(file));
    if (cache->unpacks()) return cache;
    return cache->take_file();
}

}  // namespace spiked::sim
