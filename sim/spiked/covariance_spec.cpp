#include "sim/spiked/covariance_spec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/runtime/memo.hpp"
#include "core/text/names.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/random/haar.hpp"
#include "sim/spiked/spectrum_spec.hpp"

namespace spiked::sim {
namespace {

using theory::Spectrum;

using Numbers = CovarianceKind::Numbers;

const CovarianceKind& kind_of(const CovarianceSpec& spec) { return covariance_kind(spec.kind, "covariance kind"); }

std::string basis_of(const CovarianceSpec& spec, const CovarianceKind& kind) {
    if (spec.basis.empty()) return kind.default_basis();
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
                              legal.empty() ? fmt::format(": write {}", kind.table_form()) : suggestion(name, legal));
    Numbers values;
    for (const auto& name : kind.parameters) {
        const auto found = spec.parameters.find(name);
        if (found == spec.parameters.end())
            throw usage_error("covariance \"{}\" lacks its parameter \"{}\": write {}", kind.name, name,
                              kind.table_form());
        if (!std::isfinite(found->second))
            throw usage_error("covariance \"{}\": {} = {} is not a finite number: correct it", kind.name, name,
                              found->second);
        values.push_back(found->second);
    }
    if (kind.reads_file() && spec.path.empty())
        throw usage_error("covariance \"{}\" names no file: write {}", kind.name, kind.table_form());
    if (!kind.reads_file() && !spec.path.empty())
        throw usage_error("covariance \"{}\" reads no file, but a path \"{}\" is given: leave it out", kind.name,
                          spec.path);
    return values;
}

arma::mat cosine_basis(std::size_t size) {
    const double count = static_cast<double>(size);
    arma::mat basis(size, size);
    for (std::size_t k = 0; k < size; ++k)
        for (std::size_t t = 0; t < size; ++t)  // the angle is reduced exactly, as an integer
            basis(t, k) =
                std::sqrt((k == 0 ? 1.0 : 2.0) / count) *
                std::cos(std::numbers::pi * static_cast<double>((2 * t + 1) * k % (4 * size)) / (2.0 * count));
    return basis;
}

}  // namespace

const std::vector<RegistryEntry>& covariance_bases() {
    static const std::vector<RegistryEntry> lines = {
        {"identity",
         "a diagonal matrix, largest eigenvalue first; those of the kind exponential in the order of its formula",
         {},
         ""},
        {"haar", "a random rotation, one for each cell and side", {}, "Stewart 1980"},
        {"toeplitz",
         "ar1, toeplitz: the Toeplitz matrix itself; other kinds: cosines (DCT-II), largest eigenvalue on the lowest "
         "frequency",
         {},
         "Ahmed, Natarajan & Rao 1974"}};
    return lines;
}

void check_covariance(const CovarianceSpec& spec) {
    const CovarianceKind& kind = kind_of(spec);
    (void)basis_of(spec, kind);
    const Numbers parameters = parameters_of(spec, kind);
    constexpr std::size_t any_size = 2;
    if (!kind.reads_file()) (void)kind.law(parameters, any_size);
}

theory::Spectrum covariance_spectrum(const CovarianceSpec& spec, std::size_t size) {
    const CovarianceKind& kind = kind_of(spec);
    (void)basis_of(spec, kind);
    const Numbers parameters = parameters_of(spec, kind);
    // The cells of a sweep need few different laws many times.
    constexpr std::size_t largest_cached = 4096;
    static Memo<std::pair<std::string, std::size_t>, Spectrum> laws;
    const auto make = [&] { return kind.law(parameters, size); };
    Spectrum law = kind.reads_file() ? kind.read(spec.path)
                   : size <= largest_cached
                       ? laws.of({fmt::format("{}:{:a}", kind.name, fmt::join(parameters, ",")), size}, make)
                       : make();
    if (kind.size != CovarianceKind::Size::none) return law;
    const arma::vec values = expand(law, size);
    Spectrum expanded = Spectrum::of_values({values.memptr(), values.n_elem});
    if (!kind.reads_file() && expanded.atoms().size() < law.atoms().size())
        throw usage_error(
            "covariance \"{}\": at size {} one of its atoms has no eigenvalue (its weight is below {:.3g}): give it "
            "more weight, or choose another kind",
            kind.name, size, 0.5 / static_cast<double>(size));
    return expanded;
}

Covariance build_covariance(const CovarianceSpec& spec, std::size_t size, MatrixSide side,
                            const stream::StudySeed& seed, std::string_view cell) {
    const CovarianceKind& kind = kind_of(spec);
    const std::string basis = basis_of(spec, kind);
    const theory::Spectrum spectrum = covariance_spectrum(spec, size);
    if (spec.kind == "identity") return Covariance::identity(size);
    if (basis == "toeplitz" && kind.first_column != nullptr)
        return Covariance::toeplitz(spectrum, kind.first_column(parameters_of(spec, kind), size));
    if (basis == "identity" && spec.kind == "exponential")
        return Covariance::exponential(spec.parameters.at("c"), size);
    const arma::vec eigenvalues = expand(spectrum, size);
    if (basis == "identity" || spectrum.atoms().size() == 1) return Covariance::diagonal(eigenvalues);
    if (basis == "toeplitz") return Covariance::on_basis(eigenvalues, cosine_basis(size));
    const auto role = side == MatrixSide::row ? stream::Role::row_basis : stream::Role::column_basis;
    return Covariance::on_basis(eigenvalues, stream::haar_frame(stream::Stream(seed, cell, role, 0), size, size));
}

arma::mat covariance_matrix(const std::string& spec, std::size_t size) {
    const bool is_file = spec.starts_with("sample:") || (spec.ends_with(".npy") && !spec.starts_with("file:"));
    if (is_file) {
        const std::string path = spec.starts_with("sample:") ? spec.substr(7) : spec;
        arma::mat matrix = read_matrix(path);
        if (matrix.n_rows == 1) matrix = matrix.t();
        if (matrix.n_rows != size || (matrix.n_cols != size && matrix.n_cols != 1))
            throw input_error(
                "{}: {} x {} is not a covariance of {} coordinates: give a {} x {} matrix or {} variances", path,
                matrix.n_rows, matrix.n_cols, size, size, size, size);
        return matrix;
    }
    const auto parts = split(spec, ':');
    CovarianceSpec parsed{.kind = parts.front()};
    if (parsed.kind == "file") {
        parsed.path = spec.substr(std::min(spec.size(), parsed.kind.size() + 1));
    } else {
        (void)parse_spectrum(spec);  // for its errors
        const CovarianceKind& kind = kind_of(parsed);
        std::size_t next = 1;
        if (!kind.parameters.empty()) {
            const auto numbers = split(parts[next++], ',');
            for (std::size_t i = 0; i < kind.parameters.size(); ++i)
                parsed.parameters[kind.parameters[i]] = *to_number(numbers[i]);
        }
        if (parts.size() > next && to_integer(parts[next]) != static_cast<std::int64_t>(size))
            throw usage_error(
                "covariance \"{}\" has size {} (there are {} coordinates): leave the size out or correct it", spec,
                parts[next], size);
    }
    const Covariance covariance = build_covariance(parsed, size, MatrixSide::row, stream::StudySeed{}, "");
    if (covariance.is_diagonal()) return covariance.eigenvalues();
    return covariance.basis() * arma::diagmat(covariance.eigenvalues()) * covariance.basis().t();
}

}  // namespace spiked::sim
