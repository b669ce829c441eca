#include "sim/kv/dump_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"

namespace spiked::sim {
namespace {

[[noreturn]] void disagree(const std::string& path, const std::string& a, const std::string& b, const char* what,
                           std::size_t of_a, std::size_t of_b) {
    throw input_error(
        "{}: tensors {} and {} disagree (they have {} and {} {}, and are parts of one layer): dump the layer again",
        path, in_quotes(a), in_quotes(b), of_a, of_b, what);
}

}  // namespace

DumpTensor join_parts(const std::string& path, std::size_t layer, Side side, bool has_heads,
                      std::vector<NamedPart>& parts) {
    std::sort(parts.begin(), parts.end(), [](const NamedPart& a, const NamedPart& b) {
        return std::tie(a.chunk, a.head, a.part.index) < std::tie(b.chunk, b.head, b.part.index);
    });
    const NamedPart& front = parts.front();
    DumpTensor tensor{.name = front.name, .layer = layer, .side = side, .dim = front.part.axes.dim};
    tensor.dtype = front.dtype;
    tensor.index = front.part.index;
    std::size_t heads = 0, tokens = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        NamedPart& at = parts[i];
        const bool new_chunk = i > 0 && at.chunk != parts[i - 1].chunk;
        if (i > 0 && !new_chunk && at.head == parts[i - 1].head)
            throw input_error("{}: tensors {} and {} are both the {} of layer {} (one is needed): rename one", path,
                              in_quotes(parts[i - 1].name), in_quotes(at.name), side_name(side), layer);
        if (new_chunk) {
            // Chunks are numbered one by one, or by their first token.
            if (at.chunk != parts[i - 1].chunk + 1 && at.chunk != parts[i - 1].chunk + tokens)
                throw input_error(
                    "{}: chunk {} of the {} of layer {} is missing (tensor {} follows {}): dump all chunks", path,
                    parts[i - 1].chunk + 1, side_name(side), layer, in_quotes(at.name), in_quotes(parts[i - 1].name));
            tensor.tokens += tokens;
            heads = 0;
        }
        if (has_heads && at.head != heads)
            throw input_error("{}: head {} of the {} of layer {} is missing (tensor {} is head {}): dump all heads",
                              path, heads, side_name(side), layer, in_quotes(at.name), at.head);
        at.part.first_head = heads;
        at.part.first_token = tensor.tokens;
        if (heads > 0 && at.part.axes.tokens != tokens)
            disagree(path, parts[i - 1].name, at.name, "tokens", tokens, at.part.axes.tokens);
        if (at.part.axes.dim != tensor.dim)
            disagree(path, front.name, at.name, "channels", tensor.dim, at.part.axes.dim);
        heads += at.part.axes.heads;
        tokens = at.part.axes.tokens;
        const bool last_of_chunk = i + 1 == parts.size() || parts[i + 1].chunk != at.chunk;
        if (last_of_chunk && tensor.heads != 0 && heads != tensor.heads)
            disagree(path, front.name, at.name, "heads", tensor.heads, heads);
        if (last_of_chunk) tensor.heads = heads;
        tensor.parts.push_back(at.part);
    }
    tensor.tokens += tokens;
    return tensor;
}

UnequalLayers take_unequal_layers(std::vector<DumpTensor>& tensors, const std::string& layout) {
    UnequalLayers found;
    for (std::size_t i = 1; i < tensors.size(); ++i) {
        const auto& a = tensors[i - 1];
        const auto& b = tensors[i];
        if (a.layer != b.layer || b.side != Side::value || (a.heads == b.heads && a.tokens == b.tokens)) continue;
        found.layers.insert(a.layer);
        if (found.reason.empty())
            found.reason = fmt::format(
                "tensors {} and {} disagree (in layout {} they have {} and {} heads, {} and {} tokens): correct the "
                "layout with --layout, or dump the layer again",
                in_quotes(a.name), in_quotes(b.name), layout, a.heads, b.heads, a.tokens, b.tokens);
    }
    const auto is_unequal = [&](const DumpTensor& tensor) { return found.layers.contains(tensor.layer); };
    for (const auto& tensor : tensors) {
        if (!is_unequal(tensor)) continue;
        found.names.push_back(tensor.name);
        for (const auto& part : tensor.parts) found.indexes.insert(part.index);
    }
    std::erase_if(tensors, is_unequal);
    for (const auto& tensor : tensors)
        for (const auto& part : tensor.parts) found.indexes.erase(part.index);
    return found;
}

}  // namespace spiked::sim
