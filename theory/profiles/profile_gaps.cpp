#include "theory/profiles/profile_gaps.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

namespace spiked::theory {
namespace {

constexpr std::size_t grid = 400;
constexpr double infinite = std::numeric_limits<double>::infinity();

/// Points from near 0 to the edge, closer to each other where they are small.
double grid_point(double edge, std::size_t k) {
    const double x = static_cast<double>(k) / static_cast<double>(grid);
    return edge * x * x;
}

}  // namespace

ProfileGaps::Place ProfileGaps::place(double z) const {
    using Complex = std::complex<double>;
    const auto at = law_.solve(Complex(z, 0.0));
    ProfileLaw::Solution<Complex> target{law_.rows_times(at.right), law_.columns_times(at.left)};
    ProfileLaw::Solution<Complex> slope;
    for (std::size_t a = 0; a < law_.rows_; ++a) target.left[a] *= -at.left[a] / law_.row_root_[a] / z / z;
    for (std::size_t b = 0; b < law_.columns_; ++b) target.right[b] *= -at.right[b] / law_.column_root_[b] / z / z;
    (void)law_.linear(at, Complex(z), target, slope);
    ProfileLaw::Point point;
    Place result;
    double largest = 0.0;
    double imaginary = 0.0;
    const auto side = [&](const auto& values, const auto& slopes, const auto& roots, auto& real, auto& real_slopes) {
        double above = 0.0;
        for (std::size_t i = 0; i < roots.size(); ++i) {
            const Complex value = values[i] / roots[i];  // -z m
            largest = std::max(largest, std::abs(value));
            imaginary = std::max(imaginary, std::abs(value.imag()));
            real.push_back(values[i].real());
            real_slopes.push_back((slopes[i] * values[i] / roots[i]).real());
            if (value.real() < 0.0) above += roots[i] * roots[i];
        }
        return above;
    };
    const double rows = side(at.left, slope.left, law_.row_root_, point.at.left, point.slope.left);
    const double columns = side(at.right, slope.right, law_.column_root_, point.at.right, point.slope.right);
    result.mass_above = (rows + columns) / law_.beta_;
    result.density = imaginary / largest;
    result.at = law_.seen(point, direction_);
    return result;
}

/// The end of the bulk between a point outside and one inside, from outside.
double ProfileGaps::end(double outside, double inside) const {
    for (int step = 0; step < 60 && std::abs(outside - inside) > 1e-13 * outside; ++step) {
        const double middle = 0.5 * (outside + inside);
        (place(middle).outside() ? outside : inside) = middle;
    }
    return outside;
}

/// A point outside the bulk between two inside, sought where the density is least.
std::optional<double> ProfileGaps::emptiest(double low, double high) const {
    for (int step = 0; step < 30; ++step) {
        const double left = low + (high - low) / 3.0;
        const double right = high - (high - low) / 3.0;
        const Place at_left = place(left);
        const Place at_right = place(right);
        if (at_left.outside()) return left;
        if (at_right.outside()) return right;
        (at_left.density < at_right.density ? high : low) = at_left.density < at_right.density ? right : left;
    }
    return std::nullopt;
}

double ProfileGaps::beyond(double z, double strength) const {
    const Place here = place(z);
    if (!(here.at.left > 0.0 && here.at.right > 0.0)) return -1.0;  // these are -z L and -z R
    return strength * strength / law_.unit_ * here.at.left * here.at.right / z - 1.0;
}

void ProfileGaps::add(double lower, double upper, double within) {
    const auto limit = [&](double z) {
        const Place here = place(z);
        if (!(here.at.left > 0.0 && here.at.right > 0.0)) return infinite;
        return std::sqrt(z / (here.at.left * here.at.right) * law_.unit_);
    };
    SupportGap gap;
    gap.lower = {lower == 0.0 ? 0.0 : lower * law_.unit_};
    gap.upper = {upper * law_.unit_};
    gap.mass_above = place(within).mass_above;
    gap.weakest = {lower == 0.0 ? (std::isfinite(limit(grid_point(law_.edge_, 1))) ? 0.0 : infinite) : limit(lower)};
    gap.strongest = {std::isfinite(gap.weakest.value) ? limit(upper) : infinite};
    gaps_.push_back(gap);
    ends_.emplace_back(lower == 0.0 ? 1e-3 * grid_point(law_.edge_, 1) : lower, upper);
}

ProfileGaps::ProfileGaps(const ProfileLaw& law, const SpikeDirection& direction)
    : law_(law), direction_(law.checked(direction)) {
    std::vector<double> points;
    std::vector<double> densities;
    const auto sample = [&](double z) {
        points.push_back(z);
        densities.push_back(place(z).density);
    };
    for (std::size_t k = 1; k < grid; ++k) sample(grid_point(law_.edge_, k));
    const auto outside = [&](std::size_t i) { return is_outside(densities[i]); };
    for (std::size_t i = points.size() - 1; i-- > 1;) {
        if (outside(i - 1) || outside(i) || outside(i + 1) || densities[i] > densities[i - 1] ||
            densities[i] > densities[i + 1])
            continue;
        const auto found = emptiest(points[i - 1], points[i + 1]);
        if (!found) continue;
        const auto place_of_it = static_cast<std::ptrdiff_t>(*found < points[i] ? i : i + 1);
        points.insert(points.begin() + place_of_it, *found);
        densities.insert(densities.begin() + place_of_it, 0.0);
    }
    for (std::size_t i = points.size(); i-- > 0;) {
        if (!outside(i)) continue;
        const std::size_t last = i;
        while (i > 0 && outside(i - 1)) --i;
        // Just below the top edge the density is too small to be told from none.
        if (last + 1 == points.size()) continue;
        add(i == 0 ? 0.0 : end(points[i], points[i - 1]), end(points[last], points[last + 1]), points[i]);
    }
}

std::optional<SpikePrediction> ProfileGaps::spike(std::size_t number, SignalStrength strength) const {
    const SupportGap& gap = gaps_[number];
    if (!(strength.value > gap.weakest.value && strength.value < gap.strongest.value)) return std::nullopt;
    auto [low, high] = ends_[number];
    if (!(beyond(low, strength.value) > 0.0)) return std::nullopt;
    for (int step = 0; step < 60 && high - low > 4e-16 * high; ++step) {
        const double middle = 0.5 * (low + high);
        (beyond(middle, strength.value) > 0.0 ? low : high) = middle;
    }
    return law_.prediction(strength, low, place(low).at);
}

}  // namespace spiked::theory
