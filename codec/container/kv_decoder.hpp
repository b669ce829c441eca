#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "codec/container/kv_container.hpp"

namespace spiked::codec {

struct DecodeSummary {
    std::uint64_t bytes = 0;  ///< size of the dump that was written
    std::size_t tensors = 0;
    std::uint64_t blocks = 0;  ///< full ones, as EncodeSummary counts them
    std::string method;
    double bits = 0;
};

/// Decodes a container into a dump as safetensors, with the names, dtypes, shapes and metadata of the dump that was
/// encoded, in C order. Values are rounded to the nearest number of the dtype (ties to even) and clamped to its range.
/// No other input is needed. If the container turns out to be damaged, no output file is left.
[[nodiscard]] DecodeSummary decode_container(const std::string& file, const std::string& output, std::size_t threads,
                                             const CodecProgress& progress);

}  // namespace spiked::codec
