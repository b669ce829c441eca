#include "sim/kv/dump_completeness.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/kv/dump_formats.hpp"

namespace spiked::sim {

std::string other_cache_of_mlx(const Metadata& metadata, std::size_t layer, const StoredTensor& held) {
    const std::string* kind = find_metadata(metadata, fmt::format("2.{}", layer));
    if (kind == nullptr) return {};
    constexpr std::string_view whole[] = {"KVCache", "ConcatenateKVCache", "BatchKVCache", "QuantizedKVCache"};
    if (std::ranges::find(whole, *kind) != std::end(whole)) return {};
    if (*kind != "RotatingKVCache") return fmt::format("is a {}, not a KVCache", printable(*kind));
    // Its state is (keep, max_size, offset, index); up to max_size tokens it is like a KVCache.
    const std::string* offset = find_metadata(metadata, fmt::format("0.{}.2", layer));
    constexpr std::size_t token_axis = 2;
    const std::size_t stored = held.shape.size() > token_axis ? held.shape[token_axis] : 0;
    std::string count = "an unknown number of";
    if (const auto seen = to_integer(offset == nullptr ? "" : *offset)) {
        if (*seen >= 0 && static_cast<std::size_t>(*seen) <= stored) return {};
        count = std::to_string(*seen);
    }
    return fmt::format("is a RotatingKVCache with {} of {} tokens, in the order of its ring", stored, count);
}

std::string incomplete_note(const FoundTensors& found, const TensorContainer& file) {
    std::map<std::size_t, std::set<Side>> sides;
    for (const auto& tensor : found.tensors) sides[tensor.layer].insert(tensor.side);
    std::vector<std::size_t> keys, values;
    for (const auto& [layer, has] : sides)
        if (has.contains(Side::key) != has.contains(Side::value))
            (has.contains(Side::key) ? keys : values).push_back(layer);
    std::vector<std::string> outside, numbered;
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
        if (found.matched[i]) continue;
        const std::string& name = file.tensors()[i].name;
        outside.push_back(name);
        if (name.find_first_of("0123456789") != std::string::npos) numbered.push_back(name);
    }
    const bool one_sided = !keys.empty() || !values.empty();
    // A file with nothing else, in which all layers lack the same side, is as it was meant to be.
    const bool same_side = keys.size() == sides.size() || values.size() == sides.size();
    if (numbered.empty() && (!one_sided || (same_side && outside.empty()))) return {};
    std::string text;
    const auto add = [&](const std::vector<std::size_t>& layers, const char* has, const char* lacks) {
        if (!layers.empty())
            text += fmt::format("{}{} {} {} {} and no {}", text.empty() ? "" : "; ",
                                layers.size() == 1 ? "layer" : "layers", fmt::join(layers, ", "),
                                layers.size() == 1 ? "has" : "have", has, lacks);
    };
    add(keys, "keys", "values");
    add(values, "values", "keys");
    if (outside.empty()) return text;
    return text + fmt::format("{}outside the cache: {} (name them with --pattern if they belong to it)",
                              text.empty() ? "" : "; ", list_text(one_sided ? outside : numbered));
}

std::string mask_note(const FoundTensors& found, const TensorContainer& file, std::size_t batch) {
    if (found.tensors.empty()) return {};
    constexpr std::size_t most_tokens = 1 << 20;
    const std::size_t tokens = found.tensors.front().tokens;
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
        const StoredTensor& held = file.tensors()[i];
        const bool of_batch = held.shape.size() == 2 && batch < held.shape[0] && !held.fortran_order;
        const bool fits = (held.shape.size() == 1 || of_batch) && held.shape.back() == tokens;
        if (found.matched[i] || !held.dtype || !fits || tokens == 0 || tokens > most_tokens) continue;
        if (!lower_case(held.name).ends_with("mask")) continue;
        std::vector<double> mask(tokens);
        file.read(i, of_batch ? batch * tokens : 0, mask);
        const auto is_zero = [](double value) { return value == 0.0; };
        const auto padding = std::ranges::count_if(mask, is_zero);
        if (padding == 0 || std::ranges::any_of(mask, [](double value) { return value != 0.0 && value != 1.0; }))
            continue;
        const auto first = std::ranges::find_if_not(mask, is_zero);
        const auto end = std::find_if(first, mask.end(), is_zero);
        const bool one_part = first != mask.end() && std::all_of(end, mask.end(), is_zero);
        return fmt::format(
            "its tensor {} marks {} of {} tokens as padding, and they count with the others: {}", in_quotes(held.name),
            padding, tokens,
            one_part ? fmt::format("leave them out with --tokens {}:{}", first - mask.begin(), end - mask.begin())
                     : "leave them out where the dump is made");
    }
    return {};
}

