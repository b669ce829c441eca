#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/enum_names.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "sim/kv/dump_view.hpp"
#include "sim/kv/kv_dump.hpp"

namespace spiked::validation {

/// The keys that a query attends to: those up to its own token, or all. `none`: attention is not measured.
enum class AttentionMode { causal, bidirectional, none };
/// Parses a name. Throws usage_error that suggests the nearest name.
[[nodiscard]] AttentionMode attention_mode(std::string_view name);
/// The mode that the metadata of a dump state; no value if they state none, or neither causal nor bidirectional.
[[nodiscard]] std::optional<AttentionMode> stated_attention(const sim::Metadata& metadata);
/// Why the queries of a layer do not match its keys: different tokens or channels, or a number of heads that is not a
/// multiple. Empty if they match or if one of them is missing.
[[nodiscard]] std::string queries_mismatch(const sim::KvDump& dump, std::size_t layer);

/// A cache method at one bit width.
struct NamedCache {
    estimators::CacheMethod method;
    double bits = 0.0;
};

/// Selects dumps, blocks and methods. Empty sets select all.
struct KvPlan {
    std::vector<std::string> dumps;
    std::shared_ptr<const void> kept;  ///< owns temporary dumps, if a model is the source
    std::vector<std::string> names;    ///< names of temporary dumps in stores; empty: their paths
    std::size_t block_tokens = 128;
    std::set<std::size_t> layers;
    std::set<std::size_t> heads;
    std::optional<sim::Side> side;  ///< no value: key and value
    sim::DumpOptions dump;
    sim::DumpView view;
    /// No value: as the metadata `attention` of each dump state; attention is not measured if they or the queries are
    /// missing. With a value, missing tensors are an input_error.
    std::optional<AttentionMode> attention;
    estimators::QuantizerOptions quantizer;
    estimators::Precision precision = estimators::Precision::float64;
    std::vector<NamedCache> caches;        ///< measured after the codecs, on the blocks without a view
    std::vector<std::string> calibration;  ///< dumps for calibrated cache methods
};

/// All blocks of one head of one tensor.
struct DumpHeadPlace {
    std::size_t dump = 0;  ///< index in OpenDumps::dumps
    const sim::DumpTensor* tensor = nullptr;
    std::size_t head = 0;
};

/// The dumps of a plan and all heads that it selects, in the order of dumps, layers, sides, heads.
struct OpenDumps {
    std::vector<std::unique_ptr<sim::KvDump>> dumps;  ///< one for each sequence of a file with a batch
    std::vector<std::string> sha256;
    std::vector<DumpHeadPlace> heads;
    std::vector<std::string> notes;  ///< what was left out or decided, and how to change it

    /// Whether clusters are prompts: if every dump names its prompt and there are 8 or more. Otherwise clusters are the
    /// layers and heads of a model.
    [[nodiscard]] bool clusters_by_prompt() const;
    /// The path of a dump, with the number of the sequence behind it where the file has several.
    [[nodiscard]] std::string name_of(std::size_t dump) const;
    /// The cluster of a head. Blocks of the same cluster are not independent.
    [[nodiscard]] std::string cluster_of(const DumpHeadPlace& at, bool by_prompt) const;
};

/// Opens the dumps of a plan, all sequences of a batch unless the plan chooses one. Tensors shorter than a block are
/// left out. Throws usage_error and input_error for no dump or the same dump twice, and if no head is left.
[[nodiscard]] OpenDumps open_dumps(const KvPlan& plan);

/// The models of the dumps of a plan, each as NAME (D channels a head).
[[nodiscard]] std::set<std::string> models_of(const KvPlan& plan);
/// Whether every dump says how its keys were rotated, so that default methods may de-rotate them. False also if a file
/// is not a dump: the function that reads it reports the error.
[[nodiscard]] bool all_have_rotary_keys(const std::vector<std::string>& dumps, sim::DumpOptions options);

/// The files that match a shell pattern, sorted. A name without wildcards matches itself. Empty if no file matches.
[[nodiscard]] std::vector<std::string> expand_pattern(const std::string& pattern);

}  // namespace spiked::validation

template <>
struct spiked::EnumNames<spiked::validation::AttentionMode> {
    static constexpr EnumName<spiked::validation::AttentionMode> table[] = {
        {spiked::validation::AttentionMode::causal, "causal"},
        {spiked::validation::AttentionMode::bidirectional, "bidirectional"},
        {spiked::validation::AttentionMode::none, "none"}};
};
