#pragma once
#include <cstddef>

#include "app/c/spiked.h"
#include "estimators/compressors/compressor.hpp"

struct spiked_codec {
    spiked::estimators::Compressor compressor;
    std::size_t dim = 0;
};

namespace spiked::c {

/// The size of a coded block; the error is NaN.
[[nodiscard]] spiked_code code_of(const spiked_codec& codec, const estimators::Compressor::Result& coded,
                                  std::size_t rows);
/// Throws usage_error unless the rows have the length of the codec's.
void check_width(const spiked_codec& codec, std::int64_t columns, const char* name);

}  // namespace spiked::c
