#include "estimators/symmetric/symmetric_components.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/spectral/tracy_widom_rank.hpp"
#include "sim/random/haar.hpp"
#include "sim/random/normal.hpp"
#include "sim/random/tests/statistics.hpp"

namespace spiked::estimators {
namespace {

using stream::Role;
using stream::Stream;
using theory::Field;

arma::mat normals(arma::uword rows, arma::uword columns, const char* name, int replicate, Role role = Role::noise) {
    arma::mat drawn(rows, columns);
    stream::fill_normal(Stream(stream::test_seed, name, role, static_cast<std::uint64_t>(replicate)),
                        {drawn.memptr(), drawn.n_elem});
    return drawn;
}

/// A symmetric matrix of the entries below the diagonal of `white` and of a diagonal times `diagonal`.
arma::mat wigner(const arma::mat& white, double diagonal) {
    arma::mat lower = arma::trimatl(white, -1);
    lower += lower.t();
    lower.diag() = diagonal * white.diag();
    return lower;
}

arma::cx_mat hermitian(arma::uword n, const char* name, int replicate) {
    const arma::cx_mat white(normals(n, n, name, replicate), normals(n, n, name, replicate, Role::channel));
    arma::cx_mat lower = arma::trimatl(white, -1);
    lower += lower.t();
    lower.diag() = arma::cx_vec(std::sqrt(2.0) * arma::real(white.diag().eval()), arma::zeros(n));
    return lower / std::sqrt(2.0);
}

arma::mat real_form(const arma::cx_mat& matrix) {
    const arma::mat a = arma::real(matrix), b = arma::imag(matrix);
    return arma::join_cols(arma::join_rows(a, -b), arma::join_rows(b, a));
}

TEST(SymmetricComponentsReference, AreTheFormulasOfTheModelForBothSigns) {
    constexpr arma::uword n = 90;
    const arma::mat frame = stream::haar_frame(Stream(stream::test_seed, "signs", Role::left_vectors, 0), n, 2);
    const arma::vec strengths = {60.0, -45.0};
    for (const bool complex : {false, true}) {
        arma::cx_mat matrix(wigner(normals(n, n, "signs", 0), std::sqrt(2.0)), arma::zeros(n, n));
        if (complex) matrix = hermitian(n, "signs", 1);
        const arma::cx_mat rotated = arma::cx_mat(frame, arma::reverse(frame)) * (complex ? std::sqrt(0.5) : 1.0);
        const arma::cx_mat vectors = complex ? rotated : arma::cx_mat(frame, arma::zeros(n, 2));
        matrix += vectors * arma::diagmat(arma::cx_vec(strengths, arma::zeros(2))) * vectors.t();
        const SymmetricOptions options{.loss = theory::Loss::operator_norm, .entry_deviation = 1.0};
        const SymmetricComponents found = complex ? hermitian_components(real_form(matrix), options)
                                                  : symmetric_components(arma::real(matrix), options);
        arma::vec values;
        arma::cx_mat own;
        ASSERT_TRUE(arma::eig_sym(values, own, matrix));
        ASSERT_EQ(found.components.size(), 2U);
        EXPECT_EQ(found.size, n);
        EXPECT_EQ(found.field, complex ? Field::complex : Field::real);
        const double sigma = std::sqrt(static_cast<double>(n));
        EXPECT_NEAR(found.edge, 2.0 * sigma, 1e-12);
        arma::cx_mat signal(n, n, arma::fill::zeros);
        for (std::size_t i = 0; i < 2; ++i) {
            const arma::uword at = i == 0 ? n - 1 : 0;
            const double y = values(at);
            const double strength = 0.5 * (y + (y > 0 ? 1.0 : -1.0) * std::sqrt(y * y - 4.0 * sigma * sigma));
            const auto& component = found.components[i];
            EXPECT_NEAR(component.eigenvalue, y, 1e-11);
            EXPECT_NEAR(component.strength, strength, 1e-10);
            EXPECT_NEAR(component.overlap, 1.0 - n / (strength * strength), 1e-12);
            EXPECT_NEAR(component.shrunk, strength, 1e-10) << "the operator norm keeps the strength";
            EXPECT_LT(component.p_value, 1e-6);
            EXPECT_LT(component.strength_interval.low, strength);
            EXPECT_GT(component.strength_interval.high, strength);
            signal += strength * own.col(at) * own.col(at).t();
        }
        EXPECT_LT(arma::abs(found.signal - (complex ? real_form(signal) : arma::real(signal))).max(), 1e-10);
        EXPECT_GT(found.next_p_value.value(), 0.01);
    }
}

/// Eigenvalues, descending.
template <class Matrix>
std::vector<double> spectrum(const Matrix& matrix) {
    const arma::vec values = arma::reverse(arma::eig_sym(matrix));
    return {values.begin(), values.end()};
}

/// p-values of the first component of so many matrices of noise.
template <class Draw>
std::vector<double> p_values(int count, Field field, const SymmetricOptions& options, Draw draw) {
    std::vector<double> found;
    for (int r = 0; r < count; ++r) {
        const SymmetricRank rank = symmetric_rank(spectrum(draw(r)), field, options);
        found.push_back(rank.p_values.empty() ? rank.next_p_value.value() : rank.p_values.front());
    }
    return found;
}

TEST(SymmetricComponentsLaw, PValuesOfNoiseAreUniform) {
    constexpr int count = 500;
    constexpr arma::uword n = 60;
    // .03 is for the order n^(-1/3) that the centring leaves.
    const double limit = 0.03 + stream::kolmogorov_limit(count, 5.0);
    const auto uniform = [](double p) { return p; };
    const auto gaussian = [](int r) { return wigner(normals(n, n, "level", r), std::sqrt(2.0)); };
    const auto unitary = [](int r) { return hermitian(n, "level", r); };
    const SymmetricOptions tiny{.level = 1e-9};
    const auto of_gaussian = p_values(count, Field::real, tiny, gaussian);
    EXPECT_LT(stream::kolmogorov_distance(of_gaussian, uniform), limit);
    // A diagonal of zeros changes the mean square and the edge alike.
    const auto hollow = [](int r) { return wigner(normals(n, n, "level", r), 0.0); };
    EXPECT_LT(stream::kolmogorov_distance(p_values(count, Field::real, tiny, hollow), uniform), limit);
    const auto known = p_values(count, Field::real, {.entry_deviation = 1.0, .level = 1e-9}, gaussian);
    EXPECT_LT(stream::kolmogorov_distance(known, uniform), limit);
    EXPECT_LT(stream::kolmogorov_distance(p_values(count, Field::complex, tiny, unitary), uniform), limit);
    // Controls: the law of the other field, and the test of rectangular noise, which counts too often.
    EXPECT_GT(stream::kolmogorov_distance(p_values(count, Field::real, tiny, unitary), uniform), limit);
    EXPECT_GT(stream::kolmogorov_distance(p_values(count, Field::complex, tiny, gaussian), uniform), limit);
    int taken = 0;
    for (int r = 0; r < count; ++r) {
        std::vector<double> values = spectrum(gaussian(r));
        for (double& value : values) value = std::abs(value);
        std::sort(values.rbegin(), values.rend());
        TracyWidomOptions options;
        options.level = 0.05;
        options.noise_level = 1.0;
        taken += TracyWidomTest(options)(values, {n, n}).rank > 0 ? 1 : 0;
    }
    EXPECT_GT(taken, count * (0.05 + stream::two_sided_z(5.0) * std::sqrt(0.05 * 0.95 / count)));
}

/// False alarms in so many matrices of noise of 64 rows with entries of variance 1.
template <class Transform>
int false_alarms(int count, double level, bool kurtosis, Transform entry) {
    constexpr arma::uword n = 64;
    int alarms = 0;
    for (int r = 0; r < count; ++r) {
        arma::mat white = normals(n, n, "entries", r);
        white.transform(entry);
        const arma::mat matrix = wigner(white, std::sqrt(2.0));
        alarms += kurtosis ? !symmetric_components(matrix, {.level = level}).components.empty()
                           : !symmetric_rank(spectrum(matrix), Field::real, {.level = level}).found.empty();
    }
    return alarms;
}

TEST(SymmetricComponentsLaw, TheLevelHoldsForEntriesWithAFourthCumulant) {
    constexpr int count = 1000;
    constexpr double level = 0.05;
    // Laws by the probability transform. Five comparisons with the level, of which finite size may add a tenth.
    const auto upper = [](double x) { return 0.5 * std::erfc(std::abs(x) / std::sqrt(2.0)); };
    const auto gaussian = [](double x) { return x; };
    const auto laplace = [=](double x) { return std::copysign(-std::log(2.0 * upper(x)) / std::sqrt(2.0), x); };
    const auto sparse = [=](double x) { return 2.0 * upper(x) < 0.1 ? std::copysign(std::sqrt(10.0), x) : 0.0; };
    const auto limit = [](double share) {
        return count * share + stream::two_sided_z(5.0) * std::sqrt(count * share * (1.0 - share));
    };
    const double most = limit(1.1 * level);
    EXPECT_LE(false_alarms(count, level, true, gaussian), most);
    EXPECT_LE(false_alarms(count, level, true, laplace), most);
    EXPECT_LE(false_alarms(count, level, true, sparse), most);
    // Controls: the edge of Gaussian entries.
    EXPECT_GT(false_alarms(count, level, false, laplace), most);
    EXPECT_GT(false_alarms(count, level, false, sparse), most);
}

TEST(SymmetricComponents, LargeEntriesOfASignalDoNotHideIt) {
    constexpr arma::uword n = 100;
    for (const double strength : {25.0, 60.0, 1000.0}) {
        arma::mat matrix = wigner(normals(n, n, "hide", 0), std::sqrt(2.0));
        for (const arma::uword at : {0U, 2U}) {
            arma::vec vector(n, arma::fill::zeros);
            vector(at) = vector(at + 1) = std::sqrt(0.5);
            matrix += (at == 0 ? strength : -1.1 * strength) * vector * vector.t();
        }
        EXPECT_EQ(symmetric_components(matrix).components.size(), 2U) << strength;
    }
}

struct Coverage {
    double strength = 0.0;
    double overlap = 0.0;
};

/// Of a spike of two thresholds and sign -1, at n = 120.
Coverage coverage(int count, double confidence, bool complex, bool localised) {
    constexpr arma::uword n = 120;
    const double strength = -2.0 * std::sqrt(static_cast<double>(n));
    Coverage covered;
    for (int r = 0; r < count; ++r) {
        arma::vec vector = stream::haar_frame(
            Stream(stream::test_seed, "cover", Role::left_vectors, static_cast<std::uint64_t>(r)), n, 1);
        if (localised) {
            vector.zeros();
            vector(0) = 0.8;
            vector(1) = 0.6;
        }
        SymmetricComponents found;
        arma::vec values;
        double overlap = 0.0;
        if (complex) {
            arma::cx_mat own, matrix = hermitian(n, "cover", r);
            matrix += arma::cx_mat(strength * vector * vector.t(), arma::zeros(n, n));
            EXPECT_TRUE(arma::eig_sym(values, own, matrix));
            overlap = std::norm(arma::cdot(own.col(0), arma::cx_vec(vector, arma::zeros(n))));
            found = hermitian_components(real_form(matrix), {.confidence = confidence});
        } else {
            arma::mat white = normals(n, n, "cover", r);
            if (localised) white = arma::sign(white);
            arma::mat own, matrix = wigner(white, localised ? 0.0 : std::sqrt(2.0));
            matrix += strength * vector * vector.t();
            EXPECT_TRUE(arma::eig_sym(values, own, matrix));
            overlap = std::pow(arma::dot(own.col(0), vector), 2);
            found = symmetric_components(matrix, {.confidence = confidence});
        }
        EXPECT_GE(found.components.size(), 1U);
        if (found.components.empty()) continue;
        const SymmetricComponent& component = found.components.front();
        const auto within = [](const Interval& interval, double value) {
            return interval.low <= value && value <= interval.high ? 1.0 : 0.0;
        };
        covered.strength += within(component.strength_interval, strength) / count;
        covered.overlap += within(component.overlap_interval, overlap) / count;
    }
    return covered;
}

TEST(SymmetricComponentsLaw, IntervalsCoverForRealAndComplexEntriesAndLocalisedVectors) {
    constexpr int count = 400;
    // Six comparisons; .03 is what finite size may take.
    const double room = 0.03 + stream::two_sided_z(8.0) * std::sqrt(0.95 * 0.05 / count);
    const auto check = [&](const char* what, const Coverage& found) {
        EXPECT_NEAR(found.strength, 0.95, room) << what;
        EXPECT_NEAR(found.overlap, 0.95, room) << what;
    };
    check("real", coverage(count, 0.95, false, false));
    check("complex", coverage(count, 0.95, true, false));
    check("localised", coverage(count, 0.95, false, true));
    // Control: intervals half as long.
    const Coverage control = coverage(count, 0.6730, false, false);
    EXPECT_LT(control.strength, 0.95 - room);
    EXPECT_LT(control.overlap, 0.95 - room);
}

TEST(SymmetricComponents, KeepALowRankMatrixAsItIs) {
    const arma::mat frame = stream::haar_frame(Stream(stream::test_seed, "low", Role::left_vectors, 0), 20, 2);
    const arma::mat matrix = frame * arma::diagmat(arma::vec{3e200, -2e200}) * frame.t();
    const SymmetricComponents found = symmetric_components(matrix);
    ASSERT_EQ(found.components.size(), 2U);
    EXPECT_NEAR(found.components[1].shrunk / 2e200, -1.0, 1e-13);
    EXPECT_EQ(found.entry_deviation, 0.0);
    EXPECT_LT(arma::abs(found.signal - matrix).max(), 1e187);
    EXPECT_NE(found.note.find("low rank"), std::string::npos);
    EXPECT_EQ(symmetric_components(arma::zeros(5, 5)).components.size(), 0U);
}

TEST(SymmetricComponents, NoteCloseComponentsAndHeavyTails) {
    constexpr arma::uword n = 100;
    const arma::mat frame = stream::haar_frame(Stream(stream::test_seed, "close", Role::left_vectors, 0), n, 2);
    const arma::mat noise = wigner(normals(n, n, "close", 0), std::sqrt(2.0));
    const auto of = [&](double other) {
        return symmetric_components(noise + frame * arma::diagmat(arma::vec{40.0, other}) * frame.t()).note;
    };
    EXPECT_NE(of(39.0).find("components 1, 2 have a neighbour"), std::string::npos) << of(39.0);
    EXPECT_EQ(of(-38.0), "");
    EXPECT_EQ(of(70.0), "");
    // One entry in two hundred: the excess kurtosis is about 2 n.
    arma::mat rare = normals(n, n, "rare", 0);
    rare.transform([](double x) { return std::abs(x) > 2.807 ? std::copysign(14.1, x) : 0.1 * x; });
    const SymmetricComponents found = symmetric_components(wigner(rare, 1.0), {.level = 0.05});
    ASSERT_GE(found.components.size(), 1U);
    EXPECT_NE(found.note.find("may be noise"), std::string::npos) << found.note;
}

TEST(SymmetricComponents, RejectOtherMatrices) {
    const auto rejected = [](auto action, const char* text) {
        try {
            (void)action();
            ADD_FAILURE() << text;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
        }
    };
    const arma::mat noise = wigner(normals(20, 20, "reject", 0), 1.0);
    rejected([&] { return symmetric_components(normals(20, 20, "reject", 0)); }, "is not symmetric");
    rejected([&] { return symmetric_components(arma::zeros(3, 4)); }, "3 x 4 matrix is not square");
    rejected([&] { return symmetric_components(arma::zeros(2, 2)); }, "too small");
    rejected([&] { return symmetric_components(noise, {.level = 1.0}); }, "level of 1");
    rejected([&] { return symmetric_components(noise, {.entry_deviation = -1.0}); }, "standard deviation of -1");
    rejected([&] { return hermitian_components(noise); }, "real form [[A, -B], [B, A]]");
    EXPECT_FALSE(is_hermitian_form(noise));
    EXPECT_TRUE(is_hermitian_form(real_form(hermitian(10, "reject", 0))));
}

}  // namespace
}  // namespace spiked::estimators
