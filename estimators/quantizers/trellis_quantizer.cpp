#include "estimators/quantizers/trellis_quantizer.hpp"

#include "estimators/quantizers/common_specs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>

#include "core/runtime/error.hpp"
#include "core/runtime/memo.hpp"
#include "core/runtime/processor.hpp"
#include "core/runtime/stop_point.hpp"
#include "theory/quantization/coordinate_law.hpp"

namespace spiked::estimators {
namespace {

#define SPIKED_INLINE inline __attribute__((always_inline))

constexpr std::size_t chunk_coordinates = std::size_t{1} << 13;
constexpr std::size_t joint = 64;  ///< coordinates on either side that determine where a tail-biting path is joined

using Symbols = std::vector<std::uint8_t>;

/// 0 .. count - 1, sorted by a random word for each.
std::vector<std::uint32_t> shuffled(std::uint32_t count, const stream::Stream& stream, std::uint16_t draw) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> keys(count);
    for (std::uint32_t i = 0; i < count; ++i) keys[i] = {stream.words(i, draw)[0], i};
    std::sort(keys.begin(), keys.end());
    std::vector<std::uint32_t> order(count);
    for (std::uint32_t i = 0; i < count; ++i) order[i] = keys[i].second;
    return order;
}

/// Quantiles in the middle of 2^state_bits equal parts of the law. They are most of a quantizer's cost and therefore
/// cached; only a few are, because each has up to 4096 of them.
std::vector<float> middle_quantiles(CodebookKind kind, std::size_t dimension, unsigned state_bits) {
    using Key = std::tuple<CodebookKind, std::size_t, unsigned>;
    static Memo<Key, std::vector<float>, 64> known;
    return known.of({kind, dimension, state_bits}, [&] {
        const theory::CoordinateLaw law(kind, dimension);
        std::vector<float> quantiles(std::size_t{1} << state_bits);
        for (std::size_t i = 0; i < quantiles.size(); ++i)
            quantiles[i] = static_cast<float>(
                law.quantile((static_cast<double>(i) + 0.5) / static_cast<double>(quantiles.size())));
        return quantiles;
    });
}

/// Levels by state. The 2^bits states that follow one state differ in their last bits.
std::vector<float> level_table(CodebookKind kind, std::size_t dimension, unsigned bits, unsigned state_bits,
                               const stream::Stream& stream) {
    const std::vector<float> quantiles = middle_quantiles(kind, dimension, state_bits);
    const std::uint32_t branches = 1U << bits;
    const std::uint32_t groups = 1U << (state_bits - bits);
    std::vector<float> table(quantiles.size());
    std::vector<std::vector<std::uint32_t>> members;  // of each stratum
    for (std::uint32_t s = 0; s < branches; ++s)
        members.push_back(shuffled(groups, stream, static_cast<std::uint16_t>(2 * s)));
    std::vector<std::uint32_t> strata(branches);
    for (std::uint32_t g = 0; g < groups; ++g) {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> keys;
        for (std::uint32_t b = 0; b < branches; ++b)
            keys.emplace_back(stream.words(g, static_cast<std::uint16_t>(2 * b + 1))[0], b);
        std::sort(keys.begin(), keys.end());
        for (std::uint32_t b = 0; b < branches; ++b) {
            const std::uint32_t stratum = keys[b].second;
            table[g * branches + b] = quantiles[stratum * groups + members[stratum][g]];
        }
    }
    return table;
}

stream::Stream shuffle_of(const TrellisOptions& options) {
    return {options.rotation.seed, "quantizer trellis", stream::Role::rotation, 0};
}

/// Data of the Viterbi search. A state is the last state_bits bits; its group is the part that a shift keeps.
struct Trellis {
    unsigned bits;
    unsigned state_bits;
    std::vector<float> table;

