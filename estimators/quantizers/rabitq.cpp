#include "estimators/quantizers/rabitq.hpp"

#include "estimators/quantizers/common_specs.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/runtime/error.hpp"
#include "estimators/coding/row_norms.hpp"

namespace spiked::estimators {
namespace {

struct RabitqSetup {
    std::size_t dimension;
    unsigned bits;
    RowScale scale;
    NumberFormat norm;
    Underflow underflow;
    RowRotation rotation;

    /// The number of grid steps from the innermost to the outermost level of one sign.
    [[nodiscard]] unsigned steps() const { return (1U << (bits - 1)) - 1U; }
    [[nodiscard]] double level(std::uint8_t index) const {
        return static_cast<double>(index) - 0.5 * static_cast<double>((1U << bits) - 1U);
    }
};

/// The grid direction nearest to the row, as steps of every coordinate, and its cosine with the row.
struct Nearest {
    std::vector<unsigned> steps;
    double cosine = 0.0;
};

Nearest nearest_direction(const RabitqSetup& setup, const arma::rowvec& row) {
    struct Crossing {
        double at;
        std::size_t coordinate;
    };
    std::vector<Crossing> crossings;
    double across = 0.0;
    double energy = 0.25 * static_cast<double>(row.n_elem);
    for (std::size_t j = 0; j < row.n_elem; ++j) {
        const double size = std::abs(row(j));
        across += 0.5 * size;
        if (size > 0.0)
            for (unsigned m = 1; m <= setup.steps(); ++m) crossings.push_back({static_cast<double>(m) / size, j});
    }
    std::sort(crossings.begin(), crossings.end(), [](const Crossing& a, const Crossing& b) {
        return a.at != b.at ? a.at < b.at : a.coordinate < b.coordinate;
    });
    std::vector<unsigned> steps(row.n_elem, 0);
    double best = across / std::sqrt(energy);
    std::size_t best_count = 0;
    for (std::size_t i = 0; i < crossings.size(); ++i) {
        const std::size_t j = crossings[i].coordinate;
        across += std::abs(row(j));
        energy += 2.0 * static_cast<double>(++steps[j]);  // (m + 1/2)^2 - (m - 1/2)^2
        if (const double found = across / std::sqrt(energy); found > best) {
            best = found;
            best_count = i + 1;
        }
    }
    Nearest nearest{std::vector<unsigned>(row.n_elem, 0), best / arma::norm(row)};
    for (std::size_t i = 0; i < best_count; ++i) ++nearest.steps[crossings[i].coordinate];
    return nearest;
}

double stored_length(RowScale scale, double norm, double cosine) {
    if (scale == RowScale::unbiased) return norm / cosine;
    return scale == RowScale::least_squares ? norm * cosine : norm;
}

Encoded encode(const RabitqSetup& setup, const arma::mat& rows) {
    require_length(rows.n_cols, setup.dimension);
    auto [lengths, coordinates] = unit_rows(rows, setup.rotation);
    arma::Mat<std::uint8_t> cells(rows.n_rows, rows.n_cols);
    for (std::size_t t = 0; t < rows.n_rows; ++t) {
        if (lengths[t] == 0.0) continue;
        const Nearest nearest = nearest_direction(setup, coordinates.row(t));
        lengths[t] = stored_length(setup.scale, lengths[t], nearest.cosine);
        for (std::size_t j = 0; j < rows.n_cols; ++j) {
            const unsigned steps = nearest.steps[j];
            cells(t, j) =
                static_cast<std::uint8_t>(coordinates(t, j) > 0.0 ? setup.steps() + 1 + steps : setup.steps() - steps);
        }
    }
    BitWriter writer;
    write_numbers(writer, Item::norms, lengths, setup.norm, "row norm", setup.underflow);
    writer.write_cells(Item::indices, {cells.memptr(), cells.n_elem}, setup.bits);
    return finished(writer);
}

arma::mat decode(const RabitqSetup& setup, std::span<const std::uint8_t> bytes, std::size_t rows) {
    BitReader reader(bytes);
    std::vector<double> lengths(rows);
    read_numbers(reader, lengths, setup.norm);
    arma::Mat<std::uint8_t> cells(rows, setup.dimension);
    reader.read_cells({cells.memptr(), cells.n_elem}, setup.bits);
    reader.require_end();
    arma::mat directions(rows, setup.dimension);
    for (std::size_t i = 0; i < cells.n_elem; ++i) directions[i] = setup.level(cells[i]);
    for (std::size_t t = 0; t < rows; ++t) lengths[t] /= arma::norm(directions.row(t));
    scale_rows(directions, lengths, 1.0);
    return setup.rotation.rotate_back(std::move(directions));
}

}  // namespace

RowQuantizer rabitq(std::size_t dimension, unsigned bits, const RabitqOptions& options) {
    if (options.scale == RowScale::norm)
        throw precondition_error("rabitq does not have the scale \"norm\" of TurboQuant");
    const auto setup = std::make_shared<const RabitqSetup>(RabitqSetup{dimension, bits, options.scale,
                                                                       options.norms.format, options.norms.underflow,
                                                                       row_rotation(options.rotation, dimension)});
    return in_double(
        "rabitq", [setup](const arma::mat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode(*setup, bytes, rows); });
}

QuantizerFamily rabitq_family() {
    return {{{"rabitq",
              "the direction of a grid nearest in angle to a rotated row, with the length for which <x, x^> = |x|^2",
              {rotation_spec(), norm_spec(), scale_spec({RowScale::unbiased, RowScale::least_squares, RowScale::norm})},
              "Gao et al. 2025"},
             "index bits"},
            [](const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options) {
                const auto scale = named.choice_or_default<RowScale>("scale");
                return rabitq(dimension, static_cast<unsigned>(bits),
                              {rotation_options(options), scalar_options(options),
                               scale == RowScale::norm ? RowScale::norm_matched : scale});
            }};
}

}  // namespace spiked::estimators
