#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/device/host_device.hpp"

/// The Box-Muller transform of random words, with one source for every processor. Results are bit-equal wherever +, -,
/// *, /, sqrt and fma are correctly rounded. No rounded product is added outside fma(), so that a compiler that
/// contracts expressions changes nothing. The code uses no table, no branch and no libm.
///
/// The two normals are sqrt(-2 log u) times cos and sin of 2 pi v. The nearest multiple of 1/4 is subtracted from v
/// exactly, so that a normal keeps its relative accuracy near the zeros of cos and sin; u near 1 loses no accuracy
/// either. The polynomials are minimax (Remez), with coefficients that are rounded one after the other. Their relative
/// approximation errors are 2^-59 (log), 2^-58 (sin) and 2^-61 (cos) in double; 2^-28, 2^-28 and 2^-31 in float.
///
/// The error against exact Box-Muller of the same u and v, in units in the last place, is at most 2.7 in double (in
/// 2 10^8 normals) and at most 3.5 in float (in 4 10^8 normals), where it is always below 4.9 (every radius and every
/// angle was tried). Two normals cost about 75 instructions in double, with one division and one square root, and 60
/// in float, with one square root.
///
/// `Ops` is an arithmetic on one number (below) or on several at once. It has the types Real and Bits (unsigned, as
/// wide as Real), for double also Word (32 random bits), and the operations that operators do not provide.
namespace spiked::stream::box_muller {

struct PlainDouble {
    using Real = double;
    using Bits = std::uint64_t;
    using Word = std::uint32_t;
    static constexpr std::uint64_t sign = std::uint64_t{1} << 63;

