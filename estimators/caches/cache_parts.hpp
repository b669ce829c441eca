#pragma once
#include <armadillo>
#include <string>
#include <vector>

#include "core/text/name_options.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/coding/fp16_entries.hpp"

/// Code that the cache methods share.
namespace spiked::estimators {

struct CacheInput {
    std::size_t channels;
    double bits;
    const QuantizerOptions& options;
    const arma::mat& calibration;
    const CacheGroup& group;
};

/// A row of the table of cache methods: its description for users, and the functions that check its bits and make the
/// coder of a sequence. Each method defines its own in its own file; cache_method.cpp lists them.
struct CacheMaker {
    QuantizerEntry entry;
    bool calibrated = false;  ///< these three as in CacheMethod
    bool derotates = false;
    bool sides = false;
    void (*check)(const CacheMethod& method, double bits);
    CacheCoder (*make)(const CacheMethod& method, const CacheInput& input);
};

/// The latent coordinates that are not quantized.
inline constexpr const char* latents_in_fp16 = "fp16";

/// The entry of a method whose bits are a mean rate, and the check of such bits.
[[nodiscard]] QuantizerEntry rate_entry(RegistryEntry entry, std::string bits_mean);
void check_rate(const CacheMethod& method, double bits);

/// Write and read entries of tokens and bases in fp16, channel after channel.
void write_tokens(BitWriter& writer, Item item, const arma::mat& rows);
[[nodiscard]] arma::mat read_tokens(BitReader& reader, std::size_t rows, std::size_t columns);
/// The numbers rounded to fp16, as a decoder has them.
[[nodiscard]] arma::mat in_fp16(arma::mat numbers);

/// The rank in the name, or `fallback`; throws usage_error for more than `most`.
[[nodiscard]] std::size_t cache_rank(const NameOptions& own, std::size_t fallback, std::size_t most);

/// Stores the first and last tokens of a sequence in fp16, and after them the data of `inner` for the other tokens.
[[nodiscard]] RowQuantizer with_kept_tokens(std::size_t sinks, std::size_t window, std::size_t channels,
                                            RowQuantizer inner);

}  // namespace spiked::estimators
