#pragma once
#include "core/device/team.hpp"
#include "estimators/spectral/white_rule.hpp"
#include "estimators/svd/cuda/decomposition_batch.hpp"
#include "estimators/svd/relative_spectrum.hpp"

namespace spiked::estimators::cuda {

/// An estimator of singular values, with its options resolved for the blocks of one shape.
struct SpectralRule {
    SpectralRule(const EOptShrinkRule& rule)  // NOLINT: implicit conversion intended
        : eoptshrink(rule) {}
    SpectralRule(const WhiteRule& rule)  // NOLINT
        : is_white(true), white(rule) {}

    bool is_white = false;
    EOptShrinkRule eoptshrink = {};
    WhiteRule white = {};

    /// The largest number of components on the device; blocks with more are left to the host.
    [[nodiscard]] std::size_t most() const {
        constexpr std::size_t white_most = 16;  // where the noise is indeed white, the number of signals is below this
        if (is_white) return white_most;
        return eoptshrink.rank_is_given ? eoptshrink.rank : eoptshrink.bound;
    }
    [[nodiscard]] SPIKED_DEVICE bool rank_is_given() const { return !is_white && eoptshrink.rank_is_given; }
};

/// The outcome of an estimator for a block.
enum class ShrinkageStatus : std::uint8_t {
    estimated = 0,
    exactly_low_rank = 1,  ///< components are kept unchanged
    no_room = 2,           ///< rank set to 0: too few noise eigenvalues are left
    nothing = 3,           ///< rank 0: the block is zero, or its shape too small for an edge estimate
    failed = 4             ///< the block has no singular values (BlockStatus)
};

/// Kernel: eOptShrink or shrinkage under white noise for each block of a batch, by the same arithmetic as on the CPU
/// (eoptshrink_rule.hpp, white_rule.hpp), with one thread per block. If there are more than `room` components, only the
/// first ones are stored. Arrays of components have `room` entries per block, 0 where there is no component.
struct ShrinkBlocks {
    static constexpr unsigned threads = 32;
    static constexpr unsigned resident = 16;

    std::uint32_t count;
    Shape shape;
    SpectralRule rule;
    const double* weights;      ///< intercept_weights of eOptShrink's pilot, 2 pilot numbers
    const BlockStatus* status;  ///< blocks with status for_the_host have singular values too
    const double* values;       ///< short side numbers per block, descending
    std::uint32_t room;
    double* work;  ///< 3 times the short side per block

    ShrinkageStatus* answers;
    std::uint32_t* ranks;
    double* bulk_edges;  ///< eigenvalues; NaN if there is none
    double* strengths;
    double* overlaps_left;
    double* overlaps_right;
    double* shrunk;

    [[nodiscard]] unsigned blocks() const { return (count + threads - 1) / threads; }
    [[nodiscard]] std::size_t shared_bytes() const { return 0; }

    SPIKED_DEVICE void put(std::size_t block, std::size_t i, const ShrunkComponent& component) const {
        if (i >= room) return;
        strengths[block * room + i] = component.strength;
        overlaps_left[block * room + i] = component.overlap_left;
        overlaps_right[block * room + i] = component.overlap_right;
        shrunk[block * room + i] = component.shrunk;
    }

    template <class Team>
    SPIKED_DEVICE void operator()(Team& team, unsigned part) const {
        const std::size_t block = std::size_t{part} * threads + team.rank();
        if (block >= count) return;
        const std::size_t p = shape.short_side();
        const double* const observed = values + block * p;
        for (std::size_t i = 0; i < room; ++i) put(block, i, {});
        ranks[block] = 0;
        bulk_edges[block] = NAN;
        if (status[block] == BlockStatus::not_finite) {
            answers[block] = ShrinkageStatus::failed;
            return;
        }
        const double unit = observed[0];
        if (unit == 0.0 || (!rule.is_white && rule.eoptshrink.pilot == 0)) {
            answers[block] = ShrinkageStatus::nothing;
            return;
        }
        double* const relative = work + 3 * block * p;
        double* const eigenvalues = relative + p;
        double* const noise = eigenvalues + p;
        std::size_t above_rounding = 0;
        for (std::size_t i = 0; i < p; ++i) {
            relative[i] = relative_value(observed[i], unit, shape.long_side());
            eigenvalues[i] = relative[i] * relative[i];
            above_rounding += relative[i] > 0.0;
        }
        const RelativeValues spectrum{unit, {observed, p}, {relative, p}, {eigenvalues, p}};
        const auto take = [&](std::size_t i, const ShrunkComponent& component) { put(block, i, component); };
        const ShrinkageAnswer answer =
            rule.is_white
                ? estimate_white(rule.white, white_level(rule.white, spectrum), spectrum, take)
                : estimate_eoptshrink(rule.eoptshrink, shape, spectrum,
                                      {weights, rule.eoptshrink.edge == EdgeRule::fit ? 2 * rule.eoptshrink.pilot : 0},
                                      {noise, p}, take);
        answers[block] = static_cast<ShrinkageStatus>(answer.outcome);
        if (answer.outcome == ShrinkageOutcome::exactly_low_rank) {
            const std::size_t given = rule.rank_is_given() ? rule.eoptshrink.rank : above_rounding;
            const std::size_t rank = given < above_rounding ? given : above_rounding;
            ranks[block] = static_cast<std::uint32_t>(rank);
            bulk_edges[block] = 0.0;
            for (std::size_t i = 0; i < rank && i < room; ++i) put(block, i, {observed[i], 1.0, 1.0, observed[i]});
            return;
        }
        const double edge = answer.edge * unit * unit;
        if (std::isfinite(edge)) bulk_edges[block] = edge;
        if (answer.outcome == ShrinkageOutcome::estimated) ranks[block] = static_cast<std::uint32_t>(answer.rank);
    }
};

static_assert(static_cast<int>(ShrinkageOutcome::estimated) == static_cast<int>(ShrinkageStatus::estimated) &&
              static_cast<int>(ShrinkageOutcome::exactly_low_rank) ==
                  static_cast<int>(ShrinkageStatus::exactly_low_rank) &&
              static_cast<int>(ShrinkageOutcome::no_room) == static_cast<int>(ShrinkageStatus::no_room));

}  // namespace spiked::estimators::cuda
