#include "estimators/quantizers/entropy_coded.hpp"

#include "estimators/quantizers/common_specs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/runtime/error.hpp"
#include "theory/laws/root.hpp"

namespace spiked::estimators {
namespace {

constexpr unsigned frequency_bits = 24;
constexpr std::uint64_t frequency_sum = std::uint64_t{1} << frequency_bits;
constexpr std::uint64_t least_state = std::uint64_t{1} << 31;

/// The number of bins on one side of the middle one, such that a row can reach the last one.
std::size_t side_bins(std::size_t dimension, double step) {
    return static_cast<std::size_t>(std::floor(std::sqrt(static_cast<double>(dimension)) / step + 0.5));
}

double surprise(double probability) { return probability > 0.0 ? -probability * std::log2(probability) : 0.0; }

double entropy_at(const theory::CoordinateLaw& law, std::size_t dimension, double step) {
    double above = law.tail(0.5 * step);
    double entropy = surprise(1.0 - 2.0 * above);
    const std::size_t bins = side_bins(dimension, step);
    for (std::size_t k = 1; k <= bins && above > 1e-18; ++k) {
        const double next = law.tail((static_cast<double>(k) + 0.5) * step);
        entropy += 2.0 * surprise(above - next);
        above = next;
    }
    return entropy;
}

double step_at(const theory::CoordinateLaw& law, std::size_t dimension, double rate) {
    const auto beyond = [&](double log_step) { return entropy_at(law, dimension, std::exp(log_step)) - rate; };
    return std::exp(theory::bracketed_root(
        beyond, std::log(4e-3), std::log(2.0 * std::sqrt(static_cast<double>(dimension))),
        [](double a, double b) { return std::abs(a - b) <= 0x1p-39 * std::min(std::abs(a), std::abs(b)); }));
}

/// rANS: symbols are encoded from the last to the first, so that the decoder reads them in order.
class Coder {
public:
    explicit Coder(const std::vector<std::uint32_t>& frequencies) : frequencies_(frequencies), below_{0} {
        for (const std::uint32_t frequency : frequencies) below_.push_back(below_.back() + frequency);
    }

    void write(BitWriter& writer, const std::vector<std::uint32_t>& symbols) const {
        std::uint64_t state = least_state;
        std::vector<std::uint64_t> words;
        for (std::size_t i = symbols.size(); i-- > 0;) {
            const std::uint64_t frequency = frequencies_[symbols[i]];
            if (state >= ((least_state >> frequency_bits) << 32) * frequency) {
                words.push_back(state & 0xFFFFFFFFU);
                state >>= 32;
            }
            state = ((state / frequency) << frequency_bits) + state % frequency + below_[symbols[i]];
        }
        writer.write(Item::indices, state, 64);
        std::reverse(words.begin(), words.end());
        writer.write_all(Item::indices, words, 32);
    }

    [[nodiscard]] std::vector<std::uint32_t> read(BitReader& reader, std::size_t count) const {
        std::vector<std::uint32_t> symbols(count);
        std::uint64_t state = reader.read(64);
        for (std::uint32_t& symbol : symbols) {
            const std::uint64_t place = state & (frequency_sum - 1);
            symbol =
                static_cast<std::uint32_t>(std::upper_bound(below_.begin(), below_.end(), place) - below_.begin() - 1);
            state = frequencies_[symbol] * (state >> frequency_bits) + place - below_[symbol];
            if (state < least_state) state = state << 32 | reader.read(32);
        }
        if (state != least_state)
            throw input_error("an entropy-coded block does not end in its initial state: the data is damaged");
        return symbols;
    }

private:
    std::vector<std::uint32_t> frequencies_;
    std::vector<std::uint64_t> below_;
};

struct EntropyCoderSetup {
    std::size_t dimension;
    RowScale scale;
    NumberFormat norm;
    Underflow underflow;
    RowRotation rotation;
    EntropyCodedLevels bins;
    Coder coder;

