#include "estimators/causal/dependent_quantizer.hpp"

#include <array>
#include <cmath>

namespace spiked::estimators {
namespace {

constexpr std::uint8_t trellis_states = 8;

/// Bit 0 of a state chooses the quantizer; the parity of the index enters at bit 1.
constexpr std::uint8_t state_after(std::uint8_t state, std::uint8_t parity) {
    const unsigned first = state & 1U;
    const unsigned second = state >> 1 & 1U;
    const unsigned third = state >> 2 & 1U;
    return static_cast<std::uint8_t>((second ^ first) | (third ^ parity) << 1 | first << 2);
}

/// An edge of the trellis into a state.
struct Edge {
    std::uint8_t from = 0;
    std::uint8_t parity = 0;
};

constexpr std::array<std::array<Edge, 2>, trellis_states> edges_into = [] {
    std::array<std::array<Edge, 2>, trellis_states> edges{};
    std::array<std::size_t, trellis_states> found{};
    for (std::uint8_t from = 0; from < trellis_states; ++from)
        for (std::uint8_t parity = 0; parity < 2; ++parity) {
            const std::uint8_t to = state_after(from, parity);
            edges[to][found[to]++] = {from, parity};
        }
    return edges;
}();

double cost_of(double size, Levels levels, std::uint8_t index_class, std::int64_t k, const IndexModel& model,
               double lambda) {
    const double error = size - static_cast<double>(DependentQuantizer::level(levels, k));
    return error * error + lambda * model.cost(levels, index_class, k);
}

}  // namespace

std::uint8_t DependentQuantizer::next(std::uint8_t state, std::int64_t k) const {
    return dependent_ ? state_after(state, static_cast<std::uint8_t>(k & 1)) : std::uint8_t{0};
}

void DependentQuantizer::search_plain(std::span<const double> residuals, std::span<const std::uint8_t> classes,
                                      const IndexModel& model, double lambda, std::span<std::int64_t> indices) const {
    for (std::size_t i = 0; i < residuals.size(); ++i) {
        const double size = std::abs(residuals[i]);
        const auto below = static_cast<std::int64_t>(size);
        std::int64_t best = 0;
        double least = cost_of(size, Levels::plain, classes[i], 0, model, lambda);
        for (const std::int64_t k : {below, below + 1}) {
            const double cost = cost_of(size, Levels::plain, classes[i], k, model, lambda);
            if (cost < least) {
                least = cost;
                best = k;
            }
        }
        indices[i] = residuals[i] < 0.0 ? -best : best;
    }
}

void DependentQuantizer::search(std::span<const double> residuals, std::span<const std::uint8_t> classes,
                                const IndexModel& model, double lambda, std::uint8_t state,
                                std::span<std::int64_t> indices) {
    if (!dependent_) return search_plain(residuals, classes, model, lambda, indices);
    choices_.resize(residuals.size());
    arrivals_.resize(residuals.size());
    std::array<double, trellis_states> costs;
    costs.fill(1e300);
    costs[state] = 0.0;
    for (std::size_t i = 0; i < residuals.size(); ++i) {
        const double size = std::abs(residuals[i]);
        double best[2][2];
        for (const unsigned q : {0U, 1U}) {
            const Levels levels = q == 0 ? Levels::even : Levels::odd;
            const auto below = static_cast<std::int64_t>((size + q) / 2.0);
            for (const std::int64_t k : {below, below + 1}) {
                best[q][k & 1] = cost_of(size, levels, classes[i], k, model, lambda);
                choices_[i].index[q][k & 1] = k;
            }
            if (below > 0) {
                const double zero = cost_of(size, levels, classes[i], 0, model, lambda);
                if (zero < best[q][0]) {
                    best[q][0] = zero;
                    choices_[i].index[q][0] = 0;
                }
            }
        }
        std::array<double, trellis_states> reached;
        unsigned arrivals = 0;
        for (std::uint8_t to = 0; to < trellis_states; ++to) {
            const auto& [first, second] = edges_into[to];
            const double a = costs[first.from] + best[first.from & 1][first.parity];
            const double b = costs[second.from] + best[second.from & 1][second.parity];
            reached[to] = b < a ? b : a;
            arrivals |= (b < a ? 1U : 0U) << to;
        }
        costs = reached;
        arrivals_[i] = static_cast<std::uint8_t>(arrivals);
    }
    std::uint8_t at = 0;
    for (std::uint8_t s = 1; s < trellis_states; ++s)
        if (costs[s] < costs[at]) at = s;
    for (std::size_t i = residuals.size(); i-- > 0;) {
        const Edge& edge = edges_into[at][arrivals_[i] >> at & 1U];
        const std::int64_t k = choices_[i].index[edge.from & 1][edge.parity];
        indices[i] = residuals[i] < 0.0 ? -k : k;
        at = edge.from;
    }
}

}  // namespace spiked::estimators
