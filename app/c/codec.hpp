#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "app/c/spiked.h"
#include "estimators/caches/cache_method.hpp"
#include "estimators/compressors/compressor.hpp"

/// A causal method, its bits and the heads of its columns.
struct spiked_causal {
    spiked::estimators::CacheMethod method;
    double bits = 0.0;
    spiked::estimators::CacheGroup heads;
};

/// A method for blocks, or a causal one for whole sequences.
struct spiked_codec {
    std::optional<spiked::estimators::Compressor> compressor;
    std::optional<spiked::estimators::CacheCoder> sequence;
    std::size_t dim = 0;
    std::optional<spiked_causal> causal = {};  ///< of `sequence`

    [[nodiscard]] spiked::estimators::Compressor::Result encode(spiked::estimators::AnalysedBlock& block) const {
        if (compressor) return compressor->encode(block);
        return {sequence->sequence.encode(block.block())};
    }
    [[nodiscard]] arma::mat decode(std::span<const std::uint8_t> bytes, std::size_t rows) const {
        return compressor ? compressor->decode(bytes, rows) : sequence->sequence.decode(bytes, rows);
    }
};

namespace spiked::c {

/// The size of a coded block; the error is NaN.
[[nodiscard]] spiked_code code_of(const spiked_codec& codec, const estimators::Compressor::Result& coded,
                                  std::size_t rows);
/// Throws usage_error unless the rows have the length of the codec's.
void check_width(const spiked_codec& codec, std::int64_t columns, const char* name);

}  // namespace spiked::c
