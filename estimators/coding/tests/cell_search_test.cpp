#include "estimators/coding/cell_search.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "estimators/coding/scalar_quantizer.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

class CellSearchReference : public testing::TestWithParam<int> {};

TEST_P(CellSearchReference, FindsTheBinsOfTheSearchOneValueAtATime) {
    const int bits = GetParam();
    theory::Codebook codebook = theory::lloyd_max_sphere(128, bits);
    for (auto* list : {&codebook.thresholds, &codebook.levels})
        for (double& value : *list) value = static_cast<float>(value);
    std::vector<float> values(5003);  // not a multiple of a register
    stream::fill_normal(stream::Stream({}, "cell search test", stream::Role::noise, 0), std::span<float>(values));
    std::size_t at = 0;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const double threshold : codebook.thresholds)
        for (const float towards : {-infinity, static_cast<float>(threshold), infinity})
            values[at++] = std::nextafter(static_cast<float>(threshold), towards);
    values[at++] = infinity;
    values[at++] = -infinity;
    values[at++] = std::nanf("");
    values[at++] = -0.0F;

    std::vector<std::uint8_t> cells(values.size());
    std::vector<float> levels(values.size());
    CellSearch(codebook).quantize(values, cells, levels);
    for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(cells[i], cell_of(values[i], codebook)) << values[i];
        ASSERT_EQ(levels[i], static_cast<float>(codebook.levels[cells[i]]));
    }
}

TEST_P(CellSearchReference, BlocksOfAnyHeightGetTheBinsAndLevelsOfTheirScaledEntries) {
    theory::Codebook codebook = theory::lloyd_max_normal(GetParam());
    for (auto* list : {&codebook.thresholds, &codebook.levels})
        for (double& value : *list) value = static_cast<float>(value);
    const CellSearch search(codebook);
    for (const std::size_t rows : {1, 7, 8, 16, 20, 40, 128}) {
        constexpr std::size_t columns = 5;
        std::vector<float> block(rows * columns);
        std::vector<float> factors(rows);
        stream::fill_normal(stream::Stream({}, "cell search test", stream::Role::noise, rows), std::span<float>(block));
        stream::fill_normal(stream::Stream({}, "cell search test", stream::Role::noise, 1000 + rows),
                            std::span<float>(factors));
        factors[rows / 2] = 0.0F;
        std::vector<std::uint8_t> cells(block.size());
        search.find(block, factors, cells);
        std::vector<float> levels(block.size());
        search.set_levels(cells, factors, levels);
        std::vector<float> sums = block;
        search.add_levels(cells, factors, sums);
        for (std::size_t i = 0; i < block.size(); ++i) {
            const float factor = factors[i % rows];
            ASSERT_EQ(cells[i], cell_of(block[i] * factor, codebook)) << rows << " " << i;
            const float level = static_cast<float>(codebook.levels[cells[i]]) * factor;
            ASSERT_EQ(levels[i], level);
            ASSERT_EQ(sums[i], block[i] + level);
        }
    }
    std::vector<std::uint8_t> none;
    search.find({}, {}, none);
}

INSTANTIATE_TEST_SUITE_P(Bits, CellSearchReference, testing::Range(1, 9));

}  // namespace
}  // namespace spiked::estimators
