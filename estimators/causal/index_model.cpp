#include "estimators/causal/index_model.hpp"

#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/causal/exact_functions.hpp"

namespace spiked::estimators {
namespace {

// Counts are in 64ths of an observation: the first ones weigh as much as 30 observations, a coded index 3.
constexpr double prior_weight = 1920.0;
constexpr std::uint32_t observed_weight = 192;
constexpr std::uint32_t most_weight = 192000;
/// The class of an expected size of 1 is this one; classes are quarter octaves.
constexpr int class_of_one = 13;
constexpr unsigned most_escape_bits = 43;

/// The mass of [low, high] under half a normal and half a Laplace law of standard deviation `size`, both signs of the
/// variable together.
double two_sided_mass(double low, double high, double size) {
    // exp underflows beyond 26 standard deviations.
    const auto clamped = [](double x) { return std::min(x, 26.0); };
    constexpr int panels = 16;
    const double from = clamped(low / size);
    const double to = clamped(high / size);
    double sum = 0.0;
    for (int i = 0; i <= panels; ++i) {
        const double x = from + (to - from) * i / panels;
        const double weight = i == 0 || i == panels ? 1.0 : i % 2 == 1 ? 4.0 : 2.0;
        sum += weight * exact_exp(-0.5 * x * x);
    }
    constexpr double root_of_two_over_pi = 0.79788456080286536;
    constexpr double root_of_two = 1.4142135623730951;
    const double normal = root_of_two_over_pi * sum * (to - from) / (3.0 * panels);
    const double laplace = exact_exp(-root_of_two * from) - exact_exp(-root_of_two * to);
    return 0.5 * (normal + laplace);
}

/// The cell of |k| in units of the distance of two levels of one quantizer.
std::array<double, 2> cell(Levels levels, bool shifted, double k) {
    if (shifted) return {k, k + 1.0};
    if (levels != Levels::odd) return {std::max(0.0, k - 0.5), k + 0.5};
    if (k == 0.0) return {0.0, 0.25};
    return {k == 1.0 ? 0.25 : k - 1.0, k};
}

/// log2 of counts by their leading 12 bits.
class LogTable {
public:
    LogTable() {
        for (std::uint32_t i = 0; i < size; ++i)
            logs_[i] = static_cast<float>(exact_log2((size + i + 0.5) / static_cast<double>(size)));
    }
    [[nodiscard]] float operator()(std::uint32_t count) const {
        const int octave = static_cast<int>(std::bit_width(count)) - 1;
        const std::uint32_t leading = octave >= bits ? count >> (octave - bits) : count << (bits - octave);
        return static_cast<float>(octave) + logs_[leading - size];
    }

private:
    static constexpr int bits = 12;
    static constexpr std::uint32_t size = 1U << bits;
    std::array<float, size> logs_{};
};

}  // namespace

std::vector<std::uint32_t> IndexModel::first_counts(Levels levels, std::size_t model) {
    const bool shifted = model >= unshifted;
    const int octaves_4 = static_cast<int>(model) - class_of_one - (shifted ? 4 : 0);
    // The middle of the class.
    const double size = exact_power_of_two(2 * octaves_4 + 1, 8);
    std::vector<std::uint32_t> counts(escape + 1, 1);
    double rest = 1.0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(escape); ++k) {
        const auto [low, high] = cell(levels, shifted, static_cast<double>(k));
        const double mass = two_sided_mass(low, high, size);
        rest -= mass;
        counts[k] += static_cast<std::uint32_t>(prior_weight * mass);
    }
    if (rest > 0.0) counts[escape] += static_cast<std::uint32_t>(prior_weight * rest);
    return counts;
}

IndexModel::IndexModel(bool adaptive) {
    static const auto prior = [] {
        std::vector<std::vector<std::uint32_t>> all;
        for (const Levels levels : {Levels::plain, Levels::even, Levels::odd})
            for (std::size_t model = 0; model < models; ++model) all.push_back(first_counts(levels, model));
        return all;
    }();
    for (const auto& counts : prior) counts_.emplace_back(counts, adaptive ? observed_weight : 0U, most_weight);
    costs_.resize(prior.size());
    stale_.assign(prior.size(), 1);
}

