#include "sim/random/cuda/fill_normals.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/device/emulated_block.hpp"
#include "sim/random/normal.hpp"

namespace spiked::stream {
namespace {

const StudySeed seed = StudySeed::parse("0x5eed0000000000000000000000000011");

template <class Real>
class FillNormalsReference : public testing::Test {};
using Reals = testing::Types<double, float>;
TYPED_TEST_SUITE(FillNormalsReference, Reals);

/// Includes replicates beyond 2^32, and numbers of entries that are not a multiple of a word block's.
TYPED_TEST(FillNormalsReference, KernelAndStreamsAgreeBitForBit) {
    constexpr std::uint32_t count = 3;
    for (const std::uint32_t entries : {1U, 67U, 1024U})
        for (const std::uint64_t first : {std::uint64_t{0}, (std::uint64_t{1} << 33) - 1}) {
            const Stream one(seed, "cell", Role::noise, first);
            std::vector<TypeParam> found(count * entries, TypeParam(-100));
            const FillNormals<TypeParam> kernel{one.key(), one.counter(0)[1], first, count, entries, found.data()};
            cuda::EmulatedExecutor().launch(kernel, kernel.blocks());
            for (std::uint32_t replicate = 0; replicate < count; ++replicate) {
                std::vector<TypeParam> expected(entries);
                fill_normal(Stream(seed, "cell", Role::noise, first + replicate), expected);
                EXPECT_EQ(std::memcmp(expected.data(), found.data() + replicate * entries, entries * sizeof(TypeParam)),
                          0)
                    << entries << " entries, replicate " << first + replicate;
            }
        }
}

}  // namespace
}  // namespace spiked::stream
