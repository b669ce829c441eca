#include "theory/laws/shrinkers.hpp"

#include <array>
#include <cmath>
#include <random>

#include "theory/tests/reference.hpp"

namespace spiked::theory {
namespace {

/// The loss of the estimate x u v^T of the signal d e1 e1^T, where u and v have squared first entries a and b. It is a
/// norm of a 2 x 2 matrix, computed from the definition of the norm.
double loss_of(double x, double d, double a, double b, Loss loss) {
    const double u[2] = {std::sqrt(a), std::sqrt(1.0 - a)};
    const double v[2] = {std::sqrt(b), std::sqrt(1.0 - b)};
    double m[2][2];
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) m[i][j] = (i == 0 && j == 0 ? d : 0.0) - x * u[i] * v[j];
    const double square = m[0][0] * m[0][0] + m[0][1] * m[0][1] + m[1][0] * m[1][0] + m[1][1] * m[1][1];
    const double determinant = std::abs(m[0][0] * m[1][1] - m[0][1] * m[1][0]);
    const double sum = std::sqrt(square + 2.0 * determinant);
    const double difference = std::sqrt(std::max(0.0, square - 2.0 * determinant));
    switch (loss) {
        case Loss::frobenius:
            return std::sqrt(square);
        case Loss::operator_norm:
            return 0.5 * (sum + difference);
        case Loss::nuclear:
            return sum;
    }
    return 0.0;
}

/// The minimiser x in [0, top] of the loss, which is convex, by golden-section search.
double minimiser(double top, double d, double a, double b, Loss loss) {
    const double ratio = 0.5 * (std::sqrt(5.0) - 1.0);
    double low = 0.0;
    double high = top;
    for (int i = 0; i < 120; ++i) {
        const double x = high - ratio * (high - low);
        const double y = low + ratio * (high - low);
        (loss_of(x, d, a, b, loss) <= loss_of(y, d, a, b, loss) ? high : low) =
            loss_of(x, d, a, b, loss) <= loss_of(y, d, a, b, loss) ? y : x;
    }
    return 0.5 * (low + high);
}

TEST(Shrinkers, MinimiseTheLossTheyAreNamedAfter) {
    std::mt19937_64 random(20240611);
    std::uniform_real_distribution<double> unit(0.0, 1.0);
    for (int trial = 0; trial < 400; ++trial) {
        const double d = 0.3 + 5.0 * unit(random);
        const double a = 0.001 + 0.998 * unit(random);
        const double b = 0.001 + 0.998 * unit(random);
        for (const Loss loss : {Loss::frobenius, Loss::operator_norm, Loss::nuclear}) {
            const double best = minimiser(3.0 * d, d, a, b, loss);
            const double found = shrink(d, a, b, loss);
            EXPECT_NEAR(found, best, 2e-6 * d) << name_of(loss) << " a " << a << " b " << b;
            EXPECT_LE(loss_of(found, d, a, b, loss), loss_of(best, d, a, b, loss) * (1.0 + 1e-14));
        }
    }
}

TEST(Shrinkers, AreSymmetricInTheOverlapsAndScaleWithTheSignal) {
    for (const Loss loss : {Loss::frobenius, Loss::operator_norm, Loss::nuclear}) {
        EXPECT_EQ(shrink(2.0, 0.9, 0.6, loss), shrink(2.0, 0.6, 0.9, loss));
        EXPECT_DOUBLE_EQ(shrink(6.0, 0.9, 0.6, loss), 3.0 * shrink(2.0, 0.9, 0.6, loss));
        EXPECT_DOUBLE_EQ(shrink(2.0, 1.0, 1.0, loss), 2.0);
        EXPECT_EQ(shrink(2.0, 0.0, 0.0, loss), 0.0);
        EXPECT_DOUBLE_EQ(shrink(2.0, 1.0 + 1e-9, 1.2, loss), 2.0) << "estimates above 1 are clipped";
        EXPECT_EQ(shrink(2.0, -1e-9, -0.1, loss), 0.0) << "estimates below 0 are clipped";
    }
}

TEST(Shrinkers, NuclearIsZeroExactlyUntilTheOverlapsSumToOne) {
    EXPECT_EQ(shrink(3.0, 0.3, 0.7, Loss::nuclear), 0.0);
    EXPECT_EQ(shrink(3.0, 0.1, 0.5, Loss::nuclear), 0.0);
    EXPECT_GT(shrink(3.0, 0.3, 0.7 + 1e-15, Loss::nuclear), 0.0);
    EXPECT_EQ(shrink(3.0, 1.0, 0.0, Loss::nuclear), 0.0);
}

TEST(Shrinkers, NamesParseBackAndUnknownNamesDoNot) {
    for (const Loss loss : {Loss::frobenius, Loss::operator_norm, Loss::nuclear})
        EXPECT_EQ(enum_named<Loss>(name_of(loss), "loss"), loss);
    EXPECT_EQ(name_of(Loss::operator_norm), "operator");
    for (const char* unknown : {"Frobenius", "spectral", ""})
        EXPECT_THROW((void)enum_named<Loss>(unknown, "loss"), Error) << unknown;
}

}  // namespace
}  // namespace spiked::theory