std::uint8_t IndexModel::class_of(bool dependent, double square) {
    // The distance of two levels of one quantizer is 2 D or D.
    const double relative = dependent ? 0.25 * square : square;
    constexpr int last = static_cast<int>(unshifted) + 4 * static_cast<int>(most_shift) - 1;
    if (!(relative >= 0x1p-100)) return 0;
    return static_cast<std::uint8_t>(std::clamp(half_octave(relative) + class_of_one, 0, last));
}

void IndexModel::encode(RangeEncoder& encoder, Levels levels, std::uint8_t index_class, std::int64_t k) {
    const auto magnitude = static_cast<std::uint64_t>(k < 0 ? -k : k);
    const unsigned shift = shift_of(index_class);
    const std::size_t table = table_of(levels, index_class);
    const std::uint64_t symbol = magnitude >> shift;
    const bool escapes = symbol >= escape;
    counts_[table].encode(encoder, static_cast<std::uint32_t>(escapes ? escape : symbol));
    stale_[table] = 1;
    if (escapes) {
        // Elias gamma of the rest.
        const std::uint64_t rest = symbol - escape + 1;
        const int bits = static_cast<int>(std::bit_width(rest)) - 1;
        for (int i = 0; i < bits; ++i) encoder.encode_bits(1, 1);
        encoder.encode_bits(0, 1);
        for (int i = bits; i-- > 0;) encoder.encode_bits(static_cast<std::uint32_t>(rest >> i & 1), 1);
    }
    if (shift > 0) encoder.encode_bits(static_cast<std::uint32_t>(magnitude & ((1U << shift) - 1U)), shift);
    if (magnitude != 0) encoder.encode_bits(k < 0 ? 1 : 0, 1);
}

std::int64_t IndexModel::decode(RangeDecoder& decoder, Levels levels, std::uint8_t index_class) {
    const unsigned shift = shift_of(index_class);
    const std::size_t table = table_of(levels, index_class);
    std::uint64_t symbol = counts_[table].decode(decoder);
    stale_[table] = 1;
    if (symbol == escape) {
        unsigned bits = 0;
        while (decoder.decode_bits(1) == 1)
            if (++bits > most_escape_bits)
                throw input_error("an entropy-coded index has more than {} bits: the data is damaged",
                                  most_escape_bits);
        std::uint64_t rest = 1;
        for (unsigned i = 0; i < bits; ++i) rest = rest << 1 | decoder.decode_bits(1);
        symbol = rest - 1 + escape;
    }
    std::uint64_t magnitude = symbol << shift;
    if (shift > 0) magnitude |= decoder.decode_bits(shift);
    if (magnitude >= static_cast<std::uint64_t>(largest))
        throw input_error("an entropy-coded index is {} (at most {} occur): the data is damaged", magnitude, largest);
    const auto k = static_cast<std::int64_t>(magnitude);
    return k != 0 && decoder.decode_bits(1) == 1 ? -k : k;
}

void IndexModel::update_costs() {
    static const LogTable log;
    for (std::size_t table = 0; table < costs_.size(); ++table) {
        if (stale_[table] == 0) continue;
        stale_[table] = 0;
        const float total = log(counts_[table].total());
        const auto counts = counts_[table].counts();
        for (std::size_t k = 0; k < counts.size(); ++k) costs_[table][k] = total - log(counts[k]);
    }
}

std::size_t IndexModel::bytes() const {
    std::size_t sum = costs_.size() * sizeof(costs_[0]) + stale_.size();
    for (const AdaptiveCounts& counts : counts_) sum += sizeof(counts) + counts.counts().size_bytes();
    return sum;
}

}  // namespace spiked::estimators
