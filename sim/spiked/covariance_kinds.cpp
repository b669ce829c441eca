#include "sim/spiked/covariance_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "core/files/byte_file.hpp"
#include "core/runtime/error.hpp"
#include "sim/io/file_formats.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/npy.hpp"
#include "sim/io/table.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::sim {
namespace {

using theory::Spectrum;
using Numbers = CovarianceKind::Numbers;

/// An eigenvalue below this fraction of the largest one is rounding error: of the arithmetic that computed the matrix
/// (assumed double, or float for a float32 file), or of the stored entries where they are fp16 values.
double rounding_fraction(const std::string& path, std::size_t size) {
    const auto count = static_cast<double>(size);
    std::optional<DType> dtype;
    if (has_suffix(path, ".npy")) dtype = read_npy_header(source_of(ByteFile(path))).dtype;
    if (dtype == DType::f32) return count * std::numeric_limits<float>::epsilon();
    if (dtype == DType::f16) return std::sqrt(count) * 0x1p-10;
    return count * std::numeric_limits<double>::epsilon();
}

Spectrum from_sample(const std::string& path) {
    const arma::mat matrix = read_matrix(path);
    if (matrix.n_rows != matrix.n_cols)
        throw input_error("{}: {} x {} is not square (a covariance matrix is needed): save X.T @ X / n, not X", path,
                          matrix.n_rows, matrix.n_cols);
    const double scale = arma::abs(matrix).max();
    constexpr double symmetric_to = 1e-6;  // a float32 file is symmetric only up to rounding
    for (std::size_t j = 0; j < matrix.n_cols; ++j)
        for (std::size_t i = 0; i < j; ++i)
            if (std::abs(matrix(i, j) - matrix(j, i)) > symmetric_to * scale)
                throw input_error(
                    "{}: not symmetric (row {}, column {}, counted from 0, holds {}, its mirror {}): give a covariance "
                    "matrix",
                    path, i, j, matrix(i, j), matrix(j, i));
    arma::vec values;
    if (!arma::eig_sym(values, 0.5 * (matrix + matrix.t())))
        throw input_error("{}: its eigenvalues cannot be computed (LAPACK did not converge): check the matrix", path);
    const double zero_below = rounding_fraction(path, values.n_elem) * values.max();
    const double rounding = std::max(symmetric_to * scale, zero_below);
    if (values.min() < -rounding)
        throw input_error("{}: smallest eigenvalue {} is negative (a covariance has none): give a covariance matrix",
                          path, values.min());
    // Without this, a zero that rounding made positive would become an atom far below the bulk.
    values.transform([&](double value) { return value > zero_below ? value : 0.0; });
    if (values.max() <= 0.0)
        throw input_error("{}: all-zero covariance (noise without variance has no edge): give a sample that varies",
                          path);
    return Spectrum::of_values({values.memptr(), values.n_elem});
}

/// Why `number` is not legal in that column of value,weight; empty where it is.
std::string reject_number(std::size_t column, double number) {
    if (column == 0 && !(number >= 0.0 && std::isfinite(number)))
        return fmt::format(
            "value {} (eigenvalues of a covariance are finite and not negative): correct the first number", number);
    if (column == 1 && !(number > 0.0 && std::isfinite(number)))
        return fmt::format("weight {} (weights are positive and finite): correct it or leave the line out", number);
    return "";
}

Spectrum from_list(const std::string& path) {
    const arma::mat table = read_table(path, {.dialect = {}, .counts = false, .check = reject_number}).matrix;
    if (table.n_cols != 2)
        throw input_error("{}: {} columns (value,weight are needed): write two numbers on each line", path,
                          table.n_cols);
    std::vector<theory::Atom> atoms;
    for (std::size_t i = 0; i < table.n_rows; ++i) atoms.push_back({table(i, 0), table(i, 1)});
    try {
        return Spectrum(std::move(atoms));
    } catch (const Error& error) {
        throw input_error("{}: {}", path, error.what());
    }
}

Spectrum toeplitz_law(const Numbers& v, std::size_t n) { return theory::toeplitz_ar1_spectrum(v[0], n); }

arma::vec powers(const Numbers& v, std::size_t n) {
    arma::vec column(n);
    for (std::size_t i = 0; i < n; ++i) column[i] = std::pow(v[0], static_cast<double>(i));
    return column;
}

/// The mixing variances (v - 2) / chi^2_v of a multivariate t with v degrees of freedom, whose mean is 1.
Spectrum inverse_chi2_law(const Numbers& v, std::size_t n) {
    const double degrees = v[0];
    const boost::math::chi_squared law(degrees);
    std::vector<double> values;
    for (std::size_t j = 0; j < n; ++j)
        values.push_back((degrees - 2.0) /
                         boost::math::quantile(law, (static_cast<double>(j) + 0.5) / static_cast<double>(n)));
    return Spectrum::of_values(values);
}

const NumberRange correlations{.above = -1.0, .below = 1.0};
const NumberRange from_zero{.least = 0.0};

std::vector<OptionSpec> correlation() { return {{"rho", number("RHO", correlations), "correlation of neighbours"}}; }

OptionSpec path_of(std::string help) { return {"path", any_text("PATH"), std::move(help)}; }

/// The number of eigenvalues in a SPEC; a matrix has its own.
OptionSpec spec_size(std::string fallback) {
    constexpr std::int64_t most_atoms = 1 << 20;
    return {"N", whole("N", 1, most_atoms), "number of eigenvalues; in a study, that of the matrix",
            std::move(fallback)};
}

/// The options with N behind them.
std::vector<OptionSpec> sized(std::vector<OptionSpec> options, const std::string& fallback = "64") {
    options.push_back(spec_size(fallback));
    return options;
}

std::vector<CovarianceKind> make_table() {
    const char* const kms = "Kac, Murdock & Szego 1953";
    return {
        {.entry = {"identity", "white noise: all eigenvalues are 1"},
         .law = [](const Numbers&, std::size_t) { return theory::identity_spectrum(); },
         .white = true},
        {.entry = {"ar1", "the matrix rho^|i-j|; as a SPEC the symbol of the AR(1) process at N points",
                   sized(correlation()), kms},
         .law = toeplitz_law,
         .symbol = [](const Numbers& v, std::size_t n) { return theory::ar1_symbol_spectrum(v[0], n); },
         .first_column = powers},
        {.entry = {"toeplitz", "the matrix rho^|i-j|; as a SPEC its exact eigenvalues", sized(correlation(), ""), kms},
         .law = toeplitz_law,
         .first_column = powers},
        {.entry = {"two-atom",
                   "eigenvalue high with weight `weight`, low with the rest",
                   {{"low", number("LOW", from_zero), "eigenvalue"},
                    {"high", number("HIGH", from_zero), "eigenvalue"},
                    {"weight", number("WEIGHT", {.above = 0.0, .below = 1.0}), "fraction of the eigenvalues"}}},
         .law = [](const Numbers& v, std::size_t) { return theory::two_atom_spectrum(v[0], v[1], v[2]); }},
        {.entry = {"uniform", "N equally spaced eigenvalues in [low, high]",
                   sized({{"low", number("LOW", from_zero), "smallest eigenvalue"},
                          {"high", number("HIGH", from_zero), "largest eigenvalue"}})},
         .law = [](const Numbers& v, std::size_t n) { return theory::uniform_spectrum(v[0], v[1], n); }},
        {.entry = {"exponential", "eigenvalues exp(-c (j - 1/2) / N), j = 1..N", sized({{"c", number("C"), "decay"}})},
         .law = [](const Numbers& v, std::size_t n) { return theory::exponential_spectrum(v[0], n); },
         .diagonal = [](const Numbers& v, std::size_t n) { return Covariance::exponential(v[0], n); }},
        {.entry = {"power", "eigenvalues j^-a, j = 1..N", sized({{"a", number("A"), "exponent"}})},
         .law = [](const Numbers& v, std::size_t n) { return theory::power_spectrum(v[0], n); }},
        {.entry = {"wishart", "eigenvalues at quantiles of the Marchenko-Pastur law",
                   sized({{"aspect", number("ASPECT", {.least = 1e-9, .most = 1e9}), "rows over columns"}}),
                   "Marchenko & Pastur 1967"},
         .law = [](const Numbers& v, std::size_t n) { return theory::wishart_spectrum(AspectRatio(v[0]), n); }},
        {.entry =
             {"inverse-chi2",
              "eigenvalues at quantiles of (dof - 2) / chi-squared: of the rows of Gaussian entries, they make each "
              "row a multivariate t (elliptical noise)",
              sized({{"dof", number("DOF", {.above = 2.0, .most = 1e6}), "degrees of freedom"}})},
         .law = inverse_chi2_law},
        {.entry = {"file", "a csv file with lines value,weight", {path_of("eigenvalues with weights")}},
         .read = from_list},
        {.entry = {"sample", "eigenvalues of the covariance matrix in a file", {path_of("a symmetric matrix")}},
         .read = from_sample,
         .holds_matrix = true},
    };
}

}  // namespace

