#include "theory/laws/support_gaps.hpp"

#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "theory/laws/root.hpp"

namespace spiked::theory {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// sum w x^2/(a - x)^2 over the atoms of a side.
double second_sum(const RelativeAtoms& side, double a) {
    double sum = 0.0;
    for (std::size_t i = 0; i < side.value.size(); ++i) {
        const double ratio = side.value[i] / (a - side.value[i]);
        sum += side.weight[i] * ratio * ratio;
    }
    return sum;
}

/// Ends of a search between two atoms, at a distance from them at which the sums over atoms are finite.
double just_above(double low) { return low + 1e-14 * low; }
double just_below(double high) { return high - 1e-14 * high; }

}  // namespace

SupportGaps::Side::Side(const Spectrum& spectrum, double factor_of_sums)
    : RelativeAtoms(spectrum), factor(factor_of_sums) {
    if (spectrum.atoms().back().value > 0.0) return;
    value.pop_back();
    weight.pop_back();
}

// With g = 1/b the equation is factor * sum v y g/(1 - y g) = t, whose left side increases with g.
std::optional<double> SupportGaps::reciprocal(const Side& side, std::size_t above, double t) const {
    const double target = t / side.factor;
    const auto sums = [&](double g) {
        ValueAndSlope sum;
        for (std::size_t j = 0; j < side.value.size(); ++j) {
            const double rest = 1.0 - side.value[j] * g;
            sum.value += side.weight[j] * side.value[j] * g / rest;
            sum.slope += side.weight[j] * side.value[j] / (rest * rest);
        }
        return sum;
    };
    if (above > 0) {
        const double pole = 1.0 / side.value[above - 1];
        const double next_pole = 1.0 / side.value[above];
        const double low = just_above(pole);
        const double high = just_below(next_pole);
        // Without its poles at both ends the function is tame.
        const auto tame = [&](double g) { return (sums(g).value - target) * (g - pole) * (next_pole - g); };
        if (!(low < high) || tame(low) >= 0.0 || tame(high) <= 0.0) return std::nullopt;
        return bracketed_root(tame, low, high, within(4e-16));
    }
    // The left side is convex in g below 1/largest, so that Newton's method descends to the root from any point to the
    // right of it. One such point is the root for a single atom at the mean; another, for t > 0, that for the largest
    // atom alone.
    if (!(target > -side.positive_weight)) return std::nullopt;
    const double mean =
        std::inner_product(side.value.begin(), side.value.end(), side.weight.begin(), 0.0) / side.positive_weight;
    double g = target / (mean * (side.positive_weight + target));
    if (target > 0.0) g = std::min(g, target / (side.value.front() * (side.weight.front() + target)));
    for (int iteration = 0; iteration < 200; ++iteration) {
        const ValueAndSlope now = sums(g);
        const double step = (now.value - target) / now.slope;
        g -= step;
        if (std::abs(step) <= 1e-8 * std::abs(g)) return g - (sums(g).value - target) / sums(g).slope;
    }
    return g;
}

std::optional<SupportGaps::Point> SupportGaps::at(const Branch& branch, double a) const {
    const Side& first = branch.row_first ? row_ : column_;
    const Side& second = branch.row_first ? column_ : row_;
    double plain = 0.0;
    double slope = 0.0;
    double second_moment = 0.0;  // sum w x^2/(a - x)^2
    for (std::size_t i = 0; i < first.value.size(); ++i) {
        const double distance = a - first.value[i];
        const double ratio = first.value[i] / distance;
        plain += first.weight[i] * first.value[i] / distance;
        slope += first.weight[i] * first.value[i] / (distance * distance);
        second_moment += first.weight[i] * ratio * ratio;
    }
    Point point;
    point.t = first.factor * plain;
    point.t_slope = -first.factor * slope;
    const auto found = reciprocal(second, branch.second, point.t);
    if (!found) return std::nullopt;
    const double g = *found;
    double c = 0.0;        // t/g = factor * sum v y/(1 - y g), so that z = a c
    double c_slope = 0.0;  // dc/dg
    double t_in_g = 0.0;   // dt/dg
    for (std::size_t j = 0; j < second.value.size(); ++j) {
        const double rest = 1.0 / (1.0 - second.value[j] * g);
        const double term = second.factor * second.weight[j] * second.value[j] * rest;
        c += term;
        t_in_g += term * rest;
        c_slope += term * rest * second.value[j];
    }
    if (!(c > 0.0)) return std::nullopt;
    point.z = a * c;
    point.z_slope = c + a * c_slope * (point.t_slope / t_in_g);
    point.contraction = first.factor * second_moment * (c_slope / c / c);
    return point;
}

