#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codec/cache/layer_streams.hpp"
#include "estimators/caches/eviction.hpp"
#include "sim/llama/llama.hpp"

namespace spiked::codec {

/// Layers and sides (keys or values) of a cache. Empty means the whole cache.
using CachePart = std::set<std::pair<std::size_t, sim::Side>>;
[[nodiscard]] inline CachePart layer_part(std::size_t layer) {
    return {{layer, sim::Side::key}, {layer, sim::Side::value}};
}
/// Bits that a layer's keys or values take beyond those of a plan; negative for fewer.
using ExtraBits = std::map<std::pair<std::size_t, sim::Side>, double>;

/// A method with its bit widths and, if it evicts, its budgets: fractions of the bytes that all tokens take in fp16.
struct CacheRequest {
    estimators::KeptAndCoded how;
    std::vector<double> bits;
    std::vector<double> budgets;
};
/// Throws usage_error for unknown methods, for bit widths that a method does not support, for budgets outside (0, 1],
/// for an eviction without a budget and for a budget without an eviction.
[[nodiscard]] std::vector<CacheRequest> cache_requests(const std::vector<std::string>& methods,
                                                       const std::vector<double>& bits,
                                                       const std::vector<double>& budgets = {});

/// Settings of a compressed cache.
struct CachePlan {
    estimators::KeptAndCoded how;
    double bits = 16.0;
    double budget = 1.0;
    estimators::QuantizerOptions quantizer;
    CachePart only;
    std::size_t block_tokens = 128;
    ExtraBits extra_bits = {};
    std::size_t sinks = 0;  ///< number of first tokens that are not coded, and count 16 bits an entry

    [[nodiscard]] double bits_of(std::size_t layer, sim::Side side) const {
        const auto extra = extra_bits.find({layer, side});
        return extra == extra_bits.end() ? bits : bits + extra->second;
    }
};

/// Bits that a cache stores.
struct CacheBits {
    double rows = 0.0;       ///< rows that attention reads: coded, or 16 bits per entry
    double positions = 0.0;  ///< which tokens are kept
    double scores = 0.0;     ///< accumulated attention that the next eviction needs, 32 bits per number
    double exact = 0.0;      ///< exact copies of coded rows, to be coded again at the next eviction, 16 bits per entry

    [[nodiscard]] double total() const { return rows + positions + scores + exact; }
    CacheBits& operator+=(const CacheBits& more);
    CacheBits& operator/=(double entries);
};

/// A cache whose rows are encoded and decoded by a method before later tokens read them, and that counts the stored
/// bits. With `unrope+`, keys are de-rotated (RoPE is undone) before they are coded. Each layer, side and head has its
/// own random rotation, drawn anew for each sequence, so errors over sequences include the variance of the rotations.
/// Copies share the codecs and count separately.
///
/// A causal cache method (causal-klt, causal-klt-joint) codes the blocks as they fill (LayerStreams). It needs blocks
/// of 128 tokens, and a copy for each sequence.
///
/// Eviction: after each block of tokens, and for each kv head, the eviction selects among the rows that are still kept
/// as many as fit the budget, keys and values together.
/// - Over the compressed layers, the budgets of the layers average to the requested budget. A budget too small for one
///   row is rejected. Where layers have different budgets (pyramidkv), the bytes of one row are measured by coding rows
///   of noise; each layer stays within its own bytes.
/// - A kept row counts 16 bits per entry, or the bits of its code; rows are coded in blocks of at most block_tokens.
///   Once rows have been evicted, one bit per token records which are kept.
/// - After an eviction the remaining rows are coded again from their exact values. A row quantizer only has to drop the
///   evicted rows. Methods that code a block as a whole, and evictions that merge rows into means, need the exact
///   values, which are then counted too, as is the attention that h2o accumulates. Neither is counted if all rows are
///   kept or if the eviction selects only once. The observation window reaches back to the previous eviction at most,
///   so nothing is stored for it.
class CompressedCache {
public:
    /// Throws usage_error for bit widths that the method does not support, for layers that do not exist, for extra bits
    /// of a part that is not compressed, for sinks that fill a block, and for an eviction or a joint code of keys and
    /// values that is restricted to one side of a layer or has other bits there.
    CompressedCache(const sim::LlamaConfig& model, CachePlan plan);

    /// Draws the rotations for the given sequence; a new object has those of sequence 0. Cost: a decomposition of a
    /// dim x dim matrix for each layer, side and head that is rotated.
    void draw_rotations(std::uint64_t sequence);

    /// Throws usage_error if an eviction without a codec, selecting among `tokens` tokens, has no room for one of them
    /// in fp16. With a codec the size of a row is known, and rejected, only when the eviction selects.
    void require_room(std::size_t tokens) const;

