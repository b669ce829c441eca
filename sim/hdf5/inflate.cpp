#include "sim/hdf5/inflate.hpp"

#include <zlib.h>

#include <algorithm>
#include <memory>

#include "core/runtime/error.hpp"

namespace spiked::sim {

std::vector<std::byte> inflated(std::span<const std::byte> packed, std::size_t most, const std::string& where) {
    std::size_t step = 1 << 12;  // doubled, because `most` may be a forged size
    z_stream stream{};
    if (inflateInit(&stream) != Z_OK) throw input_error("{}: zlib cannot be used", where);
    const auto end = [](z_stream* used) { inflateEnd(used); };
    const std::unique_ptr<z_stream, decltype(end)> closing(&stream, end);
    std::vector<std::byte> bytes;
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    int status = Z_OK;
    while (status == Z_OK && bytes.size() < most) {
        const std::size_t before = bytes.size();
        bytes.resize(before + std::min(step, most - before));
        stream.next_out = reinterpret_cast<Bytef*>(bytes.data() + before);
        stream.avail_out = static_cast<uInt>(bytes.size() - before);
        status = inflate(&stream, Z_NO_FLUSH);
        bytes.resize(bytes.size() - stream.avail_out);
        step *= 2;
        if (status == Z_DATA_ERROR || status == Z_NEED_DICT || status == Z_MEM_ERROR)
            throw input_error("{}: damaged (zlib: {}): fetch or save it again", where,
                              stream.msg != nullptr ? stream.msg : "it cannot be unpacked");
    }
    return bytes;
}

}  // namespace spiked::sim
