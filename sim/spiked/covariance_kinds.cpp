#include "sim/spiked/covariance_kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "core/files/byte_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "sim/io/csv.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/npy.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::sim {
namespace {

using theory::Spectrum;
using Numbers = CovarianceKind::Numbers;
using Size = CovarianceKind::Size;

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
                    "{}: not symmetric (row {}, column {}, counted from 0, holds {}, its mirror {}): "
                    "give a covariance matrix",
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
    const arma::mat table = read_csv(path, reject_number);
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

std::vector<CovarianceKind> make_table() {
    const char* const kms = "Kac, Murdock & Szego 1953";
    return {
        {.name = "identity",
         .summary = "white: all eigenvalues 1",
         .law = [](const Numbers&, std::size_t) { return theory::identity_spectrum(); }},
        {.name = "ar1",
         .parameters = {"rho"},
         .size = Size::optional,
         .summary = "the matrix rho^|i-j|; as a SPEC the symbol of the AR(1) process at N points",
         .source = kms,
         .law = toeplitz_law,
         .symbol = [](const Numbers& v, std::size_t n) { return theory::ar1_symbol_spectrum(v[0], n); },
         .first_column = powers},
        {.name = "toeplitz",
         .parameters = {"rho"},
         .size = Size::required,
         .summary = "the matrix rho^|i-j|; as a SPEC its exact eigenvalues",
         .source = kms,
         .law = toeplitz_law,
         .first_column = powers},
        {.name = "two-atom",
         .parameters = {"low", "high", "weight"},
         .summary = "high on a fraction `weight` of the coordinates, low on the others",
         .law = [](const Numbers& v, std::size_t) { return theory::two_atom_spectrum(v[0], v[1], v[2]); }},
        {.name = "uniform",
         .parameters = {"low", "high"},
         .size = Size::optional,
         .summary = "midpoints of [low, high]",
         .law = [](const Numbers& v, std::size_t n) { return theory::uniform_spectrum(v[0], v[1], n); }},
        {.name = "exponential",
         .parameters = {"c"},
         .size = Size::optional,
         .summary = "exp(-c (j - 1/2) / N)",
         .law = [](const Numbers& v, std::size_t n) { return theory::exponential_spectrum(v[0], n); }},
        {.name = "power",
         .parameters = {"a"},
         .size = Size::optional,
         .summary = "j^-a, j = 1..N",
         .law = [](const Numbers& v, std::size_t n) { return theory::power_spectrum(v[0], n); }},
        {.name = "wishart",
         .parameters = {"aspect"},
         .size = Size::optional,
         .summary = "Marchenko-Pastur quantiles at midpoints",
         .source = "Marchenko & Pastur 1967",
         .law = [](const Numbers& v, std::size_t n) { return theory::wishart_spectrum(AspectRatio(v[0]), n); }},
        {.name = "file", .summary = "a csv file with lines value,weight", .read = from_list},
        {.name = "sample", .summary = "eigenvalues of the covariance matrix in a file", .read = from_sample},
    };
}

}  // namespace

const std::vector<CovarianceKind>& covariance_kinds() {
    static const std::vector<CovarianceKind> table = make_table();
    return table;
}

const CovarianceKind& covariance_kind(const std::string& name, std::string_view what) {
    std::vector<std::string> names;
    for (const auto& kind : covariance_kinds()) {
        if (kind.name == name) return kind;
        names.push_back(kind.name);
    }
    throw usage_error("unknown {} \"{}\"{}", what, name, suggestion(name, names));
}

std::string CovarianceKind::spec_form() const {
    if (reads_file()) return name + ":PATH";
    std::string text = fmt::format("{}{}{}", name, parameters.empty() ? "" : ":", fmt::join(parameters, ","));
    std::transform(text.begin() + static_cast<std::ptrdiff_t>(name.size()), text.end(),
                   text.begin() + static_cast<std::ptrdiff_t>(name.size()),
                   [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
    return text + (size == Size::none ? "" : size == Size::optional ? "[:N]" : ":N");
}

std::string CovarianceKind::table_form() const {
    std::string text = fmt::format("{{ kind = \"{}\"", name);
    for (const auto& parameter : parameters) text += fmt::format(", {} = ..", parameter);
    if (reads_file()) text += ", path = \"..\"";
    return text + " }";
}

}  // namespace spiked::sim