    /// Connects this cache to a forward pass over one sequence. This object must outlive the forward pass. `tokens`:
    /// the number of tokens that will be coded, where it is known, for the steps of causal-klt; 0: it is not.
    void attach(sim::ForwardOptions& options, std::size_t tokens = 0);
    /// Shows the eviction the attention of at least this many last queries, even if its observation window is shorter.
    void observe_last(std::size_t queries) { window_ = std::max(window_, queries); }
    /// Runs a forward pass with the exact cache over the tokens. Evictions then use the attention of that pass instead
    /// of the attention of the pass that this cache is attached to.
    void observe(const sim::Llama& model, std::span<const std::int32_t> tokens);

    /// The layers that it compresses, ascending.
    [[nodiscard]] std::vector<std::size_t> coded_layers() const;
    /// Forecasts of memory: the random rotations of one sequence, which every version has and every pass draws anew,
    /// and all that a pass over so many tokens keeps beside the cache itself.
    [[nodiscard]] double codec_bytes() const;
    [[nodiscard]] double state_bytes(std::size_t tokens) const;

    [[nodiscard]] bool evicts() const { return plan_.how.eviction != nullptr; }
    [[nodiscard]] bool codes() const { return plan_.how.method.has_value() || plan_.how.cache.has_value(); }
    [[nodiscard]] bool merges() const { return evicts() && plan_.how.eviction->merges; }
    /// Bits of everything that was compressed so far; with an eviction, summed over all times that it selected.
    [[nodiscard]] const CacheBits& stored_bits() const { return bits_; }
    [[nodiscard]] double entries() const { return entries_; }

private:
    struct Head {
        arma::fvec accumulated;
        arma::fmat observed;
        arma::fmat keys, values;  ///< exact values of the kept rows, if rows are coded
    };
    [[nodiscard]] bool applies_to(std::size_t layer, sim::Side side) const {
        return plan_.only.empty() || plan_.only.contains({layer, side});
    }
    /// Bits of keys and values of all tokens of a head in fp16.
    [[nodiscard]] double full_bits(std::size_t tokens) const {
        return 32.0 * static_cast<double>(tokens * model_.head_dim);
    }
    [[nodiscard]] LayerStreams::Bits bits_of_layer(std::size_t layer) const;
    void check_parts() const;
    void make_codecs(std::uint64_t sequence);
    [[nodiscard]] arma::fmat coded(const sim::CacheAddress& place, const arma::fmat& exact,
                                   std::span<const std::size_t> tokens, double& bits);
    [[nodiscard]] CacheBits code(std::size_t layer, std::size_t head, std::size_t seen, sim::CachedHead& cached);
    void probe_codecs();
    [[nodiscard]] bool chooses_again() const { return !chooses_once_ && plan_.budget < 1.0; }
    /// Bits that one row takes until the next eviction, in fp16 or as the method codes rows of noise.
    [[nodiscard]] double bits_of_row() const;
    struct LayerBudget {
        double bits = 0.0;          ///< that one head of the layer may keep
        std::size_t mean_rows = 0;  ///< mean over the layers of the rows that they keep, if layers differ
    };
    [[nodiscard]] LayerBudget layer_budget(std::size_t layer, std::size_t seen) const;
    [[nodiscard]] arma::fmat keep(const sim::CacheAddress& place, const arma::fmat& exact);
    void attended(const sim::AttentionBlock& at);
    void evict(std::size_t layer, std::size_t head, std::size_t seen, sim::CachedHead& cached);

    sim::LlamaConfig model_;
    CachePlan plan_;
    std::shared_ptr<const std::map<std::size_t, estimators::Compressor>> codecs_;  ///< by layer, side and head
    std::optional<LayerStreams> streams_;  ///< of the sequence that is attached, for a causal method
    std::vector<Head> heads_;              ///< by layer and head, if rows are evicted
    std::vector<std::size_t> layers_;      ///< layers whose rows are evicted, ascending
    std::size_t window_ = estimators::observation_window;
    bool observed_ = false;
    bool chooses_once_ = false;
    double coded_row_bits_ = 0.0;   ///< bits of a coded key and value row, if layers keep different numbers of rows
    bool rows_independent_ = true;  ///< a decoded row does not depend on the rows that it is coded with
    CacheBits bits_;
    double entries_ = 0.0;
};

/// A configuration of the cache that is measured.
struct CacheVersion {
    std::string label = "none";
    double bits = 16.0;
    std::optional<double> budget;
    std::optional<CompressedCache> cache;  ///< unused, to be copied for each sequence; no value means full precision
};
/// Full precision, then every method at each of its budgets and bit widths, in the given order. `common` has what is
/// the same for all of them, `first_choice` the number of tokens among which an eviction first selects. Throws as
/// CompressedCache and its require_room do.
[[nodiscard]] std::vector<CacheVersion> cache_versions(const sim::LlamaConfig& model,
                                                       const std::vector<CacheRequest>& requests, CachePlan common,
                                                       std::size_t first_choice);

}  // namespace spiked::codec
