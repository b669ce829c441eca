#include "sim/spiked/covariance_spec.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <set>

#include "core/files/tests/scratch.hpp"
#include "sim/io/npy.hpp"
#include "sim/random/tests/statistics.hpp"
#include "sim/spiked/spectrum_spec.hpp"

namespace spiked::sim {
namespace {

Covariance build(const CovarianceSpec& spec, std::size_t size, MatrixSide side = MatrixSide::row,
                 std::string_view cell = "cell") {
    return build_covariance(spec, size, side, stream::test_seed, cell);
}

arma::mat matrix_of(const Covariance& covariance) {
    return covariance.root_times(
        covariance.root_times(arma::mat(covariance.size(), covariance.size(), arma::fill::eye)));
}

void expect_same(const theory::Spectrum& found, const theory::Spectrum& expected) {
    ASSERT_EQ(found.atoms().size(), expected.atoms().size());
    for (std::size_t i = 0; i < found.atoms().size(); ++i) {
        EXPECT_NEAR(found.atoms()[i].value, expected.atoms()[i].value, 1e-14 * expected.largest());
        EXPECT_NEAR(found.atoms()[i].weight, expected.atoms()[i].weight, 1e-14);
    }
}

/// 2 / x at the quantiles x of chi-squared with 4 degrees of freedom, whose tail is exp(-x/2) (1 + x/2), by bisection.
theory::Spectrum inverse_chi2_of_four(std::size_t count) {
    std::vector<double> values;
    for (std::size_t j = 0; j < count; ++j) {
        const double tail = 1.0 - (static_cast<double>(j) + 0.5) / static_cast<double>(count);
        double low = 0.0;
        double high = 100.0;
        for (int step = 0; step < 200; ++step) {
            const double x = 0.5 * (low + high);
            (std::exp(-0.5 * x) * (1.0 + 0.5 * x) > tail ? low : high) = x;
        }
        values.push_back(2.0 / low);
    }
    return theory::Spectrum::of_values(values);
}

/// One covariance of every kind, with its expected law at size 20.
std::vector<std::pair<CovarianceSpec, theory::Spectrum>> every_kind(const ScratchFolder& scratch) {
    write_npy(scratch.path("c.npy"), arma::mat{{2, 1}, {1, 2}});
    const auto list = scratch.write("s.csv", "value,weight\n1,0.5\n5,0.3\n0,0.2\n");
    return {
        {{"identity", {}, "", ""}, theory::identity_spectrum()},
        {{"ar1", {{"rho", 0.4}}, "", ""}, theory::toeplitz_ar1_spectrum(0.4, 20)},
        {{"toeplitz", {{"rho", -0.4}}, "", ""}, theory::toeplitz_ar1_spectrum(-0.4, 20)},
        {{"two-atom", {{"low", 0.5}, {"high", 2.5}, {"weight", 0.25}}, "", ""},
         theory::two_atom_spectrum(0.5, 2.5, 0.25)},
        {{"uniform", {{"low", 0.5}, {"high", 1.5}}, "", ""}, theory::uniform_spectrum(0.5, 1.5, 20)},
        {{"exponential", {{"c", 3.0}}, "", ""}, theory::exponential_spectrum(3.0, 20)},
        {{"power", {{"a", 1.5}}, "", ""}, theory::power_spectrum(1.5, 20)},
        {{"wishart", {{"aspect", 0.25}}, "", ""}, theory::wishart_spectrum(AspectRatio(0.25), 20)},
        {{"inverse-chi2", {{"dof", 4.0}}, "", ""}, inverse_chi2_of_four(20)},
        {{"file", {}, list, ""}, theory::Spectrum({{1.0, 0.5}, {5.0, 0.3}, {0.0, 0.2}})},
        {{"sample", {}, scratch.path("c.npy"), ""}, theory::Spectrum({{3.0, 0.5}, {1.0, 0.5}})},
    };
}

TEST(CovarianceSpec, EveryKindHasItsSpectrumOnEveryBasis) {
    const ScratchFolder scratch;
    for (const auto& [kind, law] : every_kind(scratch)) {
        expect_same(covariance_spectrum(kind, 20), law);
        for (const char* basis : {"", "identity", "haar", "toeplitz"}) {
            CovarianceSpec spec = kind;
            spec.basis = basis;
            const Covariance covariance = build(spec, 20);
            expect_same(covariance.spectrum(), law);
            const arma::mat matrix = matrix_of(covariance);
            const arma::vec eigenvalues = arma::sort(arma::eig_sym(matrix), "descend");
            EXPECT_LT(arma::abs(eigenvalues - expand(law, 20)).max(), 1e-13 * law.largest()) << spec.kind << basis;
            const arma::mat q = covariance.basis();
            EXPECT_LT(arma::abs(q.t() * q - arma::mat(20, 20, arma::fill::eye)).max(), 1e-13);
            EXPECT_LT(arma::abs(q * arma::diagmat(covariance.eigenvalues()) * q.t() - matrix).max(),
                      1e-13 * law.largest());
            EXPECT_TRUE(covariance.eigenvalues().is_sorted("descend")) << spec.kind << basis;
        }
    }
}

TEST(CovarianceSpec, OnlyToeplitzKindsAreNotDiagonalByDefault) {
    const ScratchFolder scratch;
    for (const auto& [kind, law] : every_kind(scratch))
        EXPECT_EQ(build(kind, 20).is_diagonal(), covariance_kinds().named(kind.kind).first_column == nullptr)
            << kind.kind;
}

TEST(CovarianceSpec, Ar1IsTheToeplitzMatrixUnlessAnotherBasisIsGiven) {
    arma::mat toeplitz(15, 15);
    for (arma::uword i = 0; i < 15; ++i)
        for (arma::uword j = 0; j < 15; ++j)
            toeplitz(i, j) = std::pow(-0.7, std::abs(static_cast<double>(i) - static_cast<double>(j)));
    for (const char* kind : {"ar1", "toeplitz"}) {
        for (const char* basis : {"", "toeplitz"})
            EXPECT_LT(arma::abs(matrix_of(build({kind, {{"rho", -0.7}}, "", basis}, 15)) - toeplitz).max(), 1e-13);
        const arma::mat diagonal = matrix_of(build({kind, {{"rho", -0.7}}, "", "identity"}, 15));
        EXPECT_LT(arma::abs(diagonal - arma::diagmat(arma::sort(arma::eig_sym(toeplitz), "descend"))).max(), 1e-13);
    }
    EXPECT_LT(
        arma::abs(matrix_of(build({"ar1", {{"rho", 0.0}}, "", ""}, 15)) - arma::mat(15, 15, arma::fill::eye)).max(),
        1e-14);
}

// The cosine of frequency k, computed here from its formula, is an eigenvector, and a smooth spectrum gives a matrix
// that is nearly constant along its diagonals away from the corners.
TEST(CovarianceSpec, OtherKindsOnTheToeplitzBasisHaveCosineEigenvectors) {
    constexpr std::size_t size = 64;
    const Covariance covariance = build({"exponential", {{"c", 3.0}}, "", "toeplitz"}, size);
    const arma::mat matrix = matrix_of(covariance);
    for (const std::size_t k : {0, 1, 5, 63}) {
        arma::vec wave(size);
        for (std::size_t t = 0; t < size; ++t)
            wave(t) = std::cos(std::numbers::pi * static_cast<double>(k) * (static_cast<double>(t) + 0.5) / size);
        const double eigenvalue = std::exp(-3.0 * (static_cast<double>(k) + 0.5) / size);
        EXPECT_LT(arma::abs(matrix * wave - eigenvalue * wave).max(), 1e-13) << k;
    }
    const arma::vec middle = arma::vec(matrix.diag()).subvec(16, 47);
    EXPECT_LT(middle.max() - middle.min(), 0.01 * middle.max());
    EXPECT_GT(matrix(31, 32), 0.1 * matrix(31, 31));  // neighbours are correlated
}

TEST(CovarianceSpec, TheHaarBasisDependsOnSeedCellAndSide) {
    const CovarianceSpec spec{"power", {{"a", 1.0}}, "", "haar"};
    const arma::mat basis = build(spec, 12).basis();
    EXPECT_EQ(arma::abs(build(spec, 12).basis() - basis).max(), 0.0);
    EXPECT_GT(arma::abs(build(spec, 12, MatrixSide::column).basis() - basis).max(), 0.1);
    EXPECT_GT(arma::abs(build(spec, 12, MatrixSide::row, "other").basis() - basis).max(), 0.1);
    const auto other_seed = stream::StudySeed::parse("0x1");
    EXPECT_GT(arma::abs(build_covariance(spec, 12, MatrixSide::row, other_seed, "cell").basis() - basis).max(), 0.1);
}

TEST(CovarianceSpec, Ar1AndExponentialEqualTheirFactoryFunctions) {
    EXPECT_EQ(
        arma::abs(matrix_of(build({"ar1", {{"rho", 0.4}}, "", ""}, 16)) - matrix_of(Covariance::ar1(0.4, 16))).max(),
        0.0);
    for (const double decay : {2.0, -2.0})
        EXPECT_EQ(arma::abs(matrix_of(build({"exponential", {{"c", decay}}, "", ""}, 16)) -
                            matrix_of(Covariance::exponential(decay, 16)))
                      .max(),
                  0.0);
}

TEST(CovarianceSpec, SamplesAndListsOfAnotherSizeAreThinnedEvenly) {
    const ScratchFolder scratch;
    arma::vec values(128);
    for (arma::uword i = 0; i < 128; ++i) values(i) = static_cast<double>(128 - i);
    write_npy(scratch.path("c.npy"), arma::mat(arma::diagmat(values)));
    const CovarianceSpec spec{"sample", {}, scratch.path("c.npy"), ""};
    EXPECT_LT(arma::abs(build(spec, 128).eigenvalues() - values).max(), 1e-11);
    const arma::vec half = build(spec, 64).eigenvalues();
    for (arma::uword i = 0; i < 64; ++i) EXPECT_NEAR(half(i), values(2 * i), 1e-11);
}

TEST(CovarianceSpec, EveryKindIsTestedHere) {
    const ScratchFolder scratch;
    std::set<std::string> tested;
    for (const auto& [spec, law] : every_kind(scratch)) tested.insert(spec.kind);
    for (const auto& kind : covariance_kinds())
        EXPECT_TRUE(tested.contains(kind.entry.name)) << kind.entry.name << ": add its law to every_kind";
}

TEST(CovarianceSpec, SpecAndTableOfAKindMeanTheSameLaw) {
    // At the size of the matrix, SPEC and table have the same law, except ar1, whose SPEC means the limit.
    const ScratchFolder scratch;
    for (const auto& [spec, law] : every_kind(scratch)) {
        const CovarianceKind& kind = covariance_kinds().named(spec.kind);
        std::string text = spec.kind;
        for (const auto& parameter : kind.parameters())
            text += fmt::format("{}{}", text == spec.kind ? ":" : ",", spec.parameters.at(parameter));
        if (kind.reads_file()) text += ":" + spec.path;
        if (kind.size() != nullptr) text += ":20";
        expect_same(parse_spectrum(text), kind.symbol == nullptr ? law : theory::ar1_symbol_spectrum(0.4, 20));
        EXPECT_TRUE(kind.spec_form().starts_with(spec.kind)) << kind.spec_form();
    }
}

TEST(CovarianceMatrix, IsReadFromAFileOfAnyFormat) {
    const ScratchFolder scratch;
    const arma::mat expected = {{2, 1}, {1, 2}};
    write_npy(scratch.path("c.npy"), expected);
    const auto csv = scratch.write("c.csv", "2,1\n1,2\n");
    for (const auto& spec : {scratch.path("c.npy"), "sample:" + scratch.path("c.npy"), "sample:" + csv})
        EXPECT_EQ(arma::abs(covariance_matrix(spec, 2) - expected).max(), 0.0) << spec;
    expect_error(ErrorKind::input, [&] { (void)covariance_matrix("sample:" + csv, 3); },
                 {"2 x 2 is not a covariance of 3 coordinates"});
}

TEST(CovarianceSpecBadInput, EveryErrorIsNamed) {
    const auto fails = [](const CovarianceSpec& spec, std::initializer_list<std::string_view> parts) {
        expect_error(
            ErrorKind::usage, [&] { (void)covariance_spectrum(spec, 16); }, parts);
        expect_error(
            ErrorKind::usage, [&] { (void)build(spec, 16); }, parts);
    };
    fails({"ar2", {{"rho", 0.4}}, "", ""}, {"unknown covariance kind \"ar2\"", "did you mean \"ar1\"?"});
    fails({"ar1", {{"rho", 0.4}}, "", "har"}, {"unknown basis \"har\"", "did you mean \"haar\"?"});
    fails({"ar1", {{"rho", 0.4}}, "", "orthogonal"}, {"unknown basis \"orthogonal\"", "did you mean \"haar\"?"});
    fails({"ar1", {}, "", ""}, {"\"ar1\" lacks its parameter \"rho\"", "write { kind = \"ar1\", rho = .. }"});
    fails({"ar1", {{"rho", 0.4}, {"c", 1.0}}, "", ""}, {"\"ar1\" has no parameter \"c\""});
    fails({"identity", {{"rho", 0.4}}, "", ""},
          {"\"identity\" has no parameter \"rho\"", "write { kind = \"identity\" }"});
    fails({"ar1", {{"rho", 1.5}}, "", ""}, {"covariance \"ar1\": rho 1.5 is not possible", "above -1 and below 1"});
    fails({"ar1", {{"rho", std::nan("")}}, "", ""}, {"rho = nan is not a finite number"});
    fails({"two-atom", {{"low", 1.0}, {"high", 2.0}, {"weight", 1.0}}, "", ""}, {"weight 1"});
    fails({"two-atom", {{"low", 1.0}, {"high", 2.0}, {"weight", 0.01}}, "", ""},
          {"\"two-atom\": at size 16 one of its atoms has no eigenvalue", "below 0.0312"});
    fails({"uniform", {{"low", 2.0}, {"high", 1.0}}, "", ""}, {"2", "1"});
    fails({"wishart", {{"aspect", -1.0}}, "", ""}, {"-1"});
    fails({"inverse-chi2", {{"dof", 2.0}}, "", ""}, {"dof 2 is not possible", "above 2"});
    fails({"file", {}, "", ""}, {"\"file\" names no file", "path = \"..\""});
    fails({"ar1", {{"rho", 0.1}}, "x.csv", ""}, {"\"ar1\" reads no file", "x.csv"});
    const ScratchFolder scratch;
    expect_error(ErrorKind::input,
                 [&] {
                     (void)build({"sample", {}, scratch.path("none.npy"), ""}, 16);
                 },
                 {"none.npy: no such file"});
}

}  // namespace
}  // namespace spiked::sim
