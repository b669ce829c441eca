#pragma once
#include <armadillo>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/runtime/call_once.hpp"
#include "estimators/caches/cache_method.hpp"
#include "sim/kv/dump_view.hpp"
#include "sim/kv/kv_dump.hpp"

namespace spiked::codec {

/// A head as a cache method gives it back, and the bits of its group, spread evenly over the group's entries.
struct CachedHead {
    arma::fmat rows;  ///< tokens x dim, in the dump's own coordinates
    std::array<double, estimators::item_count> bits_per_entry{};
    double shared_bits_per_entry = 0.0;  ///< of the calibrated basis, had this sequence to pay for it alone
    std::size_t rank = 0;                ///< of the group
};

/// Dumps that cache methods are calibrated on.
class Calibration {
public:
    Calibration() = default;
    /// Throws usage_error for a file with the content (SHA-256) of a dump that is tested, or of the same prompt and
    /// model where both say so: the same tokens in another dtype or cut elsewhere.
    Calibration(const std::vector<std::string>& paths, const sim::DumpOptions& options,
                const std::vector<std::unique_ptr<sim::KvDump>>& tested, const std::vector<std::string>& tested_sums);

    [[nodiscard]] bool empty() const { return dumps_.empty(); }
    [[nodiscard]] const std::vector<std::string>& sums() const { return sums_; }
    /// The same heads of every dump, joined like those of a group; tokens below each other. Throws input_error where a
    /// dump has not the same layers, heads and channels.
    [[nodiscard]] arma::mat rows(const std::vector<const sim::DumpTensor*>& tensors, std::size_t first_head,
                                 std::size_t heads, bool unrope) const;

private:
    std::vector<std::unique_ptr<sim::KvDump>> dumps_;
    std::vector<std::string> sums_;
};

/// One cache method at one bit width on the dumps of a study. A group of heads is coded when the first of its heads is
/// asked for and kept decoded, in float: in the end the whole cache once more. Safe to ask from several threads.
class CacheRows {
public:
    CacheRows(estimators::CacheMethod method, double bits, const estimators::QuantizerOptions& options,
              const Calibration& calibration);

    [[nodiscard]] const CachedHead& of(const sim::KvDump& dump, const sim::DumpTensor& tensor, std::size_t head);

private:
    struct Group {
        CallOnce once;
        std::vector<CachedHead> heads;  ///< of its first tensor, then of the next
    };
    void code(Group& group, const sim::KvDump& dump, const std::vector<const sim::DumpTensor*>& tensors,
              std::size_t first_head, std::size_t heads) const;

    estimators::CacheMethod method_;
    double bits_;
    estimators::QuantizerOptions options_;
    const Calibration* calibration_;
    std::mutex mutex_;
    std::map<std::tuple<const sim::KvDump*, sim::Side, std::size_t, std::size_t>, Group> groups_;
};

}  // namespace spiked::codec
