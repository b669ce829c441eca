#include "estimators/quantizers/turboquant.hpp"

#include "estimators/quantizers/common_specs.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "core/runtime/error.hpp"
#include "estimators/coding/byte_stream.hpp"
#include "estimators/coding/cell_search.hpp"
#include "estimators/coding/row_norms.hpp"
#include "estimators/coding/scalar_quantizer.hpp"

namespace spiked::estimators {
namespace {

/// Data that encoder and decoder share; it follows from the options, so none of it is stored.
struct TurboquantSetup {
    std::size_t dimension;
    unsigned bits;
    NumberFormat norm;
    Underflow underflow;
    RowScale scale;
    theory::Codebook codebook;
    CellSearch search;
    RowRotation rotation;
    std::optional<SignSketch> sketch;

    [[nodiscard]] double unit() const { return std::sqrt(static_cast<double>(dimension)); }
};

using Cells = arma::Mat<std::uint8_t>;

template <class Real>
std::vector<double> inner_products(const arma::Mat<Real>& a, const arma::Mat<Real>& b) {
    std::vector<Real> sums(a.n_rows, Real{0});
    for (arma::uword j = 0; j < a.n_cols; ++j)
        for (arma::uword t = 0; t < a.n_rows; ++t) sums[t] += a.colptr(j)[t] * b.colptr(j)[t];
    return {sums.begin(), sums.end()};
}

/// The stored scale of each row, from its norm, its coordinates at unit variance and their levels.
template <class Real>
std::vector<double> row_scales(const TurboquantSetup& setup, std::vector<double> norms,
                               const arma::Mat<Real>& coordinates, const std::vector<double>& to_unit,
                               const arma::Mat<Real>& levels) {
    const double d = static_cast<double>(setup.dimension);
    const std::vector<double> across = inner_products(coordinates, levels);
    const std::vector<double> energy = inner_products(levels, levels);
    for (std::size_t t = 0; t < norms.size(); ++t)
        if (norms[t] != 0.0) norms[t] = stored_scale(setup.scale, norms[t], d, to_unit[t] * across[t], energy[t]);
    return norms;
}

void write_cells(const TurboquantSetup& setup, BitWriter& writer, const Cells& cells) {
    writer.write_cells(Item::indices, {cells.memptr(), cells.n_elem}, setup.bits);
}

/// The residual may be as small as the rounding error of a norm, so its underflow is allowed.
template <class Real>
void write_residual(const TurboquantSetup& setup, BitWriter& writer, const arma::Mat<Real>& residual) {
    write_numbers(writer, Item::residual_norms, row_norms(residual), setup.norm, "residual norm", Underflow::allowed);
    setup.sketch->write_signs(writer, residual);
}

/// The reference: every step as in the source.
Encoded encode(const TurboquantSetup& setup, const arma::mat& rows) {
    require_length(rows.n_cols, setup.dimension);
    auto [norms, coordinates] = unit_rows(rows, setup.rotation);
    Cells cells(rows.n_rows, rows.n_cols);
    arma::mat levels(rows.n_rows, rows.n_cols);
    for (arma::uword i = 0; i < coordinates.n_elem; ++i) {
        const std::uint64_t cell = cell_of(coordinates[i], setup.codebook);
        cells[i] = static_cast<std::uint8_t>(cell);
        levels[i] = setup.codebook.levels[cell];
    }
    BitWriter writer;
    const std::vector<double> scales =
        setup.scale == RowScale::norm
            ? norms
            : row_scales(setup, norms, coordinates, std::vector<double>(norms.size(), 1.0), levels);
    const std::vector<double> stored =
        write_and_read_numbers(writer, Item::norms, scales, setup.norm, "row norm", setup.underflow);
    write_cells(setup, writer, cells);
    if (setup.sketch) {
        scale_rows(coordinates, norms, 1.0 / setup.unit());
        scale_rows(levels, stored, 1.0 / setup.unit());
        write_residual(setup, writer, arma::mat(coordinates - levels));
    }
    return finished(writer);
}

std::vector<float> times(const std::vector<double>& values, double factor) {
    std::vector<float> products(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) products[i] = static_cast<float>(values[i] * factor);
    return products;
}

/// Encoding when only norms and indices are stored: a strip of rows is quantized while it is in the first-level cache.
Encoded encode_strips(const TurboquantSetup& setup, const HadamardRotation& rotation, const arma::fmat& rows,
                      const std::vector<double>& norms, const std::vector<double>& to_unit) {
    constexpr std::size_t height = HadamardRotation::strip_rows;
    Cells cells(rows.n_rows, rows.n_cols, arma::fill::none);
    std::vector<std::uint8_t> found(height * rows.n_cols);
    std::array<float, height> factors{};
    rotation.rotate_strips(rows, [&](std::size_t first, std::size_t count, std::span<const float> strip) {
        for (std::size_t t = 0; t < count; ++t) factors[t] = static_cast<float>(to_unit[first + t]);
        setup.search.find(strip, factors, found);
        for (std::size_t j = 0; j < rows.n_cols; ++j) {
            std::uint8_t* const to = cells.colptr(j) + first;
            if (count == height)
                std::memcpy(to, found.data() + height * j, height);
            else
                std::memcpy(to, found.data() + height * j, count);
        }
    });
    BitWriter writer;
    write_numbers(writer, Item::norms, norms, setup.norm, "row norm", setup.underflow);
    write_cells(setup, writer, cells);
    return finished(writer);
}

/// The same with few passes over the block: rows are rotated unscaled, and their norms enter in the search for bins.
Encoded encode(const TurboquantSetup& setup, const arma::fmat& rows) {
    require_length(rows.n_cols, setup.dimension);
    const std::vector<double> norms = row_norms(rows);
    std::vector<double> to_unit(norms.size());
    for (std::size_t t = 0; t < norms.size(); ++t) {
        if (norms[t] == 0.0) continue;
        // The squares of such rows exceed the range of float.
        if (norms[t] < 1e-15 || norms[t] > 1e18) return encode(setup, arma::conv_to<arma::mat>::from(rows));
        to_unit[t] = setup.unit() / norms[t];
    }
    if (const HadamardRotation* hadamard = setup.rotation.hadamard();
        hadamard != nullptr && setup.scale == RowScale::norm && !setup.sketch)
        return encode_strips(setup, *hadamard, rows, norms, to_unit);
    arma::fmat coordinates = setup.rotation.rotate(rows);
    const std::span<float> entries{coordinates.memptr(), coordinates.n_elem};
    Cells cells(rows.n_rows, rows.n_cols, arma::fill::none);
    const std::span<std::uint8_t> indices{cells.memptr(), cells.n_elem};
    setup.search.find(entries, times(to_unit, 1.0), indices);

    BitWriter writer;
    std::vector<double> scales = norms;
    if (setup.scale != RowScale::norm) {
        arma::fmat levels(rows.n_rows, rows.n_cols, arma::fill::none);
        setup.search.set_levels(indices, std::vector<float>(rows.n_rows, 1.0F), {levels.memptr(), levels.n_elem});
        scales = row_scales(setup, norms, coordinates, to_unit, levels);
    }
    const std::vector<double> stored =
        write_and_read_numbers(writer, Item::norms, scales, setup.norm, "row norm", setup.underflow);
    write_cells(setup, writer, cells);
    if (setup.sketch) {
        setup.search.add_levels(indices, times(stored, -1.0 / setup.unit()), entries);
        write_residual(setup, writer, coordinates);
    }
    return finished(writer);
}

void set_levels(const TurboquantSetup& setup, const Cells& cells, const std::vector<double>& scales,
                arma::mat& coordinates) {
    for (arma::uword i = 0; i < cells.n_elem; ++i) coordinates[i] = setup.codebook.levels[cells[i]];
    scale_rows(coordinates, scales, 1.0 / setup.unit());
}

void set_levels(const TurboquantSetup& setup, const Cells& cells, const std::vector<double>& scales,
                arma::fmat& coordinates) {
    setup.search.set_levels({cells.memptr(), cells.n_elem}, times(scales, 1.0 / setup.unit()),
                            {coordinates.memptr(), coordinates.n_elem});
}

template <class Real>
arma::Mat<Real> decode(const TurboquantSetup& setup, std::span<const std::uint8_t> bytes, std::size_t count) {
    BitReader reader(bytes);
    std::vector<double> scales(count);
    read_numbers(reader, scales, setup.norm);
    Cells cells(count, setup.dimension, arma::fill::none);
    reader.read_cells({cells.memptr(), cells.n_elem}, setup.bits);
    arma::Mat<Real> coordinates(count, setup.dimension, arma::fill::none);
    set_levels(setup, cells, scales, coordinates);
    if (setup.sketch) {
        std::vector<double> norms(count);
        read_numbers(reader, norms, setup.norm);
        setup.sketch->add_directions(reader, norms, coordinates);
    }
    reader.require_end();
    return setup.rotation.rotate_back(std::move(coordinates));
}

theory::Codebook codebook_of(std::size_t dimension, unsigned bits, CodebookKind kind) {
    return kind == CodebookKind::sphere ? theory::lloyd_max_sphere(static_cast<int>(dimension), static_cast<int>(bits))
                                        : theory::lloyd_max_normal(static_cast<int>(bits));
}

RowQuantizer quantizer(std::string name, std::shared_ptr<const TurboquantSetup> setup) {
    return {
        std::move(name), [setup](const arma::mat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode<double>(*setup, bytes, rows); },
        [setup](const arma::fmat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode<float>(*setup, bytes, rows); }};
}

TurboquantSetup make_setup(std::size_t dimension, unsigned bits, const TurboquantOptions& options, RowScale scale) {
    const theory::Codebook codebook = codebook_of(dimension, bits, options.codebook);
    return {dimension,   bits,     options.norms.format, options.norms.underflow,
            scale,       codebook, CellSearch(codebook), row_rotation(options.rotation, dimension),
            std::nullopt};
}

}  // namespace

RowQuantizer turboquant_mse(std::size_t dimension, unsigned bits, const TurboquantOptions& options) {
    return quantizer(options.scale == RowScale::norm ? "tq-mse" : "eden",
                     std::make_shared<const TurboquantSetup>(make_setup(dimension, bits, options, options.scale)));
}

RowQuantizer turboquant_prod(std::size_t dimension, unsigned bits, const TurboquantOptions& options) {
    TurboquantSetup setup = make_setup(dimension, bits, options, RowScale::norm);
    setup.sketch.emplace(
        SketchOptions{options.projection, options.rotation.seed, options.rotation.index, options.norms}, dimension,
        dimension);
    return quantizer("tq-prod", std::make_shared<const TurboquantSetup>(std::move(setup)));
}

namespace {

TurboquantOptions turboquant_options(const QuantizerOptions& options) {
    return {rotation_options(options), options.codebook, scalar_options(options)};
}

template <RowScale scale>
RowQuantizer make_scaled(const NameOptions&, std::size_t dimension, double bits, const QuantizerOptions& options) {
    TurboquantOptions own = turboquant_options(options);
    own.scale = scale;
    return turboquant_mse(dimension, static_cast<unsigned>(bits), own);
}

RowQuantizer make_prod(const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options) {
    TurboquantOptions own = turboquant_options(options);
    own.projection = named.choice_or_default<ProjectionKind>("projection");
    return turboquant_prod(dimension, static_cast<unsigned>(bits), own);
}

const std::string eden_source = "Vargaftik et al. 2022";

}  // namespace

QuantizerFamily tq_mse_family() {
    return {{{"tq-mse",
              "TurboQuant MSE: row norm, rotation, Lloyd-Max index of every coordinate",
              {rotation_spec(), codebook_spec(), norm_spec()},
              "Zandieh et al. 2025, Algorithm 1",
              {"turboquant", "lloyd-max"}},
             "index bits"},
            make_scaled<RowScale::norm>};
}

QuantizerFamily tq_prod_family() {
    return {{{"tq-prod",
              "TurboQuant for inner products, which are unbiased: tq-mse, then the norm of its error and the signs of "
              "a random projection of it",
              {rotation_spec(), codebook_spec(), norm_spec(), projection_spec()},
              "Zandieh et al. 2025, Algorithm 2"},
             "index bits; the sign takes one more"},
            make_prod,
            nullptr,
            [](const NameOptions& named, std::size_t dimension, double, const QuantizerOptions& options) {
                return sketch_matrix({.projection = named.choice_or_default<ProjectionKind>("projection"),
                                      .seed = options.seed,
                                      .index = options.rotation_index},
                                     dimension, dimension);
            }};
}

QuantizerFamily eden_family() {
    return {{{"eden",
              "the indices of tq-mse with the row scale for which <x, x^> = |x|^2: unbiased over rotations",
              {rotation_spec(), codebook_spec(), norm_spec()},
              eden_source},
             "index bits"},
            make_scaled<RowScale::unbiased>};
}

QuantizerFamily eden_mmse_family() {
    return {{{"eden-mmse",
              "the indices of tq-mse with the row scale of least squared error",
              {rotation_spec(), codebook_spec(), norm_spec()},
              eden_source},
             "index bits"},
            make_scaled<RowScale::least_squares>};
}

QuantizerFamily eden_norm_family() {
    return {{{"eden-norm",
              "the indices of tq-mse with the row scale that keeps the row's norm",
              {rotation_spec(), codebook_spec(), norm_spec()},
              "norm correction of public TurboQuant ports"},
             "index bits"},
            make_scaled<RowScale::norm_matched>};
}

}  // namespace spiked::estimators
