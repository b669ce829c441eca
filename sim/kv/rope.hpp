#pragma once
#include <armadillo>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "sim/kv/rope_scaling.hpp"

namespace spiked::sim {

/// The two of the d coordinates that are rotated as pair i < d/2: i and i + d/2 (Llama, NeoX), or 2i and 2i + 1 (the
/// RoFormer paper, GPT-J, Meta's own Llama files).
enum class RopeStyle { rotate_half, interleaved };

[[nodiscard]] std::string_view rope_style_name(RopeStyle style);
/// `rotate-half` or `interleaved`; throws usage_error with the nearest name.
[[nodiscard]] RopeStyle parse_rope_style(std::string_view text);

/// The rotary position embedding (Su et al. 2021, RoFormer, section 3.2): pair i of a token at position p is rotated by
/// the angle p base^(-2i/d). The angle is linear in p, so inner products of rows depend only on differences of
/// positions, and the inverse is the rotation for -p. Scaling changes the frequencies base^(-2i/d); with that of type
/// yarn, rotated rows are also multiplied by its attention factor, and divided by it when the embedding is undone.
struct Rope {
    double base = 10000.0;
    RopeStyle style = RopeStyle::rotate_half;
    std::optional<RopeScaling> scaling = std::nullopt;

    [[nodiscard]] bool operator==(const Rope&) const = default;
};

/// The pair of a coordinate, from 0 (the fastest) to dim/2 - 1.
[[nodiscard]] std::size_t rope_pair(RopeStyle style, std::size_t coordinate, std::size_t dim);

/// Rotates each row of a block (tokens x d, d even) to its position, or back. Each row is multiplied by its own
/// orthogonal matrix (times the attention factor of yarn): without that factor this preserves norms of rows and
/// Frobenius distances of two blocks at the same positions, but neither rank nor singular values. Positions are any
/// finite numbers. undo_rope after apply_rope restores the block within a few units in the last place, because both use
/// the same rounded angles. Throws usage_error for an odd d, a base that is not above 1, positions that are not finite,
/// and a number of positions other than that of rows. Costs d/2 sines and cosines per token.
[[nodiscard]] arma::mat apply_rope(const arma::mat& block, const Rope& rope, std::span<const double> positions);
[[nodiscard]] arma::mat undo_rope(const arma::mat& block, const Rope& rope, std::span<const double> positions);

/// The same at positions first_position, first_position + 1, ...
[[nodiscard]] arma::mat apply_rope(const arma::mat& block, const Rope& rope, double first_position);
[[nodiscard]] arma::mat undo_rope(const arma::mat& block, const Rope& rope, double first_position);

}  // namespace spiked::sim
