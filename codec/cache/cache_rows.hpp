#pragma once
#include <armadillo>
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

/// A decoded head of a low-rank cache method, and the bits of its group, divided equally among the group's entries.
struct CachedHead {
    arma::fmat rows;  ///< tokens x dim, in the coordinates of the dump
    estimators::PerItem<double> bits_per_entry;
    double shared_bits_per_entry = 0.0;  ///< of the calibrated basis, if this sequence alone had to store it
    std::size_t rank = 0;                ///< of the group
};

/// All tokens of these heads of the tensors, channels beside channels; keys are de-rotated if `rotary` is given.
[[nodiscard]] arma::mat joined_rows(const sim::KvDump& dump, const std::vector<const sim::DumpTensor*>& tensors,
                                    std::size_t first_head, std::size_t heads,
                                    const std::optional<sim::DumpRotary>& rotary);

/// The queries of the first 128 tokens for each head of keys of these tensors, as a CacheGroup takes them. `rotary` is
/// the rotary embedding that is taken off keys, and so off queries. None where the dump has no queries that fit, and
/// where the pairs of the embedding are not those that weights are for.
[[nodiscard]] std::vector<arma::mat> first_queries(const sim::KvDump& dump,
                                                   const std::vector<const sim::DumpTensor*>& tensors,
                                                   std::size_t first_head, std::size_t heads,
                                                   const std::optional<sim::DumpRotary>& rotary);

/// Dumps that cache methods are calibrated on.
class Calibration {
public:
    Calibration() = default;
    /// Throws usage_error for a file with the same content (SHA-256) as a tested dump, and for one of the same prompt
    /// and model if both dumps name them: it may hold the same tokens in another dtype or cut at another place.
    Calibration(const std::vector<std::string>& paths, const sim::DumpOptions& options,
                const std::vector<std::unique_ptr<sim::KvDump>>& tested, const std::vector<std::string>& tested_sums);

    [[nodiscard]] bool empty() const { return dumps_.empty(); }
    [[nodiscard]] const std::vector<std::string>& sums() const { return sums_; }
    /// The given heads of every dump, joined as in a group of the method; the tokens of the dumps are stacked as rows.
    /// Throws input_error if a dump does not have the same layers, heads and channels.
    [[nodiscard]] arma::mat rows(const std::vector<const sim::DumpTensor*>& tensors, std::size_t first_head,
                                 std::size_t heads, const estimators::CacheMethod& method) const;

private:
    std::vector<std::unique_ptr<sim::KvDump>> dumps_;
    std::vector<std::string> sums_;
};

/// One cache method at one bit width on the dumps of a study. A group of heads is coded when one of its heads is first
/// requested, and its decoded rows are cached in float. Methods that take the rotary embedding off keys themselves do
/// so where the dump states it, and get the queries of the first tokens where the dump has them. Memory: up to one
/// float copy of all dumps. Thread-safe.
class CacheRows {
public:
    CacheRows(estimators::CacheMethod method, double bits, const estimators::QuantizerOptions& options,
              const Calibration& calibration);

    [[nodiscard]] const CachedHead& of(const sim::KvDump& dump, const sim::DumpTensor& tensor, std::size_t head);

private:
    struct Group {
        CallOnce once;
        std::vector<CachedHead> heads;  ///< the heads of its first tensor, then those of the next
    };
    [[nodiscard]] std::vector<const sim::DumpTensor*> sides_of(const sim::KvDump& dump, std::size_t layer) const;
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
