#include "sim/spiked/spectrum_spec.hpp"

#include <cmath>
#include <random>
#include <span>
#include <string>
#include <utility>

#include "core/files/tests/scratch.hpp"
#include "sim/io/dtype.hpp"
#include "sim/io/npy.hpp"

namespace spiked::sim {
namespace {

void expect_same(const theory::Spectrum& found, const theory::Spectrum& expected) {
    ASSERT_EQ(found.atoms().size(), expected.atoms().size());
    for (std::size_t i = 0; i < found.atoms().size(); ++i) {
        EXPECT_EQ(found.atoms()[i].value, expected.atoms()[i].value);
        EXPECT_EQ(found.atoms()[i].weight, expected.atoms()[i].weight);
    }
}

TEST(SpectrumSpec, EveryKindReachesItsBuilder) {
    expect_same(parse_spectrum("identity"), theory::identity_spectrum());
    expect_same(parse_spectrum("ar1:0.4"), theory::ar1_symbol_spectrum(0.4, 64));
    expect_same(parse_spectrum("ar1:-0.4:10"), theory::ar1_symbol_spectrum(-0.4, 10));
    expect_same(parse_spectrum("toeplitz:0.4:12"), theory::toeplitz_ar1_spectrum(0.4, 12));
    expect_same(parse_spectrum("two-atom:1,5,0.25"), theory::two_atom_spectrum(1.0, 5.0, 0.25));
    expect_same(parse_spectrum("uniform:1,3"), theory::uniform_spectrum(1.0, 3.0, 64));
    expect_same(parse_spectrum("uniform:1,3:8"), theory::uniform_spectrum(1.0, 3.0, 8));
    expect_same(parse_spectrum("exponential:2"), theory::exponential_spectrum(2.0, 64));
    expect_same(parse_spectrum("power:0.5:100"), theory::power_spectrum(0.5, 100));
    expect_same(parse_spectrum("wishart:0.25:16"), theory::wishart_spectrum(AspectRatio(0.25), 16));
}

TEST(SpectrumSpec, SampleAndFile) {
    const ScratchFolder scratch;
    write_npy(scratch.path("c.npy"), arma::mat{{2, 1}, {1, 2}});
    const auto sample = parse_spectrum("sample:" + scratch.path("c.npy"));
    ASSERT_EQ(sample.atoms().size(), 2U);
    EXPECT_NEAR(sample.atoms()[0].value, 3.0, 1e-14);
    EXPECT_NEAR(sample.atoms()[1].value, 1.0, 1e-14);
    const auto listed = parse_spectrum("file:" + scratch.write("s.csv", "value,weight\n1,0.75\n5,0.25\n"));
    expect_same(listed, theory::two_atom_spectrum(1.0, 5.0, 0.25));
}

TEST(SpectrumSpecBadInput, IllegalTexts) {
    const auto fails = [](const std::string& spec, std::initializer_list<std::string_view> parts) {
        expect_error(
            ErrorKind::usage, [&] { (void)parse_spectrum(spec); }, parts);
    };
    fails("idenity", {"unknown spectrum \"idenity\"", "did you mean \"identity\"?"});
    fails("", {"unknown spectrum \"\""});
    fails("identity:3", {"\"identity:3\"", "write identity"});
    fails("ar1", {"write ar1:RHO[:N]"});
    fails("ar1:", {"\"\" is not a number"});
    fails("ar1:x", {"\"x\" is not a number", "ar1:RHO[:N]"});
    fails("ar1:0.4:0", {"N is \"0\"", "from 1 to"});
    fails("ar1:0.4:1e3", {"N is \"1e3\""});
    fails("ar1:0.4:99999999999", {"N is \"99999999999\""});
    fails("ar1:0.4:8:8", {"write ar1:RHO[:N]"});
    fails("ar1:0.4,0.5", {"write ar1:RHO[:N]"});
    fails("toeplitz:0.4", {"write toeplitz:RHO:N"});
    fails("two-atom:1,2", {"write two-atom:LOW,HIGH,WEIGHT"});
    fails("two-atom:1,2,0.5:64", {"write two-atom:LOW,HIGH,WEIGHT"});
    fails("sample", {"names no file", "sample:PATH"});
    fails("file:", {"names no file"});
    fails("s.csv", {"is a file name only", "write file:s.csv"});
    fails("c.npy", {"is a file name only", "write sample:c.npy"});
    fails("ar1:1.5", {"spectrum \"ar1:1.5\": rho 1.5 is not possible"});
    fails("wishart:-1", {"aspect -1 is not possible"});
    fails("two-atom:1,2,1", {"weight 1 is not possible"});
    fails("two-atom:-1,2,0.5", {"low -1 is not possible"});
    fails("inverse-chi2:1", {"dof 1 is not possible"});
}

TEST(SpectrumSpecBadInput, IllegalFiles) {
    const ScratchFolder scratch;
    const auto sample = [&](const arma::mat& matrix, std::initializer_list<std::string_view> parts) {
        write_npy(scratch.path("c.npy"), matrix);
        expect_error(
            ErrorKind::input, [&] { (void)parse_spectrum("sample:" + scratch.path("c.npy")); }, parts);
    };
    sample(arma::mat(2, 3, arma::fill::ones), {"c.npy", "2 x 3 is not square"});
    sample(arma::mat{{1, 2}, {3, 1}}, {"c.npy", "not symmetric", "row 0, column 1", "holds 2", "mirror 3"});
    sample(arma::mat{{1, 0}, {0, -1}}, {"c.npy", "smallest eigenvalue -1 is negative"});
    const auto list = [&](const std::string& text, std::initializer_list<std::string_view> parts) {
        const auto path = scratch.write("s.csv", text);
        expect_error(
            ErrorKind::input, [&] { (void)parse_spectrum("file:" + path); }, parts);
    };
    list("1,2,3\n", {"s.csv", "3 columns"});
    list("1,0.5\n2,0.25\n", {"s.csv: weights of the spectrum sum to 0.75"});
    list("0,1\n", {"s.csv: all-zero spectrum"});
    list("-1,1\n", {"s.csv:1:1: value -1"});
    expect_error(ErrorKind::input, [&] { (void)parse_spectrum("sample:" + scratch.path("none.npy")); },
                 {"none.npy: no such file"});
}

TEST(SpectrumSpec, RoundingErrorsOfACovarianceAreAccepted) {
    const ScratchFolder scratch;
    // The matrix has rank one: the other eigenvalues are 0 up to rounding, and some are negative.
    arma::vec v(20);
    for (std::size_t i = 0; i < v.n_elem; ++i) v[i] = std::sin(static_cast<double>(i + 1));
    write_npy(scratch.path("c.npy"), v * v.t());
    const auto spectrum = parse_spectrum("sample:" + scratch.path("c.npy"));
    EXPECT_NEAR(spectrum.largest(), arma::dot(v, v), 1e-12);
}

TEST(SpectrumSpecBadInput, IllegalAtomsAreNamedByLineAndColumn) {
    const ScratchFolder scratch;
    const auto list = [&](const std::string& text, std::initializer_list<std::string_view> parts) {
        const auto path = scratch.write("s.csv", "# value,weight\n\nvalue,weight\n1,0.5\n\n" + text);
        expect_error(
            ErrorKind::input, [&] { (void)parse_spectrum("file:" + path); }, parts);
    };
    list("-2,0.5\n", {"s.csv:6:1: value -2"});
    list("# again\n  -2, 0.5\n", {"s.csv:7:3: value -2"});
    list("nan,0.5\n", {"s.csv:6:1: value nan"});
    list("inf,0.5\n", {"s.csv:6:1: value inf"});
    list("2,0\n", {"s.csv:6:3: weight 0 "});
    list("2, -0.5\n", {"s.csv:6:4: weight -0.5"});
    list("2,nan\n", {"s.csv:6:3: weight nan"});
    list("2,inf\n", {"s.csv:6:3: weight inf"});
}

TEST(SpectrumSpec, AFileOfAtomsIsCsvWhateverItsSuffix) {
    const ScratchFolder scratch;
    for (const auto* name : {"atoms", "a.txt", "a.npy", "a.csv:b"})
        expect_same(parse_spectrum("file:" + scratch.write(name, "1,0.75\n5,0.25\n")),
                    theory::two_atom_spectrum(1.0, 5.0, 0.25));
    expect_error(ErrorKind::input, [&] { (void)parse_spectrum("file:" + scratch.path("none.csv")); },
                 {"none.csv: no such file"});
}

/// X^T X / n of n rows of standard normal entries.
arma::mat sample_covariance(arma::uword n, arma::uword d) {
    std::mt19937_64 engine(7);
    std::normal_distribution<double> normal;
    arma::mat rows(n, d);
    rows.imbue([&] { return normal(engine); });
    return rows.t() * rows / static_cast<double>(n);
}

void expect_half_zeros(const theory::Spectrum& spectrum) {
    ASSERT_EQ(spectrum.atoms().size(), 51U);
    EXPECT_EQ(spectrum.atoms().back().value, 0.0);
    EXPECT_NEAR(spectrum.atoms().back().weight, 0.5, 1e-14);
    EXPECT_GT(spectrum.atoms()[49].value, 0.01);
}

TEST(SpectrumSpec, FewerSamplesThanVariablesLeaveExactZeros) {
    const ScratchFolder scratch;
    const arma::mat covariance = sample_covariance(50, 100);
    write_npy(scratch.path("c.npy"), covariance);
    expect_half_zeros(parse_spectrum("sample:" + scratch.path("c.npy")));

    for (const auto& [descr, dtype] : {std::pair("<f4", DType::f32), std::pair("<f2", DType::f16)}) {
        std::string data(covariance.n_elem * dtype_bits(dtype) / 8, '\0');
        ASSERT_FALSE(encode({covariance.memptr(), covariance.n_elem}, dtype, std::as_writable_bytes(std::span(data))));
        const auto header = std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (100, 100), }\n";
        expect_half_zeros(parse_spectrum("sample:" + scratch.write("n.npy", npy_bytes(header, data))));
    }
}

TEST(SpectrumSpec, SmallEigenvaluesAboveRoundingAreKept) {
    const ScratchFolder scratch;
    write_npy(scratch.path("c.npy"), arma::mat{{1.0, 0.0}, {0.0, 1e-14}});
    EXPECT_EQ(parse_spectrum("sample:" + scratch.path("c.npy")).atoms().back().value, 1e-14);
    write_npy(scratch.path("c.npy"), arma::mat{{1.0, 0.0}, {0.0, 1e-16}});
    EXPECT_EQ(parse_spectrum("sample:" + scratch.path("c.npy")).atoms().back().value, 0.0);
}

TEST(SpectrumSpecBadInput, AnAllZeroSampleNamesItsFile) {
    const ScratchFolder scratch;
    write_npy(scratch.path("c.npy"), arma::mat(3, 3, arma::fill::zeros));
    expect_error(ErrorKind::input, [&] { (void)parse_spectrum("sample:" + scratch.path("c.npy")); },
                 {"c.npy: all-zero covariance"});
}

}  // namespace
}  // namespace spiked::sim
