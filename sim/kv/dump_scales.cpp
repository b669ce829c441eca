#include "sim/kv/dump_scales.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"

namespace spiked::sim {
namespace {

/// The numbers of a tensor that varies along some axes only, for each entry of a block.
arma::mat spread_rows(const TensorContainer& file, const StoredPart& part, std::span<const std::size_t> block_table,
                      std::size_t head, std::size_t first_token, std::size_t tokens, std::size_t dim) {
    arma::mat all(tokens, dim);
    for (std::size_t done = 0; done < tokens;) {
        auto [axes, offset, token, run] = stored_run(part, block_table, first_token + done, tokens - done);
        const bool one_token = axes.token_step == 0, one_channel = axes.dim_step == 0;
        if (one_token) {
            token = 0;
            axes.tokens = axes.token_step = 1;
        }
        if (one_channel) axes.dim = axes.dim_step = 1;
        const auto read = [&, offset = offset](std::uint64_t first, std::span<double> out) {
            file.read(part.index, offset + first, out);
        };
        const arma::mat found = gather_block(axes, head, token, one_token ? 1 : run, read);
        all.rows(done, done + run - 1) = arma::repmat(found, one_token ? run : 1, one_channel ? dim : 1);
        done += run;
    }
    return all;
}

arma::mat spread_block(const TensorContainer& file, const GroupedPart& of, std::span<const std::size_t> block_table,
                       std::size_t head, std::size_t first_token, std::size_t tokens, std::size_t dim) {
    const std::size_t first = first_token / of.tokens, last = (first_token + tokens - 1) / of.tokens;
    arma::mat groups = spread_rows(file, of.part, block_table, head, first, last - first + 1, dim / of.channels);
    if (of.tokens == 1 && of.channels == 1) return groups;
    arma::mat all(tokens, dim);
    for (std::size_t channel = 0; channel < dim; ++channel)
        for (std::size_t token = 0; token < tokens; ++token)
            all(token, channel) = groups((first_token + token) / of.tokens - first, channel / of.channels);
    return all;
}

/// The axes of codes, which the axes of a scale have to match.
struct CodeAxes {
    std::span<const CacheAxis> names;
    std::span<const std::size_t> shape;
    std::size_t head_dim = 0;  ///< of the axis `hidden`

