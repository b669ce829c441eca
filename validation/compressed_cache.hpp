#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/llama/llama.hpp"
#include "validation/block_study.hpp"

namespace spiked::validation {

/// Layers and sides of a cache; empty: all of it.
using CachePart = std::set<std::pair<std::size_t, sim::Side>>;

/// A cache keeper that sends blocks through a method and back, and counts what it stored. `unrope+` turns keys back
/// before they are coded. A layer, side and head has a rotation of its own, the same for every sequence.
/// Copies share the codecs and count by themselves.
class CompressedCache {
public:
    /// Throws usage_error for bits that the method does not take and for layers that do not exist.
    CompressedCache(const sim::LlamaConfig& model, const estimators::Method& method, double bits,
                    const estimators::QuantizerOptions& options, const CachePart& only);

    /// Not to be called from two threads at once. Errors name layer, side, head and tokens.
    [[nodiscard]] arma::fmat keep(const sim::CachePlace& place, const arma::fmat& exact);
    [[nodiscard]] sim::CacheKeeper keeper() {
        return [this](const sim::CachePlace& place, const arma::fmat& exact) { return keep(place, exact); };
    }
    /// Of what was compressed so far.
    [[nodiscard]] double stored_bits() const { return bits_; }
    [[nodiscard]] double entries() const { return entries_; }

private:
    sim::LlamaConfig model_;
    estimators::Method method_;
    CachePart only_;
    std::shared_ptr<const std::vector<estimators::Compressor>> codecs_;  ///< by layer, side and head
    double bits_ = 0.0;
    double entries_ = 0.0;
};

/// One way to keep a cache.
struct CacheVersion {
    std::string label = "none";
    double bits = 16.0;
    std::optional<CompressedCache> cache;  ///< empty, to be copied for each sequence; nothing: full precision
};
/// Full precision, then every codec at each of its bits, in their order. Throws as CompressedCache does.
[[nodiscard]] std::vector<CacheVersion> cache_versions(const sim::LlamaConfig& model,
                                                       const std::vector<NamedCodec>& codecs,
                                                       const estimators::QuantizerOptions& options,
                                                       const CachePart& only);

}  // namespace spiked::validation