    [[nodiscard]] std::size_t branches() const { return std::size_t{1} << bits; }
    [[nodiscard]] std::size_t groups() const { return std::size_t{1} << (state_bits - bits); }
    [[nodiscard]] std::size_t states() const { return std::size_t{1} << state_bits; }
    [[nodiscard]] std::size_t group_of(std::size_t state) const { return state & (groups() - 1); }
};

/// One coordinate: the cheapest predecessor of each group, then the costs of all states.
template <unsigned bits>
SPIKED_INLINE void advance(std::size_t groups, const float* __restrict table, float value, float* __restrict cost,
                           float* __restrict best, std::int32_t* __restrict from) {
    constexpr std::size_t branches = std::size_t{1} << bits;
    for (std::size_t g = 0; g < groups; ++g) {
        best[g] = cost[g];
        from[g] = 0;
    }
    for (std::size_t j = 1; j < branches; ++j) {
        const float* __restrict other = cost + j * groups;
        const auto index = static_cast<std::int32_t>(j);
        for (std::size_t g = 0; g < groups; ++g) {
            from[g] = other[g] < best[g] ? index : from[g];
            best[g] = other[g] < best[g] ? other[g] : best[g];
        }
    }
    for (std::size_t g = 0; g < groups; ++g)
        for (std::size_t b = 0; b < branches; ++b) {
            const float off = value - table[g * branches + b];
            cost[g * branches + b] = best[g] + off * off;
        }
}

using Advance = void (*)(std::size_t groups, const float* table, float value, float* cost, float* best,
                         std::int32_t* from);

template <unsigned bits>
void plain_advance(std::size_t groups, const float* table, float value, float* cost, float* best, std::int32_t* from) {
    advance<bits>(groups, table, value, cost, best, from);
}

#if defined(__x86_64__)
// The states are independent, so the width of the registers changes no bit.
template <unsigned bits>
__attribute__((target("avx2"), optimize("O3"))) void avx2_advance(std::size_t groups, const float* table, float value,
                                                                  float* cost, float* best, std::int32_t* from) {
    advance<bits>(groups, table, value, cost, best, from);
}
#endif

Advance advance_of(unsigned bits) {
#if defined(__x86_64__)
    if (processor().avx2)
        return std::array<Advance, 8>{avx2_advance<1>, avx2_advance<2>, avx2_advance<3>, avx2_advance<4>,
                                      avx2_advance<5>, avx2_advance<6>, avx2_advance<7>, avx2_advance<8>}[bits - 1];
#endif
    return std::array<Advance, 8>{plain_advance<1>, plain_advance<2>, plain_advance<3>, plain_advance<4>,
                                  plain_advance<5>, plain_advance<6>, plain_advance<7>, plain_advance<8>}[bits - 1];
}

/// States of the cheapest path; if `group` is given, of the paths that start behind it and end in it.
std::vector<std::uint32_t> cheapest_path(const Trellis& trellis, std::span<const float> values,
                                         std::optional<std::size_t> group) {
    const std::size_t groups = trellis.groups();
    std::vector<float> cost(trellis.states(), 0.0F);
    std::vector<float> best(groups);
    std::vector<std::int32_t> from(groups);
    std::vector<std::uint8_t> came(values.size() * groups);
    const Advance step = advance_of(trellis.bits);
    for (std::size_t s = 0; group && s < cost.size(); ++s)
        if (trellis.group_of(s) != *group) cost[s] = std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < values.size(); ++i) {
        stop_point();
        step(groups, trellis.table.data(), values[i], cost.data(), best.data(), from.data());
        std::transform(from.begin(), from.end(), came.begin() + static_cast<std::ptrdiff_t>(i * groups),
                       [](std::int32_t branch) { return static_cast<std::uint8_t>(branch); });
    }
    std::size_t state = group.value_or(0);
    const std::size_t stride = group ? groups : 1;
    for (std::size_t s = state; s < cost.size(); s += stride)
        if (cost[s] < cost[state]) state = s;
    std::vector<std::uint32_t> path(values.size());
    for (std::size_t i = values.size(); i-- > 0;) {
        path[i] = static_cast<std::uint32_t>(state);
        const std::size_t left = state >> trellis.bits;
        state = came[i * groups + left] * groups + left;
    }
    return path;
}

