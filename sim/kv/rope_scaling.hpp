#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "core/text/enum_names.hpp"
#include "core/text/json.hpp"

namespace spiked::sim {

enum class RopeScalingKind { llama3, linear, yarn };

/// Rotary frequencies for contexts longer than the one first trained for, as Hugging Face's configurations state them
/// (`rope_type`; formulas of transformers 5.24.0, modeling_rope_utils.py). A pair makes context base^(-2i/d) / (2 pi)
/// turns in the first context. `linear` divides all frequencies by `factor`. `llama3` and `yarn` divide those of pairs
/// with fewer than `low_frequency` turns, leave those with more than `high_frequency` unchanged, and interpolate in
/// between: llama3 linearly in the number of turns, yarn (Peng et al. 2023, section 3) linearly in the number of the
/// pair.
struct RopeScaling {
    double factor = 8.0;
    double low_frequency = 1.0, high_frequency = 4.0;  ///< in turns; low < high
    double context = 8192.0;                           ///< in tokens
    RopeScalingKind kind = RopeScalingKind::llama3;
    double attention_factor = 1.0;  ///< yarn: rotated rows are multiplied by it
    bool whole_pairs = true;        ///< yarn: the interpolation starts and ends at whole numbers of pairs

    [[nodiscard]] bool operator==(const RopeScaling&) const = default;
};

/// The frequency of a pair of d coordinates whose frequency without scaling is base^(-2 pair / d).
[[nodiscard]] double scaled_frequency(const RopeScaling& scaling, double base, std::size_t pair, std::size_t dim);

/// Reads the object `rope_scaling` or `rope_parameters` of a config.json. Empty for null, an empty object, and the type
/// `default`. Throws input_error, in which `where` names the file and the key, for other types (with the reason where
/// it is known) and for missing and impossible numbers.
[[nodiscard]] std::optional<RopeScaling> read_rope_scaling(const Json& object, const std::string& where);
/// The object that read_rope_scaling reads.
[[nodiscard]] Json rope_scaling_json(const RopeScaling& scaling);

}  // namespace spiked::sim

template <>
struct spiked::EnumNames<spiked::sim::RopeScalingKind> {
    static constexpr EnumName<spiked::sim::RopeScalingKind> table[] = {{spiked::sim::RopeScalingKind::llama3, "llama3"},
                                                                       {spiked::sim::RopeScalingKind::linear, "linear"},
                                                                       {spiked::sim::RopeScalingKind::yarn, "yarn"}};
};
