#include "estimators/quantizers/kvquant.hpp"

#include "estimators/quantizers/quantizer_family.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "core/runtime/error.hpp"
#include "estimators/coding/fp16_entries.hpp"
#include "estimators/coding/scalar_quantizer.hpp"
#include "estimators/coding/vector_outliers.hpp"

namespace spiked::estimators {
namespace {

struct Setup {
    std::size_t dimension;
    unsigned bits;
    NumberFormat format;
    GroupAxis axis;
    double outliers;
    Underflow underflow;
};

/// Middle and half of the range of what is no outlier.
struct Range {
    double centre = 0.0;
    double half = 0.0;
};

Range range_of(const arma::vec& line, const std::vector<bool>& outlier) {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (std::size_t i = 0; i < line.n_elem; ++i)
        if (!outlier[i]) {
            low = std::min(low, line(i));
            high = std::max(high, line(i));
        }
    if (low > high) return {};
    return {0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low};
}

/// Lloyd's iteration on sorted values, from equal cells of [-1, 1]; levels as fp16 keeps them.
theory::Codebook fitted_levels(std::vector<double> values, unsigned bits) {
    const std::size_t cells = std::size_t{1} << bits;
    theory::Codebook codebook;
    codebook.bits = static_cast<int>(bits);
    for (std::size_t c = 0; c < cells; ++c)
        codebook.levels.push_back((2.0 * static_cast<double>(c) + 1.0) / static_cast<double>(cells) - 1.0);
    codebook.thresholds.resize(cells - 1);
    std::sort(values.begin(), values.end());
    std::vector<double> sums(values.size() + 1, 0.0);
    for (std::size_t i = 0; i < values.size(); ++i) sums[i + 1] = sums[i] + values[i];
    const auto set_thresholds = [&codebook] {
        for (std::size_t c = 0; c < codebook.thresholds.size(); ++c)
            codebook.thresholds[c] = 0.5 * (codebook.levels[c] + codebook.levels[c + 1]);
    };
    for (int round = 0; round < 100; ++round) {
        set_thresholds();
        double moved = 0.0;
        std::size_t first = 0;
        for (std::size_t c = 0; c < cells; ++c) {
            // A value on a threshold belongs below it.
            const std::size_t end =
                c + 1 == cells
                    ? values.size()
                    : static_cast<std::size_t>(std::upper_bound(values.begin(), values.end(), codebook.thresholds[c]) -
                                               values.begin());
            if (end > first) {
                const double mean = (sums[end] - sums[first]) / static_cast<double>(end - first);
                moved = std::max(moved, std::abs(mean - codebook.levels[c]));
                codebook.levels[c] = mean;
            }
            first = std::max(first, end);
        }
        if (moved < 1e-6) break;
    }
    for (double& level : codebook.levels) level = rounded_to_half(level, "level");
    std::sort(codebook.levels.begin(), codebook.levels.end());
    set_thresholds();
    return codebook;
}

/// Lines of the block as columns.
arma::mat as_lines(const Setup& setup, const arma::mat& rows) {
    return setup.axis == GroupAxis::key ? rows : arma::mat(rows.t());
}

/// A centre or a range may vanish beside larger entries of the block; the block must not.
void reject_lost_vectors(const Setup& setup, const std::vector<double>& centres, const std::vector<double>& halves,
                         const std::vector<double>& stored_centres, const std::vector<double>& stored_halves,
                         double largest_outlier) {
    double largest = largest_outlier;
    double moved = 0.0;
    for (std::size_t l = 0; l < centres.size(); ++l) {
        largest = std::max(largest, std::abs(centres[l]) + halves[l]);
        moved = std::max(moved, std::abs(stored_centres[l] - centres[l]) + std::abs(stored_halves[l] - halves[l]));
    }
    if (moved > 0x1p-7 * largest)
        throw input_error("lines of entries up to {:.6g} are too small for {} (rounded, they move by up to {:.6g}): {}",
                          largest, name_of(setup.format), moved, advice_for(largest));
}

Encoded encode(const Setup& setup, const arma::mat& rows) {
    require_length(rows.n_cols, setup.dimension);
    if (!rows.is_finite())
        throw input_error("a row holds NaN or infinity (its line has no range): clean the data first");
    BitWriter writer;
    if (rows.n_elem == 0) return finished(writer);
    const arma::mat lines = as_lines(setup, rows);
    const VectorOutliers outliers(lines, setup.outliers);
    std::vector<std::vector<bool>> outlier(lines.n_cols, std::vector<bool>(lines.n_rows, false));
    std::vector<double> centres;
    std::vector<double> halves;
    for (std::size_t l = 0; l < lines.n_cols; ++l) {
        for (const std::size_t place : outliers.places(l)) outlier[l][place] = true;
        const Range range = range_of(lines.col(l), outlier[l]);
        centres.push_back(range.centre);
        halves.push_back(range.half);
    }
    const auto stored_centres =
        write_and_read_numbers(writer, Item::zeros, centres, setup.format, "centre of a line", Underflow::allowed);
    const auto stored_halves =
        write_and_read_numbers(writer, Item::scales, halves, setup.format, "range of a line", Underflow::allowed);
    if (setup.underflow == Underflow::refused) {
        reject_lost_vectors(setup, centres, halves, stored_centres, stored_halves, outliers.largest());
        reject_lost_fp16(outliers.largest(), "outlier", outlier_advice);
    }
    arma::mat scaled = lines;
    std::vector<double> dense;
    for (std::size_t l = 0; l < lines.n_cols; ++l) {
        const double unit = stored_halves[l] > 0.0 ? 1.0 / stored_halves[l] : 0.0;
        scaled.col(l) = arma::clamp((lines.col(l) - stored_centres[l]) * unit, -1.0, 1.0);
        for (std::size_t i = 0; i < lines.n_rows; ++i)
            if (!outlier[l][i]) dense.push_back(scaled(i, l));
    }
    const theory::Codebook codebook = fitted_levels(dense, setup.bits);
    for (const double level : codebook.levels) write_half(writer, Item::codebooks, level, "level");
    arma::Mat<std::uint8_t> codes(arma::size(lines));
    for (std::size_t i = 0; i < scaled.n_elem; ++i) codes[i] = static_cast<std::uint8_t>(cell_of(scaled[i], codebook));
    for (std::size_t l = 0; l < lines.n_cols; ++l)
        for (const std::size_t place : outliers.places(l)) codes(place, l) = 0;
    if (setup.axis == GroupAxis::value) codes = codes.t();
    writer.write_cells(Item::indices, {codes.memptr(), codes.n_elem}, setup.bits);
    outliers.write(writer);
    return finished(writer);
}

arma::mat decode(const Setup& setup, std::span<const std::uint8_t> bytes, std::size_t rows) {
    if (rows == 0) return arma::mat(0, setup.dimension);
    const bool key = setup.axis == GroupAxis::key;
    arma::mat lines(key ? rows : setup.dimension, key ? setup.dimension : rows);
    BitReader reader(bytes);
    std::vector<double> centres(lines.n_cols);
    std::vector<double> halves(lines.n_cols);
    read_numbers(reader, centres, setup.format);
    read_numbers(reader, halves, setup.format);
    std::vector<double> levels(std::size_t{1} << setup.bits);
    for (double& level : levels) level = read_half(reader);
    arma::Mat<std::uint8_t> codes(rows, setup.dimension);
    reader.read_cells({codes.memptr(), codes.n_elem}, setup.bits);
    if (!key) codes = codes.t();
    for (std::size_t l = 0; l < lines.n_cols; ++l)
        for (std::size_t i = 0; i < lines.n_rows; ++i) lines(i, l) = centres[l] + halves[l] * levels[codes(i, l)];
    VectorOutliers::read(reader, setup.outliers, lines);
    reader.require_end();
    return key ? lines : arma::mat(lines.t());
}

}  // namespace

RowQuantizer kvquant(std::size_t dimension, unsigned bits, const KvquantOptions& options) {
    const double outliers = options.outliers;
    if (!(outliers >= 0.0 && outliers <= 0.5))
        throw usage_error("a share of {} outliers is not possible (from 0 to 0.5): give kvquant:outliers=0.01",
                          outliers);
    const auto setup = std::make_shared<const Setup>(
        Setup{dimension, bits, options.scales.format, options.axis, outliers, options.scales.underflow});
    return in_double(
        "kvquant", [setup](const arma::mat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode(*setup, bytes, rows); });
}

QuantizerFamily kvquant_family() {
    return {{{"kvquant",
              "levels fitted to the block on lines of their own range, the outermost entries kept in fp16",
              {axis_spec(), {"outliers", number("SHARE"), "", "0.01"}, signed_norm_spec()},
              "Hooper et al. 2024"},
             "code bits",
             true},
            [](const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options) {
                require_signs(named, options);
                return kvquant(
                    dimension, static_cast<unsigned>(bits),
                    {axis_of(named, options), named.number("outliers").value_or(0.01), scalar_options(options)});
            }};
}

}  // namespace spiked::estimators