/// The symbols of the cheapest tail-biting path, one per coordinate.
Symbols closed_path(const Trellis& trellis, std::span<const float> values) {
    const std::size_t before = std::min(joint, values.size() / 2);
    const std::size_t after = std::min(joint, values.size() - before);
    std::vector<float> around(values.end() - static_cast<std::ptrdiff_t>(before), values.end());
    around.insert(around.end(), values.begin(), values.begin() + static_cast<std::ptrdiff_t>(after));
    std::size_t group = 0;
    if (before > 0) group = trellis.group_of(cheapest_path(trellis, around, std::nullopt)[before - 1]);
    Symbols symbols;
    for (const std::uint32_t state : cheapest_path(trellis, values, group))
        symbols.push_back(static_cast<std::uint8_t>(state & (trellis.branches() - 1)));
    return symbols;
}

struct TrellisQuantizerSetup {
    std::size_t dimension;
    unsigned bits;
    unsigned state_bits;
    RowScale scale;
    NumberFormat norm;
    Underflow underflow;
    RowRotation rotation;
    stream::Stream shuffle;
    CodebookKind codebook;
    Trellis trellis;  ///< for chunks with at least as many bits as a state

    [[nodiscard]] std::size_t chunk_rows() const { return std::max<std::size_t>(1, chunk_coordinates / dimension); }

    /// The state of a chunk has no more bits than the chunk.
    [[nodiscard]] Trellis trellis_of(std::size_t coordinates) const {
        if (coordinates * bits >= state_bits) return trellis;
        const auto lowered = static_cast<unsigned>(coordinates * bits);
        return {bits, lowered, level_table(codebook, dimension, bits, lowered, shuffle)};
    }
};

/// Calls work(first row, rows, trellis) for each chunk.
template <class Work>
void each_chunk(const TrellisQuantizerSetup& setup, std::size_t rows, const Work& work) {
    for (std::size_t first = 0; first < rows; first += setup.chunk_rows()) {
        const std::size_t count = std::min(setup.chunk_rows(), rows - first);
        work(first, count, setup.trellis_of(count * setup.dimension));
    }
}

/// The levels of a chunk's symbols, token after token.
std::vector<float> levels_of(const Trellis& trellis, std::span<const std::uint8_t> symbols) {
    std::size_t state = 0;
    const std::size_t last_symbols = std::min<std::size_t>(symbols.size(), trellis.state_bits);
    for (const std::uint8_t symbol : symbols.last(last_symbols))
        state = (state << trellis.bits | symbol) & (trellis.states() - 1);
    std::vector<float> levels;
    levels.reserve(symbols.size());
    for (const std::uint8_t symbol : symbols) {
        state = (state << trellis.bits | symbol) & (trellis.states() - 1);
        levels.push_back(trellis.table[state]);
    }
    return levels;
}

/// The levels of all rows; `symbols` are stored coordinate after coordinate.
arma::mat levels_of(const TrellisQuantizerSetup& setup, const arma::Mat<std::uint8_t>& symbols) {
    arma::mat levels(symbols.n_rows, symbols.n_cols);
    each_chunk(setup, symbols.n_rows, [&](std::size_t first, std::size_t count, const Trellis& trellis) {
        const arma::Mat<std::uint8_t> chunk = symbols.rows(first, first + count - 1).t();
        const std::vector<float> found = levels_of(trellis, {chunk.memptr(), chunk.n_elem});
        for (std::size_t t = 0; t < count; ++t)
            for (std::size_t j = 0; j < setup.dimension; ++j)
                levels(first + t, j) = static_cast<double>(found[t * setup.dimension + j]);
    });
    return levels;
}

