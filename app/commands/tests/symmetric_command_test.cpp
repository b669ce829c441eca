// Symmetric matrices: the spiked Wigner model has the limits of a square matrix of independent entries, and other
// fluctuations, which a note says. `spectrum --symmetric` and `theory --symmetric` have its theory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <armadillo>
#include <cmath>
#include <complex>
#include <fstream>

#include "app/tests/process.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/npy.hpp"
#include "sim/random/haar.hpp"
#include "sim/random/normal.hpp"
#include "sim/random/tests/statistics.hpp"
#include "theory/laws/tracy_widom.hpp"

namespace spiked::app {
namespace {

constexpr arma::uword size = 64;
constexpr double strength = 2.0;
constexpr double outlier = 2.5;   // strength + 1 / strength
constexpr double overlap = 0.75;  // 1 - 1 / strength^2

/// strength v v^T plus a symmetric Gaussian matrix with entries of variance 1/n (2/n on the diagonal).
struct Symmetric {
    arma::mat matrix;
    arma::vec vector;
};

Symmetric spiked_wigner(std::uint64_t replicate) {
    using stream::Role;
    using stream::Stream;
    arma::mat white(size, size);
    stream::fill_normal(Stream(stream::test_seed, "wigner", Role::noise, replicate), {white.memptr(), white.n_elem});
    const arma::vec vector =
        stream::haar_frame(Stream(stream::test_seed, "wigner", Role::left_vectors, replicate), size, 1);
    return {(white + white.t()) / std::sqrt(2.0 * size) + strength * vector * vector.t(), vector};
}

TEST(SpikedWignerLaw, HasTheLimitsOfIndependentEntriesAndTwiceTheVariance) {
    constexpr int count = 400;
    double mean = 0.0, square = 0.0, cosine = 0.0, cosine_square = 0.0;
    for (int r = 0; r < count; ++r) {
        const Symmetric drawn = spiked_wigner(static_cast<std::uint64_t>(r));
        arma::vec values;
        arma::mat vectors;
        ASSERT_TRUE(arma::eig_sym(values, vectors, drawn.matrix));
        const double squared = std::pow(arma::dot(vectors.tail_cols(1), drawn.vector), 2);
        mean += values.back() / count;
        square += std::pow(values.back() - outlier, 2) / count;
        cosine += squared / count;
        cosine_square += squared * squared / count;
    }
    // Three comparisons; 1.5 / n is what finite size may add, which is of that order.
    const double z = stream::two_sided_z(3.0);
    const double variance = 2.0 * overlap / size;
    const double room = 1.5 / size + z * std::sqrt(variance / count);
    EXPECT_LT(std::abs(mean - outlier), room) << "detectable is " << 2.0 * room;
    EXPECT_LT(std::abs(cosine - overlap), 1.5 / size + z * std::sqrt((cosine_square - cosine * cosine) / count));
    // A mean of squares of normal variables has the relative deviation sqrt(2 / count); a tenth is for finite size.
    const double spread = 0.1 + z * std::sqrt(2.0 / count);
    EXPECT_LT(std::abs(square / variance - 1.0), spread);
    // Controls: the outlier of a strength 10 % larger, and the variance of independent entries.
    EXPECT_GT(std::abs(mean - (1.1 * strength + 1.0 / (1.1 * strength))), room);
    EXPECT_GT(std::abs(square / (0.5 * variance) - 1.0), spread);
}

TEST(SymmetricMatrices, AreEstimatedByTheseLimitsWithANote) {
    const Symmetric drawn = spiked_wigner(0);
    const std::string file = scratch("symmetric.npy");
    sim::write_npy(file, drawn.matrix);
    const Outcome found = spiked("spectrum " + file + " --estimator gd-shrink:sigma=0.125 --json");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json json = found.json();
    ASSERT_EQ(json.find("notes")->items()->size(), 1U);
    EXPECT_NE(json.find("notes")->items()->front().string()->find("the matrix is symmetric: strengths and overlaps"),
              std::string::npos);
    // The inverse of the outlier, and both overlaps, are those of the symmetric model. Eigenvalues of noise at either
    // end may lie above the edge too.
    const Json& estimate = json.find("estimators")->items()->front();
    ASSERT_GE(estimate.find("strengths")->items()->size(), 1U);
    const double value = arma::eig_sym(drawn.matrix).eval().back();
    const double inverse = 0.5 * (value + std::sqrt(value * value - 4.0));
    EXPECT_NEAR(*estimate.find("strengths")->items()->front().real(), inverse, 1e-9);
    for (const char* side : {"overlap_left", "overlap_right"})
        EXPECT_NEAR(*estimate.find(side)->items()->front().real(), 1.0 - 1.0 / (inverse * inverse), 1e-9);

    arma::mat other = drawn.matrix;
    other(0, 1) += 0.01;
    sim::write_npy(file, other);
    EXPECT_EQ(spiked("spectrum " + file + " --json").json().find("notes")->items()->size(), 0U);
}

arma::cx_mat complex_normals(arma::uword rows, arma::uword columns, std::uint64_t replicate) {
    using stream::Role;
    using stream::Stream;
    arma::mat real(rows, columns), imaginary(rows, columns);
    stream::fill_normal(Stream(stream::test_seed, "complex", Role::noise, replicate), {real.memptr(), real.n_elem});
    stream::fill_normal(Stream(stream::test_seed, "complex", Role::channel, replicate),
                        {imaginary.memptr(), imaginary.n_elem});
    return arma::cx_mat(real, imaginary) / std::sqrt(2.0);
}

double number_at(const Json& json, const char* key) { return number(*json.find(key)); }

TEST(ComplexMatricesLaw, FluctuateAsTheoryComplexSays) {
    constexpr int count = 400;
    constexpr arma::uword rows = 40, columns = 80;
    constexpr double x = 1.5;  // thresholds are at .84
    const arma::vec left =
        stream::haar_frame(stream::Stream(stream::test_seed, "complex", stream::Role::left_vectors, 0), rows, 1);
    const arma::vec right =
        stream::haar_frame(stream::Stream(stream::test_seed, "complex", stream::Role::right_vectors, 0), columns, 1);
    const arma::cx_mat signal(x * left * right.t(), arma::zeros(rows, columns));
    arma::vec outliers(count), overlaps(count), tops(count);
    for (int r = 0; r < count; ++r) {
        const arma::cx_mat noise = complex_normals(rows, columns, static_cast<std::uint64_t>(r)) / std::sqrt(columns);
        arma::cx_mat u, v;
        arma::vec values;
        ASSERT_TRUE(arma::svd_econ(u, values, v, arma::cx_mat(noise + signal)));
        outliers(r) = std::pow(values(0), 2);
        overlaps(r) = std::norm(arma::cdot(u.col(0), arma::cx_vec(left, arma::zeros(rows))));
        tops(r) = std::pow(arma::svd(noise).eval()(0), 2);
    }
    // Five comparisons. A log of a mean of squares varies by sqrt(2 / count); .15 is for finite size, as the order
    // n^(-2/3) that the largest eigenvalue of Gaussian noise is off its limit.
    const double z = stream::two_sided_z(5.0);
    const double room = 0.15 + z * std::sqrt(2.0 / count);
    for (const bool complex : {true, false}) {  // control: real entries
        const Json json =
            spiked("theory --size 40x80 --strength 1.5 --json" + std::string(complex ? " --complex" : "")).json();
        const Json& spike = json.find("spikes")->items()->front();
        const Json& finite = *json.find("finite_size");
        const Json& spread = finite.find("spikes")->items()->front();
        EXPECT_EQ(finite.find("field") != nullptr, complex);
        const double outlier = number_at(spike, "outlier"), overlap = number_at(spike, "overlap_left");
        const double of_outlier = std::log(arma::var(outliers) / std::pow(number_at(spread, "outlier_deviation"), 2));
        const double of_overlap =
            std::log(arma::var(overlaps) / std::pow(number_at(spread, "overlap_left_deviation"), 2));
        const double unit = number_at(finite, "edge_fluctuation");
        const double of_top =
            (arma::mean(tops) - number_at(json, "bulk_edge") - number_at(finite, "top_noise_shift")) / unit;
        const double top_room = 0.15 + z / std::sqrt(count);
        EXPECT_EQ(std::abs(of_outlier) < room, complex) << of_outlier << " of at most " << room;
        EXPECT_EQ(std::abs(of_overlap) < room, complex) << of_overlap << " of at most " << room;
        EXPECT_EQ(std::abs(of_top) < top_room, complex) << of_top << " of at most " << top_room;
        EXPECT_NEAR(arma::mean(outliers), outlier, 2.0 / rows + z * arma::stddev(outliers) / std::sqrt(count));
        EXPECT_NEAR(arma::mean(overlaps), overlap, 2.0 / rows);
    }
}

TEST(SymmetricSpectrum, HasTheComponentsOfBothSignsAndWritesTheSignal) {
    Symmetric drawn = spiked_wigner(1);
    const arma::vec other = arma::normalise(arma::reverse(drawn.vector) - drawn.vector % arma::square(drawn.vector));
    drawn.matrix -= 2.6 * other * other.t();
    arma::mat matrix(size + 1, size + 1, arma::fill::zeros);  // with a row and column of zeros
    matrix.submat(0, 0, size - 1, size - 1) = drawn.matrix;
    const std::string file = scratch("signed.npy"), clean = scratch("signed-clean.npy"), rest = scratch("rest.npy");
    sim::write_npy(file, matrix);
    const Outcome found =
        spiked("spectrum " + file + " --symmetric --sigma 0.125 --json --denoised " + clean + " --residual " + rest);
    ASSERT_EQ(found.code, 0) << found.err;
    const Json json = found.json();
    EXPECT_EQ(*json.find("schema")->string(), "spiked.symmetric/1");
    EXPECT_EQ(number_at(json, "size"), size);
    EXPECT_NEAR(number_at(json, "edge"), 2.0, 1e-12);
    arma::vec values;
    arma::mat vectors;
    ASSERT_TRUE(arma::eig_sym(values, vectors, drawn.matrix));
    const auto& components = *json.find("components")->items();
    ASSERT_EQ(components.size(), 2U);
    arma::mat signal(size, size, arma::fill::zeros);
    for (std::size_t i = 0; i < 2; ++i) {
        const arma::uword at = i == 0 ? 0 : size - 1;  // the negative one has the larger modulus
        const double y = values(at);
        const double shrunk = std::copysign(std::sqrt(y * y - 4.0), y);
        EXPECT_NEAR(number_at(components[i], "eigenvalue"), y, 1e-12);
        EXPECT_NEAR(number_at(components[i], "strength"), 0.5 * (y + shrunk), 1e-11);
        EXPECT_NEAR(number_at(components[i], "shrunk"), shrunk, 1e-11);
        EXPECT_LT(number_at(components[i], "p_value"), 0.01);
        signal += shrunk * vectors.col(at) * vectors.col(at).t();
    }
    const arma::mat written = sim::read_matrix(clean);
    EXPECT_LT(arma::abs(written.submat(0, 0, size - 1, size - 1) - signal).max(), 1e-11);
    EXPECT_EQ(arma::abs(written.row(size)).max(), 0.0);
    EXPECT_LT(arma::abs(written + sim::read_matrix(rest) - matrix).max(), 1e-14);
    EXPECT_NE(found.err.find("1 zero row and as many columns left out"), std::string::npos) << found.err;
    const Outcome text = spiked("spectrum " + file + " --symmetric");
    EXPECT_NE(text.out.find("symmetric, 64 x 64"), std::string::npos) << text.out;
    EXPECT_NE(text.out.find("2 components at level 0.01; one more: p ="), std::string::npos) << text.out;
}

TEST(SymmetricSpectrum, TakesTheRealFormOfAHermitianMatrix) {
    const arma::cx_mat white = complex_normals(40, 40, 1);
    const arma::cx_mat matrix = (white + white.t()) / std::sqrt(80.0);
    const arma::mat a = arma::real(matrix), b = arma::imag(matrix);
    const std::string file = scratch("hermitian.npy");
    sim::write_npy(file, arma::join_cols(arma::join_rows(a, -b), arma::join_rows(b, a)));
    const Outcome found = spiked("spectrum " + file + " --symmetric --json");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json json = found.json();
    EXPECT_TRUE(*json.find("complex")->boolean());
    EXPECT_EQ(number_at(json, "size"), 40.0);
    const arma::vec values = arma::eig_sym(matrix);
    EXPECT_NEAR(number(json.find("eigenvalues")->items()->front()), values.back(), 1e-12);
    EXPECT_NEAR(number_at(json, "entry_deviation"), 1.0 / std::sqrt(40.0), 0.01);
}

/// A .npy file of complex numbers, in row order or, of two axes, in column order.
template <class Part>
std::string complex_npy(const arma::cx_mat& matrix, const char* descr, bool fortran) {
    std::string text = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}, {}), }}", descr,
                                   fortran ? "True" : "False", matrix.n_rows, matrix.n_cols);
    text.append(117 - text.size(), ' ');
    std::string bytes = std::string("\x93NUMPY\x01\0", 8) + '\x76' + '\0' + text + '\n';
    const arma::cx_mat stored = fortran ? matrix : arma::cx_mat(matrix.st());
    for (const std::complex<double>& entry : stored)
        for (const double part : {entry.real(), entry.imag()}) {
            const auto number = static_cast<Part>(part);
            bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
        }
    return bytes;
}

