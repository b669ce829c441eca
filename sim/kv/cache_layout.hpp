#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/enum_names.hpp"
#include "sim/io/tensor_layout.hpp"

namespace spiked::sim {

enum class Side { key, value, query };
/// All sides, in the order in which dumps are written.
inline constexpr std::array<Side, 3> all_sides = {Side::key, Side::value, Side::query};
[[nodiscard]] std::string_view side_name(Side side);

/// What one axis of a stored cache tensor counts. `block` counts the pages of a paged cache, whose `token` axis counts
/// the tokens of a page; `hidden` counts heads and channels at once, head after head.
enum class CacheAxis { layer, side, batch, head, token, dim, block, hidden };

/// The meaning of the axes of a stored tensor that holds one or several layers, sides and sequences of a cache. It is
/// never guessed, because a shape is legal in several layouts.
struct CacheLayout {
    std::vector<CacheAxis> axes;

    /// `side,token,head,dim`.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] bool has(CacheAxis axis) const;
    /// 1 where the layout does not have the axis.
    [[nodiscard]] std::size_t size(CacheAxis axis, std::span<const std::size_t> shape) const;
    /// Whether a tensor of this shape can have this layout: the number of axes agrees, and sides are two (key, value)
    /// or three (with query).
    [[nodiscard]] bool fits(std::span<const std::size_t> shape) const;
    /// The layout as one of all_layouts(), where it is one.
    [[nodiscard]] std::optional<TensorLayout> plain() const;
};

/// Axes joined by commas: each at most once, `token` and either `dim` or `hidden` among them. Empty for other texts.
[[nodiscard]] std::optional<CacheLayout> parse_cache_layout(std::string_view text);

/// The layouts of the sides, which may differ.
using SideLayouts = std::array<std::optional<CacheLayout>, 3>;
/// One layout for all sides, or several such as `key=head,dim,token value=head,token,dim`, separated by spaces or
/// semicolons. A query that is not named has the layout of the keys. Empty for other texts.
[[nodiscard]] std::optional<SideLayouts> parse_side_layouts(std::string_view text);
/// The text that parse_side_layouts reads.
[[nodiscard]] std::string side_layouts_text(const SideLayouts& layouts);

struct PartScale;

/// A part of a cache tensor as it is stored: some heads of some tokens of one layer and side.
struct StoredPart {
    std::size_t index = 0;        ///< in the file's list of tensors
    TensorAxes axes;              ///< tokens: of all pages
    std::uint64_t offset = 0;     ///< of its first element
    std::size_t page = 0;         ///< tokens of a page; 0: the steps between tokens are all the same
    std::uint64_t page_step = 0;  ///< elements between pages
    std::size_t first_head = 0;   ///< in the cache tensor
    std::size_t first_token = 0;
    std::shared_ptr<const PartScale> scale;  ///< null: the stored numbers are those of the cache
};

/// Tokens of a part that are stored with the same steps, for `gather_block`.
struct StoredRun {
    TensorAxes axes;           ///< tokens: of the page, or of the whole part
    std::uint64_t offset = 0;  ///< of the page's first element
    std::size_t token = 0;     ///< the first one, counted from the offset
    std::size_t tokens = 0;
};
/// The run that begins at `token`, with at most `most` tokens. `block_table`: the page in which each block of tokens is
/// stored; empty: in their order. It must hold the block of the token.
[[nodiscard]] StoredRun stored_run(const StoredPart& part, std::span<const std::size_t> block_table, std::size_t token,
                                   std::size_t most);

/// What a stored tensor holds of one layer and side of one sequence.
struct CacheSlice {
    std::optional<std::size_t> layer;  ///< empty: no axis counts layers
    std::optional<Side> side;
    std::string place;  ///< as NumPy indexes it, `[0,3]`; empty: the whole tensor
    StoredPart part;
};

/// The slices of a tensor whose shape fits the layout and has no axis of size 0, for the sequence `batch`. `head_dim`:
/// channels of a head, used where an axis counts `hidden`, whose size it must divide. `keep_pages`: pages are kept
/// apart also where they follow each other.
[[nodiscard]] std::vector<CacheSlice> cache_slices(const CacheLayout& layout, std::span<const std::size_t> shape,
                                                   bool fortran_order, std::size_t head_dim, std::size_t batch,
                                                   bool keep_pages);
/// The same with other steps along the axes, in elements; 0 for an axis along which the elements are the same.
[[nodiscard]] std::vector<CacheSlice> cache_slices(const CacheLayout& layout, std::span<const std::size_t> shape,
                                                   std::span<const std::uint64_t> steps, std::size_t head_dim,
                                                   std::size_t batch, bool keep_pages);

}  // namespace spiked::sim

template <>
struct spiked::EnumNames<spiked::sim::Side> {
    static constexpr EnumName<spiked::sim::Side> table[] = {
        {spiked::sim::Side::key, "key"}, {spiked::sim::Side::value, "value"}, {spiked::sim::Side::query, "query"}};
};
template <>
struct spiked::EnumNames<spiked::sim::CacheAxis> {
    static constexpr EnumName<spiked::sim::CacheAxis> table[] = {
        {spiked::sim::CacheAxis::layer, "layer"}, {spiked::sim::CacheAxis::side, "side"},
        {spiked::sim::CacheAxis::batch, "batch"}, {spiked::sim::CacheAxis::head, "head"},
        {spiked::sim::CacheAxis::token, "token"}, {spiked::sim::CacheAxis::dim, "dim"},
        {spiked::sim::CacheAxis::block, "block"}, {spiked::sim::CacheAxis::hidden, "hidden"}};
};
