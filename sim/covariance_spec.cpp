#include "sim/covariance_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sim/matrix_file.hpp"
#include "sim/spectrum_spec.hpp"
#include "sim/stream/haar.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"

namespace spiked::sim {
namespace {

using theory::Spectrum;

struct Kind {
    CovarianceKind facts;
    bool weighted;  ///< the builder knows weights, not a size
    Spectrum (*build)(const std::vector<double>& parameters, const std::string& path, std::size_t size);
};

using Numbers = std::vector<double>;

const std::vector<Kind>& kinds() {
    static const std::vector<Kind> table = {
        {{"identity", {}, false, "identity", "white: all eigenvalues 1", ""},
         false,
         [](const Numbers&, const std::string&, std::size_t) { return theory::identity_spectrum(); }},
        {{"ar1", {"rho"}, false, "toeplitz", "the matrix rho^|i-j|", "Kac, Murdock & Szego 1953"},
         false,
         [](const Numbers& v, const std::string&, std::size_t n) { return theory::toeplitz_ar1_spectrum(v[0], n); }},
        {{"toeplitz", {"rho"}, false, "toeplitz", "another name of ar1", "Kac, Murdock & Szego 1953"},
         false,
         [](const Numbers& v, const std::string&, std::size_t n) { return theory::toeplitz_ar1_spectrum(v[0], n); }},
        {{"two-atom",
          {"low", "high", "weight"},
          false,
          "identity",
          "high on a share `weight` of the coordinates, low on the others",
          ""},
         true,
         [](const Numbers& v, const std::string&, std::size_t) { return theory::two_atom_spectrum(v[0], v[1], v[2]); }},
        {{"uniform", {"low", "high"}, false, "identity", "midpoints of [low, high]", ""},
         false,
         [](const Numbers& v, const std::string&, std::size_t n) { return theory::uniform_spectrum(v[0], v[1], n); }},
        {{"exponential", {"c"}, false, "identity", "exp(-c (j - 1/2) / size)", ""},
         false,
         [](const Numbers& v, const std::string&, std::size_t n) { return theory::exponential_spectrum(v[0], n); }},
        {{"power", {"a"}, false, "identity", "j^-a, j = 1..size", ""},
         false,
         [](const Numbers& v, const std::string&, std::size_t n) { return theory::power_spectrum(v[0], n); }},
        {{"wishart",
          {"aspect"},
          false,
          "identity",
          "Marchenko-Pastur quantiles at midpoints",
          "Marchenko & Pastur 1967"},
         false,
         [](const Numbers& v, const std::string&, std::size_t n) {
             return theory::wishart_spectrum(AspectRatio(v[0]), n);
         }},
        {{"file", {}, true, "identity", "csv lines value,weight", ""},
         true,
         [](const Numbers&, const std::string& path, std::size_t) { return parse_spectrum("file:" + path); }},
        {{"sample", {}, true, "identity", "eigenvalues of the covariance matrix in a file", ""},
         true,
         [](const Numbers&, const std::string& path, std::size_t) { return parse_spectrum("sample:" + path); }},
    };
    return table;
}

std::string example(const CovarianceKind& kind) {
    std::string text = fmt::format("{{ kind = \"{}\"", kind.name);
    for (const auto& parameter : kind.parameters) text += fmt::format(", {} = ..", parameter);
    if (kind.reads_file) text += ", path = \"..\"";
    return text + " }";
}

const Kind& kind_of(const CovarianceSpec& spec) {
    std::vector<std::string> names;
    for (const auto& kind : kinds()) {
        if (kind.facts.name == spec.kind) return kind;
        names.push_back(kind.facts.name);
    }
    throw usage_error("unknown covariance kind \"{}\"{}", spec.kind, suggestion(spec.kind, names));
}

std::string basis_of(const CovarianceSpec& spec, const CovarianceKind& kind) {
    if (spec.basis.empty()) return kind.default_basis;
    std::vector<std::string> names;
    for (const auto& basis : covariance_bases()) names.push_back(basis.name);
    if (std::find(names.begin(), names.end(), spec.basis) == names.end())
        throw usage_error("unknown basis \"{}\" of a covariance{}", spec.basis, suggestion(spec.basis, names));
    return spec.basis;
}

Numbers parameters_of(const CovarianceSpec& spec, const CovarianceKind& kind) {
    std::vector<std::string> legal = kind.parameters;
    for (const auto& [name, value] : spec.parameters)
        if (std::find(legal.begin(), legal.end(), name) == legal.end())
            throw usage_error("covariance \"{}\" has no parameter \"{}\"{}", kind.name, name,
                              legal.empty() ? fmt::format(": write {}", example(kind)) : suggestion(name, legal));
    Numbers values;
    for (const auto& name : kind.parameters) {
        const auto found = spec.parameters.find(name);
        if (found == spec.parameters.end())
            throw usage_error("covariance \"{}\" lacks its parameter \"{}\": write {}", kind.name, name, example(kind));
        if (!std::isfinite(found->second))
            throw usage_error("covariance \"{}\": {} = {} is not a finite number: correct it", kind.name, name,
                              found->second);
        values.push_back(found->second);
    }
    if (kind.reads_file && spec.path.empty())
        throw usage_error("covariance \"{}\" names no file: write {}", kind.name, example(kind));
    if (!kind.reads_file && !spec.path.empty())
        throw usage_error("covariance \"{}\" reads no file, but a path \"{}\" is given: leave it out", kind.name,
                          spec.path);
    return values;
}

arma::mat cosine_basis(std::size_t size) {
    const double count = static_cast<double>(size);
    arma::mat basis(size, size);
    for (std::size_t k = 0; k < size; ++k)
        for (std::size_t t = 0; t < size; ++t)  // the angle is reduced while it is a whole number
            basis(t, k) =
                std::sqrt((k == 0 ? 1.0 : 2.0) / count) *
                std::cos(std::numbers::pi * static_cast<double>((2 * t + 1) * k % (4 * size)) / (2.0 * count));
    return basis;
}

}  // namespace

const std::vector<CovarianceKind>& covariance_kinds() {
    static const std::vector<CovarianceKind> list = [] {
        std::vector<CovarianceKind> all;
        for (const auto& kind : kinds()) all.push_back(kind.facts);
        return all;
    }();
    return list;
}

const std::vector<CatalogueLine>& covariance_bases() {
    static const std::vector<CatalogueLine> lines = {
        {"identity", "a diagonal matrix, largest eigenvalue first", {}, ""},
        {"haar", "a random rotation, one for each cell and side", {}, "Stewart 1980"},
        {"toeplitz",
         "ar1, toeplitz: the Toeplitz matrix itself; other kinds: cosines (DCT-II), largest eigenvalue on the lowest "
         "frequency",
         {},
         "Ahmed, Natarajan & Rao 1974"}};
    return lines;
}

theory::Spectrum covariance_spectrum(const CovarianceSpec& spec, std::size_t size) {
    const Kind& kind = kind_of(spec);
    (void)basis_of(spec, kind.facts);
    Spectrum law = kind.build(parameters_of(spec, kind.facts), spec.path, size);
    if (!kind.weighted) return law;
    const arma::vec values = expand(law, size);
    Spectrum expanded = Spectrum::of_values({values.memptr(), values.n_elem});
    if (spec.kind == "two-atom" && expanded.atoms().size() < law.atoms().size())
        throw usage_error(
            "covariance \"two-atom\" with weight {} leaves one of its atoms without an eigenvalue at size {}: give a "
            "weight from {:.3g} to {:.3g}, or kind \"identity\"",
            spec.parameters.at("weight"), size, 0.5 / static_cast<double>(size), 1.0 - 0.5 / static_cast<double>(size));
    return expanded;
}

Covariance build_covariance(const CovarianceSpec& spec, std::size_t size, MatrixSide side,
                            const stream::StudySeed& seed, std::string_view cell) {
    const Kind& kind = kind_of(spec);
    const std::string basis = basis_of(spec, kind.facts);
    const theory::Spectrum spectrum = covariance_spectrum(spec, size);
    if (spec.kind == "identity") return Covariance::identity(size);
    if (basis == "toeplitz" && kind.facts.default_basis == "toeplitz")
        return Covariance::ar1(spec.parameters.at("rho"), size);
    if (basis == "identity" && spec.kind == "exponential")
        return Covariance::exponential(spec.parameters.at("c"), size);
    const arma::vec eigenvalues = expand(spectrum, size);
    if (basis == "identity" || spectrum.atoms().size() == 1) return Covariance::diagonal(eigenvalues);
    if (basis == "toeplitz") return Covariance::on_basis(eigenvalues, cosine_basis(size));
    const auto role = side == MatrixSide::row ? stream::Role::row_basis : stream::Role::column_basis;
    return Covariance::on_basis(eigenvalues, stream::haar_frame(stream::Stream(seed, cell, role, 0), size, size));
}

arma::mat covariance_matrix(const std::string& spec, std::size_t size) {
    const bool is_file = spec.ends_with(".npy") && !spec.starts_with("file:");
    if (is_file) {
        const std::string path = spec.starts_with("sample:") ? spec.substr(7) : spec;
        arma::mat matrix = read_matrix(path);
        if (matrix.n_rows == 1) matrix = matrix.t();
        if (matrix.n_rows != size || (matrix.n_cols != size && matrix.n_cols != 1))
            throw input_error("{}: {} x {} is no covariance of {} coordinates: give a {} x {} matrix or {} variances",
                              path, matrix.n_rows, matrix.n_cols, size, size, size, size);
        return matrix;
    }
    const auto parts = split(spec, ':');
    CovarianceSpec words{.kind = parts.front()};
    if (words.kind == "file") {
        words.path = spec.substr(std::min(spec.size(), words.kind.size() + 1));
    } else {
        (void)parse_spectrum(spec);  // its words, with their own errors
        const auto& facts = kind_of(words).facts;
        std::size_t next = 1;
        if (!facts.parameters.empty()) {
            const auto numbers = split(parts[next++], ',');
            for (std::size_t i = 0; i < facts.parameters.size(); ++i)
                words.parameters[facts.parameters[i]] = *to_number(numbers[i]);
        }
        if (parts.size() > next && to_integer(parts[next]) != static_cast<std::int64_t>(size))
            throw usage_error(
                "covariance \"{}\" is of size {} (there are {} coordinates): leave the size out or correct "
                "it",
                spec, parts[next], size);
    }
    const Covariance covariance = build_covariance(words, size, MatrixSide::row, stream::StudySeed{}, "");
    if (covariance.is_diagonal()) return covariance.eigenvalues();
    return covariance.basis() * arma::diagmat(covariance.eigenvalues()) * covariance.basis().t();
}

}  // namespace spiked::sim
