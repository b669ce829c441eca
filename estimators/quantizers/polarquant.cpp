#include "estimators/quantizers/polarquant.hpp"

#include "estimators/quantizers/common_specs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <numbers>

#include "core/runtime/error.hpp"
#include "estimators/coding/row_norms.hpp"
#include "estimators/coding/scalar_quantizer.hpp"

namespace spiked::estimators {
namespace {

constexpr std::size_t group_length = 16;
constexpr double pi = std::numbers::pi;

/// Equal bins of [-pi, pi).
theory::Codebook first_level(unsigned bits) {
    theory::Codebook codebook;
    codebook.bits = static_cast<int>(bits);
    const std::size_t bins = std::size_t{1} << bits;
    const double width = 2.0 * pi / static_cast<double>(bins);
    for (std::size_t i = 0; i < bins; ++i) {
        codebook.levels.push_back(-pi + (static_cast<double>(i) + 0.5) * width);
        if (i > 0) codebook.thresholds.push_back(-pi + static_cast<double>(i) * width);
    }
    return codebook;
}

/// Lloyd's iteration on a fine grid for the density sin(2 a)^power, which is smooth and has one maximum.
theory::Codebook later_level(unsigned bits, unsigned power) {
    constexpr std::size_t grid = 4096;
    std::vector<double> mass(grid + 1, 0.0);  // cumulative, up to each grid point
    std::vector<double> moment(grid + 1, 0.0);
    const double step = 0.5 * pi / static_cast<double>(grid);
    for (std::size_t i = 0; i < grid; ++i) {
        const double angle = (static_cast<double>(i) + 0.5) * step;
        const double density = std::pow(std::sin(2.0 * angle), power);
        mass[i + 1] = mass[i] + density;
        moment[i + 1] = moment[i] + density * angle;
    }
    const auto below = [step](const std::vector<double>& sums, double angle) {
        const double at = std::clamp(angle / step, 0.0, static_cast<double>(grid) - 1e-9);
        const auto i = static_cast<std::size_t>(at);
        return sums[i] + (at - static_cast<double>(i)) * (sums[i + 1] - sums[i]);
    };
    theory::Codebook codebook;
    codebook.bits = static_cast<int>(bits);
    const std::size_t bins = std::size_t{1} << bits;
    codebook.levels.resize(bins);
    codebook.thresholds.resize(bins - 1);
    for (std::size_t c = 0; c + 1 < bins; ++c)
        codebook.thresholds[c] = 0.5 * pi * static_cast<double>(c + 1) / static_cast<double>(bins);
    for (int round = 0; round < 4000; ++round) {
        for (std::size_t c = 0; c < bins; ++c) {
            const double low = c == 0 ? 0.0 : codebook.thresholds[c - 1];
            const double high = c + 1 == bins ? 0.5 * pi : codebook.thresholds[c];
            codebook.levels[c] = (below(moment, high) - below(moment, low)) / (below(mass, high) - below(mass, low));
        }
        double moved = 0.0;
        for (std::size_t c = 0; c + 1 < bins; ++c) {
            const double middle = 0.5 * (codebook.levels[c] + codebook.levels[c + 1]);
            moved = std::max(moved, std::abs(middle - codebook.thresholds[c]));
            codebook.thresholds[c] = middle;
        }
        if (moved < 1e-13) break;
    }
    return codebook;
}

struct PolarquantSetup {
    std::size_t dimension;
    NumberFormat norm;
    Underflow underflow;
    RowRotation rotation;
    std::vector<theory::Codebook> levels;  ///< codebooks of angles, starting with pairs of coordinates

