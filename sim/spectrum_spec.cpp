#include "sim/spectrum_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <armadillo>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/byte_file.hpp"
#include "sim/csv.hpp"
#include "sim/matrix_file.hpp"
#include "sim/npy.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"
#include "theory/base/quantities.hpp"

namespace spiked::sim {
namespace {

using theory::Spectrum;

constexpr std::size_t default_count = 64;
constexpr std::size_t most_atoms = 1 << 20;

enum class Count { none, optional, required };

struct Kind {
    std::string_view name;
    std::size_t numbers;  ///< comma-separated, before the count
    Count count;
    std::string_view usage;
    Spectrum (*build)(const std::vector<double>& numbers, std::size_t count);
};

const std::array kinds{
    Kind{"identity", 0, Count::none, "identity",
         [](const std::vector<double>&, std::size_t) { return theory::identity_spectrum(); }},
    Kind{"ar1", 1, Count::optional, "ar1:RHO[:N]",
         [](const std::vector<double>& v, std::size_t n) { return theory::ar1_symbol_spectrum(v[0], n); }},
    Kind{"toeplitz", 1, Count::required, "toeplitz:RHO:N",
         [](const std::vector<double>& v, std::size_t n) { return theory::toeplitz_ar1_spectrum(v[0], n); }},
    Kind{"two-atom", 3, Count::none, "two-atom:LO,HI,WEIGHT_HI",
         [](const std::vector<double>& v, std::size_t) { return theory::two_atom_spectrum(v[0], v[1], v[2]); }},
    Kind{"uniform", 2, Count::optional, "uniform:LO,HI[:N]",
         [](const std::vector<double>& v, std::size_t n) { return theory::uniform_spectrum(v[0], v[1], n); }},
    Kind{"exponential", 1, Count::optional, "exponential:C[:N]",
         [](const std::vector<double>& v, std::size_t n) { return theory::exponential_spectrum(v[0], n); }},
    Kind{"power", 1, Count::optional, "power:A[:N]",
         [](const std::vector<double>& v, std::size_t n) { return theory::power_spectrum(v[0], n); }},
    Kind{"wishart", 1, Count::optional, "wishart:ASPECT[:N]",
         [](const std::vector<double>& v, std::size_t n) { return theory::wishart_spectrum(AspectRatio(v[0]), n); }},
};

Error wrong_words(const std::string& spec, const Kind& kind) {
    return usage_error("spectrum \"{}\" is malformed (its parts do not fit): write {}", spec, kind.usage);
}

Spectrum from_numbers(const std::string& spec, const Kind& kind, const std::vector<std::string>& parts) {
    std::size_t next = 1;
    std::vector<double> numbers;
    if (kind.numbers > 0) {
        if (parts.size() <= next) throw wrong_words(spec, kind);
        for (const auto& word : split(parts[next++], ',')) {
            const auto value = to_number(word);
            if (!value) throw usage_error("spectrum \"{}\": \"{}\" is not a number: write {}", spec, word, kind.usage);
            numbers.push_back(*value);
        }
        if (numbers.size() != kind.numbers) throw wrong_words(spec, kind);
    }
    std::size_t count = default_count;
    if (kind.count != Count::none && parts.size() > next) {
        const auto value = to_integer(parts[next++]);
        if (!value || *value < 1 || *value > static_cast<std::int64_t>(most_atoms))
            throw usage_error("spectrum \"{}\": N is \"{}\" (a whole number from 1 to {} is needed): write {}", spec,
                              parts[next - 1], most_atoms, kind.usage);
        count = static_cast<std::size_t>(*value);
    } else if (kind.count == Count::required) {
        throw wrong_words(spec, kind);
    }
    if (parts.size() != next) throw wrong_words(spec, kind);
    return kind.build(numbers, count);
}

/// Share of the largest eigenvalue below which one is rounding: of the arithmetic that made the matrix, in double
/// unless the file holds less, and of the entries when they were stored as halves.
double rounding_share(const std::string& path, std::size_t size) {
    const auto count = static_cast<double>(size);
    std::optional<DType> dtype;
    if (path.ends_with(".npy")) dtype = read_npy_header(source_of(ByteFile(path))).dtype;
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
    constexpr double symmetric_to = 1e-6;  // float32 files are symmetric only to their rounding
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
    const double zero_below = rounding_share(path, values.n_elem) * values.max();
    const double rounding = std::max(symmetric_to * scale, zero_below);
    if (values.min() < -rounding)
        throw input_error("{}: smallest eigenvalue {} is negative (a covariance has none): give a covariance matrix",
                          path, values.min());
    // A zero that stayed positive by rounding would be an atom far below the bulk.
    values.transform([&](double value) { return value > zero_below ? value : 0.0; });
    if (values.max() <= 0.0)
        throw input_error("{}: all-zero covariance (noise without variance has no edge): give a sample that varies",
                          path);
    return Spectrum::of_values({values.memptr(), values.n_elem});
}

std::string wrong_cell(std::size_t cell, double number) {
    if (cell == 0 && !(number >= 0.0 && std::isfinite(number)))
        return fmt::format(
            "value {} (eigenvalues of a covariance are finite and not negative): correct the first number", number);
    if (cell == 1 && !(number > 0.0 && std::isfinite(number)))
        return fmt::format("weight {} (weights are positive and finite): correct it or leave the line out", number);
    return "";
}

Spectrum from_list(const std::string& path) {
    const arma::mat table = read_csv(path, wrong_cell);
    if (table.n_cols != 2)
        throw input_error("{}: {} columns (value,weight are needed): write two numbers a line", path, table.n_cols);
    std::vector<theory::Atom> atoms;
    for (std::size_t i = 0; i < table.n_rows; ++i) atoms.push_back({table(i, 0), table(i, 1)});
    try {
        return Spectrum(std::move(atoms));
    } catch (const Error& error) {
        throw input_error("{}: {}", path, error.what());
    }
}

}  // namespace

Spectrum parse_spectrum(const std::string& spec) {
    const auto parts = split(spec, ':');
    const auto& name = parts.front();
    if (name == "sample" || name == "file") {
        if (spec.size() <= name.size() + 1)
            throw usage_error("spectrum \"{}\" names no file: write {}", spec,
                              name == "sample" ? "sample:FILE.npy" : "file:PATH");
        const std::string path = spec.substr(name.size() + 1);
        return name == "sample" ? from_sample(path) : from_list(path);
    }
    for (const auto& kind : kinds)
        if (kind.name == name) return from_numbers(spec, kind, parts);
    std::vector<std::string> names{"sample", "file"};
    for (const auto& kind : kinds) names.emplace_back(kind.name);
    throw usage_error("unknown spectrum \"{}\"{}", name, suggestion(name, names));
}

}  // namespace spiked::sim