// Narrows the range of a to the gap of this pair of intervals, if there is one.
std::optional<SupportGaps::Branch> SupportGaps::find(Branch branch) const {
    const auto contraction = [&](double a) {
        const auto point = at(branch, a);
        return point && std::isfinite(point->contraction) ? point->contraction : 1e300;
    };
    // Beyond the ends of the gap z decreases with a, or the pair of intervals has no solution.
    const auto rising = [&](double a) {
        const auto point = at(branch, a);
        return point && std::isfinite(point->z_slope) ? point->z_slope : -1.0;
    };
    if (branch.low == 0.0) {
        if (!(rising(0.0) > 0.0 && rising(branch.high) < 0.0)) return std::nullopt;
        branch.high = bracketed_root(rising, 0.0, branch.high, within(4e-16));
        return branch;
    }
    constexpr int samples = 48;
    const double width = branch.high - branch.low;
    const auto sample = [&](int i) { return branch.low + width * (i + 0.5) / samples; };
    int best = 0;
    double least = infinite;
    for (int i = 0; i < samples; ++i) {
        const double value = contraction(sample(i));
        if (value < least) {
            least = value;
            best = i;
        }
    }
    if (!(least < 1e300)) return std::nullopt;
    double inside = sample(best);
    if (!(least < 1.0)) {
        const auto found = boost::math::tools::brent_find_minima(contraction, std::max(branch.low, sample(best - 1)),
                                                                 std::min(branch.high, sample(best + 1)), 40);
        if (!(found.second < 1.0)) return std::nullopt;
        inside = found.first;
    }
    if (!(rising(inside) > 0.0)) return std::nullopt;
    if (!(rising(branch.low) < 0.0 && rising(branch.high) < 0.0)) return std::nullopt;
    branch.low = bracketed_root(rising, branch.low, inside, within(4e-16));
    branch.high = bracketed_root(rising, inside, branch.high, within(4e-16));
    return branch;
}

void SupportGaps::add(const Branch& branch) {
    const auto weight_above = [](const Side& side, std::size_t count) {
        if (count == side.value.size()) return side.positive_weight;
        return std::accumulate(side.weight.begin(), side.weight.begin() + static_cast<std::ptrdiff_t>(count), 0.0);
    };
    const double rows = weight_above(row_, branch.row_first ? branch.first : branch.second);
    const double columns = weight_above(column_, branch.row_first ? branch.second : branch.first);
    SupportGap gap;
    gap.mass_above = rows + columns / beta_;
    gap.weakest = gap.strongest = {infinite};
    const auto product = [&](const Point& point) { return (1.0 + point.t) * (1.0 + point.t / beta_); };
    const auto low = at(branch, branch.low);
    const auto high = at(branch, branch.high);
    if (!low || !high) return;
    gap.lower = {low->z * scale_};
    gap.upper = {high->z * scale_};
    // T is positive at the lower end, or nowhere in the gap: both Stieltjes transforms increase with z. At z = 0 it is
    // positive exactly when a part of the signal meets no noise, because the smaller side has atoms at zero.
    const double mass = branch.row_first ? row_.positive_weight : column_.positive_weight;
    if (branch.low == 0.0 ? mass < 1.0 : product(*low) > 0.0) {
        gap.weakest = {std::sqrt(gap.lower.value / product(*low))};
        if (product(*high) > 0.0) gap.strongest = {std::sqrt(gap.upper.value / product(*high))};
    }
    branches_.push_back(branch);
    gaps_.push_back(gap);
}