    [[nodiscard]] std::size_t groups() const { return (dimension + group_length - 1) / group_length; }
    /// The number of coordinates of a group, including padding.
    [[nodiscard]] std::size_t length(std::size_t group) const {
        return std::max<std::size_t>(2, std::bit_ceil(std::min(group_length, dimension - group * group_length)));
    }
};

struct Polar {
    double radius = 0.0;
    std::vector<std::uint8_t> bins;  ///< level after level
};

Polar to_polar(const PolarquantSetup& setup, std::vector<double> values) {
    Polar polar;
    for (std::size_t level = 0; values.size() > 1; ++level) {
        std::vector<double> radii;
        for (std::size_t i = 0; i < values.size(); i += 2) {
            const double angle = std::atan2(values[i + 1], values[i]);
            polar.bins.push_back(static_cast<std::uint8_t>(cell_of(angle, setup.levels[level])));
            radii.push_back(std::hypot(values[i], values[i + 1]));
        }
        values = std::move(radii);
    }
    polar.radius = values.front();
    return polar;
}

/// Decodes the entries of a group of this length.
std::vector<double> from_polar(const PolarquantSetup& setup, double radius, std::size_t length, BitReader& reader) {
    std::vector<std::vector<double>> angles;
    for (std::size_t count = length / 2; count > 0; count /= 2) {
        const theory::Codebook& codebook = setup.levels[angles.size()];
        auto& level = angles.emplace_back(count);
        for (double& angle : level) angle = codebook.levels[reader.read(static_cast<unsigned>(codebook.bits))];
    }
    std::vector<double> values = {radius};
    for (std::size_t level = angles.size(); level-- > 0;) {
        std::vector<double> parts;
        for (std::size_t i = 0; i < values.size(); ++i) {
            parts.push_back(values[i] * std::cos(angles[level][i]));
            parts.push_back(values[i] * std::sin(angles[level][i]));
        }
        values = std::move(parts);
    }
    return values;
}

Encoded encode(const PolarquantSetup& setup, const arma::mat& rows) {
    require_length(rows.n_cols, setup.dimension);
    (void)row_norms(rows);  // rejects NaN and infinity
    const arma::mat coordinates = setup.rotation.rotate(rows);
    std::vector<double> radii;
    std::vector<std::vector<std::uint8_t>> bins;
    for (std::size_t t = 0; t < rows.n_rows; ++t)
        for (std::size_t group = 0; group < setup.groups(); ++group) {
            std::vector<double> values(setup.length(group), 0.0);
            const std::size_t first = group * group_length;
            for (std::size_t i = 0; i < values.size() && first + i < setup.dimension; ++i)
                values[i] = coordinates(t, first + i);
            Polar polar = to_polar(setup, std::move(values));
            radii.push_back(polar.radius);
            bins.push_back(std::move(polar.bins));
        }
    BitWriter writer;
    write_numbers(writer, Item::norms, radii, setup.norm, "radius", setup.underflow);
    for (const auto& group : bins) {
        std::size_t at = 0;
        std::size_t count = (group.size() + 1) / 2;
        for (std::size_t level = 0; at < group.size(); ++level, count /= 2)
            for (std::size_t i = 0; i < count; ++i)
                writer.write(Item::indices, group[at++], static_cast<unsigned>(setup.levels[level].bits));
    }
    return finished(writer);
}

arma::mat decode(const PolarquantSetup& setup, std::span<const std::uint8_t> bytes, std::size_t rows) {
    BitReader reader(bytes);
    std::vector<double> radii(rows * setup.groups());
    read_numbers(reader, radii, setup.norm);
    arma::mat coordinates(rows, setup.dimension);
    std::size_t at = 0;
    for (std::size_t t = 0; t < rows; ++t)
        for (std::size_t group = 0; group < setup.groups(); ++group) {
            const auto values = from_polar(setup, radii[at++], setup.length(group), reader);
            const std::size_t first = group * group_length;
            for (std::size_t i = 0; i < values.size() && first + i < setup.dimension; ++i)
                coordinates(t, first + i) = values[i];
        }
    reader.require_end();
    return setup.rotation.rotate_back(std::move(coordinates));
}

}  // namespace

RowQuantizer polarquant(std::size_t dimension, unsigned bits, const PolarquantOptions& options) {
    std::vector<theory::Codebook> levels = {first_level(bits)};
    const unsigned later = std::max(bits, 3U) - 2U;
    for (const unsigned power : {1U, 3U, 7U}) levels.push_back(later_level(later, power));
    const auto setup = std::make_shared<const PolarquantSetup>(
        PolarquantSetup{dimension, options.norms.format, options.norms.underflow,
                        row_rotation(options.rotation, dimension), std::move(levels)});
    return in_double(
        "polarquant", [setup](const arma::mat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode(*setup, bytes, rows); });
}

QuantizerFamily polarquant_family() {
    return {{{"polarquant",
              "radius and angles of each group of 16 rotated coordinates",
              {rotation_spec(), norm_spec()},
              "Han et al. 2025"},
             "bits of a first-level angle; later angles have two fewer, so that B = 4 takes 3.875 an entry"},
            [](const NameOptions&, std::size_t dimension, double bits, const QuantizerOptions& options) {
                return polarquant(dimension, static_cast<unsigned>(bits),
                                  {rotation_options(options), scalar_options(options)});
            }};
}

}  // namespace spiked::estimators
