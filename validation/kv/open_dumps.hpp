#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "estimators/caches/cache_method.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "sim/kv/dump_view.hpp"
#include "sim/kv/kv_dump.hpp"

namespace spiked::validation {

/// Which keys a query sees: those up to its own token, or all. `none`: attention is not measured.
enum class AttentionMode { causal, bidirectional, none };
/// Throws usage_error with the nearest.
[[nodiscard]] AttentionMode attention_mode(std::string_view word);
/// As the metadata of a dump say; nothing where they do not, or say a word that is neither causal nor bidirectional.
[[nodiscard]] std::optional<AttentionMode> stated_attention(const sim::Metadata& metadata);
/// Why the queries of a layer cannot meet its keys: other tokens or channels, or no multiple of its heads; empty where
/// they can, or one of them is not there.
[[nodiscard]] std::string queries_mismatch(const sim::KvDump& dump, std::size_t layer);

/// A cache method at one bit width.
struct NamedCache {
    estimators::CacheMethod method;
    double bits = 0.0;
};

/// Which blocks of which dumps. Empty sets mean all.
struct KvPlan {
    std::vector<std::string> dumps;
    std::shared_ptr<const void> kept;  ///< holds the files of dumps that go with it, where a model is their source
    std::vector<std::string> names;    ///< what the dumps are called where their paths will be gone; empty: the paths
    std::size_t block_tokens = 128;
    std::set<std::size_t> layers;
    std::set<std::size_t> heads;
    std::optional<sim::Side> side;  ///< key and value when not given
    sim::DumpOptions dump;
    sim::DumpView view;
    /// When it is not given: as the metadata `attention` of each dump say, and where they or the queries are missing
    /// attention is not measured. Given, what is missing is an input_error.
    std::optional<AttentionMode> attention;
    estimators::QuantizerOptions quantizer;
    estimators::Precision precision = estimators::Precision::float64;
    std::vector<NamedCache> caches;        ///< measured behind the codecs; on the blocks as they are, without a view
    std::vector<std::string> calibration;  ///< dumps for those of them that are calibrated
};

/// All blocks of one head of one tensor.
struct DumpHeadPlace {
    std::size_t dump = 0;  ///< in OpenDumps::dumps
    const sim::DumpTensor* tensor = nullptr;
    std::size_t head = 0;
};

/// The dumps of a plan, and every head of them that it asks for, in the order of dumps, layers, sides, heads.
struct OpenDumps {
    std::vector<std::unique_ptr<sim::KvDump>> dumps;
    std::vector<std::string> sha256;
    std::vector<DumpHeadPlace> heads;

    /// By prompt when every dump names one and there are 8 or more, otherwise by layer and head of a model.
    [[nodiscard]] bool clusters_by_prompt() const;
    /// Which blocks are not independent of those of this head: those of the same text.
    [[nodiscard]] std::string cluster_of(const DumpHeadPlace& at, bool by_prompt) const;
};

/// Throws usage_error and input_error: no block, no dump, one twice, nothing left to measure, less than a block.
[[nodiscard]] OpenDumps open_dumps(const KvPlan& plan);

/// Files a shell pattern stands for, sorted; a plain name stands for itself. Empty when there is none.
[[nodiscard]] std::vector<std::string> expand_pattern(const std::string& pattern);

}  // namespace spiked::validation
