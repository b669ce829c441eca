#include "sim/random/permutation.hpp"

#include <cstdint>
#include <numeric>
#include <utility>

namespace spiked::stream {
namespace {

__extension__ using Wide = unsigned __int128;

}  // namespace

std::vector<std::size_t> random_order(const Stream& stream, std::size_t count) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = count; i-- > 1;) {
        const auto words = stream.words(static_cast<std::uint32_t>(i));
        // The high word of a 64 x 64 bit product is uniform on 0 .. i, up to an error of 2^-64 i.
        const auto draw = (static_cast<Wide>((std::uint64_t{words[1]} << 32) | words[0]) * (i + 1)) >> 64;
        std::swap(order[i], order[static_cast<std::size_t>(draw)]);
    }
    return order;
}

}  // namespace spiked::stream
