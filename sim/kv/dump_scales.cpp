#include "sim/kv/dump_scales.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"

namespace spiked::sim {
namespace {

/// The numbers of a tensor that varies along some axes only, for each entry of a block.
arma::mat spread_block(const TensorContainer& file, const StoredPart& part, std::span<const std::size_t> block_table,
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

/// All ways to match the axes of a scale, in their order, with axes of the same size.
void match_axes(std::span<const std::size_t> sizes, std::span<const std::size_t> shape, std::size_t from,
                std::vector<std::size_t>& taken, std::vector<std::vector<std::size_t>>& ways) {
    if (taken.size() == sizes.size()) {
        ways.push_back(taken);
        return;
    }
    for (std::size_t axis = from; axis < shape.size(); ++axis)
        if (shape[axis] == sizes[taken.size()]) {
            taken.push_back(axis);
            match_axes(sizes, shape, axis + 1, taken, ways);
            taken.pop_back();
        }
}

/// The steps of a scale's tensor along the axes of a stored tensor; 0: it does not vary. Empty if it does not fit, or
/// in several ways.
std::optional<std::vector<std::uint64_t>> spread_steps(const StoredTensor& scale, std::span<const std::size_t> shape) {
    const auto own = steps_between(scale.shape, scale.fortran_order);
    std::vector<std::uint64_t> steps(shape.size(), 0);
    if (scale.shape.size() == shape.size()) {
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            if (scale.shape[axis] != 1 && scale.shape[axis] != shape[axis]) return std::nullopt;
            if (scale.shape[axis] != 1) steps[axis] = own[axis];
        }
        return steps;
    }
    constexpr std::size_t most_axes = 8;
    if (scale.shape.size() > most_axes || shape.size() > most_axes) return std::nullopt;
    std::vector<std::size_t> sizes, axes, taken;
    for (std::size_t axis = 0; axis < scale.shape.size(); ++axis)
        if (scale.shape[axis] != 1) {
            sizes.push_back(scale.shape[axis]);
            axes.push_back(axis);
        }
    std::vector<std::vector<std::size_t>> ways;
    match_axes(sizes, shape, 0, taken, ways);
    if (ways.size() != 1) return std::nullopt;
    for (std::size_t i = 0; i < axes.size(); ++i) steps[ways.front()[i]] = own[axes[i]];
    return steps;
}

void require_usable_number(const TensorContainer& file, std::size_t index, std::string_view what, double number) {
    const bool is_scale = what == "scale";
    if (is_scale ? is_usable_scale(number) : std::isfinite(number)) return;
    throw input_error("{}: tensor {} holds the {} {} ({} number is needed): store it again, or give one number",
                      file.path(), in_quotes(file.tensors()[index].name), what, number,
                      is_scale ? "a positive, finite" : "a finite");
}

}  // namespace

bool is_usable_scale(double scale) { return scale > 0.0 && std::isfinite(scale); }

void apply_scale(const PartScale& scale, const TensorContainer& file, std::span<const std::size_t> block_table,
                 std::size_t head, std::size_t first_token, arma::mat& rows) {
    const auto spread = [&](const StoredPart& part, std::string_view what) {
        arma::mat all = spread_block(file, part, block_table, head, first_token, rows.n_rows, rows.n_cols);
        for (const double number : all) require_usable_number(file, part.index, what, number);
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
    auto& slices = slices_[{at->second, place.index}];
    if (slices.empty()) {
        const auto steps = spread_steps(scale, held.shape);
        if (!steps)
            throw input_error(
                "{}: {} {} of shape {} does not fit tensor {} of shape {} (each axis has its size or 1, or axes whose "
                "sizes occur once are left out): store it with all axes of the codes, of size 1 where it is the same",
                file_.path(), what_, in_quotes(scale.name), shape_text(scale.shape), in_quotes(held.name),
                shape_text(held.shape));
        slices = cache_slices(layout, held.shape, *steps, head_dim, batch, true);
    }
    StoredPart part = slices.at(slice).part;
    part.index = at->second;
    return {1.0, part};
}

CacheScales::CacheScales(const TensorContainer& file, const std::string& scale, const std::string& zero_point,
                         bool by_option)
    : file_(file), by_option_(by_option) {
    if (!scale.empty()) scales_.emplace(file, scale, "scale");
    if (!zero_point.empty()) zero_points_.emplace(file, zero_point, "zero point");
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

void CacheScales::reject_type(const TensorContainer& file, const StoredTensor& held) {
    throw input_error(
        "{}: tensor {} has dtype {} (a cache is read from F16, BF16, F32 or F64, or with scales from F8_E4M3, F8_E5M2, "
        "I8 or U8): convert it first",
        file.path(), in_quotes(held.name), in_quotes(held.dtype_text));
}

DType CacheScales::number_type(const StoredTensor& held) {
    if (held.dtype && is_block_dtype(*held.dtype)) return *held.dtype;
    const auto where = [&] {
        return fmt::format("{}: tensor {} has dtype {}", file_.path(), in_quotes(held.name),
                           in_quotes(held.dtype_text));
    };
    if (!holds_numbers_or_codes(held)) reject_type(file_, held);
    has_codes_ = true;
    if (scales_ && *held.dtype == DType::u8 && !zero_points_)
        throw input_error(
            "{} and a scale without a zero point (its bytes may be integers or FP8 numbers): give --zero-point, 0 for "
            "plain integers, or store FP8 numbers as F8_E4M3 or F8_E5M2, as view(torch.float8_e4m3fn) does",
            where());
    if (scales_) return DType::f32;
    if (!is_fp8_dtype(*held.dtype))
        throw input_error(
            "{} (codes of a quantizer, whose scale is not known): give it with --scale, a number or the names of the "
            "tensors that hold it, as in layers.{{layer}}.{{side}}_scale{}",
            where(), *held.dtype == DType::u8 ? "; or store bytes of FP8 numbers as F8_E4M3 or F8_E5M2" : "");
    has_plain_fp8_ = true;
    return zero_points_ ? DType::f32 : DType::f16;
}

std::shared_ptr<const PartScale> CacheScales::of(const StoredTensor& held, const CacheLayout& layout,
                                                 const NamedPlace& place, std::size_t slice, std::size_t head_dim,
                                                 std::size_t batch) {
    if (is_block_dtype(*held.dtype) || (!scales_ && !zero_points_)) return nullptr;
    PartScale scale;
    const auto find = [&](std::optional<ScaleTensors>& tensors, double& number, std::optional<StoredPart>& part) {
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
    if (has_plain_fp8_)
        return {"FP8 numbers are read as they are stored (no scale is named): give it with --scale if there is one"};
    if (has_codes_ || (!scales_ && !zero_points_)) return {};
    if (by_option_)
        throw usage_error("{}: no tensor of the cache holds codes of FP8 or 8-bit integers: leave --scale out",
                          file_.path());
    return {"the scale in the metadata is not used (no tensor of the cache holds codes of FP8 or 8-bit integers)"};
}

}  // namespace spiked::sim
