#include "sim/kv/cache_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"

namespace spiked::sim {
namespace {

std::string without_spaces(std::string_view text) {
    std::string compact(text);
    std::erase(compact, ' ');
    return compact;
}

}  // namespace

std::string_view side_name(Side side) { return enum_name(side); }

std::string CacheLayout::text() const {
    std::vector<std::string_view> names;
    for (const CacheAxis axis : axes) names.push_back(enum_name(axis));
    return fmt::format("{}", fmt::join(names, ","));
}

bool CacheLayout::has(CacheAxis axis) const { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

std::size_t CacheLayout::size(CacheAxis axis, std::span<const std::size_t> shape) const {
    const auto at = std::find(axes.begin(), axes.end(), axis);
    return at == axes.end() ? 1 : shape[static_cast<std::size_t>(at - axes.begin())];
}

bool CacheLayout::fits(std::span<const std::size_t> shape) const {
    if (shape.size() != axes.size()) return false;
    const std::size_t sides = size(CacheAxis::side, shape);
    return !has(CacheAxis::side) || sides == 2 || sides == all_sides.size();
}

std::optional<TensorLayout> CacheLayout::plain() const { return parse_layout(text()); }

std::optional<CacheLayout> parse_cache_layout(std::string_view text) {
    CacheLayout layout;
    for (const auto& word : split(without_spaces(text), ',')) {
        const auto axis = find_enum<CacheAxis>(word);
        if (!axis || layout.has(*axis)) return std::nullopt;
        layout.axes.push_back(*axis);
    }
    const bool joined = layout.has(CacheAxis::hidden);
    if (!layout.has(CacheAxis::token) || joined == layout.has(CacheAxis::dim)) return std::nullopt;
    if (joined && layout.has(CacheAxis::head)) return std::nullopt;
    return layout;
}

std::optional<SideLayouts> parse_side_layouts(std::string_view text) {
    SideLayouts layouts;
    if (text.find('=') == std::string_view::npos) {
        const auto layout = parse_cache_layout(text);
        if (!layout) return std::nullopt;
        layouts.fill(layout);
        return layouts;
    }
    std::string spaced(text);
    std::replace(spaced.begin(), spaced.end(), ';', ' ');
    for (const auto& word : split(spaced, ' ')) {
        if (word.empty()) continue;
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos) return std::nullopt;
        const auto side = find_enum<Side>(word.substr(0, equals));
        const auto layout = parse_cache_layout(word.substr(equals + 1));
        if (!side || !layout || layout->has(CacheAxis::side)) return std::nullopt;
        auto& place = layouts[static_cast<std::size_t>(*side)];
        if (place) return std::nullopt;
        place = layout;
    }
    auto& queries = layouts[static_cast<std::size_t>(Side::query)];
    if (!queries) queries = layouts[static_cast<std::size_t>(Side::key)];
    return layouts;
}

std::string side_layouts_text(const SideLayouts& layouts) {
    const auto text_of = [&](Side side) {
        const auto& layout = layouts[static_cast<std::size_t>(side)];
        return layout ? layout->text() : std::string();
    };
    const std::string keys = text_of(Side::key), values = text_of(Side::value);
    if (keys == values) return keys;
    if (values.empty()) return keys;
    if (keys.empty()) return values;
    return fmt::format("key={} value={}", keys, values);
}

StoredRun stored_run(const StoredPart& part, std::span<const std::size_t> block_table, std::size_t token,
                     std::size_t most) {
    StoredRun found{part.axes, part.offset, token, most};
    if (part.page == 0) return found;
    const std::size_t page = token / part.page;
    if (!block_table.empty() && page >= block_table.size())
        throw precondition_error("block {} of a cache is read and its table has {}", page, block_table.size());
    found.token = token % part.page;
    found.tokens = std::min(most, part.page - found.token);
    found.axes.tokens = part.page;
    found.offset += (block_table.empty() ? page : block_table[page]) * part.page_step;
    return found;
}

std::vector<CacheSlice> cache_slices(const CacheLayout& layout, std::span<const std::size_t> shape, bool fortran_order,
                                     std::size_t head_dim, std::size_t batch, bool keep_pages) {
    return cache_slices(layout, shape, steps_between(shape, fortran_order), head_dim, batch, keep_pages);
}

std::vector<CacheSlice> cache_slices(const CacheLayout& layout, std::span<const std::size_t> shape,
                                     std::span<const std::uint64_t> steps, std::size_t head_dim, std::size_t batch,
                                     bool keep_pages) {
    if (!layout.fits(shape) || batch >= layout.size(CacheAxis::batch, shape))
        throw precondition_error("layout {} does not fit a tensor with {} axes", layout.text(), shape.size());
    const auto size = [&](CacheAxis axis) { return layout.size(axis, shape); };
    const auto step = [&](CacheAxis axis) -> std::uint64_t {
        const auto at = std::find(layout.axes.begin(), layout.axes.end(), axis);
        return at == layout.axes.end() ? 0 : steps[static_cast<std::size_t>(at - layout.axes.begin())];
    };
    StoredPart part;
    part.axes = {size(CacheAxis::head),  size(CacheAxis::token) * size(CacheAxis::block),
                 size(CacheAxis::dim),   step(CacheAxis::head),
                 step(CacheAxis::token), step(CacheAxis::dim)};
    if (layout.has(CacheAxis::hidden)) {
        if (head_dim == 0 || size(CacheAxis::hidden) % head_dim != 0)
            throw precondition_error("{} channels are not whole heads of {}", size(CacheAxis::hidden), head_dim);
        part.axes.heads = size(CacheAxis::hidden) / head_dim;
        part.axes.dim = head_dim;
        part.axes.dim_step = step(CacheAxis::hidden);
        part.axes.head_step = head_dim * part.axes.dim_step;
    }
    const bool follow = step(CacheAxis::block) == size(CacheAxis::token) * step(CacheAxis::token);
    if (layout.has(CacheAxis::block) && (keep_pages || !follow)) {
        part.page = size(CacheAxis::token);
        part.page_step = step(CacheAxis::block);
    }
    std::vector<CacheSlice> slices;
    for (std::size_t layer = 0; layer < size(CacheAxis::layer); ++layer)
        for (std::size_t side = 0; side < size(CacheAxis::side); ++side) {
            CacheSlice slice{.part = part};
            slice.part.offset =
                layer * step(CacheAxis::layer) + side * step(CacheAxis::side) + batch * step(CacheAxis::batch);
            if (layout.has(CacheAxis::layer)) slice.layer = layer;
            if (layout.has(CacheAxis::side)) slice.side = all_sides.at(side);
            std::vector<std::string> indices;
            std::size_t used = 0;
            for (const CacheAxis axis : layout.axes) {
                const bool counts = axis == CacheAxis::layer || axis == CacheAxis::side;
                indices.push_back(axis == CacheAxis::layer   ? std::to_string(layer)
                                  : axis == CacheAxis::side  ? std::to_string(side)
                                  : axis == CacheAxis::batch ? std::to_string(batch)
                                                             : ":");
                if (counts || (axis == CacheAxis::batch && size(axis) > 1)) used = indices.size();
            }
            indices.resize(used);
            if (used > 0) slice.place = fmt::format("[{}]", fmt::join(indices, ","));
            slices.push_back(std::move(slice));
        }
    return slices;
}

}  // namespace spiked::sim
