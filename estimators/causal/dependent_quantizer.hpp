#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "estimators/causal/index_model.hpp"

namespace spiked::estimators {

/// Dependent scalar quantization: two quantizers with the levels 2k D and (2k - sign k) D, the union of which is all
/// multiples of D, and an 8-state trellis driven by the parity of k that says which of them a residual takes. The
/// decoder follows the trellis; the encoder searches it (Viterbi) for the least error^2 + lambda D^2 bits.
///
/// Source: Marcellin and Fischer 1990; Ungerboeck 1982 for the trellis; Schwarz et al. 2021 for the pair of quantizers
/// (8 states in ECM). Without `dependent` there is one state, and the levels are k D.
class DependentQuantizer {
public:
    explicit DependentQuantizer(bool dependent) : dependent_(dependent) {}

    [[nodiscard]] bool dependent() const { return dependent_; }
    [[nodiscard]] Levels levels(std::uint8_t state) const {
        if (!dependent_) return Levels::plain;
        return (state & 1) == 0 ? Levels::even : Levels::odd;
    }
    /// The state after index k, 0 to 7; the first one is 0.
    [[nodiscard]] std::uint8_t next(std::uint8_t state, std::int64_t k) const;
    /// The level of k in units of D.
    [[nodiscard]] static std::int64_t level(Levels levels, std::int64_t k) {
        if (levels == Levels::plain) return k;
        if (levels == Levels::even) return 2 * k;
        return 2 * k - (k > 0 ? 1 : k < 0 ? -1 : 0);
    }

    /// The indices of a sequence of residuals in units of D, each of its class, from `state` on: the cheapest of all
    /// that take for every residual one of the two indices around it, or 0. `lambda` weighs bits against squares in
    /// units of D^2. Residuals are finite and below 2^40. Cost: about 50 ns a residual.
    void search(std::span<const double> residuals, std::span<const std::uint8_t> classes, const IndexModel& model,
                double lambda, std::uint8_t state, std::span<std::int64_t> indices);

private:
    /// The best index of each quantizer and parity for one residual.
    struct Choice {
        std::int64_t index[2][2];
    };
    void search_plain(std::span<const double> residuals, std::span<const std::uint8_t> classes, const IndexModel& model,
                      double lambda, std::span<std::int64_t> indices) const;

    bool dependent_;
    std::vector<Choice> choices_;
    std::vector<std::uint8_t> arrivals_;  ///< per residual: bit s says which of its two edges state s was reached by
};

}  // namespace spiked::estimators