TEST(SymmetricSpectrum, ReadsAFileOfComplexNumbers) {
    const arma::cx_mat white = complex_normals(24, 24, 2);
    const arma::cx_mat matrix = (white + white.t()) / std::sqrt(48.0);
    const arma::vec values = arma::reverse(arma::eig_sym(matrix));
    const std::string file = scratch("complex.npy");
    const auto save = [&](const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; };
    const auto check = [&](double accuracy) {
        const Outcome found = spiked("spectrum " + file + " --symmetric --json");
        ASSERT_EQ(found.code, 0) << found.err;
        const Json json = found.json();
        EXPECT_TRUE(*json.find("complex")->boolean());
        EXPECT_EQ(number_at(json, "size"), 24.0);
        const auto& listed = *json.find("eigenvalues")->items();
        ASSERT_EQ(listed.size(), 24U);  // each once
        for (std::size_t i = 0; i < 24; ++i) EXPECT_NEAR(number(listed[i]), values(i), accuracy);
    };
    save(complex_npy<double>(matrix, "<c16", false));
    check(1e-12);
    const Outcome other = spiked("spectrum " + file);
    EXPECT_EQ(other.code, 4);
    EXPECT_NE(other.err.find("of a Hermitian matrix in a .npy file give --symmetric"), std::string::npos) << other.err;
    save(complex_npy<double>(matrix, "<c16", true));
    check(1e-12);
    save(complex_npy<float>(matrix, "<c8", false));
    check(1e-5);
    save(complex_npy<double>(white, "<c16", false));
    const Outcome general = spiked("spectrum " + file + " --symmetric");
    EXPECT_EQ(general.code, 4);
    EXPECT_NE(general.err.find("the matrix is not Hermitian"), std::string::npos) << general.err;
    save(complex_npy<double>(matrix, "<c16", false).substr(0, 2000));
    EXPECT_NE(spiked("spectrum " + file + " --symmetric").err.find("truncated"), std::string::npos);
    save(complex_npy<double>(arma::cx_mat(arma::real(matrix), arma::zeros(24, 24)), "<c16", false));
    const Outcome real = spiked("spectrum " + file + " --symmetric --json");
    EXPECT_FALSE(*real.json().find("complex")->boolean()) << real.err;
}

