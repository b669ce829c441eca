#pragma once
#include <armadillo>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace spiked::sim {

/// Which two of the d coordinates turn together as pair i < d/2: i and i + d/2 (Llama, NeoX), or 2i and 2i + 1 (the
/// RoFormer paper, GPT-J, Meta's own Llama files).
enum class RopeStyle { rotate_half, interleaved };

[[nodiscard]] std::string_view rope_style_name(RopeStyle style);
/// `rotate-half` or `interleaved`; throws usage_error with the nearest.
[[nodiscard]] RopeStyle parse_rope_style(std::string_view text);

/// Frequencies for contexts longer than those first trained for, as Llama 3.1 has them (Hugging Face's rope_type
/// "llama3"): pairs that turn less than `low_frequency` times in `context` tokens turn `factor` times slower, those
/// that turn more than `high_frequency` times as before, in between linearly in the number of turns.
struct RopeScaling {
    double factor = 8.0;
    double low_frequency = 1.0, high_frequency = 4.0;  ///< turns; low below high
    double context = 8192.0;                           ///< tokens
};

/// The rotary position embedding (Su et al. 2021, RoFormer, section 3.2): pair i of a token at position p turns by the
/// angle p base^(-2i/d). The angle is linear in p, so only differences of positions are seen by products of rows, and
/// undoing is turning by -p.
struct Rope {
    double base = 10000.0;
    RopeStyle style = RopeStyle::rotate_half;
    std::optional<RopeScaling> scaling = std::nullopt;
};

/// The pair a coordinate belongs to, from 0 (the fastest) to dim/2 - 1.
[[nodiscard]] std::size_t rope_pair(RopeStyle style, std::size_t coordinate, std::size_t dim);

/// The rows of a block (tokens x d, d even), each turned to its position. Each row is multiplied by an orthogonal
/// matrix of its own: norms of rows stay, and Frobenius distances of two blocks at the same positions; rank and
/// singular values do not. Positions are any finite numbers; undoing after applying gives the block back within a few
/// units in the last place, because both turn by the same rounded angles. Throws usage_error for an odd d, a base that
/// is not above 1, positions that are not finite or not as many as rows. Cost: d/2 sines and cosines a token.
[[nodiscard]] arma::mat apply_rope(const arma::mat& block, const Rope& rope, std::span<const double> positions);
[[nodiscard]] arma::mat undo_rope(const arma::mat& block, const Rope& rope, std::span<const double> positions);

/// The same at positions first_position, first_position + 1, ...
[[nodiscard]] arma::mat apply_rope(const arma::mat& block, const Rope& rope, double first_position);
[[nodiscard]] arma::mat undo_rope(const arma::mat& block, const Rope& rope, double first_position);

}  // namespace spiked::sim
