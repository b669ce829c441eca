#include "sim/kv/kv_dump.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <tuple>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/io/matrix_file.hpp"

namespace spiked::sim {
namespace {

constexpr std::string_view layer_mark = "{layer}";
constexpr std::string_view side_mark = "{side}";

constexpr std::size_t spellings = 3;
/// The names of the sides. The first is ours; a dump has all its names in the same one of the spellings.
constexpr struct {
    Side side;
    std::string_view names[spellings];
} side_names[] = {
    {Side::key, {"key", "keys", "k"}},
    {Side::value, {"value", "values", "v"}},
    {Side::query, {"query", "queries", "q"}},
};

std::size_t count_of(std::string_view text, std::string_view part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

void check_pattern(const std::string& pattern) {
    if (count_of(pattern, layer_mark) != 1 || count_of(pattern, side_mark) != 1)
        throw usage_error(
            "tensor pattern {} is not usable ({{layer}} and {{side}} must occur in it once each): write "
            "for example layers.{{layer}}.{{side}}",
            in_quotes(pattern));
}

/// The layer in `name` when it matches the pattern with {side} replaced by `side`.
std::optional<std::size_t> layer_in(std::string_view name, std::string pattern, std::string_view side) {
    pattern.replace(pattern.find(side_mark), side_mark.size(), side);
    const std::size_t at = pattern.find(layer_mark);
    const auto before = std::string_view(pattern).substr(0, at);
    const auto after = std::string_view(pattern).substr(at + layer_mark.size());
    if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
        return std::nullopt;
    const auto digits = name.substr(before.size(), name.size() - before.size() - after.size());
    constexpr std::size_t most_digits = 9;
    if (digits.size() > most_digits || digits.find_first_not_of("0123456789") != std::string_view::npos)
        return std::nullopt;
    return static_cast<std::size_t>(*to_integer(digits));
}

std::vector<DumpTensor> matching(const std::vector<StoredTensor>& stored, const std::string& pattern) {
    std::vector<DumpTensor> found;
    for (std::size_t spelling = 0; spelling < spellings; ++spelling) {
        for (std::size_t i = 0; i < stored.size(); ++i)
            for (const auto& known : side_names)
                if (const auto layer = layer_in(stored[i].name, pattern, known.names[spelling])) {
                    DumpTensor tensor;
                    tensor.name = stored[i].name;
                    tensor.layer = *layer;
                    tensor.side = known.side;
                    tensor.index = i;
                    found.push_back(std::move(tensor));
                    break;
                }
        if (!found.empty()) break;
    }
    std::sort(found.begin(), found.end(), [](const DumpTensor& a, const DumpTensor& b) {
        return std::tie(a.layer, a.side, a.index) < std::tie(b.layer, b.side, b.index);
    });
    return found;
}

std::vector<std::string> layout_names() {
    std::vector<std::string> names;
    for (const auto& layout : all_layouts()) names.push_back(layout.text());
    return names;
}

}  // namespace

std::string_view side_name(Side side) {
    for (const auto& known : side_names)
        if (known.side == side) return known.names[0];
    throw precondition_error("side {} has no name", static_cast<int>(side));
}

std::optional<std::size_t> stated_tokens(const Metadata& metadata) {
    const auto* text = find_metadata(metadata, "tokens");
    if (text == nullptr) return std::nullopt;
    const auto value = to_integer(*text);
    if (!value || *value <= 0) return std::nullopt;
    return static_cast<std::size_t>(*value);
}

KvDump::KvDump(const std::string& path, const DumpOptions& options) : options_(options) {
    check_pattern(options_.tensor_pattern);
    if (!options_.layout.empty() && !parse_layout(options_.layout))
        throw usage_error(
            "layout {} is unknown (it names the stored axes in their order, for example head,token,dim or "
            "batch,head,token,dim){}",
            in_quotes(options_.layout), suggestion(options_.layout, layout_names()));
    file_ = open_tensors(path);
    const auto& stored = file_->tensors();
    tensors_ = matching(stored, options_.tensor_pattern);
    if (tensors_.empty()) {
        std::vector<std::string> names;
        for (const auto& tensor : stored) names.push_back(tensor.name);
        throw input_error(
            "{}: no tensor is named like {} (it has {}): give the names of the cache with --tensor, for "
            "example {{side}}_cache.{{layer}}",
            path, in_quotes(options_.tensor_pattern), names.empty() ? "no tensors" : list_text(names));
    }
    std::vector<bool> matched(stored.size());
    for (const auto& tensor : tensors_) matched[tensor.index] = true;
    for (std::size_t i = 0; i < stored.size(); ++i)
        if (!matched[i]) ignored_.push_back(stored[i].name);
    model_ = metadata("model").value_or("");
    prompt_id_ = metadata(options_.prompt_id_key);
    choose_layout(tensors_);
    set_sizes();
    reject_long_texts();
}

/// Names, model and prompt are stored once for each head, so long texts in a header of a megabyte could become
/// gigabytes.
void KvDump::reject_long_texts() const {
    constexpr std::size_t longest = 1000;
    const auto check = [&](const std::string& what, std::size_t size) {
        if (size > longest)
            throw input_error("{}: {} has {} bytes (at most {} are read, because every head repeats them): shorten it",
                              path(), what, size, longest);
    };
    for (const auto& tensor : tensors_) check("the name of tensor " + in_quotes(tensor.name), tensor.name.size());
    for (const std::string& key : {std::string("model"), options_.prompt_id_key})
        check("its metadata " + key, metadata(key).value_or("").size());
}

void KvDump::choose_layout(const std::vector<DumpTensor>& found) {
    const auto& first = file_->tensors()[found.front().index];
    const auto legal = legal_layouts(first.shape, stated_tokens(metadata()));
    if (legal.empty())
        throw input_error(
            "{}: tensor {} has shape {} (a cache tensor has 3 axes, head, token and dim in any order, or "
            "a batch axis of size 1 in front of them): reshape it",
            path(), in_quotes(first.name), shape_text(first.shape));
    std::string text = options_.layout;
    if (text.empty()) {
        const auto* stated = find_metadata(metadata(), "layout");
        if (stated == nullptr)
            throw input_error(
                "{}: layout of tensor {} unknown (shape {} can be {}; the file names none): give it "
                "with --layout",
                path(), in_quotes(first.name), shape_text(first.shape), fmt::join(legal, " or "));
        text = *stated;
    }
    const auto layout = parse_layout(text);
    if (!layout)
        throw input_error("{}: metadata layout {} is unknown (shape {} can be {}): give it with --layout", path(),
                          in_quotes(text), shape_text(first.shape), fmt::join(legal, " or "));
    layout_ = *layout;
}

void KvDump::set_sizes() {
    const auto& stored = file_->tensors();
    const auto tokens = stated_tokens(metadata());
    axes_.resize(stored.size());
    for (auto& tensor : tensors_) {
        const auto& held = stored[tensor.index];
        const std::string where = fmt::format("{}: tensor {}", path(), in_quotes(tensor.name));
        if (!held.dtype || !is_block_dtype(*held.dtype))
            throw input_error("{} has dtype {} (a cache is read from F16, BF16, F32 or F64): convert it first", where,
                              in_quotes(held.dtype_text));
        tensor.dtype = *held.dtype;
        const auto legal = legal_layouts(held.shape, tokens);
        const std::string choices =
            legal.empty() ? "none of the known layouts" : fmt::format("{}", fmt::join(legal, " or "));
        if (!layout_.fits(held.shape))
            throw input_error("{} of shape {} does not fit layout {} (it can be {}): correct the layout with --layout",
                              where, shape_text(held.shape), layout_.text(), choices);
        const auto& axes = axes_[tensor.index] = axes_of(layout_, held.shape, held.fortran_order);
        if (axes.heads == 0 || axes.tokens == 0 || axes.dim == 0)
            throw input_error("{} is empty (shape {}): dump at least one head, token and channel", where,
                              shape_text(held.shape));
        if (tokens && *tokens != axes.tokens &&
            std::find(held.shape.begin(), held.shape.end(), *tokens) != held.shape.end())
            throw input_error(
                "{} of shape {} does not fit layout {} (its token axis has {}, the metadata state {} "
                "tokens; it can be {}): correct the layout with --layout",
                where, shape_text(held.shape), layout_.text(), axes.tokens, *tokens, choices);
        tensor.heads = axes.heads;
        tensor.tokens = axes.tokens;
        tensor.dim = axes.dim;
    }
    for (std::size_t i = 1; i < tensors_.size(); ++i) {
        const auto& a = tensors_[i - 1];
        const auto& b = tensors_[i];
        if (a.layer != b.layer) continue;
        if (a.side == b.side)
            throw input_error("{}: tensors {} and {} are both the {} of layer {} (one is needed): rename one", path(),
                              in_quotes(a.name), in_quotes(b.name), side_name(a.side), a.layer);
        if (b.side == Side::value && (a.heads != b.heads || a.tokens != b.tokens))
            throw input_error(
                "{}: tensors {} and {} disagree (in layout {} they have {} and {} heads, {} and {} "
                "tokens): correct the layout with --layout, or dump the layer again",
                path(), in_quotes(a.name), in_quotes(b.name), layout_.text(), a.heads, b.heads, a.tokens, b.tokens);
    }
}

std::optional<std::string> KvDump::metadata(std::string_view key) const {
    const auto* value = find_metadata(file_->metadata(), key);
    if (value == nullptr) return std::nullopt;
    return *value;
}

void KvDump::reject_tiny_heads() const {
    constexpr std::uint64_t always = 1024;
    constexpr std::uint64_t bytes_a_head = 1024;
    const std::uint64_t bytes = std::filesystem::file_size(path());
    std::uint64_t heads = 0;
    for (const auto& tensor : tensors_) heads += tensor.heads;
    if (heads > std::max(always, bytes / bytes_a_head))
        throw input_error(
            "{}: {} heads in {} (a head has some kilobytes, so layout {} may be wrong): give the right one with "
            "--layout",
            path(), heads, bytes_text(bytes), layout_.text());
}

const DumpTensor* KvDump::find(std::size_t layer, Side side) const {
    // Sorted by layer and side, each pair occurs once.
    const auto found = std::lower_bound(
        tensors_.begin(), tensors_.end(), std::pair(layer, side),
        [](const DumpTensor& tensor, const auto& wanted) { return std::pair(tensor.layer, tensor.side) < wanted; });
    return found != tensors_.end() && found->layer == layer && found->side == side ? &*found : nullptr;
}

arma::mat KvDump::read_block(const DumpTensor& tensor, std::size_t head, std::size_t first_token,
                             std::size_t tokens) const {
    const auto read = [&](std::uint64_t first, std::span<double> out) { file_->read(tensor.index, first, out); };
    arma::mat block = gather_block(axes_.at(tensor.index), head, first_token, tokens, read);
    if (const auto found = find_nonfinite(block))
        throw input_error(
            "{}: tensor {} holds {} NaN or infinite {} in head {}, tokens {} to {} (first at token {}, "
            "dim {}, counted from 0): dump it again, in BF16 or F32 if it overflowed F16",
            path(), in_quotes(tensor.name), found->count, found->count == 1 ? "value" : "values", head, first_token,
            first_token + tokens - 1, first_token + found->row, found->column);
    return block;
}

}  // namespace spiked::sim
