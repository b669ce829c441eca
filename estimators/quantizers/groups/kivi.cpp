#include "estimators/quantizers/groups/kivi.hpp"

#include "estimators/quantizers/common_specs.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/runtime/error.hpp"
#include "estimators/coding/byte_stream.hpp"
#include "estimators/coding/fp16_entries.hpp"

namespace spiked::estimators {
namespace {

std::size_t tail(GroupAxis axis, std::size_t residual, std::size_t tokens) {
    if (residual == 0) return 0;
    return axis == GroupAxis::key ? tokens % residual : std::min(tokens, residual);
}

struct KiviSetup {
    std::size_t dimension;
    unsigned bits;
    NumberFormat format;
    std::size_t group;
    GroupAxis axis;
    bool runs_on;
    std::size_t residual;
    std::optional<std::size_t> exactly;
    Underflow underflow;

    /// The number of tokens that are stored in fp16.
    [[nodiscard]] std::size_t kept(std::size_t tokens) const {
        return std::min(tokens, exactly.value_or(tail(axis, residual, tokens)));
    }
    [[nodiscard]] double top() const { return static_cast<double>((1U << bits) - 1U); }
};

/// Visits the groups of a matrix in their order, channel by channel or token by token. Calls work(at, count), where
/// at(i) is the i-th element of the group.
template <class Work>
void each_group(const KiviSetup& setup, std::size_t tokens, std::size_t stride, const Work& work) {
    const auto cut = [&](std::size_t vectors, std::size_t length, const auto& element) {
        for (std::size_t vector = 0; vector < vectors; ++vector)
            for (std::size_t first = 0; first < length; first += setup.group)
                work([&](std::size_t i) { return element(vector, first + i); }, std::min(setup.group, length - first));
    };
    const std::size_t d = setup.dimension;
    if (setup.runs_on && d % setup.group != 0)
        cut(1, tokens * d, [&](std::size_t, std::size_t entry) { return entry % d * stride + entry / d; });
    else if (setup.axis == GroupAxis::key)
        cut(d, tokens, [&](std::size_t channel, std::size_t token) { return channel * stride + token; });
    else
        cut(tokens, d, [&](std::size_t token, std::size_t channel) { return channel * stride + token; });
}

struct Groups {
    std::vector<double> zeros;
    std::vector<double> scales;
};

template <class Real>
Groups find_groups(const KiviSetup& setup, const Real* entries, std::size_t tokens, std::size_t stride) {
    Groups groups;
    each_group(setup, tokens, stride, [&](const auto& at, std::size_t count) {
        Real low = entries[at(0)];
        Real high = low;
        for (std::size_t i = 1; i < count; ++i) {
            low = std::min(low, entries[at(i)]);
            high = std::max(high, entries[at(i)]);
        }
        groups.zeros.push_back(static_cast<double>(low));
        groups.scales.push_back((static_cast<double>(high) - static_cast<double>(low)) / setup.top());
    });
    return groups;
}

/// Rejects groups that the format cannot store. A minimum or a scale may vanish if other entries are larger, but not
/// all of the block.
void reject_lost_groups(const KiviSetup& setup, const Groups& groups, const Groups& stored) {
    double largest = 0.0;
    double moved = 0.0;
    for (std::size_t g = 0; g < groups.zeros.size(); ++g) {
        const double range = setup.top() * groups.scales[g];
        largest = std::max({largest, std::abs(groups.zeros[g]), std::abs(groups.zeros[g] + range)});
        moved = std::max(
            {moved, std::abs(stored.zeros[g] - groups.zeros[g]), std::abs(setup.top() * stored.scales[g] - range)});
    }
    // Rounding within the normal range of the coarsest format changes entries by half as much.
    if (moved > 0x1p-7 * largest)
        throw input_error(
            "groups of entries up to {:.6g} are too small for {} (rounding changes them by up to {:.6g}): {}", largest,
            name_of(setup.format), moved, advice_for(largest / setup.top()));
}

template <class Real>
Encoded encode(const KiviSetup& setup, const arma::Mat<Real>& rows) {
    require_length(rows.n_cols, setup.dimension);
    if (!rows.is_finite())
        throw input_error("a row holds NaN or infinity (its group has no range): clean the data first");
    const std::size_t kept = setup.kept(rows.n_rows);
    const std::size_t tokens = rows.n_rows - kept;
    const std::size_t stride = rows.n_rows;
    const Real* entries = rows.memptr();
    BitWriter writer;
    const Groups groups = find_groups(setup, entries, tokens, stride);
    const auto zeros =
        write_and_read_numbers(writer, Item::zeros, groups.zeros, setup.format, "group minimum", Underflow::allowed);
    const auto scales =
        write_and_read_numbers(writer, Item::scales, groups.scales, setup.format, "group scale", Underflow::allowed);
    if (setup.underflow == Underflow::rejected) reject_lost_groups(setup, groups, {zeros, scales});
    std::vector<std::uint8_t> codes(tokens * setup.dimension);
    std::size_t group = 0;
    const auto top = static_cast<Real>(setup.top());
    each_group(setup, tokens, stride, [&](const auto& at, std::size_t count) {
        const auto zero = static_cast<Real>(zeros[group]);
        const auto scale = static_cast<Real>(scales[group]);
        ++group;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t element = at(i);
            const Real code = scale > Real{0} ? (entries[element] - zero) / scale : Real{0};
            // Codes are stored channel after channel without the kept tokens.
            codes[element / stride * tokens + element % stride] =
                static_cast<std::uint8_t>(std::nearbyint(std::clamp(code, Real{0}, top)));
        }
    });
    writer.write_cells(Item::indices, codes, setup.bits);
    std::vector<double> window;
    for (std::size_t j = 0; j < setup.dimension; ++j)
        for (std::size_t t = tokens; t < stride; ++t) window.push_back(static_cast<double>(entries[j * stride + t]));
    write_fp16(writer, Item::residual_window, window, "entry of the residual window",
               "keep no tokens in full (residual 0) or scale the data", setup.underflow);
    return finished(writer);
}

template <class Real>
arma::Mat<Real> decode(const KiviSetup& setup, std::span<const std::uint8_t> bytes, std::size_t count) {
    const std::size_t tokens = count - setup.kept(count);
    std::size_t groups = 0;
    each_group(setup, tokens, count, [&](const auto&, std::size_t) { ++groups; });
    BitReader reader(bytes);
    std::vector<double> zeros(groups);
    std::vector<double> scales(groups);
    read_numbers(reader, zeros, setup.format);
    read_numbers(reader, scales, setup.format);
    std::vector<std::uint8_t> codes(tokens * setup.dimension);
    reader.read_cells(codes, setup.bits);
    arma::Mat<Real> rows(count, setup.dimension);
    std::size_t group = 0;
    each_group(setup, tokens, count, [&](const auto& at, std::size_t size) {
        const auto zero = static_cast<Real>(zeros[group]);
        const auto scale = static_cast<Real>(scales[group]);
        ++group;
        for (std::size_t i = 0; i < size; ++i) {
            const std::size_t element = at(i);
            rows[element] = static_cast<Real>(codes[element / count * tokens + element % count]) * scale + zero;
        }
    });
    for (std::size_t j = 0; j < setup.dimension; ++j)
        for (std::size_t t = tokens; t < count; ++t) rows(t, j) = static_cast<Real>(read_half(reader));
    reader.require_end();
    return rows;
}

}  // namespace

