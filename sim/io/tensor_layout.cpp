#include "sim/io/tensor_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/runtime/error.hpp"

namespace spiked::sim {
namespace {

std::vector<TensorLayout> make_layouts() {
    std::vector<TensorLayout> layouts;
    for (const std::size_t batch : {0, 1}) {
        std::array<std::size_t, 3> place{0, 1, 2};
        do {
            layouts.push_back({place[0] + batch, place[1] + batch, place[2] + batch, 3 + batch});
        } while (std::next_permutation(place.begin(), place.end()));
    }
    return layouts;
}

}  // namespace

std::string TensorLayout::text() const {
    std::vector<std::string> names(axes, "batch");
    names[head] = "head";
    names[token] = "token";
    names[dim] = "dim";
    std::string joined = names[0];
    for (std::size_t i = 1; i < names.size(); ++i) joined += ',' + names[i];
    return joined;
}

bool TensorLayout::fits(std::span<const std::size_t> shape) const {
    return shape.size() == axes && (axes == 3 || shape[0] == 1);
}

const std::vector<TensorLayout>& all_layouts() {
    static const std::vector<TensorLayout> layouts = make_layouts();
    return layouts;
}

std::optional<TensorLayout> parse_layout(const std::string& text) {
    std::string compact = text;
    std::erase(compact, ' ');
    for (const auto& layout : all_layouts())
        if (layout.text() == compact) return layout;
    return std::nullopt;
}

std::vector<std::string> legal_layouts(std::span<const std::size_t> shape, std::optional<std::size_t> tokens) {
    const bool decides = tokens && std::find(shape.begin(), shape.end(), *tokens) != shape.end();
    std::vector<std::string> legal;
    for (const auto& layout : all_layouts())
        if (layout.fits(shape) && (!decides || shape[layout.token] == *tokens)) legal.push_back(layout.text());
    return legal;
}

std::string choices_of(const std::vector<std::string>& legal) {
    return legal.empty() ? "none of the known layouts" : fmt::format("{}", fmt::join(legal, " or "));
}

std::vector<std::uint64_t> steps_between(std::span<const std::size_t> shape, bool fortran_order) {
    std::vector<std::uint64_t> steps(shape.size());
    std::uint64_t step = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const std::size_t axis = fortran_order ? i : shape.size() - 1 - i;
        steps[axis] = step;
        step *= shape[axis];
    }
    return steps;
}

TensorAxes axes_of(const TensorLayout& layout, std::span<const std::size_t> shape, bool fortran_order) {
    if (!layout.fits(shape))
        throw precondition_error("layout {} does not fit a tensor with {} axes", layout.text(), shape.size());
    const auto steps = steps_between(shape, fortran_order);
    return {shape[layout.head], shape[layout.token], shape[layout.dim],
            steps[layout.head], steps[layout.token], steps[layout.dim]};
}

arma::mat gather_block(const TensorAxes& axes, std::size_t head, std::size_t first_token, std::size_t tokens,
                       const ElementReader& read) {
    if (head >= axes.heads || first_token > axes.tokens || tokens > axes.tokens - first_token || tokens == 0 ||
        axes.dim == 0)
        throw precondition_error("a block of head {} and tokens {}+{} is requested of {} heads and {} tokens", head,
                                 first_token, tokens, axes.heads, axes.tokens);
    arma::mat block(tokens, axes.dim, arma::fill::none);
    const std::uint64_t first = head * axes.head_step + first_token * axes.token_step;
    const bool by_rows = axes.token_step > axes.dim_step;
    const std::size_t outer = by_rows ? tokens : axes.dim;
    const std::size_t inner = by_rows ? axes.dim : tokens;
    const std::uint64_t outer_step = by_rows ? axes.token_step : axes.dim_step;
    const std::uint64_t inner_step = by_rows ? axes.dim_step : axes.token_step;
    const std::uint64_t run = (inner - 1) * inner_step + 1;
    const std::uint64_t whole = (outer - 1) * outer_step + run;
    const auto put = [&](std::size_t i, std::size_t j, double value) {
        (by_rows ? block.at(i, j) : block.at(j, i)) = value;
    };
    constexpr std::uint64_t most_waste = 4;
    constexpr std::uint64_t most_at_once = 1 << 18;
    std::vector<double> buffer;
    if (whole <= most_waste * block.n_elem && run <= most_at_once) {
        // Vectors (rows or columns of the block) are read in groups, with the elements between them, which are few.
        const std::size_t group = 1 + std::min<std::size_t>(outer - 1, (most_at_once - run) / outer_step);
        for (std::size_t i = 0; i < outer; i += group) {
            const std::size_t count = std::min(group, outer - i);
            buffer.resize((count - 1) * outer_step + run);
            read(first + i * outer_step, buffer);
            // In either case the block is filled column by column.
            if (by_rows) {
                for (std::size_t j = 0; j < inner; ++j)
                    for (std::size_t k = 0; k < count; ++k) put(i + k, j, buffer[k * outer_step + j * inner_step]);
            } else {
                for (std::size_t k = 0; k < count; ++k)
                    for (std::size_t j = 0; j < inner; ++j) put(i + k, j, buffer[k * outer_step + j * inner_step]);
            }
        }
        return block;
    }
    // Each vector is read on its own, a long one in chunks. Elements that are far apart are read one by one, because
    // the elements between them belong to other heads.
    constexpr std::uint64_t far_apart = 64;
    const std::size_t chunk =
        inner_step > far_apart ? 1 : 1 + std::min<std::uint64_t>(inner - 1, (most_at_once - 1) / inner_step);
    for (std::size_t i = 0; i < outer; ++i)
        for (std::size_t j = 0; j < inner; j += chunk) {
            const std::size_t count = std::min(chunk, inner - j);
            buffer.resize((count - 1) * inner_step + 1);
            read(first + i * outer_step + j * inner_step, buffer);
            for (std::size_t k = 0; k < count; ++k) put(i, j + k, buffer[k * inner_step]);
        }
    return block;
}

}  // namespace spiked::sim
