#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "estimators/causal/range_coder.hpp"

namespace spiked::estimators {

/// Levels of a residual in units of the step D: k D (plain), or one of the two quantizers of dependent quantization,
/// 2k D (even) and (2k - sign k) D (odd, and 0).
enum class Levels : std::uint8_t { plain, even, odd };

/// Adaptive code of quantizer indices k. The code of |k| depends on the levels and on a class, which is the expected
/// size of k in quarter octaves; each pair has counts of 0 to 30 and an escape. Where k is expected above 8, its lowest
/// bits are written as they are, and the counts are those of the rest. First counts are those of half a normal and half
/// a Laplace law of the class's size. All arithmetic that decoding depends on is integer or exact
/// (exact_functions.hpp).
class IndexModel {
public:
    /// `adaptive` = false keeps the first counts.
    explicit IndexModel(bool adaptive);

    /// The class for the expected square of a residual in units of D^2, at least 0 and finite.
    [[nodiscard]] static std::uint8_t class_of(bool dependent, double square);

    void encode(RangeEncoder& encoder, Levels levels, std::uint8_t index_class, std::int64_t k);
    /// Throws input_error where the stream ends or an index is beyond 2^42.
    [[nodiscard]] std::int64_t decode(RangeDecoder& decoder, Levels levels, std::uint8_t index_class);

    /// The code length of |k| and its sign in bits at the counts of the last call of update_costs, within .001.
    [[nodiscard]] double cost(Levels levels, std::uint8_t index_class, std::int64_t magnitude) const {
        const unsigned shift = shift_of(index_class);
        const std::int64_t symbol = magnitude >> shift;
        const float* costs = costs_[table_of(levels, index_class)].data();
        if (symbol < escape) return static_cast<double>(costs[symbol]) + shift + (magnitude > 0 ? 1.0 : 0.0);
        const auto rest = static_cast<std::uint64_t>(symbol - escape + 1);
        return static_cast<double>(costs[escape]) + shift + 2.0 * static_cast<double>(std::bit_width(rest));
    }
    void update_costs();
    /// The memory that its counts and costs take.
    [[nodiscard]] std::size_t bytes() const;

    static constexpr std::int64_t largest = std::int64_t{1} << 42;

private:
    static constexpr std::int64_t escape = 31;
    static constexpr std::size_t unshifted = 25;  ///< classes whose indices are coded whole: sizes below 8
    static constexpr std::size_t models = unshifted + 4;
    static constexpr unsigned most_shift = 20;

    [[nodiscard]] static unsigned shift_of(std::uint8_t index_class) {
        return index_class < unshifted ? 0U : 1U + (index_class - static_cast<unsigned>(unshifted)) / 4U;
    }
    [[nodiscard]] static std::size_t table_of(Levels levels, std::uint8_t index_class) {
        const std::size_t model = index_class < unshifted ? index_class : unshifted + (index_class - unshifted) % 4;
        return static_cast<std::size_t>(levels) * models + model;
    }
    [[nodiscard]] static std::vector<std::uint32_t> first_counts(Levels levels, std::size_t model);

    std::vector<AdaptiveCounts> counts_;
    std::vector<std::array<float, escape + 1>> costs_;
    std::vector<std::uint8_t> stale_;  ///< tables whose counts changed since their costs were computed
};

}  // namespace spiked::estimators
