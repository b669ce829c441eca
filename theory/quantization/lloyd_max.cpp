#include "theory/quantization/lloyd_max.hpp"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/runtime/memo.hpp"

namespace spiked::theory {
namespace {

using Real = long double;

/// A symmetric law of variance 1, given in a coordinate u in which its density is smooth up to the end of its support.
/// position(u) increases, and `mass(u)` is the density of the law in u up to a constant factor.
class NormalLaw {
public:
    [[nodiscard]] Real coordinate(Real x) const { return x; }
    [[nodiscard]] Real position(Real u) const { return u; }
    [[nodiscard]] Real mass(Real u) const { return std::exp(-u * u / 2.0L); }
    /// The density in x, up to the same factor.
    [[nodiscard]] Real density(Real x) const { return mass(x); }
    [[nodiscard]] Real coordinate_end() const { return std::numeric_limits<Real>::infinity(); }
    [[nodiscard]] Real panel() const { return 0.5L; }
    /// A quantile of the positive half of the law with density proportional to f^(1/3), the point density of optimal
    /// quantizers (Panter and Dite 1951). The probability lies in (0, 1).
    [[nodiscard]] Real companded(double probability) const {
        return std::sqrt(6.0L) * static_cast<Real>(boost::math::erf_inv(probability));
    }
};

class SphereLaw {
public:
    explicit SphereLaw(int dimension) : dimension_(dimension), scale_(std::sqrt(static_cast<Real>(dimension))) {}

    /// x = sqrt(d) sin u turns the density into cos(u)^(d-2), smooth at the end u = pi/2 for every d >= 2.
    [[nodiscard]] Real coordinate(Real x) const { return std::asin(std::min(Real{1}, x / scale_)); }
    [[nodiscard]] Real position(Real u) const { return scale_ * std::sin(u); }
    [[nodiscard]] Real mass(Real u) const { return power_of_cosine(u, dimension_ - 2); }
    [[nodiscard]] Real density(Real x) const { return power_of_cosine(coordinate(x), dimension_ - 3) / scale_; }
    [[nodiscard]] Real coordinate_end() const { return std::numbers::pi_v<Real> / 2.0L; }
    [[nodiscard]] Real panel() const { return 0.5L / scale_; }
    [[nodiscard]] Real companded(double probability) const {
        // The cube root of the density is the law of a sphere of dimension d/3 + 2.
        const double square =
            boost::math::ibeta_inv(0.5, (static_cast<double>(dimension_) / 3.0 + 1.0) / 2.0, probability);
        return scale_ * std::sqrt(static_cast<Real>(square));
    }

private:
    /// cos(u)^exponent with relative accuracy for any dimension; log(cos) would lose it at the small angles of a large
    /// one.
    [[nodiscard]] static Real power_of_cosine(Real u, int exponent) {
        if (exponent == 0) return 1.0L;
        const Real sine = std::sin(u);
        const Real logarithm = sine < 0.5L ? 0.5L * std::log1p(-sine * sine) : std::log(std::cos(u));
        return std::exp(static_cast<Real>(exponent) * logarithm);
    }