std::size_t kivi_tail(const KiviOptions& options, std::size_t tokens) {
    return tail(options.axis, options.residual, tokens);
}

RowQuantizer kivi(std::size_t dimension, unsigned bits, const KiviOptions& options) {
    if (options.group == 0) throw usage_error("a group of 0 entries has no scale: give --group 1 or more");
    const auto setup = std::make_shared<const KiviSetup>(
        KiviSetup{dimension, bits, options.scales.format, options.group, options.axis, options.runs_on,
                  options.residual, options.kept, options.scales.underflow});
    return {
        "kivi", [setup](const arma::mat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode<double>(*setup, bytes, rows); },
        [setup](const arma::fmat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode<float>(*setup, bytes, rows); }};
}

namespace {

KiviOptions options_in(const NameOptions& named, const QuantizerOptions& options) {
    return {.group = group_of(named, options),
            .axis = axis_of(named, options),
            .residual = named.whole("residual").value_or(options.residual),
            .kept = options.kept,
            .scales = scalar_options(options)};
}

/// transformers groups the entries of keys and values alike in the order of memory and quantizes a prompt at once.
KiviOptions options_of_hf(const NameOptions& named, const QuantizerOptions& options) {
    return {.group = group_of(named, options),
            .axis = GroupAxis::value,
            .runs_on = true,
            .kept = 0,
            .scales = scalar_options(options)};
}

RowQuantizer make_kivi(const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options) {
    require_signs(named, options);
    return kivi(dimension, static_cast<unsigned>(bits), options_in(named, options));
}

RowQuantizer make_kivi_hf(const NameOptions& named, std::size_t dimension, double bits,
                          const QuantizerOptions& options) {
    require_signs(named, options);
    return kivi(dimension, static_cast<unsigned>(bits), options_of_hf(named, options));
}

std::size_t tail_of_kivi(const NameOptions& named, const QuantizerOptions& options, std::size_t tokens) {
    return kivi_tail(options_in(named, options), tokens);
}

}  // namespace

std::optional<KiviOptions> kivi_options(const QuantizerSpec& quantizer, const QuantizerOptions& options) {
    if (quantizer.family == nullptr) return std::nullopt;
    if (quantizer.family->make == make_kivi) return options_in(quantizer.named, options);
    if (quantizer.family->make == make_kivi_hf) return options_of_hf(quantizer.named, options);
    return std::nullopt;
}

QuantizerFamily kivi_family() {
    return {{{"kivi",
              "uniform levels from the minimum to the maximum of each group, along tokens for keys (per channel), "
              "along channels for values (per token)",
              {group_spec(), axis_spec(), residual_spec(), signed_norm_spec()},
              "Liu et al. 2024"},
             "code bits",
             true},
            make_kivi,
            tail_of_kivi};
}

QuantizerFamily kivi_hf_family() {
    return {{{"kivi-hf",
              "kivi as Hugging Face transformers runs it with quanto: groups along channels, for keys and values alike",
              {group_spec(), signed_norm_spec()},
              "QuantizedCache of Hugging Face transformers"},
             "code bits",
             true},
            make_kivi_hf};
}

}  // namespace spiked::estimators
