#include "estimators/turboquant.hpp"

#include <cmath>
#include <memory>
#include <optional>

#include "estimators/byte_stream.hpp"
#include "estimators/cell_search.hpp"
#include "estimators/row_norms.hpp"
#include "estimators/scalar_quantizer.hpp"
#include "theory/base/error.hpp"

namespace spiked::estimators {
namespace {

/// What encoder and decoder share; made from the options alone, so nothing of it is stored.
struct Setup {
    std::size_t dimension;
    unsigned bits;
    NumberFormat norm;
    RowScale scale;
    theory::Codebook codebook;
    CellSearch search;
    RowRotation rotation;
    std::optional<SignSketch> sketch;

    [[nodiscard]] double unit() const { return std::sqrt(static_cast<double>(dimension)); }
};

using Cells = arma::Mat<std::uint8_t>;

void find_cells(const Setup& setup, const arma::mat& coordinates, Cells& cells, arma::mat& levels) {
    for (arma::uword i = 0; i < coordinates.n_elem; ++i) {
        const std::uint64_t cell = cell_of(coordinates[i], setup.codebook);
        cells[i] = static_cast<std::uint8_t>(cell);
        levels[i] = setup.codebook.levels[cell];
    }
}

void find_cells(const Setup& setup, const arma::fmat& coordinates, Cells& cells, arma::fmat& levels) {
    setup.search.quantize({coordinates.memptr(), coordinates.n_elem}, {cells.memptr(), cells.n_elem},
                          {levels.memptr(), levels.n_elem});
}

template <class Real>
std::vector<double> inner_products(const arma::Mat<Real>& a, const arma::Mat<Real>& b) {
    std::vector<Real> sums(a.n_rows, Real{0});
    for (arma::uword j = 0; j < a.n_cols; ++j)
        for (arma::uword t = 0; t < a.n_rows; ++t) sums[t] += a.colptr(j)[t] * b.colptr(j)[t];
    return {sums.begin(), sums.end()};
}

/// What is stored of each row, from its norm, its coordinates at unit variance and their levels.
template <class Real>
std::vector<double> row_scales(const Setup& setup, std::vector<double> norms, const arma::Mat<Real>& coordinates,
                               const arma::Mat<Real>& levels) {
    if (setup.scale == RowScale::norm) return norms;
    const double d = static_cast<double>(setup.dimension);
    const std::vector<double> across = inner_products(coordinates, levels);
    const std::vector<double> energy = inner_products(levels, levels);
    for (std::size_t t = 0; t < norms.size(); ++t) {
        if (norms[t] == 0.0) continue;
        switch (setup.scale) {
            case RowScale::norm:
                break;
            case RowScale::unbiased:
                norms[t] *= d / across[t];
                break;
            case RowScale::least_squares:
                norms[t] *= across[t] / energy[t];
                break;
            case RowScale::norm_matched:
                norms[t] *= setup.unit() / std::sqrt(energy[t]);
                break;
        }
    }
    return norms;
}

template <class Real>
Encoded encode(const Setup& setup, const arma::Mat<Real>& rows) {
    require_rows(rows, setup.dimension);
    std::vector<double> norms = row_norms(rows);
    std::vector<double> to_unit(norms.size());
    for (std::size_t t = 0; t < norms.size(); ++t) {
        to_unit[t] = setup.unit() / norms[t];
        // A row too small for its direction to be known counts as zero.
        if (!std::isfinite(static_cast<Real>(to_unit[t]))) norms[t] = to_unit[t] = 0.0;
    }
    arma::Mat<Real> coordinates = rows;
    scale_rows(coordinates, to_unit, 1.0);
    coordinates = setup.rotation.rotate(coordinates);
    Cells cells(rows.n_rows, rows.n_cols);
    arma::Mat<Real> levels(rows.n_rows, rows.n_cols);
    find_cells(setup, coordinates, cells, levels);

    BitWriter writer;
    const std::vector<double> scales = row_scales(setup, norms, coordinates, levels);
    if (!setup.sketch) {
        write_numbers(writer, Item::norms, scales, setup.norm, "row norm");
        writer.write_cells(Item::indices, {cells.memptr(), cells.n_elem}, setup.bits);
    } else {
        const std::vector<double> stored = write_and_read_numbers(writer, Item::norms, scales, setup.norm, "row norm");
        writer.write_cells(Item::indices, {cells.memptr(), cells.n_elem}, setup.bits);
        scale_rows(coordinates, norms, 1.0 / setup.unit());
        scale_rows(levels, stored, 1.0 / setup.unit());
        coordinates -= levels;
        write_numbers(writer, Item::residual_norms, row_norms(coordinates), setup.norm, "residual norm");
        const Cells signs = setup.sketch->signs(coordinates);
        writer.write_cells(Item::signs, {signs.memptr(), signs.n_elem}, 1);
    }
    writer.align();
    const Ledger ledger = writer.ledger();
    return {writer.take_bytes(), ledger};
}

template <class Real>
arma::Mat<Real> decode(const Setup& setup, std::span<const std::uint8_t> bytes, std::size_t count) {
    BitReader reader(bytes);
    std::vector<double> scales(count);
    read_numbers(reader, scales, setup.norm);
    Cells cells(count, setup.dimension);
    reader.read_cells({cells.memptr(), cells.n_elem}, setup.bits);
    std::array<Real, 256> levels{};
    std::copy(setup.codebook.levels.begin(), setup.codebook.levels.end(), levels.begin());
    arma::Mat<Real> coordinates(count, setup.dimension);
    for (arma::uword i = 0; i < cells.n_elem; ++i) coordinates[i] = levels[cells[i]];
    scale_rows(coordinates, scales, 1.0 / setup.unit());
    if (setup.sketch) {
        std::vector<double> norms(count);
        read_numbers(reader, norms, setup.norm);
        Cells signs(count, setup.dimension);
        reader.read_cells({signs.memptr(), signs.n_elem}, 1);
        arma::Mat<Real> rest;
        if constexpr (std::is_same_v<Real, float>)
            rest = setup.sketch->directions_float(signs);
        else
            rest = setup.sketch->directions(signs);
        scale_rows(rest, norms, 1.0);
        coordinates += rest;
    }
    return setup.rotation.rotate_back(coordinates);
}

theory::Codebook codebook_of(std::size_t dimension, unsigned bits, CodebookKind kind) {
    return kind == CodebookKind::sphere ? theory::lloyd_max_sphere(static_cast<int>(dimension), static_cast<int>(bits))
                                        : theory::lloyd_max_normal(static_cast<int>(bits));
}

RowQuantizer quantizer(std::string name, std::shared_ptr<const Setup> setup) {
    return {
        std::move(name), [setup](const arma::mat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode<double>(*setup, bytes, rows); },
        [setup](const arma::fmat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode<float>(*setup, bytes, rows); }};
}

Setup make_setup(std::size_t dimension, unsigned bits, const QuantizerOptions& options, RowScale scale) {
    const theory::Codebook codebook = codebook_of(dimension, bits, options.codebook);
    return {dimension,
            bits,
            options.norm,
            scale,
            codebook,
            CellSearch(codebook),
            RowRotation(options.rotation,
                        stream::Stream(options.seed, "quantizer", stream::Role::rotation, options.rotation_index),
                        dimension),
            std::nullopt};
}

}  // namespace

RowQuantizer turboquant_mse(std::size_t dimension, unsigned bits, const QuantizerOptions& options, RowScale scale) {
    constexpr std::string_view names[] = {"tq-mse", "eden", "eden-mmse", "eden-norm"};
    return quantizer(std::string(names[static_cast<int>(scale)]),
                     std::make_shared<const Setup>(make_setup(dimension, bits, options, scale)));
}

RowQuantizer turboquant_prod(std::size_t dimension, unsigned bits, const QuantizerOptions& options,
                             ProjectionKind projection) {
    Setup setup = make_setup(dimension, bits, options, RowScale::norm);
    setup.sketch.emplace(projection, options, dimension, dimension);
    return quantizer("tq-prod", std::make_shared<const Setup>(std::move(setup)));
}

}  // namespace spiked::estimators