    int dimension_;
    Real scale_;
};

/// Integrals over one bin, of powers of the offset from a reference point inside it.
struct BinMoments {
    Real mass = 0.0L;
    Real offset = 0.0L;         ///< int (x - reference)
    Real offset_square = 0.0L;  ///< int (x - reference)^2
};

/// Integrates over the bin [lower, upper] of positions; upper < 0 denotes the end of the support.
template <class Law>
BinMoments integrate(const Law& law, Real lower, Real upper, Real reference) {
    using Rule = boost::math::quadrature::gauss<Real, 10>;
    const Real begin = law.coordinate(lower);
    const Real end = upper < 0.0L ? law.coordinate_end() : law.coordinate(upper);
    BinMoments sum;
    const auto panel = [&](Real from, Real to) {
        const Real half = (to - from) / 2.0L;
        const Real middle = (to + from) / 2.0L;
        const auto add = [&](Real u, Real weight) {
            const Real mass = weight * half * law.mass(u);
            const Real offset = law.position(u) - reference;
            sum.mass += mass;
            sum.offset += mass * offset;
            sum.offset_square += mass * offset * offset;
            return mass;
        };
        Real gained = 0.0L;
        for (std::size_t i = 0; i < Rule::abscissa().size(); ++i) {
            const Real node = half * Rule::abscissa()[i];
            gained += add(middle + node, Rule::weights()[i]);
            gained += add(middle - node, Rule::weights()[i]);
        }
        return gained;
    };
    const Real panels = std::isfinite(end) ? std::ceil((end - begin) / law.panel()) : end;
    const Real width = std::isfinite(end) ? (end - begin) / panels : law.panel();
    for (Real i = 0.0L; i < panels; i += 1.0L)
        if (panel(begin + i * width, begin + (i + 1.0L) * width) <= 1e-26L * sum.mass) break;
    return sum;
}

/// Edges of the positive bins of a codebook with these positive levels: bin i reaches from edge i to edge i + 1, and
/// the last one to the end of the support, denoted by -1.
Real bin_edge(const std::vector<Real>& level, std::size_t i) {
    if (i == 0) return 0.0L;
    return i == level.size() ? -1.0L : (level[i - 1] + level[i]) / 2.0L;
}

/// The step of Newton's method. The residual of bin i is c_i - E[x | bin i], and its centroid depends only on its two
/// edges. The system is therefore tridiagonal; it is eliminated while it is assembled.
template <class Law>
std::vector<Real> newton_step(const Law& law, const std::vector<Real>& level) {
    const std::size_t half = level.size();
    std::vector<Real> step(half);
    std::vector<Real> upper(half);
    Real before = 0.0L;
    Real coupling = 0.0L;
    for (std::size_t i = 0; i < half; ++i) {
        const Real low = bin_edge(level, i);
        const Real high = bin_edge(level, i + 1);
        const BinMoments bin = integrate(law, low, high, level[i]);
        const Real shift = bin.offset / bin.mass;
        const Real centroid = level[i] + shift;
        const Real pull_low = i == 0 ? 0.0L : law.density(low) * (centroid - low) / bin.mass / 2.0L;
        const Real pull_high = i + 1 == half ? 0.0L : law.density(high) * (high - centroid) / bin.mass / 2.0L;
        const Real pivot = 1.0L - pull_low - pull_high - pull_low * coupling;
        coupling = pull_high / pivot;
        before = (shift + pull_low * before) / pivot;
        upper[i] = coupling;
        step[i] = before;
    }
    for (std::size_t i = half - 1; i-- > 0;) step[i] += upper[i] * step[i + 1];
    return step;
}

/// Moves the levels. Far from the solution a full step may move a level past its neighbour: the step is shortened until
/// it does not.
template <class Law>
void move_levels(const Law& law, const std::vector<Real>& step, std::vector<Real>& level) {
    Real length = 1.0L;
    const auto ordered = [&] {
        Real previous = 0.0L;
        for (std::size_t i = 0; i < level.size(); ++i) {
            const Real moved = level[i] + length * step[i];
            if (!(moved > previous)) return false;
            previous = moved;
        }
        return previous < law.position(law.coordinate_end());
    };
    while (!ordered() && length > 1e-6L) length /= 2.0L;
    for (std::size_t i = 0; i < level.size(); ++i) level[i] += length * step[i];
}

/// The codebook with these positive levels and their negatives.
template <class Law>
Codebook codebook_of(const Law& law, const std::vector<Real>& level, int bits) {
    const std::size_t half = level.size();
    std::vector<BinMoments> bin(half);
    Real total = 0.0L;
    for (std::size_t i = 0; i < half; ++i) {
        bin[i] = integrate(law, bin_edge(level, i), bin_edge(level, i + 1), level[i]);
        total += 2.0L * bin[i].mass;
    }
    Codebook book;
    book.bits = bits;
    book.levels.resize(2 * half);
    book.probabilities.resize(2 * half);
    book.thresholds.resize(2 * half - 1);
    book.thresholds[half - 1] = 0.0;
    Real distortion = 0.0L;
    Real entropy = 0.0L;
    Real gain = 0.0L;
    for (std::size_t i = 0; i < half; ++i) {
        const Real probability = bin[i].mass / total;
        book.levels[half + i] = static_cast<double>(level[i]);
        book.levels[half - 1 - i] = -book.levels[half + i];
        book.probabilities[half + i] = book.probabilities[half - 1 - i] = static_cast<double>(probability);
        if (i > 0) {
            book.thresholds[half - 1 + i] = static_cast<double>(bin_edge(level, i));
            book.thresholds[half - 1 - i] = -book.thresholds[half - 1 + i];
        }
        distortion += 2.0L * bin[i].offset_square / total;
        entropy -= 2.0L * probability * std::log2(probability);
        gain += 2.0L * level[i] * (level[i] * probability + bin[i].offset / total);
    }
    book.distortion = static_cast<double>(distortion);
    book.entropy_bits = static_cast<double>(entropy);
    book.linear_gain = static_cast<double>(gain);
    return book;
}

template <class Law>
Codebook lloyd_max(const Law& law, int bits) {
    const std::size_t half = std::size_t{1} << (bits - 1);
    std::vector<Real> level(half);
    for (std::size_t i = 0; i < half; ++i)
        level[i] = law.companded((2.0 * static_cast<double>(i) + 1.0) / (2.0 * static_cast<double>(half)));
    Real last = std::numeric_limits<Real>::infinity();
    bool converged = false;
    for (int iteration = 0; iteration < 200 && !converged; ++iteration) {
        const std::vector<Real> step = newton_step(law, level);
        Real size = 0.0L;
        for (const Real s : step) size = std::max(size, std::abs(s));
        move_levels(law, step, level);
        converged = size < 1e-17L || (size < 1e-12L && size > 0.5L * last);
        last = size;
    }
    if (!converged)
        throw postcondition_error("Lloyd-Max levels for {} bits did not converge (last step {})", bits,
                                  static_cast<double>(last));
    return codebook_of(law, level, bits);
}

void require_bits(int bits) {
    if (bits < 1 || bits > 8)
        throw usage_error("codebook of {} bits is not available (1 to 8 are): choose one of them", bits);
}

/// The cache of codebooks, by dimension (0 for the normal law) and bits.
Memo<std::pair<int, int>, Codebook>& codebooks() {
    static Memo<std::pair<int, int>, Codebook> known;
    return known;
}

}  // namespace

Codebook lloyd_max_normal(int bits) {
    require_bits(bits);
    return codebooks().of({0, bits}, [&] { return lloyd_max(NormalLaw(), bits); });
}

Codebook lloyd_max_sphere(int dimension, int bits) {
    require_bits(bits);
    if (dimension < 1)
        throw usage_error("sphere of dimension {} is not usable (a vector has at least one coordinate): give d >= 1",
                          dimension);
    if (dimension == 1) {
        if (bits > 1)
            throw usage_error(
                "codebook of {} bits for dimension 1 does not exist (a normalised row of one number is a sign, and 1 "
                "bit stores it exactly): use 1 bit",
                bits);
        return {1, {-1.0, 1.0}, {0.0}, {0.5, 0.5}, 0.0, 1.0, 1.0};
    }
    return codebooks().of({dimension, bits}, [&] { return lloyd_max(SphereLaw(dimension), bits); });
}

}  // namespace spiked::theory
