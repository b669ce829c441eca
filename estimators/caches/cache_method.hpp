#pragma once
#include <armadillo>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/name_options.hpp"
#include "estimators/quantizers/quantizer_table.hpp"

namespace spiked::estimators {

struct CacheMaker;

/// A low-rank cache of the literature by its name and the options in it, parsed once and passed on. Heads that are
/// coded together are joined, channels beside channels, and all tokens of a sequence are coded at once, unlike a
/// MethodSpec, which codes a block of one head.
struct CacheMethod {
    std::string text;     ///< as written
    bool unrope = false;  ///< as in MethodSpec
    const CacheMaker* maker = nullptr;
    NameOptions own;                            ///< of the name without `unrope+`
    std::optional<QuantizerSpec> latents = {};  ///< codes the latent coordinates; none: fp16, or there are none
    bool calibrated = false;                    ///< its basis comes from other sequences of the same model
    bool derotates = false;  ///< codes keys without their rotary embedding where it is known; rejects `unrope+`
    bool sides = false;      ///< joins the keys of all heads of a layer with their values
    std::size_t heads = 0;   ///< number of heads of a layer that are joined; 0: all
    std::size_t layers = 1;  ///< number of layers that are joined, with all their heads; 0: all

    /// Throws usage_error for bits that the method does not accept.
    void check_bits(double bits) const;
    /// Whether it codes each head alone and without calibration.
    [[nodiscard]] bool heads_apart() const { return !calibrated && !sides && heads == 1 && layers == 1; }
    /// Whether it learns from the tokens that it has decoded: without calibration, and joining heads of one layer at
    /// most.
    [[nodiscard]] bool causal() const { return derotates; }
    /// Whether encoder and decoder must know the token ids of all rows.
    [[nodiscard]] bool needs_token_ids() const { return causal() && own.choice_or_default("same") == "on"; }
};

/// The entries of `spiked list caches`.
[[nodiscard]] const std::vector<QuantizerEntry>& cache_methods();
/// Whether the name, with or without `unrope+`, is that of a cache method.
[[nodiscard]] bool is_cache_method(std::string_view text);
/// The names of the calibrated ones.
[[nodiscard]] std::vector<std::string> calibrated_caches();
/// The names and those of all cache methods, or of the causal ones: for the messages that list what a command accepts.
[[nodiscard]] std::vector<std::string> and_caches(std::vector<std::string> names = {});
[[nodiscard]] std::vector<std::string> and_causal_caches(std::vector<std::string> names = {});
/// Throws usage_error for an unknown option or quantizer, and precondition_error for an unknown name.
[[nodiscard]] CacheMethod cache_method(std::string_view text);
/// The cache method of this name if it is causal. Throws usage_error for its options.
[[nodiscard]] std::optional<CacheMethod> causal_cache(std::string_view text);
/// The options that have an effect on a cache method: its own, and those of the quantizer that codes its latent
/// coordinates.
[[nodiscard]] std::vector<OptionSpec> cache_options(const CacheMethod& method);

/// A cache method for joined heads: encodes and decodes tokens x channels.
struct CacheCoder {
    RowQuantizer sequence;
    std::size_t rank = 0;           ///< latent channels
    std::uint64_t shared_bits = 0;  ///< of the calibrated basis, which all sequences share: not part of the bytes
};

/// The heads that a sequence joins, and what is known about their use. A coder that only decodes needs no queries,
/// but the same token ids.
struct CacheGroup {
    std::size_t keys = 0;    ///< heads of keys, in front
    std::size_t values = 1;  ///< heads of values
    /// Of each head of keys, the queries of the first 128 tokens from all query heads that read it, one per row and
    /// without rotary embedding where the keys have none. Empty: not known.
    std::vector<arma::mat> queries = {};
    /// The token id of each row, for a method that needs_token_ids; of a stream, those of its first block.
    std::vector<std::int32_t> ids = {};
};

/// `calibration`: tokens x channels of other sequences; ignored when the method is not calibrated. Throws usage_error
/// for a rank larger than channels or calibration allow.
///
/// palu, cskv: the leading right singular vectors V of the calibration in fp16; stored are the last `window` tokens in
/// fp16, then the rows of X V, coded by a row quantizer (`latents`, with B as its bits) or in fp16. ojakv: the same
/// with a basis that takes a step of Oja's rule every `step` tokens. Latent coordinates are those in the basis at their
/// time, but they are decoded with the last basis, which is stored in fp16: the drift of the basis is lost. xkv: the
/// leading components of the sequence itself, which share their token basis over a group of layers; stored as factors
/// of B bits per entry (factor_codec.hpp) or fp16. kvtc: means and principal components of the calibration in fp16,
/// reverse water-filling of B bits per entry over its eigenvalues: components above the water level t are rounded to
/// steps of sqrt(12 t), the others left out; integers as bytes of 7 bits, component after component, deflated. Before
/// them the first `sinks` and last `window` tokens in fp16. B is the ideal rate for the calibration; the number of
/// stored bits follows from the data.
///
/// causal-klt, causal-klt-joint: causal_codec.hpp, with the step that comes nearest to B stored bits per entry. Stored
/// are a byte that says whether columns have scales, the header of the codec, and for each block of 128 tokens its
/// length in 32 bits and its bytes, so that the bytes of a block depend on no later token but by the step. Columns of
/// keys are weighted by the queries of the group, where it has them and its pairs are i and i + d/2; heads that are
/// joined are scaled to equal spread. Only these two use the group. With same=on they take the token ids of the group,
/// which are not stored, and throw usage_error where it has none.
///
/// Cost: the decomposition of the calibration (palu, cskv, kvtc) at construction, or that of the sequence (xkv) when it
/// is coded.
[[nodiscard]] CacheCoder cache_coder(const CacheMethod& method, std::size_t channels, double bits,
                                     const QuantizerOptions& options, const arma::mat& calibration,
                                     const CacheGroup& group = {});

}  // namespace spiked::estimators
