#pragma once
#include <armadillo>
#include <string>
#include <vector>

#include "core/text/name_options.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/coding/fp16_entries.hpp"

/// What the files of cache methods share.
namespace spiked::estimators {

struct CacheInput {
    std::size_t channels;
    double bits;
    const QuantizerOptions& options;
    const arma::mat& calibration;
};

struct CacheMaker {
    QuantizerEntry entry;
    bool calibrated;
    std::size_t heads, layers;  ///< joined unless options say otherwise
    std::size_t window;         ///< tokens kept in fp16 unless options say otherwise
    const char* coder;          ///< of latents, or of factors
    void (*check)(const CacheMaker&, const NameOptions&, const ParsedName&, double bits);
    CacheCoder (*make)(const CacheMaker&, const NameOptions&, const ParsedName&, const CacheInput&);
};

/// Entries of tokens and bases in fp16, channel after channel.
void write_tokens(BitWriter& writer, Item item, const arma::mat& rows);
[[nodiscard]] arma::mat read_tokens(BitReader& reader, std::size_t rows, std::size_t columns);
/// As a decoder has it.
[[nodiscard]] arma::mat in_fp16(arma::mat numbers);

/// The rank in the name, or `fallback`; throws usage_error for 0 and for more than `most`.
[[nodiscard]] std::size_t cache_rank(const NameOptions& own, std::size_t fallback, std::size_t most);

/// First and last tokens of a sequence stay in fp16, in front of what `inner` makes of the others.
[[nodiscard]] RowQuantizer with_kept_tokens(std::size_t sinks, std::size_t window, std::size_t channels,
                                            RowQuantizer inner);

// The methods: what is checked of a name and bits, and what codes a sequence.

void check_cache_projection(const CacheMaker&, const NameOptions& own, const ParsedName& parsed, double bits);
[[nodiscard]] CacheCoder cache_projection(const CacheMaker&, const NameOptions& own, const ParsedName& parsed,
                                          const CacheInput& input);
void check_online_projection(const CacheMaker&, const NameOptions& own, const ParsedName& parsed, double bits);
[[nodiscard]] CacheCoder online_projection(const CacheMaker&, const NameOptions& own, const ParsedName& parsed,
                                           const CacheInput& input);
void check_cache_transform(const CacheMaker&, const NameOptions& own, const ParsedName& parsed, double bits);
[[nodiscard]] CacheCoder cache_transform(const CacheMaker&, const NameOptions& own, const ParsedName& parsed,
                                         const CacheInput& input);

}  // namespace spiked::estimators