    [[nodiscard]] std::uint32_t bin_of(double value) const {
        const double side = static_cast<double>(bins.levels.size() / 2);
        return static_cast<std::uint32_t>(std::clamp(std::nearbyint(value / bins.step), -side, side) + side);
    }
};

Encoded encode(const EntropyCoderSetup& setup, const arma::mat& rows) {
    require_length(rows.n_cols, setup.dimension);
    const auto [norms, coordinates] = unit_rows(rows, setup.rotation);
    std::vector<std::uint32_t> symbols(coordinates.n_elem);
    arma::mat levels(arma::size(coordinates));
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        symbols[i] = setup.bin_of(coordinates[i]);
        levels[i] = setup.bins.levels[symbols[i]];
    }
    std::vector<double> scales = norms;
    for (std::size_t t = 0; t < scales.size(); ++t) {
        const double across = arma::dot(coordinates.row(t), levels.row(t));
        const double energy = arma::dot(levels.row(t), levels.row(t));
        // At low rates all entries of a row may lie in the middle bin.
        if (across > 0.0)
            scales[t] = stored_scale(setup.scale, norms[t], static_cast<double>(setup.dimension), across, energy);
    }
    BitWriter writer;
    write_numbers(writer, Item::norms, scales, setup.norm, "row norm", setup.underflow);
    if (!symbols.empty()) setup.coder.write(writer, symbols);
    return finished(writer);
}

arma::mat decode(const EntropyCoderSetup& setup, std::span<const std::uint8_t> bytes, std::size_t rows) {
    BitReader reader(bytes);
    std::vector<double> scales(rows);
    read_numbers(reader, scales, setup.norm);
    arma::mat levels(rows, setup.dimension);
    if (levels.n_elem > 0) {
        const std::vector<std::uint32_t> symbols = setup.coder.read(reader, levels.n_elem);
        for (std::size_t i = 0; i < symbols.size(); ++i) levels[i] = setup.bins.levels[symbols[i]];
    }
    reader.require_end();
    return from_unit_rows(std::move(levels), scales, setup.rotation);
}

}  // namespace

EntropyCodedLevels entropy_coded_levels(CodebookKind kind, std::size_t dimension, double rate) {
    if (dimension < 2)
        throw usage_error("rows of {} entry have no entropy-coded levels (a coordinate is a sign): choose tq-mse",
                          dimension);
    const theory::CoordinateLaw law(kind, dimension);
    EntropyCodedLevels bins;
    bins.step = step_at(law, dimension, rate);
    const std::size_t side = side_bins(dimension, bins.step);
    bins.levels.assign(2 * side + 1, 0.0);
    bins.frequencies.assign(2 * side + 1, 1);
    const double shared = static_cast<double>(frequency_sum - bins.levels.size());
    std::uint64_t given = 0;
    for (std::size_t k = 1; k <= side; ++k) {
        const double low = (static_cast<double>(k) - 0.5) * bins.step;
        const double high = low + bins.step;
        const double probability = law.tail(low) - law.tail(high);
        const double mean = probability > 0.0 ? (law.tail_mean(low) - law.tail_mean(high)) / probability : low;
        // In the far tail the difference is rounding error.
        bins.levels[side + k] = std::clamp(mean, low, high);
        bins.levels[side - k] = -bins.levels[side + k];
        const auto frequency = static_cast<std::uint32_t>(1.0 + std::floor(probability * shared));
        bins.frequencies[side + k] = bins.frequencies[side - k] = frequency;
        given += 2 * std::uint64_t{frequency};
    }
    bins.frequencies[side] = static_cast<std::uint32_t>(frequency_sum - given);
    return bins;
}

RowQuantizer entropy_coded(std::size_t dimension, double rate, const EntropyCodedOptions& options) {
    EntropyCodedLevels bins = entropy_coded_levels(options.codebook, dimension, rate);
    Coder coder(bins.frequencies);
    const auto setup = std::make_shared<const EntropyCoderSetup>(
        EntropyCoderSetup{dimension, options.scale, options.norms.format, options.norms.underflow,
                          row_rotation(options.rotation, dimension), std::move(bins), std::move(coder)});
    return in_double(
        "ecsq", [setup](const arma::mat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode(*setup, bytes, rows); });
}

QuantizerFamily ecsq_family() {
    return {
        .entry = {{"ecsq",
                   "uniform levels for the coordinates of a rotated row, with entropy-coded indices",
                   {rotation_spec(), codebook_spec(), norm_spec(),
                    scale_spec({RowScale::least_squares, RowScale::unbiased, RowScale::norm})},
                   "Gish & Pierce 1968"},
                  "mean bits of an entropy-coded index, also fractions: 0.25 to 8",
                  false,
                  true},
        .make =
            [](const NameOptions& named, std::size_t dimension, double rate, const QuantizerOptions& options) {
                return entropy_coded(dimension, rate,
                                     {rotation_options(options), options.codebook, scalar_options(options),
                                      named.choice_or_default<RowScale>("scale")});
            },
        .matrices =
            [](const NameOptions&, std::size_t dimension, double rate, const QuantizerOptions& options) {
                const auto bins = entropy_coded_levels(options.codebook, dimension, rate);
                const arma::rowvec frequencies(std::vector<double>(bins.frequencies.begin(), bins.frequencies.end()));
                return NamedMatrices{
                    {fmt::format("levels-and-frequencies:{}:{}", rate, codebook_text(options.codebook, dimension)),
                     arma::join_cols(arma::rowvec(bins.levels), frequencies)}};
            }};
}

}  // namespace spiked::estimators
