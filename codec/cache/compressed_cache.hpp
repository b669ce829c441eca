#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "estimators/caches/eviction.hpp"
#include "sim/llama/llama.hpp"

namespace spiked::codec {

/// Layers and sides of a cache; empty: all of it.
using CachePart = std::set<std::pair<std::size_t, sim::Side>>;

/// A method with its bit widths and, where it evicts, its budgets: shares of the bytes that all tokens take in fp16.
struct CacheRequest {
    estimators::KeptAndCoded how;
    std::vector<double> bits;
    std::vector<double> budgets;
};
/// Throws usage_error for unknown methods, bits that they do not take, budgets that are not above 0 and at most 1, an
/// eviction without a budget and a budget without an eviction.
[[nodiscard]] std::vector<CacheRequest> cache_requests(const std::vector<std::string>& methods,
                                                       const std::vector<double>& bits,
                                                       const std::vector<double>& budgets = {});

/// What a cache is made of.
struct CachePlan {
    estimators::KeptAndCoded how;
    double bits = 16.0;
    double budget = 1.0;
    estimators::QuantizerOptions quantizer;
    CachePart only;
    std::size_t block_tokens = 128;
};

/// Bits that a cache takes.
struct CacheBits {
    double rows = 0.0;       ///< what is read: coded, or 16 bits an entry
    double positions = 0.0;  ///< which tokens are left
    double scores = 0.0;     ///< attention that an eviction goes by when it next chooses, 32 bits a number
    double exact = 0.0;      ///< rows behind coded ones that are coded again then, 16 bits an entry

    [[nodiscard]] double total() const { return rows + positions + scores + exact; }
    CacheBits& operator+=(const CacheBits& more);
    CacheBits& operator/=(double entries);
};

/// A cache that sends what later tokens read of it through a method and back, and counts what it stored. `unrope+`
/// turns keys back before they are coded. A layer, side and head has a rotation of its own, drawn for each
/// sequence: so errors over sequences hold theirs. Copies share the codecs and count by themselves.
///
/// An eviction chooses for each kv head, whenever the model has read a block, among the rows that are left: as many as
/// the budget has room for, keys and values together. Budgets of layers average to the one asked for over the layers
/// that are compressed; one without room for a row is refused. Where layers differ (pyramidkv), what the method makes
/// of rows of noise says how many bytes a row more or less is; each layer keeps to its own bytes. They count 16 bits an
/// entry, as full precision does, or what the method makes of them, coded in blocks of at most block_tokens rows; where
/// some are gone, a bit more for every token says which. A row is coded again from its exact numbers when others go: a
/// row quantizer just drops those, methods that code a block as a whole, and means of rows, need the exact numbers,
/// which then count, too. So does attention that h2o has to remember. Neither counts where all is kept or the eviction
/// chooses once. An observation window reaches back to the last choice at most, so nothing is kept for it.
class CompressedCache {
public:
    /// Throws usage_error for bits that the method does not take, for layers that do not exist and for an eviction of
    /// one side of a layer.
    CompressedCache(const sim::LlamaConfig& model, CachePlan plan);

    /// For sequence number so and so, of which a new object serves 0. Cost: a decomposition of dim x dim for each
    /// layer, side and head that is rotated.
    void draw_rotations(std::uint64_t sequence);

    /// Throws usage_error where an eviction that chooses among so many tokens has no room for one of them in fp16.
    /// Behind a method that is known, and refused, when it chooses.
    void require_room(std::size_t tokens) const;

    /// Takes part in a reading: this object must outlive it, and serves one sequence.
    void attach(sim::LlamaReading& reading);
    /// An eviction sees what so many last queries attend to, where they are more than its observation window.
    void observe_last(std::size_t queries) { window_ = std::max(window_, queries); }
    /// Reads a sequence exactly, for an eviction to see its attention instead of that of the reading it takes part in.
    void observe(const sim::Llama& model, std::span<const std::int32_t> tokens);

    [[nodiscard]] bool evicts() const { return plan_.how.eviction != nullptr; }
    [[nodiscard]] bool codes() const { return plan_.how.method.has_value(); }
    [[nodiscard]] bool merges() const { return evicts() && plan_.how.eviction->merges; }
    /// Of what was compressed so far; of an eviction, each time it chose.
    [[nodiscard]] const CacheBits& stored_bits() const { return bits_; }
    [[nodiscard]] double entries() const { return entries_; }

private:
    struct Head {
        arma::fvec accumulated;
        arma::fmat observed;
        arma::fmat keys, values;  ///< exact, of the rows that are left, where they are coded
    };
    [[nodiscard]] bool applies_to(std::size_t layer, sim::Side side) const {
        return plan_.only.empty() || plan_.only.contains({layer, side});
    }
    /// Of all tokens of a head in fp16, keys and values.
    [[nodiscard]] double full_bits(std::size_t tokens) const {
        return 32.0 * static_cast<double>(tokens * model_.head_dim);
    }
    void make_codecs(std::uint64_t sequence);
    [[nodiscard]] arma::fmat coded(const sim::CachePlace& place, const arma::fmat& exact,
                                   std::span<const std::size_t> tokens, double& bits) const;
    [[nodiscard]] CacheBits code(std::size_t layer, std::size_t head, std::size_t seen, sim::CachedHead& cached) const;
    void probe_codecs();
    [[nodiscard]] bool chooses_again() const { return !chooses_once_ && plan_.budget < 1.0; }
    /// That one row takes until the next choice, in fp16 or as its method codes rows of noise.
    [[nodiscard]] double bits_of_row() const;
    /// What a layer may keep, bits of one head; and the rows that all layers keep in the mean, where they differ.
    struct LayerBudget {
        double bits = 0.0;
        std::size_t mean_rows = 0;
    };
    [[nodiscard]] LayerBudget layer_budget(std::size_t layer, std::size_t seen) const;
    [[nodiscard]] arma::fmat keep(const sim::CachePlace& place, const arma::fmat& exact);
    void attended(const sim::AttentionBlock& at);
    void evict(std::size_t layer, std::size_t head, std::size_t seen, sim::CachedHead& cached);

    sim::LlamaConfig model_;
    CachePlan plan_;
    std::shared_ptr<const std::map<std::size_t, estimators::Compressor>> codecs_;  ///< by layer, side and head
    std::vector<Head> heads_;          ///< by layer and head, where rows are evicted
    std::vector<std::size_t> layers_;  ///< that are evicted from, ascending
    std::size_t window_ = estimators::observation_window;
    bool observed_ = false;
    bool chooses_once_ = false;
    double coded_row_bits_ = 0.0;  ///< of keys and values, where layers keep different numbers of rows
    bool rows_alone_ = true;       ///< what is read of a row does not depend on the rows that it is coded with
    CacheBits bits_;
    double entries_ = 0.0;
};

/// One way to keep a cache.
struct CacheVersion {
    std::string label = "none";
    double bits = 16.0;
    std::optional<double> budget;
    std::optional<CompressedCache> cache;  ///< empty, to be copied for each sequence; nothing: full precision
};
/// Full precision, then every method at each of its budgets and bits, in their order. `first_choice`: how many tokens
/// an eviction first chooses among. Throws as CompressedCache and its require_room do.
[[nodiscard]] std::vector<CacheVersion> cache_versions(const sim::LlamaConfig& model,
                                                       const std::vector<CacheRequest>& requests,
                                                       const estimators::QuantizerOptions& options,
                                                       const CachePart& only, std::size_t block_tokens,
                                                       std::size_t first_choice);

}  // namespace spiked::codec