    SPIKED_DEVICE static Real constant(double x) { return x; }
    SPIKED_DEVICE static Real fma(Real a, Real b, Real c) { return std::fma(a, b, c); }
    SPIKED_DEVICE static Real sqrt(Real x) { return std::sqrt(x); }
    SPIKED_DEVICE static Bits to_bits(Real x) {
        Bits bits = 0;
        std::memcpy(&bits, &x, sizeof bits);
        return bits;
    }
    SPIKED_DEVICE static Real from_bits(Bits bits) {
        Real x = 0.0;
        std::memcpy(&x, &bits, sizeof x);
        return x;
    }
    /// `yes` if the top bit is set, else `no`.
    SPIKED_DEVICE static Real choose(Bits top, Real yes, Real no) { return top >> 63 != 0 ? yes : no; }
    /// The upper 53 of 64 bits as a fraction in [0, 1), exactly.
    SPIKED_DEVICE static Real fraction(Word low, Word high) {
        return static_cast<double>((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
    }
};

struct PlainFloat {
    using Real = float;
    using Bits = std::uint32_t;
    static constexpr std::uint32_t sign = std::uint32_t{1} << 31;

    SPIKED_DEVICE static Real constant(float x) { return x; }
    SPIKED_DEVICE static Real fma(Real a, Real b, Real c) { return std::fma(a, b, c); }
    SPIKED_DEVICE static Real sqrt(Real x) { return std::sqrt(x); }
    SPIKED_DEVICE static Bits to_bits(Real x) {
        Bits bits = 0;
        std::memcpy(&bits, &x, sizeof bits);
        return bits;
    }
    SPIKED_DEVICE static Real from_bits(Bits bits) {
        Real x = 0.0F;
        std::memcpy(&x, &bits, sizeof x);
        return x;
    }
    SPIKED_DEVICE static Real choose(Bits top, Real yes, Real no) { return top >> 31 != 0 ? yes : no; }
    /// The nearest float to a signed integer.
    SPIKED_DEVICE static Real of_signed(Bits bits) { return static_cast<float>(static_cast<std::int32_t>(bits)); }
};

/// Evaluates a polynomial by Horner's rule; the constant coefficient comes first.
template <class Ops, class Number, class... Numbers>
SPIKED_DEVICE inline typename Ops::Real polynomial([[maybe_unused]] typename Ops::Real x, Number first,
                                                   Numbers... rest) {
    if constexpr (sizeof...(rest) == 0)
        return Ops::constant(first);
    else
        return Ops::fma(polynomial<Ops>(x, rest...), x, Ops::constant(first));
}

/// Rotates (cosine, sine) of the remaining angle by the quadrant in the two top bits of `quadrant`, and multiplies it
/// by the radius.
template <class Ops>
SPIKED_DEVICE inline void rotate(typename Ops::Real radius, typename Ops::Real cosine, typename Ops::Real sine,
                                 typename Ops::Bits quadrant, typename Ops::Real& even, typename Ops::Real& odd) {
    using Bits = typename Ops::Bits;
    const Bits swap = quadrant << 1;
    const Bits even_sign = (quadrant + (Ops::sign >> 1)) & Ops::sign;
    const Bits odd_sign = quadrant & Ops::sign;
    even = Ops::from_bits(Ops::to_bits(radius * Ops::choose(swap, sine, cosine)) ^ even_sign);
    odd = Ops::from_bits(Ops::to_bits(radius * Ops::choose(swap, cosine, sine)) ^ odd_sign);
}

/// -2 log u for 2^-53 <= u <= 1.
template <class Ops>
SPIKED_DEVICE inline typename Ops::Real minus_two_log(typename Ops::Real u) {
    using Real = typename Ops::Real;
    using Bits = typename Ops::Bits;
    constexpr std::uint64_t one = 0x3FF0000000000000U;
    constexpr std::uint64_t root_half = 0x3FE6A09E667F3BCDU;
    // u = m 2^-e with m from sqrt(1/2) to sqrt(2), which avoids cancellation near u = 1.
    const Bits shifted = Ops::to_bits(u) + (one - root_half);
    const Real m = Ops::from_bits((shifted & 0x000FFFFFFFFFFFFFU) + root_half);
    const Real e = Ops::constant(0x1p52 + 1023.0) - Ops::from_bits(shifted >> 52 | 0x4330000000000000U);
    // With g = 2 (1 - m) and s = g / (4 - g): log m = -2 atanh s and -2 log m = g + s (g + s^2 P(s^2)).
    const Real g = Ops::fma(m, Ops::constant(-2.0), Ops::constant(2.0));
    const Real s = g / (Ops::constant(4.0) - g);
    const Real z = s * s;
    const Real p =
        polynomial<Ops>(z, 0x1.5555555555592p+0, 0x1.999999997ff03p-1, 0x1.24924941e3507p-1, 0x1.c71c521240700p-2,
                        0x1.74663d6d2f743p-2, 0x1.39a1da3e8dd78p-2, 0x1.2f045b906bbc5p-2);
    const Real near_one = Ops::fma(s, Ops::fma(z, p, g), g);
    // Adds e times 2 log 2, which is stored in two parts.
    return Ops::fma(e, Ops::constant(0x1.62e42fefa39efp+0),
                    Ops::fma(e, Ops::constant(0x1.abc9e3b39803fp-55), near_one));
}

/// Two normals in double from four words: u = (53 bits + 1) 2^-53 from the first two words, v = 53 bits 2^-53 from the
/// others. The largest possible absolute value is 8.57.
template <class Ops>
SPIKED_DEVICE inline void double_normals(typename Ops::Word word_0, typename Ops::Word word_1,
                                         typename Ops::Word word_2, typename Ops::Word word_3, typename Ops::Real& even,
                                         typename Ops::Real& odd) {
    using Real = typename Ops::Real;
    const Real u = Ops::fraction(word_0, word_1) + Ops::constant(0x1p-53);
    const Real v = Ops::fraction(word_2, word_3);
    // At this magnitude the spacing of doubles is 1/4: the sum is rounded to a multiple of 1/4, counted by its last
    // bits.
    const Real shift = Ops::constant(0x1.8p50);
    const Real rounded = v + shift;
    const Real rest = v - (rounded - shift);
    const Real z = rest * rest;
    const Real cosine = Ops::fma(
        z,
        polynomial<Ops>(z, -0x1.3bd3cc9be45dep+4, 0x1.03c1f081b5a52p+6, -0x1.55d3c7e3bfe55p+6, 0x1.e1f50675b1d7ap+5,
                        -0x1.a6d1e238afff3p+4, 0x1.f9c4ad81bf258p+2, -0x1.b03447ddbd173p+0),
        Ops::constant(1.0));
    // 2 pi is stored in two parts.
    const Real sine_rest =
        polynomial<Ops>(z, 0x1.1a62633145c07p-52, -0x1.4abbce625be47p+5, 0x1.466bc67758dfap+6, -0x1.32d2cce33a55ep+6,
                        0x1.50783021c7146p+5, -0x1.e300abb168fe1p+3, 0x1.e40581b997de7p+1);
    const Real sine = Ops::fma(rest, Ops::constant(0x1.921fb54442d18p+2), rest * sine_rest);
    rotate<Ops>(Ops::sqrt(minus_two_log<Ops>(u)), cosine, sine, Ops::to_bits(rounded) << 62, even, odd);
}

/// Two normals in float from two words: u = (first + 1) 2^-32, v = second 2^-32. The largest possible absolute value is
/// 6.66. All 32 bits are used: u near 1 is represented by 1 - u.
template <class Ops>
SPIKED_DEVICE inline void float_normals(typename Ops::Bits first, typename Ops::Bits second, typename Ops::Real& even,
                                        typename Ops::Real& odd) {
    using Real = typename Ops::Real;
    using Bits = typename Ops::Bits;
    // As a signed number ~first is -u 2^32 for u <= 1/2 and (1 - u) 2^32 otherwise, so one conversion covers both
    // cases.
    const Real scaled = Ops::of_signed(~first);
    const Bits half = Ops::to_bits(scaled);
    const Bits magnitude = half & 0x7FFFFFFFU;
    // u = (1 - h) 2^-e with h from 0 to 1/2.
    const Real m = Ops::from_bits((magnitude & 0x007FFFFFU) | 0x3F000000U);
    const Real e = Ops::choose(half, Ops::of_signed(158U - (magnitude >> 23)), Ops::constant(0.0F));
    const Real h = Ops::choose(half, Ops::constant(1.0F) - m, scaled * Ops::constant(0x1p-32F));
    const Real p = polynomial<Ops>(h, 0x1.00001ep+0F, 0x1.5542f6p-1F, 0x1.01e9dap-1F, 0x1.6830e8p-2F, 0x1.5c3ae6p-1F,
                                   -0x1.2f3e04p+0F, 0x1.f88f30p+1F, -0x1.3cfc7cp+2F, 0x1.be525cp+1F);
    const Real near_one = Ops::fma(h * h, p, h + h);
    const Real minus_two_log =
        Ops::fma(e, Ops::constant(0x1.62e430p+0F), Ops::fma(e, Ops::constant(-0x1.05c610p-28F), near_one));

    const Bits quadrant = second + 0x20000000U;
    const Real rest = Ops::of_signed(second << 2) * Ops::constant(0x1p-32F);
    const Real z = rest * rest;
    const Real cosine = Ops::fma(
        z, polynomial<Ops>(z, -0x1.3bd3ccp+0F, 0x1.03c1b0p-2F, -0x1.55b2b6p-6F, 0x1.d4f7eep-11F), Ops::constant(1.0F));
    const Real sine_rest = polynomial<Ops>(z, -0x1.777a5cp-25F, -0x1.4abbc0p-1F, 0x1.46607ep-4F, -0x1.2ddcecp-8F);
    const Real sine = Ops::fma(rest, Ops::constant(0x1.921fb6p+0F), rest * sine_rest);
    rotate<Ops>(Ops::sqrt(minus_two_log), cosine, sine, quadrant, even, odd);
}

}  // namespace spiked::stream::box_muller
