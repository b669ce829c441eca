#include <algorithm>
#include <cstring>

#include "sim/hdf5/hdf5_fields.hpp"
#include "sim/hdf5/hdf5_file.hpp"
#include "sim/hdf5/inflate.hpp"

namespace spiked::sim {
namespace {

/// Undoes the filters of a chunk, which are not applied where `skipped` has their bit, down to `bytes`.
std::vector<std::byte> unfiltered(std::vector<std::byte> chunk, const Hdf5Object& data, std::uint64_t skipped,
                                  std::uint64_t bytes, const std::string& where) {
    for (std::size_t i = data.filters.size(); i-- > 0;) {
        if (i < 32 && (skipped >> i & 1U) != 0) continue;
        if (data.filters[i] == 1) {
            chunk = inflated(chunk, bytes + 4, where);
        } else if (data.filters[i] == 2) {
            const std::size_t width = data.type->bytes;
            const std::size_t count = chunk.size() / width;
            std::vector<std::byte> ordered = chunk;
            for (std::size_t k = 0; k < count; ++k)
                for (std::size_t b = 0; b < width; ++b) ordered[k * width + b] = chunk[b * count + k];
            chunk = std::move(ordered);
        } else if (chunk.size() >= 4) {
            chunk.resize(chunk.size() - 4);  // a checksum
        }
    }
    return chunk;
}

/// Copies a chunk whose first element is at `corner` into an array; both are in C order, and the part of a chunk behind
/// the end of the array is left out.
void place_chunk(const Hdf5Object& data, std::span<const std::uint64_t> corner, std::span<const std::byte> chunk,
                 std::span<std::byte> all) {
    const std::size_t axes = data.shape.size();
    const std::size_t width = data.type->bytes;
    const auto& sizes = data.chunk_sizes;
    std::vector<std::uint64_t> at(axes, 0);  // within the chunk; its last axis is copied at once
    const std::size_t run = std::min(sizes[axes - 1], data.shape[axes - 1] - corner[axes - 1]) * width;
    while (true) {
        std::uint64_t from = 0;
        std::uint64_t to = 0;
        for (std::size_t axis = 0; axis < axes; ++axis) {
            from = from * sizes[axis] + at[axis];
            to = to * data.shape[axis] + corner[axis] + at[axis];
        }
        std::memcpy(all.data() + to * width, chunk.data() + from * width, run);
        std::size_t axis = axes - 1;
        for (; axis > 0; --axis) {
            if (++at[axis - 1] < std::min(sizes[axis - 1], data.shape[axis - 1] - corner[axis - 1])) break;
            at[axis - 1] = 0;
        }
        if (axis == 0) return;
    }
}

}  // namespace

std::vector<std::byte> Hdf5File::chunks(const Hdf5Object& data, std::uint64_t bytes) {
    const std::size_t axes = data.shape.size();
    const std::size_t width = data.type->bytes;
    const auto& sizes = data.chunk_sizes;
    const Hdf5Fields report({}, path());
    if (axes == 0 || sizes.size() != axes + 1 || sizes.back() != width) report.damaged("chunks of another shape");
    // All chunks together are about as large as the array, apart from what lies behind its ends.
    std::uint64_t chunk_bytes = width;
    std::uint64_t padded = width;
    std::uint64_t grid = 1;
    for (std::size_t axis = 0; axis < axes; ++axis) {
        if (sizes[axis] == 0) report.damaged("chunks of no size");
        const std::uint64_t count = (data.shape[axis] + sizes[axis] - 1) / sizes[axis];
        constexpr std::uint64_t most = std::uint64_t{1} << 48U;
        if (__builtin_mul_overflow(chunk_bytes, sizes[axis], &chunk_bytes) || chunk_bytes > most ||
            __builtin_mul_overflow(padded, count * sizes[axis], &padded) || padded > most)
            report.damaged("chunks of an impossible size");
        grid *= count;
    }
    constexpr std::uint64_t always = 1 << 20;
    constexpr std::uint64_t times = 32;
    if (std::max(padded, chunk_bytes) > std::max(always, times * bytes))
        report.damaged("chunks much larger than their array");
    std::vector<std::byte> all(bytes);
    if (bytes == 0 || data.chunk_tree == Hdf5Object::undefined) return all;
    each_leaf(data.chunk_tree, 1, 8 + 8 * (axes + 1), [&](Hdf5Fields& key, std::uint64_t address) {
        if (grid-- == 0) report.damaged("more chunks than its shape needs");
        const std::uint64_t stored = key.number(4);
        const std::uint64_t skipped = key.number(4);
        if (stored > chunk_bytes + chunk_bytes / 8 + 1024) report.damaged("a chunk longer than its content");
        std::vector<std::uint64_t> corner(axes);
        for (std::size_t axis = 0; axis < axes; ++axis) {
            corner[axis] = key.number(8);
            if (corner[axis] >= data.shape[axis] || corner[axis] % sizes[axis] != 0)
                report.damaged("a chunk outside its array");
        }
        const auto chunk = unfiltered(read(position(address), stored), data, skipped, chunk_bytes, path());
        if (chunk.size() != chunk_bytes) report.damaged("a chunk of another size");
        place_chunk(data, corner, chunk, all);
    });
    return all;
}

}  // namespace spiked::sim
