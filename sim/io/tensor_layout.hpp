#pragma once
#include <armadillo>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spiked::sim {

/// The meaning of the axes of a stored tensor: a permutation of head,token,dim, or one behind a batch axis of size 1.
/// It is never guessed, because a shape is legal in several layouts.
struct TensorLayout {
    std::size_t head = 0;  ///< position of the axis
    std::size_t token = 1;
    std::size_t dim = 2;
    std::size_t axes = 3;  ///< 4 with a batch axis in front

    /// `head,token,dim`.
    [[nodiscard]] std::string text() const;
    /// Whether a tensor of this shape can have this layout.
    [[nodiscard]] bool fits(std::span<const std::size_t> shape) const;
};

/// Empty when the text is not one of all_layouts().
[[nodiscard]] std::optional<TensorLayout> parse_layout(const std::string& text);

/// The six permutations, then the six behind a batch axis.
[[nodiscard]] const std::vector<TensorLayout>& all_layouts();

/// The layouts that a tensor of this shape may have. When the number of tokens is known and some axis has that size,
/// only those whose token axis has it.
[[nodiscard]] std::vector<std::string> legal_layouts(std::span<const std::size_t> shape,
                                                     std::optional<std::size_t> tokens = std::nullopt);
/// The layouts in an error message: "A or B", or that there is none.
[[nodiscard]] std::string choices_of(const std::vector<std::string>& legal);

/// The sizes of a tensor's axes and their strides in elements.
struct TensorAxes {
    std::size_t heads = 0;
    std::size_t tokens = 0;
    std::size_t dim = 0;
    std::uint64_t head_step = 0;
    std::uint64_t token_step = 0;
    std::uint64_t dim_step = 0;
};

/// The steps, in elements, along each axis of a stored tensor. fortran_order as below.
[[nodiscard]] std::vector<std::uint64_t> steps_between(std::span<const std::size_t> shape, bool fortran_order);

/// The layout must fit the shape. fortran_order: the first axis is contiguous in storage instead of the last.
[[nodiscard]] TensorAxes axes_of(const TensorLayout& layout, std::span<const std::size_t> shape,
                                 bool fortran_order = false);

/// Reads elements of a tensor from number `first` on, in storage order.
using ElementReader = std::function<void(std::uint64_t first, std::span<double> out)>;

/// Reads a block of one head, tokens x dim. Reads at most four times the elements of the block in large chunks,
/// otherwise its rows or columns one by one. Needs memory for 2^18 numbers beside the block.
[[nodiscard]] arma::mat gather_block(const TensorAxes& axes, std::size_t head, std::size_t first_token,
                                     std::size_t tokens, const ElementReader& read);

}  // namespace spiked::sim
