#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codec/cache/cache_rows.hpp"
#include "core/runtime/error.hpp"
#include "estimators/compressors/head_codec.hpp"
#include "validation/kv/open_dumps.hpp"
#include "validation/metrics/attention.hpp"
#include "validation/store/experiment.hpp"

// The state of a running dump study, shared by the measurements of blocks and of attention.
namespace spiked::validation {

/// All blocks of one head of one tensor: a cell of the study.
struct StudiedHead : DumpHeadPlace {
    std::uint64_t rotation = 0;
    std::shared_ptr<const sim::DumpHead> blocks = {};
    std::string cell = {};                        ///< hash of its identity
    const sim::DumpTensor* queries = nullptr;     ///< of its layer, if inner products with them are measured
    std::optional<AttentionMode> attention = {};  ///< no value: not measured
};

struct DumpStudy {
    KvPlan plan;
    OpenDumps open;
    std::vector<std::pair<estimators::MethodSpec, double>> codecs;
    codec::Calibration calibration;
    std::vector<std::unique_ptr<codec::CacheRows>> caches;  ///< methods that follow those of `codecs`
    std::vector<StudiedHead> heads;
    std::vector<std::optional<sim::DumpRotary>> rotaries;  ///< of each dump, if a codec de-rotates keys
};

[[nodiscard]] estimators::HeadCodec head_codec(const DumpStudy& study, const StudiedHead& at, std::size_t method);

[[nodiscard]] arma::mat read_block(const DumpStudy& study, const StudiedHead& at, std::uint64_t block);
/// The queries of the query heads that attend to this head, for a range of tokens.
[[nodiscard]] std::vector<arma::mat> read_queries(const DumpStudy& study, const StudiedHead& at, std::size_t first,
                                                  std::size_t tokens);

/// Reads the rotary embedding of each dump if a codec de-rotates keys. Throws input_error for dumps that do not state
/// it.
void find_rotaries(DumpStudy& study);
/// The rotary embedding of a head's rows, if they have one and a codec undoes it.
[[nodiscard]] const std::optional<sim::DumpRotary>& rotary_of(const DumpStudy& study, const StudiedHead& at);
[[nodiscard]] arma::mat derotated(const DumpStudy& study, const sim::DumpRotary& rotary, const arma::mat& rows,
                                  std::uint64_t block);
[[nodiscard]] arma::mat rotated(const DumpStudy& study, const sim::DumpRotary& rotary, const arma::mat& rows,
                                std::uint64_t block);

/// Runs the work on a block; errors name the block.
template <class Work>
auto located(const DumpStudy& study, const StudiedHead& at, std::uint64_t block, const Work& work) {
    return spiked::located(
        [&] {
            const std::size_t tokens = study.plan.block_tokens;
            const std::size_t end = std::min((block + 1) * tokens, at.tensor->tokens);
            return fmt::format("{}: tensor {}, head {}, tokens {} to {}", study.open.dumps[at.dump]->path(),
                               at.tensor->name, at.head, block * tokens, end - 1);
        },
        work);
}

}  // namespace spiked::validation