    /// Whether a scale with this number of entries along an axis can have one for each group of tokens or channels.
    [[nodiscard]] bool in_groups(std::size_t axis, std::size_t size) const {
        if (size <= 1 || size >= shape[axis] || shape[axis] % size != 0) return false;
        if (names[axis] == CacheAxis::hidden) return head_dim % (shape[axis] / size) == 0;
        return names[axis] == CacheAxis::token || names[axis] == CacheAxis::dim;
    }
    /// `token, dim in groups of 32`, for the axes that have these sizes in a scale.
    [[nodiscard]] std::string text(std::span<const std::size_t> axes, std::span<const std::size_t> sizes) const {
        std::vector<std::string> parts;
        for (std::size_t i = 0; i < axes.size(); ++i) {
            const std::size_t group = shape[axes[i]] / sizes[i];
            parts.push_back(fmt::format("{}{}", enum_name(names[axes[i]]),
                                        group == 1 ? "" : fmt::format(" in groups of {}", group)));
        }
        return fmt::format("{}", fmt::join(parts, ", "));
    }
};

/// All ways to match the axes of a scale, in their order, with axes of the same size, or with groups too.
void match_axes(std::span<const std::size_t> sizes, const CodeAxes& codes, bool with_groups, std::size_t from,
                std::vector<std::size_t>& taken, std::vector<std::vector<std::size_t>>& ways) {
    if (taken.size() == sizes.size()) {
        ways.push_back(taken);
        return;
    }
    for (std::size_t axis = from; axis < codes.shape.size(); ++axis) {
        const std::size_t size = sizes[taken.size()];
        if (codes.shape[axis] != size && !(with_groups && codes.in_groups(axis, size))) continue;
        taken.push_back(axis);
        match_axes(sizes, codes, with_groups, axis + 1, taken, ways);
        taken.pop_back();
    }
}

/// How a scale's tensor lies along the axes of the codes.
struct AxisMatch {
    std::vector<std::size_t> own;    ///< axes of the scale, without those of size 1
    std::vector<std::size_t> sizes;  ///< along them
    std::vector<std::size_t> axes;   ///< of the codes; empty: it does not fit, or in several ways
    std::vector<std::string> ways;   ///< all that were found, as texts
};

AxisMatch match_scale(const StoredTensor& scale, const CodeAxes& codes) {
    AxisMatch match;
    for (std::size_t axis = 0; axis < scale.shape.size(); ++axis)
        if (scale.shape[axis] != 1) {
            match.own.push_back(axis);
            match.sizes.push_back(scale.shape[axis]);
        }
    if (scale.shape.size() == codes.shape.size()) {
        for (std::size_t i = 0; i < match.own.size(); ++i) {
            const std::size_t axis = match.own[i];
            if (match.sizes[i] != codes.shape[axis] && !codes.in_groups(axis, match.sizes[i])) return match;
        }
        match.axes = match.own;
        match.ways = {codes.text(match.axes, match.sizes)};
        return match;
    }
    constexpr std::size_t most_axes = 8;
    if (scale.shape.size() > most_axes || codes.shape.size() > most_axes) return match;
    std::vector<std::size_t> taken, sorted_sizes = match.sizes, sorted_shape(codes.shape.begin(), codes.shape.end());
    std::vector<std::vector<std::size_t>> same, all;
    match_axes(match.sizes, codes, false, 0, taken, same);
    match_axes(match.sizes, codes, true, 0, taken, all);
    for (const auto& way : all) match.ways.push_back(codes.text(way, match.sizes));
    std::ranges::sort(sorted_sizes);
    std::ranges::sort(sorted_shape);
    // Axes in another order than that of the codes are not groups.
    const bool reordered = same.empty() && std::ranges::includes(sorted_shape, sorted_sizes);
    if (same.size() == 1)
        match.axes = same.front();
    else if (same.empty() && all.size() == 1 && !reordered)
        match.axes = all.front();
    if (reordered) match.ways.clear();
    return match;
}

void require_usable_number(const TensorContainer& file, std::size_t index, std::string_view what, double number) {
    const bool is_scale = what == "scale";
    if (is_scale ? is_usable_scale(number) : std::isfinite(number)) return;
    throw input_error("{}: tensor {} holds the {} {} ({} number is needed): store it again, or give one number",
                      file.path(), in_quotes(file.tensors()[index].name), what, number,
                      is_scale ? "a positive, finite" : "a finite");
}

/// The number that each byte stands for.
arma::vec numbers_of_bytes(DType codes) {
    arma::vec numbers(256);
    std::array<std::byte, 256> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    decode(bytes, codes, {numbers.memptr(), numbers.n_elem});
    return numbers;
}

}  // namespace

bool is_usable_scale(double scale) { return scale > 0.0 && std::isfinite(scale); }

void apply_scale(const PartScale& scale, const TensorContainer& file, std::span<const std::size_t> block_table,
                 std::size_t head, std::size_t first_token, arma::mat& rows) {
    if (scale.codes) {
        const arma::vec numbers = numbers_of_bytes(*scale.codes);
        rows.for_each([&](double& number) { number = numbers[static_cast<std::uint8_t>(static_cast<int>(number))]; });
    }
    const auto spread = [&](const GroupedPart& of, std::string_view what) {
        arma::mat all = spread_block(file, of, block_table, head, first_token, rows.n_rows, rows.n_cols);
        for (const double number : all) require_usable_number(file, of.part.index, what, number);
        return all;
    };
    if (scale.zero_points)
        rows -= spread(*scale.zero_points, "zero point");
    else if (scale.zero_point != 0.0)
        rows -= scale.zero_point;
    if (scale.scales)
        rows %= spread(*scale.scales, "scale");
    else if (scale.scale != 1.0)
        rows *= scale.scale;
}

ScaleTensors::ScaleTensors(const TensorContainer& file, const std::string& text, std::string what)
    : file_(file), text_(text), what_(std::move(what)), number_(to_number(text)) {
    if (number_) {
        if (what_ == "scale" && !is_usable_scale(*number_))
            throw input_error("{}: the scale in the metadata is {} (a positive, finite number is needed): correct it",
                              file.path(), text);
        return;
    }
    std::optional<NamePattern> pattern;
    try {
        pattern.emplace(text);
    } catch (const Error& error) {  // of the metadata, because options are checked before
        throw input_error("{}: the {} in the metadata: {}", file.path(), what_, error.what());
    }
    by_chunk_ = pattern->has_chunk();
    places_ = pattern->matches(file.tensors());
    if (places_.empty()) {
        std::vector<std::string> names;
        for (const auto& tensor : file.tensors()) names.push_back(tensor.name);
        throw input_error("{}: no tensor is named like the {} {} (it has {}): correct it, or give a number",
                          file.path(), what_, in_quotes(text), list_text(names));
    }
    for (const auto& place : places_)
        if (const auto [same, added] =
                by_place_.emplace(Key{place.layer, place.side, place.head, place.chunk}, place.index);
            !added)
            throw input_error("{}: tensors {} and {} are both the {} of the same codes: rename one", file.path(),
                              in_quotes(file.tensors()[same->second].name), in_quotes(file.tensors()[place.index].name),
                              what_);
}

ScaleTensors::Found ScaleTensors::of(const StoredTensor& held, const CacheLayout& layout, const NamedPlace& place,
                                     std::size_t slice, std::size_t head_dim, std::size_t batch) {
    if (number_) return {*number_, std::nullopt};
    const NamedPlace& any = places_.front();
    const auto at = by_place_.find(Key{any.layer ? place.layer : std::nullopt, any.side ? place.side : std::nullopt,
                                       any.head ? place.head : std::nullopt, by_chunk_ ? place.chunk : 0});
    if (at == by_place_.end())
        throw input_error(
            "{}: tensor {} has no {} (none is named like {} for layer {}, {}): store one, or give a number",
            file_.path(), in_quotes(held.name), what_, in_quotes(text_), place.layer.value_or(0),
            side_name(place.side.value_or(Side::key)));
    const StoredTensor& scale = file_.tensors()[at->second];
    if (!scale.dtype || !(is_block_dtype(*scale.dtype) || is_code_dtype(*scale.dtype)))
        throw input_error("{}: tensor {} has dtype {} (a {} is read from F16, BF16, F32, F64, I8 or U8): convert it",
                          file_.path(), in_quotes(scale.name), in_quotes(scale.dtype_text), what_);
    if (std::ranges::all_of(scale.shape, [](std::size_t size) { return size == 1; })) {
        Found one;
        file_.read(at->second, 0, {&one.number, 1});
        require_usable_number(file_, at->second, what_, one.number);
        return one;
    }
    auto& found = spreads_[{at->second, place.index}];
    if (found.slices.empty()) found = spread(scale, held, layout, head_dim, batch);
    GroupedPart grouped{found.slices.at(slice).part, found.tokens, found.channels};
    grouped.part.index = at->second;
    return {1.0, std::move(grouped)};
}

ScaleTensors::Spread ScaleTensors::spread(const StoredTensor& scale, const StoredTensor& held,
                                          const CacheLayout& layout, std::size_t head_dim, std::size_t batch) {
    const CodeAxes codes{layout.axes, held.shape, head_dim};
    const AxisMatch match = match_scale(scale, codes);
    if (match.axes.empty())
        throw input_error(
            "{}: {} {} of shape {} does not fit tensor {} of shape {} ({}): store it with all axes of the codes, of "
            "size 1 where it is the same",
            file_.path(), what_, in_quotes(scale.name), shape_text(scale.shape), in_quotes(held.name),
            shape_text(held.shape),
            match.ways.size() > 1
                ? fmt::format("it can vary along {}", fmt::join(match.ways, ", or along "))
                : "each axis has its size or 1, or the number of equal groups of tokens or channels; axes may be left "
                  "out where sizes tell which");
    Spread found;
    const auto own = steps_between(scale.shape, scale.fortran_order);
    std::vector<std::uint64_t> steps(held.shape.size(), 0);
    std::vector<std::size_t> shape = held.shape;
    for (std::size_t i = 0; i < match.axes.size(); ++i) {
        const std::size_t axis = match.axes[i];
        steps[axis] = own[match.own[i]];
        shape[axis] = match.sizes[i];
        (layout.axes[axis] == CacheAxis::token ? found.tokens : found.channels) *= held.shape[axis] / match.sizes[i];
    }
    if (match.ways.size() > 1 || found.tokens > 1 || found.channels > 1) {
        // One tensor speaks for all that are read alike.
        const std::string text = codes.text(match.axes, match.sizes);
        if (std::ranges::none_of(notes_, [&](const std::string& note) { return note.ends_with(text); }))
            notes_.push_back(fmt::format("the {} {} of shape {} varies along {}", what_, in_quotes(scale.name),
                                         shape_text(scale.shape), text));
    }
    found.slices = cache_slices(layout, shape, steps, head_dim / found.channels, batch, true);
    return found;
}

CacheScales::CacheScales(const TensorContainer& file, const std::string& scale, const std::string& zero_point,
                         const std::string& codes, const DumpOptions& given)
    : file_(file), scale_given_(!given.scale.empty() || !given.zero_point.empty()), codes_given_(!given.codes.empty()) {
    if (!scale.empty()) scales_.emplace(file, scale, "scale");
    if (!zero_point.empty()) zero_points_.emplace(file, zero_point, "zero point");
    if (codes.empty()) return;
    const auto type = find_enum<CodeType>(codes);
    if (!type)
        throw input_error("{}: metadata codes is {} ({} is needed): give it with --codes", file.path(),
                          in_quotes(codes), fmt::join(names_of<CodeType>(), ", "));
    codes_ = *type == CodeType::e4m3 ? DType::f8_e4m3 : *type == CodeType::e5m2 ? DType::f8_e5m2 : DType::i8;
}

DType CacheScales::code_type(const StoredTensor& held) const {
    return codes_ && !is_fp8_dtype(*held.dtype) ? *codes_ : *held.dtype;
}

std::vector<std::size_t> CacheScales::tensors() const {
    std::vector<std::size_t> indices;
    for (const auto* tensors : {&scales_, &zero_points_})
        if (*tensors)
            for (const auto& place : (*tensors)->places()) indices.push_back(place.index);
    return indices;
}

bool holds_numbers_or_codes(const StoredTensor& held) {
    return held.dtype && (is_block_dtype(*held.dtype) || is_code_dtype(*held.dtype));
}

std::string unread_type_text(const StoredTensor& held) {
    return fmt::format(
        "tensor {} has dtype {} (a cache is read from F16, BF16, F32 or F64, or with scales from F8_E4M3, F8_E5M2, "
        "I8 or U8): {}",
        in_quotes(held.name), in_quotes(held.dtype_text),
        held.dtype == DType::i32 || held.dtype == DType::u32
            ? "where it holds packed codes, as of KIVI, dequantize them in the program that wrote them"
            : "convert it first");
}

DType CacheScales::number_type(const StoredTensor& held) {
    if (held.dtype && is_block_dtype(*held.dtype)) return *held.dtype;
    const auto where = [&] {
        return fmt::format("{}: tensor {} has dtype {}", file_.path(), in_quotes(held.name),
                           in_quotes(held.dtype_text));
    };
    if (!holds_numbers_or_codes(held)) throw input_error("{}: {}", file_.path(), unread_type_text(held));
    has_codes_ = true;
    has_bytes_ = has_bytes_ || !is_fp8_dtype(*held.dtype);
    if (scales_ && *held.dtype == DType::u8 && !zero_points_ && !codes_)
        throw input_error(
            "{} and a scale without a zero point (its bytes may be integers or FP8 numbers): give --codes e4m3 or "
            "--codes e5m2 for FP8 numbers, --codes int8 for signed integers, or --zero-point 0 for integers from 0 to "
            "255",
            where());
    if (scales_) return DType::f32;
    if (!is_fp8_dtype(code_type(held)))
        throw input_error(
            "{} (codes of a quantizer, whose scale is not known): give it with --scale, a number or the names of the "
            "tensors that hold it, as in layers.{{layer}}.{{side}}_scale{}",
            where(), codes_ ? "" : "; for bytes of FP8 numbers give --codes e4m3 or --codes e5m2");
    has_plain_fp8_ = true;
    return zero_points_ ? DType::f32 : DType::f16;
}

std::shared_ptr<const PartScale> CacheScales::of(const StoredTensor& held, const CacheLayout& layout,
                                                 const NamedPlace& place, std::size_t slice, std::size_t head_dim,
                                                 std::size_t batch) {
    if (is_block_dtype(*held.dtype) || (!scales_ && !zero_points_ && !codes_)) return nullptr;
    PartScale scale;
    if (code_type(held) != *held.dtype) scale.codes = code_type(held);
    const auto find = [&](std::optional<ScaleTensors>& tensors, double& number, std::optional<GroupedPart>& part) {
        if (!tensors) return;
        auto found = tensors->of(held, layout, place, slice, head_dim, batch);
        number = found.number;
        part = std::move(found.part);
    };
    find(scales_, scale.scale, scale.scales);
    find(zero_points_, scale.zero_point, scale.zero_points);
    return std::make_shared<const PartScale>(std::move(scale));
}

std::vector<std::string> CacheScales::notes() const {
    std::vector<std::string> notes;
    if (codes_ && !has_bytes_) {
        if (codes_given_)
            throw usage_error("{}: no tensor of the cache has dtype U8 or I8: leave --codes out", file_.path());
        notes.emplace_back("metadata codes is not used (no tensor of the cache has dtype U8 or I8)");
    }
    for (const auto* tensors : {&scales_, &zero_points_})
        if (*tensors) notes.insert(notes.end(), (*tensors)->notes().begin(), (*tensors)->notes().end());
    if (has_plain_fp8_)
        notes.emplace_back(
            "FP8 numbers are read as they are stored (no scale is named): give it with --scale if there is one");
    if (has_codes_ || (!scales_ && !zero_points_)) return notes;
    if (scale_given_)
        throw usage_error("{}: no tensor of the cache holds codes of FP8 or 8-bit integers: leave --scale out",
                          file_.path());
    notes.emplace_back(
        "the scale in the metadata is not used (no tensor of the cache holds codes of FP8 or 8-bit integers)");
    return notes;
}

}  // namespace spiked::sim