TEST(SymmetricSpectrum, RejectsWhatDoesNotGoWithIt) {
    const std::string file = scratch("for-errors.npy");
    sim::write_npy(file, spiked_wigner(0).matrix);
    const auto fails = [&](const std::string& words, int code, const char* text) {
        const Outcome found = spiked(words);
        EXPECT_EQ(found.code, code) << words;
        EXPECT_NE(found.err.find(text), std::string::npos) << found.err;
    };
    fails("spectrum " + file + " --level 0.05", 2, "--level has no effect without --symmetric");
    fails("spectrum " + file + " --symmetric --estimator svd:1", 2, "--estimator and --symmetric exclude each other");
    fails("spectrum " + file + " --symmetric --sigma 1 --noise median", 2, "--noise and --sigma exclude each other");
    fails("theory --aspect 1 --strength=-1", 2, "--strength -1 is not possible");
    fails("theory --symmetric --strength 2 --size 30x40", 2, "is no size of a symmetric matrix");
    fails("theory --symmetric --aspect 1", 2, "--aspect and --symmetric exclude each other");
    fails("theory --symmetric --diagonal 0", 2, "--diagonal has no effect without --size");
    fails("theory --aspect 1 --diagonal 0", 2, "--diagonal has no effect without --symmetric");
    for (const char* model : {"", "--population 3 ", "--variances blocks:1 "})
        fails("theory " + std::string(model) + "--aspect 2 --size 30x40", 2,
              "--size 30x40 does not fit --aspect 2 (its aspect ratio is 0.75)");
    fails("theory --aspect 1 --complex", 2, "--complex has no effect without --size");
    fails("theory --size 30x40 --complex --seen 0.5", 2, "exclude each other");
    fails("theory --size 30x40 --complex --entries laplace", 2, "only Gaussian complex entries are known");
    arma::mat other = spiked_wigner(0).matrix;
    other(0, 1) += 0.01;
    sim::write_npy(file, other);
    fails("spectrum " + file + " --symmetric", 4, "is not symmetric");
}