const Registry<CovarianceKind>& covariance_kinds() {
    static const Registry<CovarianceKind> table("covariance kind", make_table());
    return table;
}

std::vector<std::string> CovarianceKind::parameters() const {
    std::vector<std::string> names;
    for (const auto& option : entry.options)
        if (option.value.kind == ValueSpec::Kind::number) names.push_back(option.key);
    return names;
}

void CovarianceKind::require_in_range(const Numbers& numbers, const std::string& place) const {
    std::size_t next = 0;
    for (const auto& option : entry.options)
        if (option.value.kind == ValueSpec::Kind::number)
            require_accepted(option, fmt::format("{}", numbers.at(next++)), place);
}

const OptionSpec* CovarianceKind::size() const {
    const auto found = std::find_if(entry.options.begin(), entry.options.end(), [](const OptionSpec& option) {
        return option.value.kind == ValueSpec::Kind::whole;
    });
    return found == entry.options.end() ? nullptr : &*found;
}

std::string CovarianceKind::spec_form() const {
    std::string text = entry.name;
    const char* separator = ":";
    for (const auto& option : entry.options) {
        const std::string& shown = option.value.shown;
        if (&option == size())
            text += option.fallback.empty() ? ":" + shown : "[:" + shown + "]";
        else
            text += std::exchange(separator, ",") + shown;
    }
    return text;
}

std::string CovarianceKind::table_form() const {
    std::string text = fmt::format("{{ kind = \"{}\"", entry.name);
    for (const auto& parameter : parameters()) text += fmt::format(", {} = ..", parameter);
    if (reads_file()) text += ", path = \"..\"";
    return text + " }";
}

}  // namespace spiked::sim