std::string pages_advice(const std::string& format, const std::vector<std::size_t>& shape) {
    if (!format.starts_with("vllm")) return {};
    if (shape.size() == 3 && shape[0] == 2)
        return std::string("; pages of vLLM 0.x, [2, pages, numbers], are converted first: ") + from_whole_pages;
    if (shape.size() == 3)
        return "; latents of MLA (DeepSeek), [pages, tokens, channels], are no keys and values of heads: save "
               "c.flatten(0, 1) of a layer for spiked spectrum, as a matrix";
    if (shape.size() == 4 && shape[2] % 2 == 0)
        return "; pages of vLLM on TPUs, [pages, tokens, twice the heads, channels], hold keys and values in turn: "
               "save c[:, :, 0::2] and c[:, :, 1::2] of a layer as layers.{layer}.key and .value, with --layout "
               "block,token,head,dim";
    return {};
}

std::string reading_note(const FoundTensors& found) {
    if (found.tensors.empty()) return {};
    const DumpTensor& first = found.tensors.front();
    std::string text = fmt::format("read as {}: {} {}, {} {}, {} channels", found.layout, first.heads,
                                   first.heads == 1 ? "head" : "heads", first.tokens,
                                   first.tokens == 1 ? "token" : "tokens", first.dim);
    if (found.tensors.size() > 1)
        if (const DumpTensor& next = found.tensors[1]; next.side == Side::value && next.dim != first.dim)
            text += fmt::format(" of keys and {} of values", next.dim);
    return text;
}

namespace {

/// What to do about tensors that are only counted, as those of a flat list of keys and values; empty for others.
std::string counted_tensors(const TensorContainer& file) {
    const auto& tensors = file.tensors();
    const bool npz = !tensors.empty() && tensors.front().name.starts_with("arr_");
    const std::string prefix = npz ? "arr_" : "";
    std::set<std::string> names;
    for (const auto& tensor : tensors)
        if (tensor.shape.size() >= 3) names.insert(tensor.name);
    if (names.size() < 4 || names.size() % 2 != 0 || names.size() != tensors.size()) return {};
    for (std::size_t i = 0; i < names.size(); ++i)
        if (!names.contains(prefix + std::to_string(i))) return {};
    return fmt::format(
        "its {} tensors are only counted: if they are keys and values in turn, layer by layer, name them: python3 -c "
        "\"{}; c={}('FILE'); {}{{'layers.%d.%s'%(i//2,('key','value')[i%2]): c['{}%d'%i] for i in range(len(c))}})\", "
        "and give --format hf where their axes are batch, head, token and dim",
        names.size(), npz ? "import numpy" : "from safetensors.torch import load_file,save_file",
        npz ? "numpy.load" : "load_file",
        npz ? "numpy.savez('x.npz',**" : "save_file(filename='x.safetensors',tensors=", prefix);
}

}  // namespace

std::string unread_form(const TensorContainer& file) {
    if (auto text = counted_tensors(file); !text.empty()) return text;
    const auto is_pair = [](const std::vector<std::size_t>& keys, const std::vector<std::size_t>& values) {
        return keys.size() == 5 && values.size() == 4 && keys[0] == values[0] && keys[1] == values[1] && keys[2] > 1 &&
               keys[4] > 1 && keys[2] * keys[4] == values[2] && keys[3] == values[3];
    };
    const auto& tensors = file.tensors();
    const std::size_t first = std::min<std::size_t>(tensors.size(), 64);  // those of one layer are enough
    for (std::size_t i = 0; i < first; ++i)
        for (std::size_t j = 0; j < first; ++j)
            if (is_pair(tensors[i].shape, tensors[j].shape))
                return fmt::format(
                    "the tensors {} {} and {} {} are pages of vLLM 0.x, whose keys lie in chunks of {} channels: save "
                    "k.permute(0, 3, 1, 2, 4).flatten(-2) and v.permute(0, 3, 1, 2) of each layer instead, with "
                    "--layout block,token,head,dim",
                    in_quotes(tensors[i].name), shape_text(tensors[i].shape), in_quotes(tensors[j].name),
                    shape_text(tensors[j].shape), tensors[i].shape[4]);
    // A file of the example connector has three axes too, and one tensor of another name.
    const auto whole = NamePattern("kv_caches.{layer}").matches(tensors);
    for (const auto& place : whole)
        if (const auto& held = tensors[place.index]; held.shape.size() == 3 && held.shape[0] == 2)
            return fmt::format("the tensor {} {} is like the pages of vLLM 0.x, whose keys lie in chunks: {}",
                               in_quotes(held.name), shape_text(held.shape), from_whole_pages);
    return "";
}

}  // namespace spiked::sim
