#include "sim/random/normal.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"
#include "sim/random/block_normals.hpp"
#include "sim/random/normal_paths.hpp"

namespace spiked::stream {
namespace detail {
namespace {

template <class Real>
void plain_from_words(const WordGroup& words, Real* out) {
    for (const PhiloxCounter& block : words) {
        normals_of_block(block, out);
        out += block_normals<Real>;
    }
}

template <class Real>
void plain_groups(PhiloxCounter counter, PhiloxKey key, std::size_t groups, Real* out) {
    for (std::size_t block = 0; block < groups * group_blocks; ++block, ++counter[0], out += block_normals<Real>)
        normals_of_block(philox_4x32_10(counter, key), out);
}

}  // namespace

template <class Real>
const NormalPath<Real>& plain_path() {
    static constexpr NormalPath<Real> path{plain_from_words<Real>, plain_groups<Real>};
    return path;
}

template const NormalPath<double>& plain_path();
template const NormalPath<float>& plain_path();

template <class Real>
void fill_normal(const NormalPath<Real>& path, const Stream& stream, std::uint64_t first, std::span<Real> out) {
    constexpr std::uint64_t block = block_normals<Real>;
    constexpr std::size_t group = group_blocks * block;
    constexpr std::uint64_t all = block << 32;
    if (first > all || out.size() > all - first)
        throw precondition_error("{} normals from entry {} on exceed the {} of one stream", out.size(), first, all);
    if (out.empty()) return;

    PhiloxCounter counter = stream.counter(static_cast<std::uint32_t>(first / block));
    const auto fill_part_of_group = [&](std::size_t skip) {
        Real buffer[group];
        path.fill_groups(counter, stream.key(), 1, buffer);
        const std::size_t count = std::min(group - skip, out.size());
        std::copy_n(buffer + skip, count, out.data());
        counter[0] += group_blocks;
        out = out.subspan(count);
    };
    if (const std::size_t skip = first % block; skip != 0) fill_part_of_group(skip);
    const std::size_t groups = out.size() / group;
    path.fill_groups(counter, stream.key(), groups, out.data());
    counter[0] += static_cast<std::uint32_t>(groups * group_blocks);
    out = out.subspan(groups * group);
    if (!out.empty()) fill_part_of_group(0);
}

template void fill_normal(const NormalPath<double>&, const Stream&, std::uint64_t, std::span<double>);
template void fill_normal(const NormalPath<float>&, const Stream&, std::uint64_t, std::span<float>);

namespace {

template <class Real>
void fill_by_fastest_path(const Stream& stream, std::uint64_t first, std::span<Real> out) {
    static const NormalPath<Real>& path = avx2_path<Real>() != nullptr ? *avx2_path<Real>() : plain_path<Real>();
    fill_normal(path, stream, first, out);
}

}  // namespace
}  // namespace detail

void fill_normal(const Stream& stream, std::uint64_t first, std::span<double> out) {
    detail::fill_by_fastest_path(stream, first, out);
}
void fill_normal(const Stream& stream, std::uint64_t first, std::span<float> out) {
    detail::fill_by_fastest_path(stream, first, out);
}
void fill_normal(const Stream& stream, std::span<double> out) { fill_normal(stream, 0, out); }
void fill_normal(const Stream& stream, std::span<float> out) { fill_normal(stream, 0, out); }

}  // namespace spiked::stream
