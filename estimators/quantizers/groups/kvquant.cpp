#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "core/runtime/error.hpp"
#include "estimators/coding/fp16_entries.hpp"
#include "estimators/coding/scalar_quantizer.hpp"
#include "estimators/coding/vector_outliers.hpp"
#include "estimators/quantizers/common_specs.hpp"
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {
namespace {

struct KvquantSetup {
    std::size_t dimension;
    unsigned bits;
    NumberFormat format;
    GroupAxis axis;
    double outliers;
    Underflow underflow;
};

/// Centre and half range of the entries that are not outliers.
struct Range {
    double centre = 0.0;
    double half = 0.0;
};

Range range_of(const arma::vec& vector, const std::vector<bool>& outlier) {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (std::size_t i = 0; i < vector.n_elem; ++i)
        if (!outlier[i]) {
            low = std::min(low, vector(i));
            high = std::max(high, vector(i));
        }
    if (low > high) return {};
    return {0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low};
}

/// Lloyd's iteration on sorted values, starting from equal bins of [-1, 1]; levels are rounded to fp16 as they are
/// stored.
theory::Codebook fitted_levels(std::vector<double> values, unsigned bits) {
    const std::size_t bins = std::size_t{1} << bits;
    theory::Codebook codebook;
    codebook.bits = static_cast<int>(bits);
    for (std::size_t c = 0; c < bins; ++c)
        codebook.levels.push_back((2.0 * static_cast<double>(c) + 1.0) / static_cast<double>(bins) - 1.0);
    codebook.thresholds.resize(bins - 1);
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
        for (std::size_t c = 0; c < bins; ++c) {
            // A value on a threshold belongs below it.
            const std::size_t end =
                c + 1 == bins
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

/// The block with its vectors as columns.
arma::mat as_vectors(const KvquantSetup& setup, const arma::mat& rows) {
    return setup.axis == GroupAxis::key ? rows : arma::mat(rows.t());
}

/// Rejects vectors that the format cannot store. A centre or a range may vanish if other entries are larger, but not
/// all of the block.
void reject_lost_vectors(const KvquantSetup& setup, const std::vector<double>& centres,
                         const std::vector<double>& half_ranges, const std::vector<double>& stored_centres,
                         const std::vector<double>& stored_half_ranges, double largest_outlier) {
    double largest = largest_outlier;
    double moved = 0.0;
    for (std::size_t l = 0; l < centres.size(); ++l) {
        largest = std::max(largest, std::abs(centres[l]) + half_ranges[l]);
        moved = std::max(moved,
                         std::abs(stored_centres[l] - centres[l]) + std::abs(stored_half_ranges[l] - half_ranges[l]));
    }
    if (moved > 0x1p-7 * largest)
        throw input_error(
            "vectors of entries up to {:.6g} are too small for {} (rounding changes them by up to {:.6g}): {}", largest,
            name_of(setup.format), moved, advice_for(largest));
}

Encoded encode(const KvquantSetup& setup, const arma::mat& rows) {
    require_length(rows.n_cols, setup.dimension);
    if (!rows.is_finite())
        throw input_error("a row holds NaN or infinity (its vector has no range): clean the data first");
    BitWriter writer;
    if (rows.n_elem == 0) return finished(writer);
    const arma::mat vectors = as_vectors(setup, rows);
    const VectorOutliers outliers(vectors, setup.outliers);
    std::vector<std::vector<bool>> outlier(vectors.n_cols, std::vector<bool>(vectors.n_rows, false));
    std::vector<double> centres;
    std::vector<double> half_ranges;
    for (std::size_t l = 0; l < vectors.n_cols; ++l) {
        for (const std::size_t position : outliers.places(l)) outlier[l][position] = true;
        const Range range = range_of(vectors.col(l), outlier[l]);
        centres.push_back(range.centre);
        half_ranges.push_back(range.half);
    }
    const auto stored_centres =
        write_and_read_numbers(writer, Item::zeros, centres, setup.format, "centre of a vector", Underflow::allowed);
    const auto stored_half_ranges = write_and_read_numbers(writer, Item::scales, half_ranges, setup.format,
                                                           "range of a vector", Underflow::allowed);
    if (setup.underflow == Underflow::rejected) {
        reject_lost_vectors(setup, centres, half_ranges, stored_centres, stored_half_ranges, outliers.largest());
        reject_lost_fp16(outliers.largest(), "outlier", outlier_advice);
    }
    arma::mat scaled = vectors;
    std::vector<double> dense;
    for (std::size_t l = 0; l < vectors.n_cols; ++l) {
        const double unit = stored_half_ranges[l] > 0.0 ? 1.0 / stored_half_ranges[l] : 0.0;
        scaled.col(l) = arma::clamp((vectors.col(l) - stored_centres[l]) * unit, -1.0, 1.0);
        for (std::size_t i = 0; i < vectors.n_rows; ++i)
            if (!outlier[l][i]) dense.push_back(scaled(i, l));
    }
    const theory::Codebook codebook = fitted_levels(dense, setup.bits);
    for (const double level : codebook.levels) write_half(writer, Item::codebooks, level, "level");
    arma::Mat<std::uint8_t> codes(arma::size(vectors));
    for (std::size_t i = 0; i < scaled.n_elem; ++i) codes[i] = static_cast<std::uint8_t>(cell_of(scaled[i], codebook));
    for (std::size_t l = 0; l < vectors.n_cols; ++l)
        for (const std::size_t position : outliers.places(l)) codes(position, l) = 0;
    if (setup.axis == GroupAxis::value) codes = codes.t();
    writer.write_cells(Item::indices, {codes.memptr(), codes.n_elem}, setup.bits);
    outliers.write(writer);
    return finished(writer);
}

arma::mat decode(const KvquantSetup& setup, std::span<const std::uint8_t> bytes, std::size_t rows) {
    if (rows == 0) return arma::mat(0, setup.dimension);
    const bool key = setup.axis == GroupAxis::key;
    arma::mat vectors(key ? rows : setup.dimension, key ? setup.dimension : rows);
    BitReader reader(bytes);
    std::vector<double> centres(vectors.n_cols);
    std::vector<double> half_ranges(vectors.n_cols);
    read_numbers(reader, centres, setup.format);
    read_numbers(reader, half_ranges, setup.format);
    std::vector<double> levels(std::size_t{1} << setup.bits);
    for (double& level : levels) level = read_half(reader);
    arma::Mat<std::uint8_t> codes(rows, setup.dimension);
    reader.read_cells({codes.memptr(), codes.n_elem}, setup.bits);
    if (!key) codes = codes.t();
    for (std::size_t l = 0; l < vectors.n_cols; ++l)
        for (std::size_t i = 0; i < vectors.n_rows; ++i)
            vectors(i, l) = centres[l] + half_ranges[l] * levels[codes(i, l)];
    VectorOutliers::read(reader, setup.outliers, vectors);
    reader.require_end();
    return key ? vectors : arma::mat(vectors.t());
}

struct KvquantOptions {
    GroupAxis axis;
    double outliers;  ///< fraction of the entries of a vector that are stored in fp16, at most half
    ScalarOptions scales;
};

/// KVQuant: non-uniform levels on vectors scaled to [-1, 1]; the outermost entries of every vector are stored in fp16.
///
/// Source: Hooper et al., "KVQuant", 2024. A vector is a channel (axis key) or a token (axis value) of the block. Of a
/// vector of m entries the k = round(m `outliers` / 2) smallest and as many largest are stored in fp16 with their
/// positions; the others are (x - centre) / half range, coded by the nearest of 2^B levels that Lloyd's iteration finds
/// on the block. Stored: centres (ledger: zeros) and half ranges (scales) in the format of the options, levels in fp16,
/// codes of all entries, coordinate after coordinate (an outlier has code 0), then the outliers of each vector:
/// position in ceil(log2 m) bits, value. Bits B + (2 f + 2 k (16 + log2 m)) / m + 2^B 16 / (n d). With enough bits it
/// is exact up to formats. Not implemented: levels calibrated offline with Fisher weights (here levels are fitted to
/// the block and counted), and storing the first token unquantized; keys before the rotary embedding are
/// `unrope+kvquant`. Throws input_error for NaN, infinity, or a number that the format cannot store.
RowQuantizer kvquant(std::size_t dimension, unsigned bits, const KvquantOptions& options) {
    const auto setup = std::make_shared<const KvquantSetup>(
        KvquantSetup{dimension, bits, options.scales.format, options.axis, options.outliers, options.scales.underflow});
    return in_double(
        "kvquant", [setup](const arma::mat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode(*setup, bytes, rows); });
}

}  // namespace

QuantizerFamily kvquant_family() {
    return {{{"kvquant",
              "non-uniform levels fitted to the block, scaled to the range of each channel (keys) or token (values); "
              "the most extreme entries stay in fp16",
              {axis_spec(),
               {"outliers", number("SHARE", {.least = 0.0, .most = 0.5}),
                "fraction of the entries of a channel or token that stay in fp16", "0.01"},
               signed_norm_spec()},
              "Hooper et al. 2024"},
             "code bits",
             true},
            [](const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options) {
                require_signs(named, options);
                return kvquant(dimension, static_cast<unsigned>(bits),
                               {axis_of(named, options), named.number_or_default("outliers"), scalar_options(options)});
            }};
}

}  // namespace spiked::estimators
