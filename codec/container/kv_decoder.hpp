#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "codec/container/kv_container.hpp"

namespace spiked::codec {

struct DecodeSummary {
    std::uint64_t bytes = 0;  ///< of the dump written
    std::size_t tensors = 0;
    std::uint64_t blocks = 0;  ///< decoded
    std::string method;
    double bits = 0;
};

/// Writes the dump that a container holds as safetensors: the names, dtypes, shapes and metadata it was made of, in C
/// order. Values are rounded to nearest even in the dtype; beyond its range, to its largest number. Needs nothing but
/// the file. Nothing is left of the output when the container turns out to be damaged.
[[nodiscard]] DecodeSummary decode_container(const std::string& file, const std::string& output, std::size_t threads,
                                             const CodecProgress& progress);

}  // namespace spiked::codec