SupportGaps::SupportGaps(const SeparableLaw& law, Which which)
    : row_(law.row(), law.aspect().value()),
      column_(law.column(), 1.0),
      beta_(law.aspect().value()),
      scale_(law.row().largest() * law.column().largest()) {
    // The intervals between neighbouring atoms of a side that are wide enough, with the part of them that is.
    const auto intervals = [which](const Side& side, const Side& other) {
        std::vector<Branch> wide;
        const double limit = other.factor * other.positive_weight / side.factor;
        // A little wider, so that the ends of a gap lie inside also where the condition is exact.
        const double most = 1.01 * limit;
        const auto excess = [&](double a) { return second_sum(side, a) - most; };
        const std::size_t count = side.value.size();
        // The gap between zero and the bulk is below all atoms of one side.
        for (std::size_t above = which == Which::all ? 1 : count; above <= count; ++above) {
            const double high = side.value[above - 1];
            const double low = above < count ? side.value[above] : 0.0;
            Branch part{.first = above};
            if (above == count) {
                if (!(side.positive_weight < limit * (1.0 - 4e-15))) continue;
                part.high = bracketed_root(excess, 0.0, just_below(high), within(1e-15));
            } else {
                // The least value of the terms of the two neighbours alone.
                const double root =
                    std::cbrt(side.weight[above - 1] * high * high) + std::cbrt(side.weight[above] * low * low);
                if (root * root * root >= limit * (high - low) * (high - low)) continue;
                const auto bottom = boost::math::tools::brent_find_minima([&](double a) { return second_sum(side, a); },
                                                                          just_above(low), just_below(high), 40);
                if (!(bottom.second < limit)) continue;
                part.low = bracketed_root(excess, just_above(low), bottom.first, within(1e-15));
                part.high = bracketed_root(excess, bottom.first, just_below(high), within(1e-15));
            }
            wide.push_back(part);
        }
        return wide;
    };
    const auto rows = intervals(row_, column_);
    const auto columns = intervals(column_, row_);
    const auto consider = [&](Branch branch, bool row_first, std::size_t second) {
        branch.row_first = row_first;
        branch.second = second;
        if (const auto found = find(branch)) add(*found);
    };
    for (const Branch& row : rows) {
        consider(row, true, 0);
        // z > 0 is not possible below all atoms of a side together with another interval than the outer one.
        if (row.first == row_.value.size()) continue;
        for (const Branch& column : columns)
            if (column.first < column_.value.size()) consider(row, true, column.first);
    }
    for (const Branch& column : columns) consider(column, false, 0);

    std::vector<std::size_t> order(gaps_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t i, std::size_t j) { return gaps_[i].upper.value > gaps_[j].upper.value; });
    std::vector<Branch> branches;
    std::vector<SupportGap> gaps;
    for (const std::size_t i : order) {
        branches.push_back(branches_[i]);
        gaps.push_back(gaps_[i]);
    }
    branches_ = std::move(branches);
    gaps_ = std::move(gaps);
}

std::optional<SpikePrediction> SupportGaps::spike(std::size_t number, SignalStrength strength) const {
    const double d = strength.value;
    const SupportGap& gap = gaps_[number];
    if (!(d > gap.weakest.value && d < gap.strongest.value)) return std::nullopt;
    const Branch& branch = branches_[number];
    const double square = d * d / scale_;
    // z - d^2 z T, which increases with a.
    const auto beyond = [&](double a) {
        const auto point = at(branch, a);
        return point->z - square * (1.0 + point->t) * (1.0 + point->t / beta_);
    };
    if (!(beyond(branch.low) < 0.0 && beyond(branch.high) > 0.0)) return std::nullopt;
    const Point point = at(branch, bracketed_root(beyond, branch.low, branch.high, within(4e-16))).value();
    const double left = 1.0 + point.t / beta_;
    const double right = 1.0 + point.t;
    SpikePrediction result;
    result.strength = strength;
    result.detectable = true;
    result.outlier = {point.z * scale_};
    result.stieltjes_left = -left / result.outlier.value;
    result.stieltjes_right = -right / result.outlier.value;
    result.d_transform = 1.0 / d / d;
    // T = left right / z, differentiated along the curve.
    const double slope =
        (right / beta_ + left) * point.t_slope / point.z - left * right / point.z * (point.z_slope / point.z);
    result.d_transform_derivative = slope / point.z_slope / scale_ / scale_;
    const double ratio = result.d_transform / result.d_transform_derivative;
    result.overlap_left = {std::clamp(result.stieltjes_left * ratio, 0.0, 1.0)};
    result.overlap_right = {std::clamp(result.stieltjes_right * ratio, 0.0, 1.0)};
    result.residual = {std::sqrt(result.outlier.value) -
                       d * std::sqrt(result.overlap_left.value * result.overlap_right.value)};
    return result;
}

}  // namespace spiked::theory