Encoded encode(const TrellisQuantizerSetup& setup, const arma::mat& rows) {
    require_length(rows.n_cols, setup.dimension);
    const auto unit = unit_rows(rows, setup.rotation);
    const std::vector<double>& norms = unit.norms;
    const arma::mat& coordinates = unit.coordinates;
    arma::Mat<std::uint8_t> symbols(rows.n_rows, rows.n_cols);
    each_chunk(setup, rows.n_rows, [&](std::size_t first, std::size_t count, const Trellis& trellis) {
        std::vector<float> values;
        for (std::size_t t = first; t < first + count; ++t)
            for (std::size_t j = 0; j < setup.dimension; ++j) values.push_back(static_cast<float>(coordinates(t, j)));
        const Symbols found = closed_path(trellis, values);
        for (std::size_t i = 0; i < found.size(); ++i)
            symbols(first + i / setup.dimension, i % setup.dimension) = found[i];
    });
    const arma::mat levels = levels_of(setup, symbols);
    std::vector<double> scales = norms;
    for (std::size_t t = 0; t < scales.size(); ++t) {
        const double across = arma::dot(coordinates.row(t), levels.row(t));
        const double energy = arma::dot(levels.row(t), levels.row(t));
        // A row that no path approximates is decoded as zeros.
        scales[t] = across > 0.0
                        ? stored_scale(setup.scale, norms[t], static_cast<double>(setup.dimension), across, energy)
                        : 0.0;
    }
    BitWriter writer;
    write_numbers(writer, Item::norms, scales, setup.norm, "row norm", setup.underflow);
    writer.write_cells(Item::indices, {symbols.memptr(), symbols.n_elem}, setup.bits);
    return finished(writer);
}

arma::mat decode(const TrellisQuantizerSetup& setup, std::span<const std::uint8_t> bytes, std::size_t rows) {
    BitReader reader(bytes);
    std::vector<double> scales(rows);
    read_numbers(reader, scales, setup.norm);
    arma::Mat<std::uint8_t> symbols(rows, setup.dimension);
    reader.read_cells({symbols.memptr(), symbols.n_elem}, setup.bits);
    reader.require_end();
    return from_unit_rows(levels_of(setup, symbols), scales, setup.rotation);
}

}  // namespace

std::vector<float> trellis_levels(const TrellisOptions& options, std::size_t dimension, unsigned bits) {
    return level_table(options.codebook, dimension, bits, options.state_bits, shuffle_of(options));
}

RowQuantizer trellis_quantizer(std::size_t dimension, unsigned bits, const TrellisOptions& options) {
    const unsigned state_bits = options.state_bits;
    if (state_bits < bits || state_bits > most_state_bits)
        throw usage_error(
            "a trellis of {} state bits is not possible (at least the {} of an index, at most {}): give tcq:state=12",
            state_bits, bits, most_state_bits);
    const auto setup = std::make_shared<const TrellisQuantizerSetup>(
        TrellisQuantizerSetup{dimension, bits, state_bits, options.scale, options.norms.format, options.norms.underflow,
                              row_rotation(options.rotation, dimension), shuffle_of(options), options.codebook,
                              Trellis{bits, state_bits, trellis_levels(options, dimension, bits)}});
    return in_double(
        "tcq", [setup](const arma::mat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode(*setup, bytes, rows); });
}

static TrellisOptions trellis_options(const NameOptions& named, const QuantizerOptions& options) {
    return {rotation_options(options), options.codebook, scalar_options(options),
            static_cast<unsigned>(named.whole_or_default("state")), named.choice_or_default<RowScale>("scale")};
}

QuantizerFamily tcq_family() {
    return {
        .entry = {{"tcq",
                   "trellis-coded quantization: the last 12 bits written (the state) select the level of a coordinate",
                   {rotation_spec(),
                    codebook_spec(),
                    norm_spec(),
                    {"state", whole("L", 1, most_state_bits), "number of bits in the state",
                     std::to_string(TrellisOptions{}.state_bits)},
                    scale_spec({RowScale::least_squares, RowScale::unbiased})},
                   "Tseng et al. 2024 (QTIP)",
                   {"qtip", "trellis"}},
                  "index bits"},
        .make =
            [](const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options) {
                return trellis_quantizer(dimension, static_cast<unsigned>(bits), trellis_options(named, options));
            },
        .matrices =
            [](const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options) {
                const TrellisOptions own = trellis_options(named, options);
                const auto levels = trellis_levels(own, dimension, static_cast<unsigned>(bits));
                return NamedMatrices{{fmt::format("trellis:{}:{}:{}", static_cast<unsigned>(bits), own.state_bits,
                                                  codebook_text(own.codebook, dimension)),
                                      arma::conv_to<arma::mat>::from(arma::frowvec(levels))}};
            }};
}

}  // namespace spiked::estimators
