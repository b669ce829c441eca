#include "sim/spiked/signal.hpp"

#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <numbers>

#include "core/files/tests/scratch.hpp"
#include "sim/random/haar.hpp"
#include "sim/random/tests/statistics.hpp"

namespace spiked::sim {
namespace {

using stream::false_alarm;
using stream::kolmogorov_distance;
using stream::kolmogorov_limit;
using stream::two_sided_z;

using stream::Role;
using stream::Stream;

Stream left_stream(std::uint64_t replicate = 0) {
    return {stream::test_seed, "vectors", Role::left_vectors, replicate};
}

arma::mat draw(const std::string& law, std::size_t size, std::size_t rank, std::uint64_t replicate = 0,
               MatrixSide side = MatrixSide::row) {
    return VectorLaw::parse(law, side).draw(left_stream(replicate), Covariance::identity(size), rank);
}

void expect_orthonormal(const arma::mat& vectors, const std::string& what) {
    const arma::mat one(vectors.n_cols, vectors.n_cols, arma::fill::eye);
    EXPECT_LT(arma::abs(vectors.t() * vectors - one).max(), 1e-13) << what;
}

TEST(VectorLaw, EveryKindIsOrthonormalUpToFullRank) {
    for (const char* law : {"haar", "qr:gaussian", "qr:uniform", "qr:rademacher", "qr:student:3", "qr:sparse:0.3",
                            "localised:1", "sparse:1", "eigen:row:1", "smooth"})
        for (const std::size_t size : {1, 2, 9, 60})
            for (const std::size_t rank : {std::size_t{0}, std::size_t{1}, size / 2, size}) {
                if (rank > size) continue;
                if (size == 2 && rank == 2 && std::string(law).starts_with("qr:sparse"))
                    continue;  // often singular in all 64 draws
                const arma::mat vectors = draw(law, size, rank);
                EXPECT_EQ(vectors.n_rows, size);
                EXPECT_EQ(vectors.n_cols, rank);
                if (rank > 0) expect_orthonormal(vectors, fmt::format("{} {} {}", law, size, rank));
            }
    expect_orthonormal(draw("localised:5", 60, 12), "localised");
    expect_orthonormal(draw("sparse:5", 60, 12), "sparse");
}

// Adding a weaker spike does not change the vectors of the stronger ones.
TEST(VectorLaw, FirstVectorsDoNotDependOnTheRank) {
    for (const char* law : {"haar", "qr:uniform", "qr:laplace", "localised:4", "sparse:4", "eigen:row:3", "smooth"}) {
        const arma::mat few = draw(law, 50, 3);
        const arma::mat more = draw(law, 50, 7);
        EXPECT_LT(arma::abs(few - more.head_cols(3)).max(), 1e-12) << law;
    }
}

TEST(VectorLaw, DrawsDependOnTheAddressOnly) {
    for (const char* law : {"haar", "qr:laplace", "localised:4", "sparse:4", "smooth"}) {
        const arma::mat later = draw(law, 30, 2, 5);
        const arma::mat first = draw(law, 30, 2, 0);
        EXPECT_EQ(arma::abs(draw(law, 30, 2, 5) - later).max(), 0.0) << law;
        EXPECT_GT(arma::abs(later - first).max(), 0.01) << law;
        const arma::mat right =
            VectorLaw::parse("haar", MatrixSide::column)
                .draw(Stream(stream::test_seed, "vectors", Role::right_vectors, 0), Covariance::identity(30), 2);
        EXPECT_GT(arma::abs(right - first).max(), 0.01) << law;
    }
}

TEST(VectorLaw, HaarAndQrOfAGaussianAreTheHaarFrameOfTheStream) {
    const arma::mat frame = stream::haar_frame(left_stream(), 40, 6);
    EXPECT_EQ(arma::abs(draw("haar", 40, 6) - frame).max(), 0.0);
    EXPECT_LT(arma::abs(draw("qr:gaussian", 40, 6) - frame).max(), 1e-13);
}

// The columns of Q are those of Gram-Schmidt orthonormalisation of the entries, column by column.
TEST(VectorLawReference, QrIsGramSchmidtOfTheEntries) {
    for (const char* law : {"rademacher", "student:3", "two-point:0.1"}) {
        arma::mat entries(30, 4);
        fill_entries(EntryLaw::parse(law), left_stream(3), {entries.memptr(), entries.n_elem});
        for (arma::uword j = 0; j < 4; ++j) {
            for (int twice = 0; twice < 2; ++twice)
                for (arma::uword i = 0; i < j; ++i)
                    entries.col(j) -= arma::dot(entries.col(i), entries.col(j)) * entries.col(i);
            entries.col(j) /= arma::norm(entries.col(j));
        }
        EXPECT_LT(arma::abs(draw(std::string("qr:") + law, 30, 4, 3) - entries).max(), 1e-13) << law;
    }
}

// A 2 x 2 matrix of signs is singular with probability 1/2; then the next four entries of the stream form another one.
TEST(VectorLawReference, SingularMatricesAreDrawnAgain) {
    int again = 0;
    for (std::uint64_t r = 0; r < 40; ++r) {
        std::vector<double> entries(4 * 64);
        fill_entries(EntryLaw::parse("rademacher"), left_stream(r), entries);
        std::size_t at = 0;
        while (entries[at] * entries[at + 3] == entries[at + 1] * entries[at + 2]) at += 4;
        again += at > 0;
        arma::mat expected(entries.data() + at, 2, 2);
        expected /= std::sqrt(2.0);
        EXPECT_LT(arma::abs(draw("qr:rademacher", 2, 2, r) - expected).max(), 1e-14) << r;
    }
    EXPECT_GT(again, 5);
}

TEST(VectorLaw, LocalisedVectorsHaveConsecutiveSupportsAndEqualSizes) {
    EXPECT_EQ(arma::abs(draw("localised:1", 10, 3) - arma::mat(10, 3, arma::fill::eye)).max(), 0.0);
    const arma::mat vectors = draw("localised:9", 50, 4);
    for (arma::uword i = 0; i < 4; ++i)
        for (arma::uword t = 0; t < 50; ++t) EXPECT_DOUBLE_EQ(std::abs(vectors(t, i)), t / 9 == i ? 1.0 / 3.0 : 0.0);
    EXPECT_GT(arma::accu(vectors < 0.0), 4U);
    EXPECT_GT(arma::accu(vectors > 0.0), 4U);
}

double chi_square_of_supports(const std::string& law, std::size_t replicates) {
    constexpr std::size_t size = 20;
    arma::vec hits(size, arma::fill::zeros);
    for (std::size_t r = 0; r < replicates; ++r) {
        const arma::mat vectors = draw(law, size, 1, r);
        for (arma::uword t = 0; t < size; ++t) hits(t) += vectors(t, 0) != 0.0;
    }
    const double expected = arma::accu(hits) / size;
    // K of 20 coordinates are drawn without replacement: the variance of a count is p (1 - p) instead of p, and the sum
    // of the counts is fixed.
    const double p = expected / static_cast<double>(replicates);
    return arma::accu(arma::square(hits - expected)) / (expected * (1.0 - p)) * (size - 1.0) / size;
}

TEST(VectorLawLaw, SparseVectorsHaveRandomDisjointSupports) {
    for (std::uint64_t r = 0; r < 20; ++r) {
        const arma::mat vectors = draw("sparse:6", 50, 8, r);
        const arma::umat support = vectors != 0.0;
        for (arma::uword i = 0; i < 8; ++i) EXPECT_EQ(arma::accu(support.col(i)), 6U);
        EXPECT_EQ(arma::sum(support, 1).max(), 1U);
    }
    const double limit = boost::math::quantile(boost::math::complement(boost::math::chi_squared(19), false_alarm));
    EXPECT_LT(chi_square_of_supports("sparse:6", 4000), limit);
    EXPECT_GT(chi_square_of_supports("localised:6", 4000), limit);  // negative control: the coordinates are fixed
}

// On K = 2 coordinates the two values are the cosine and sine of a uniform angle.
TEST(VectorLawLaw, SparseValuesAreUniformOnTheirSphere) {
    std::vector<double> angles;
    constexpr std::size_t count = 4000;
    for (std::uint64_t r = 0; r < count; ++r) {
        const arma::mat vectors = draw("sparse:2", 4, 1, r);
        const arma::vec values = vectors(arma::find(vectors.col(0) != 0.0));
        angles.push_back(std::atan2(values(1), values(0)));
    }
    const auto uniform = [](double a) { return 0.5 + a / (2.0 * std::numbers::pi); };
    EXPECT_LT(kolmogorov_distance(angles, uniform), kolmogorov_limit(count, 1.0));
    for (double& a : angles) a *= 0.8;
    EXPECT_GT(kolmogorov_distance(angles, uniform), kolmogorov_limit(count, 1.0));  // negative control
}

// Supports and values are independent: given that coordinate 0 is in the support, its squared value has the mean 1/3
// and the variance 4/45 of a coordinate on the sphere in three dimensions.
TEST(VectorLawLaw, SparseValuesAreIndependentOfTheirCoordinates) {
    double sum = 0.0;
    double count = 0.0;
    for (std::uint64_t r = 0; r < 10000; ++r) {
        const double value = draw("sparse:3", 6, 1, r)(0, 0);
        if (value == 0.0) continue;
        sum += value * value - 1.0 / 3.0;
        count += 1.0;
    }
    EXPECT_LT(std::abs(sum), two_sided_z(1.0) * std::sqrt(4.0 / 45.0 * count));
}

TEST(VectorLaw, EigenVectorsAreThoseOfTheCovarianceOfTheSameSide) {
    const Covariance rows = Covariance::ar1(0.6, 30);
    const Covariance columns = Covariance::exponential(-2.0, 20);  // largest eigenvalue last
    const arma::mat one_row(30, 30, arma::fill::eye);
    const arma::mat matrix = rows.root_times(rows.root_times(one_row));
    const arma::mat left = VectorLaw::parse("eigen:row:2", MatrixSide::row).draw(left_stream(), rows, 3);
    const arma::vec values = arma::sort(arma::eig_sym(matrix), "descend");
    for (arma::uword k = 0; k < 3; ++k)
        EXPECT_LT(arma::abs(matrix * left.col(k) - values(k + 1) * left.col(k)).max(), 1e-13);
    const arma::mat right = VectorLaw::parse("eigen:col:1", MatrixSide::column).draw(left_stream(), columns, 2);
    EXPECT_EQ(right(19, 0), 1.0);
    EXPECT_EQ(right(18, 1), 1.0);
}

/// Fraction of the energy at frequencies above 1.5 radians per token. The fastest rotary wave has 1 radian per token,
/// the slow waves add pi i / n.
double fast_fraction(const arma::mat& vectors) {
    double fast = 0.0;
    for (arma::uword j = 0; j < vectors.n_cols; ++j) {
        const arma::vec power = arma::square(arma::abs(arma::fft(vectors.col(j))));
        for (arma::uword f = 0; f < power.n_elem; ++f) {
            const double angle = 2.0 * std::numbers::pi * static_cast<double>(std::min(f, power.n_elem - f)) /
                                 static_cast<double>(power.n_elem);
            if (angle > 1.5) fast += power(f) / arma::accu(power) / static_cast<double>(vectors.n_cols);
        }
    }
    return fast;
}

TEST(VectorLaw, SmoothVectorsVarySlowlyOverTheTokens) {
    for (std::uint64_t r = 0; r < 50; ++r) {
        EXPECT_LT(fast_fraction(draw("smooth", 128, 4, r)), 0.05) << r;
        EXPECT_GT(fast_fraction(draw("haar", 128, 4, r)), 0.3) << r;  // negative control: white vectors have 0.52
    }
}

TEST(VectorLawReference, TheFirstSmoothVectorFollowsItsFormula) {
    const auto words = left_stream(2).words(0);
    long double u[4];
    for (std::size_t k = 0; k < 4; ++k) u[k] = (static_cast<long double>(words[k]) + 0.5L) / 4294967296.0L;
    const long double pi = 3.14159265358979323846264338L;
    arma::vec wave(40);
    for (arma::uword t = 1; t <= 40; ++t)
        wave(t - 1) =
            static_cast<double>(std::cos(pi * u[0] * (static_cast<long double>(t) - 0.5L) / 40.0L + 2.0L * pi * u[1]) *
                                std::cos(std::pow(10000.0L, -u[2]) * static_cast<long double>(t) + 2.0L * pi * u[3]));
    EXPECT_LT(arma::abs(draw("smooth", 40, 3, 2).col(0) - wave / arma::norm(wave)).max(), 1e-13);
}

TEST(VectorLaw, ScoresAreIndependentEntries) {
    std::vector<double> entries(150);
    fill_entries(EntryLaw::parse("rademacher"), left_stream(3), entries);
    EXPECT_EQ(arma::abs(draw("scores:rademacher", 50, 3, 3) - arma::mat(entries.data(), 50, 3) / std::sqrt(50.0)).max(),
              0.0);
    EXPECT_FALSE(VectorLaw::parse("scores:gaussian", MatrixSide::row).orthonormal());
    EXPECT_TRUE(VectorLaw::parse("qr:gaussian", MatrixSide::row).orthonormal());
    EXPECT_EQ(parse_signal_vectors("scores:gaussian").right.text(), "haar");
    const auto of_columns = [] { (void)VectorLaw::parse("scores:gaussian", MatrixSide::column); };
    expect_error(ErrorKind::usage, of_columns, {"are left vectors, not right vectors"});
    const auto without_law = [] { (void)VectorLaw::parse("scores", MatrixSide::row); };
    expect_error(ErrorKind::usage, without_law, {"the entry law is missing", "write scores:ENTRY"});
}

TEST(SignalVectors, OneTextServesBothSidesOrLeavesTheOtherHaar) {
    const auto both = [](const char* text) {
        const SignalVectors vectors = parse_signal_vectors(text);
        return vectors.left.text() + " " + vectors.right.text();
    };
    EXPECT_EQ(both("haar"), "haar haar");
    EXPECT_EQ(both("qr:student:5"), "qr:student:5 qr:student:5");
    EXPECT_EQ(both("localised:3"), "localised:3 localised:3");
    EXPECT_EQ(both("sparse:3"), "sparse:3 sparse:3");
    EXPECT_EQ(both("eigen:row:2"), "eigen:row:2 haar");
    EXPECT_EQ(both("eigen:col:2"), "haar eigen:col:2");
    EXPECT_EQ(both("smooth"), "smooth haar");
    EXPECT_EQ(VectorLaw().text(), "haar");
    std::string names;
    for (const auto& line : vector_laws()) names += written_form(line) + " ";
    EXPECT_EQ(names, "haar qr:ENTRY localised:J sparse:K eigen:row:INDEX eigen:col:INDEX smooth scores:ENTRY ");
}

TEST(SignalVectorsBadInput, IllegalTexts) {
    const auto fails = [](const std::string& text, std::initializer_list<std::string_view> parts) {
        expect_error(
            ErrorKind::usage, [&] { (void)parse_signal_vectors(text); }, parts);
    };
    fails("har", {"unknown signal vectors \"har\"", "did you mean \"haar\"?"});
    fails("orthogonal", {"unknown signal vectors \"orthogonal\"", "did you mean \"haar\"?"});
    fails("columns", {"unknown signal vectors \"columns\"", "one of: haar, qr, localised, sparse, eigen, smooth"});
    fails("", {"unknown signal vectors \"\""});
    fails("haar:3", {"\"haar:3\"", "haar has no variant or option \"3\"", "it takes none"});
    fails("qr", {"the entry law is missing", "write qr:ENTRY"});
    fails("qr:", {"the entry law is missing"});
    fails("qr:gausian", {"unknown entry law \"gausian\"", "did you mean \"gaussian\"?"});
    fails("qr:student:1", {"\"student:1\": 1 is not possible", "above 2"});
    fails("localised", {"it needs one J", "write localised:J"});
    fails("localised:0", {"0 is not possible", "a whole number of at least 1"});
    fails("localised:2.5", {"\"2.5\" is not a whole number of at least 1"});
    fails("localised:J=2", {"localised has no option \"J\"", "did you mean \"localised:2\""});
    fails("sparse:-1", {"-1 is not possible", "at least 1"});
    fails("sparse:1:2", {"it needs one K", "write sparse:K"});
    fails("eigen", {"the side is missing or unknown", "write eigen:row:INDEX or eigen:col:INDEX"});
    fails("eigen:1", {"the side is missing or unknown"});
    fails("eigen:row", {"it needs one INDEX", "write eigen:row:INDEX"});
    fails("eigen:row:0", {"0 is not possible", "at least 1"});
    fails("eigen:row:x", {"\"x\" is not a whole number"});
    expect_error(ErrorKind::usage, [] { (void)VectorLaw::parse("smooth", MatrixSide::column); },
                 {"\"smooth\" are left vectors, not right vectors"});
    expect_error(ErrorKind::usage, [] { (void)VectorLaw::parse("eigen:col:1", MatrixSide::row); },
                 {"\"eigen:col:1\" are right vectors, not left vectors"});
}

TEST(SignalVectorsBadInput, VectorsThatDoNotFit) {
    const auto fails = [](const std::string& text, std::size_t rank, std::initializer_list<std::string_view> parts) {
        expect_error(
            ErrorKind::usage, [&] { (void)draw(text, 10, rank); }, parts);
    };
    fails("haar", 11, {"11 signal vectors \"haar\" do not fit into 10 coordinates", "lower the rank"});
    fails("localised:4", 3, {"3 signal vectors \"localised:4\"", "lower the rank or J"});
    fails("sparse:4611686018427387904", 4, {"lower the rank or K"});  // 4 K is 0 in 64 bits
    fails("eigen:row:9", 3, {"lower the rank or INDEX"});
    fails("eigen:row:9223372036854775807", 3, {"lower the rank or INDEX"});
    // The text is legal, but every draw is linearly dependent.
    expect_error(ErrorKind::input, [] { (void)draw("qr:sparse:1e-9", 10, 2); },
                 {"64 draws of 2 vectors of length 10 were linearly dependent"});
    EXPECT_EQ(draw("eigen:row:9", 10, 2).n_cols, 2U);
    EXPECT_EQ(draw("localised:5", 10, 2).n_cols, 2U);
}

TEST(Strength, EveryUnitConvertsToSingularValues) {
    const SignalStrength threshold{1.25};
    EXPECT_EQ(absolute_strength(3.0, StrengthUnit::absolute, threshold, 64).value, 3.0);
    EXPECT_EQ(absolute_strength(3.0, StrengthUnit::threshold, threshold, 64).value, 3.75);
    EXPECT_EQ(absolute_strength(3.0, StrengthUnit::sqrt_n, threshold, 64).value, 24.0);
    expect_error(ErrorKind::usage, [] { (void)enum_named<StrengthUnit>("sqrtn", "unit of strengths"); },
                 {"unknown unit of strengths \"sqrtn\"", "did you mean \"sqrt_n\"?"});
    for (const double bad : {-1.0, std::nan(""), HUGE_VAL})
        expect_error(ErrorKind::usage, [&] { (void)absolute_strength(bad, StrengthUnit::absolute, threshold, 4); },
                     {"is not usable"});
}

}  // namespace
}  // namespace spiked::sim