TEST(SymmetricTheory, HasTheFormulasOfTheModel) {
    const Outcome found =
        spiked("theory --symmetric --noise-level 2 --strength=-4,1 --size 100x100 --entries rademacher --json");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json json = *found.json().find("symmetric");
    EXPECT_EQ(number_at(json, "edge"), 4.0);
    const auto& spikes = *json.find("spikes")->items();
    EXPECT_EQ(number_at(spikes[0], "eigenvalue"), -5.0);
    EXPECT_EQ(number_at(spikes[0], "squared_overlap"), 0.75);
    EXPECT_NEAR(number_at(*spikes[0].find("shrunk"), "nuclear"), -2.0, 1e-14);
    EXPECT_NEAR(number_at(spikes[0], "eigenvalue_deviation"), 2.0 * std::sqrt(1.5 / 100.0), 1e-14);
    EXPECT_EQ(number_at(spikes[1], "eigenvalue"), 4.0);
    EXPECT_FALSE(*spikes[1].find("detectable")->boolean());
    // 2 sigma less sigma (1 / (2 n) + 2 / n) for signs, and the mean of the fluctuation.
    EXPECT_NEAR(number_at(*json.find("finite_size"), "top_eigenvalue_mean"),
                4.0 - 0.05 + 2.0 * std::pow(100.0, -2.0 / 3.0) * theory::tracy_widom_mean, 1e-12);
    // An empty diagonal moves the mean by -sigma 2 / n.
    const Outcome hollow =
        spiked("theory --symmetric --noise-level 2 --size 100x100 --entries rademacher --diagonal 0 --json");
    ASSERT_EQ(hollow.code, 0) << hollow.err;
    const Json finite = *hollow.json().find("symmetric")->find("finite_size");
    EXPECT_EQ(number_at(finite, "diagonal_variance"), 0.0);
    EXPECT_NEAR(number_at(finite, "top_eigenvalue_mean"),
                number_at(*json.find("finite_size"), "top_eigenvalue_mean") - 0.04, 1e-12);
    const Outcome text = spiked("theory --symmetric --complex --size 30x30 --strength 3");
    EXPECT_NE(text.out.find("Hermitian noise"), std::string::npos) << text.out;
}

}  // namespace
}  // namespace spiked::app
