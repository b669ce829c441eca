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

const CovarianceKind& kind_of(const CovarianceSpec& spec) { return covariance_kinds().named(spec.kind); }

Numbers parameters_of(const CovarianceSpec& spec, const CovarianceKind& kind) {
    const std::vector<std::string> legal = kind.parameters();
    const std::string& name_of_kind = kind.entry.name;
    for (const auto& [name, value] : spec.parameters)
        if (std::find(legal.begin(), legal.end(), name) == legal.end())
            throw usage_error("covariance \"{}\" has no parameter \"{}\"{}", name_of_kind, name,
                              legal.empty() ? fmt::format(": write {}", kind.table_form()) : suggestion(name, legal));
    Numbers values;
    for (const auto& name : legal) {
        const auto found = spec.parameters.find(name);
        if (found == spec.parameters.end())
            throw usage_error("covariance \"{}\" lacks its parameter \"{}\": write {}", name_of_kind, name,
                              kind.table_form());
        if (!std::isfinite(found->second))
            throw usage_error("covariance \"{}\": {} = {} is not a finite number: correct it", name_of_kind, name,
                              found->second);
        values.push_back(found->second);
    }
    kind.require_in_range(values, fmt::format("covariance \"{}\": ", name_of_kind));
    if (kind.reads_file() && spec.path.empty())
        throw usage_error("covariance \"{}\" names no file: write {}", name_of_kind, kind.table_form());
    if (!kind.reads_file() && !spec.path.empty())
        throw usage_error("covariance \"{}\" reads no file, but a path \"{}\" is given: leave it out", name_of_kind,
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

const Registry<CovarianceBasis>& covariance_bases() {
    static const Registry<CovarianceBasis> table(
        "basis",
        {{{"identity",
           "a diagonal matrix, largest eigenvalue first; those of the kind exponential in the order of its formula"}},
         {{"haar", "a random rotation, one for each cell and side", {}, "Stewart 1980", {"orthogonal"}},
          [](std::size_t size, const stream::Stream& random) { return stream::haar_frame(random, size, size); }},
         {{"toeplitz",
           "ar1, toeplitz: the Toeplitz matrix itself; other kinds: cosines (DCT-II), largest eigenvalue on the lowest "
           "frequency",
           {},
           "Ahmed, Natarajan & Rao 1974"},
          [](std::size_t size, const stream::Stream&) { return cosine_basis(size); },
          true}});
    return table;
}

const CovarianceBasis& basis_of(const CovarianceSpec& spec) {
    return covariance_bases().named(spec.basis.empty() ? kind_of(spec).default_basis() : spec.basis);
}

void check_covariance(const CovarianceSpec& spec) {
    const CovarianceKind& kind = kind_of(spec);
    (void)basis_of(spec);
    const Numbers parameters = parameters_of(spec, kind);
    constexpr std::size_t any_size = 2;
    if (!kind.reads_file()) (void)kind.law(parameters, any_size);
}

theory::Spectrum covariance_spectrum(const CovarianceSpec& spec, std::size_t size) {
    const CovarianceKind& kind = kind_of(spec);
    (void)basis_of(spec);  // an unknown one is an error although the law does not depend on it
    const Numbers parameters = parameters_of(spec, kind);
    // The cells of a sweep need few different laws many times.
    constexpr std::size_t largest_cached = 4096;
    static Memo<std::pair<std::string, std::size_t>, Spectrum> laws;
    const auto make = [&] { return kind.law(parameters, size); };
    Spectrum law = kind.reads_file() ? kind.read(spec.path)
                   : size <= largest_cached
                       ? laws.of({fmt::format("{}:{:a}", kind.entry.name, fmt::join(parameters, ",")), size}, make)
                       : make();
    if (kind.size() != nullptr) return law;
    const arma::vec values = expand(law, size);
    Spectrum expanded = Spectrum::of_values({values.memptr(), values.n_elem});
    if (!kind.reads_file() && expanded.atoms().size() < law.atoms().size())
        throw usage_error(
            "covariance \"{}\": at size {} one of its atoms has no eigenvalue (its weight is below {:.3g}): give it "
            "more weight, or choose another kind",
            kind.entry.name, size, 0.5 / static_cast<double>(size));
    return expanded;
}

Covariance build_covariance(const CovarianceSpec& spec, std::size_t size, MatrixSide side,
                            const stream::StudySeed& seed, std::string_view cell) {
    const CovarianceKind& kind = kind_of(spec);
    const CovarianceBasis& basis = basis_of(spec);
    const theory::Spectrum spectrum = covariance_spectrum(spec, size);
    const Numbers parameters = parameters_of(spec, kind);
    if (kind.white) return Covariance::identity(size);
    if (basis.toeplitz && kind.first_column != nullptr)
        return Covariance::toeplitz(spectrum, kind.first_column(parameters, size));
    const bool diagonal = basis.vectors == nullptr;
    if (diagonal && kind.diagonal != nullptr) return kind.diagonal(parameters, size);
    const arma::vec eigenvalues = expand(spectrum, size);
    if (diagonal || spectrum.atoms().size() == 1) return Covariance::diagonal(eigenvalues);
    const auto role = side == MatrixSide::row ? stream::Role::row_basis : stream::Role::column_basis;
    return Covariance::on_basis(eigenvalues, basis.vectors(size, stream::Stream(seed, cell, role, 0)));
}

/// The covariance matrix, or its diagonal, in a file.
static arma::mat matrix_in_file(const std::string& path, std::size_t size) {
    arma::mat matrix = read_matrix(path);
    if (matrix.n_rows == 1) matrix = matrix.t();
    if (matrix.n_rows != size || (matrix.n_cols != size && matrix.n_cols != 1))
        throw input_error("{}: {} x {} is not a covariance of {} coordinates: give a {} x {} matrix or {} variances",
                          path, matrix.n_rows, matrix.n_cols, size, size, size, size);
    return matrix;
}

arma::mat covariance_matrix(const std::string& spec, std::size_t size) {
    const CovarianceKind* named = covariance_kinds().find(parse_name(spec).name);
    if (spec.ends_with(".npy") && (named == nullptr || !named->reads_file())) return matrix_in_file(spec, size);
    const SpectrumSpec found = spectrum_spec(spec);
    const CovarianceKind& kind = *found.kind;
    if (kind.holds_matrix) return matrix_in_file(found.path, size);
    if (found.size && *found.size != size)
        throw usage_error("covariance \"{}\" has size {} (there are {} coordinates): leave the size out or correct it",
                          spec, *found.size, size);
    CovarianceSpec table{.kind = kind.entry.name, .path = found.path};
    const std::vector<std::string> parameters = kind.parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) table.parameters[parameters[i]] = found.numbers[i];
    const Covariance covariance = build_covariance(table, size, MatrixSide::row, stream::StudySeed{}, "");
    if (covariance.is_diagonal()) return covariance.eigenvalues();
    return covariance.basis() * arma::diagmat(covariance.eigenvalues()) * covariance.basis().t();
}

}  // namespace spiked::sim
