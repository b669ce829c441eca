#include "validation/kv_measurement.hpp"

#include <cmath>
#include <mutex>

#include "theory/base/names.hpp"
#include "theory/base/sha256.hpp"
#include "validation/block_metrics.hpp"
#include "validation/parallel.hpp"

namespace spiked::validation {
namespace {

using estimators::Compressor;
using estimators::Ledger;
using sim::Side;

constexpr std::size_t prompts_that_cluster = 8;

enum Quantity : std::size_t { paper_bits, rank, relative_l2, ip_bias, ip_std, ip_bias_plain, ip_std_plain, quantities };

/// Sums of one method and bit width within one head of one dump.
struct HeadSums {
    std::array<ClusterSum, quantities> sums;
    Ledger ledger;
    std::uint64_t entries = 0;
    std::uint64_t blocks = 0;
};

/// All blocks of one head of one tensor: the unit of work.
struct Head {
    std::size_t dump = 0;
    const sim::DumpTensor* tensor = nullptr;
    std::size_t head = 0;
    std::vector<HeadSums> sums;  // by method and bits
};

void add(ClusterSum& sum, double value) {
    if (std::isnan(value)) return;
    ++sum.count;
    sum.sum += value;
}

/// One rotation of the seed for each layer, side and head, the same in every dump.
std::uint64_t rotation_index(const sim::DumpTensor& tensor, std::size_t head) {
    return std::uint64_t{tensor.layer} << 32 | std::uint64_t{head} << 2 | static_cast<std::uint64_t>(tensor.side);
}

void measure_head(const KvPlan& plan, const std::vector<estimators::Method>& methods, const sim::KvDump& dump,
                  Head& unit) {
    const sim::DumpTensor& tensor = *unit.tensor;
    estimators::QuantizerOptions options = plan.quantizer;
    options.rotation_index = rotation_index(tensor, unit.head);
    std::vector<Compressor> compressors;
    for (const auto& method : methods)
        for (const unsigned bits : plan.bits) compressors.emplace_back(method, tensor.dim, bits, options);
    unit.sums.resize(compressors.size());

    for (std::size_t first = 0; first + plan.block_tokens <= tensor.tokens; first += plan.block_tokens) {
        estimators::AnalysedBlock block(dump.read_block(tensor, unit.head, first, plan.block_tokens));
        try {
            for (std::size_t m = 0; m < compressors.size(); ++m) {
                const auto [encoded, found_rank] = compressors[m].encode(block);
                const arma::mat decoded = compressors[m].decode(encoded.bytes, plan.block_tokens);
                const BlockMetrics metrics = measure_block(block.block(), decoded);
                HeadSums& to = unit.sums[m];
                add(to.sums[paper_bits], compressors[m].paper_bits(found_rank, plan.block_tokens));
                add(to.sums[rank], static_cast<double>(found_rank));
                add(to.sums[relative_l2], metrics.relative_l2);
                add(to.sums[ip_bias], metrics.ip_bias);
                add(to.sums[ip_std], metrics.ip_std);
                add(to.sums[ip_bias_plain], metrics.ip_bias_plain);
                add(to.sums[ip_std_plain], metrics.ip_std_plain);
                to.ledger += encoded.ledger;
                to.entries += decoded.n_elem;
                ++to.blocks;
            }
        } catch (const Error& error) {
            throw Error(error.code(),
                        fmt::format("{}: tensor {}, head {}, tokens {} to {}: {}", dump.path(), tensor.name, unit.head,
                                    first, first + plan.block_tokens - 1, error.what()));
        }
    }
}

bool wanted(const std::set<std::size_t>& chosen, std::size_t index) { return chosen.empty() || chosen.contains(index); }

bool wanted(const KvPlan& plan, const sim::DumpTensor& tensor) {
    if (tensor.side == Side::query || (plan.side && *plan.side != tensor.side)) return false;
    return wanted(plan.layers, tensor.layer);
}

std::vector<Head> list_heads(const KvPlan& plan, const std::vector<sim::KvDump>& dumps, std::vector<KvInput>& inputs) {
    std::vector<Head> heads;
    for (std::size_t f = 0; f < dumps.size(); ++f) {
        for (const auto& tensor : dumps[f].tensors()) {
            if (!wanted(plan, tensor)) continue;
            if (tensor.tokens < plan.block_tokens)
                throw input_error("{}: tensor {} has {} tokens, fewer than one block of {}: choose a smaller --block",
                                  dumps[f].path(), tensor.name, tensor.tokens, plan.block_tokens);
            for (std::size_t head = 0; head < tensor.heads; ++head) {
                if (!wanted(plan.heads, head)) continue;
                heads.push_back({f, &tensor, head, {}});
                inputs[f].blocks += tensor.tokens / plan.block_tokens;
                inputs[f].tokens_skipped += tensor.tokens % plan.block_tokens;
            }
        }
        if (inputs[f].blocks == 0)
            throw input_error(
                "{}: no layer, head and side is left to measure (--layers, --heads or --side exclude all): "
                "see spiked kv inspect {}",
                dumps[f].path(), dumps[f].path());
    }
    return heads;
}

}  // namespace

KvTable measure_dumps(const KvPlan& plan, const Progress& progress) {
    std::vector<estimators::Method> methods;
    for (const auto& method : plan.methods) methods.push_back(estimators::parse_method(method));
    for (const unsigned bits : plan.bits)
        for (const auto& method : methods)
            (void)Compressor(method, 2, bits, {.rotation = estimators::RotationKind::identity});
    if (plan.block_tokens == 0) throw usage_error("a block of 0 tokens is not possible: choose --block 1 or more");
    if (plan.dumps.empty()) throw usage_error("no dump was named: give one or more files");

    KvTable table;
    std::vector<sim::KvDump> dumps;
    std::set<std::string> prompts;
    bool every_prompt_known = true;
    for (const auto& path : plan.dumps) {
        const auto& dump = dumps.emplace_back(path, plan.dump);
        table.inputs.push_back({path, hex(sha256_of_file(path)), dump.model(), 0, 0});
        if (const auto prompt = dump.prompt_id())
            prompts.insert(*prompt);
        else
            every_prompt_known = false;
    }
    std::vector<Head> heads = list_heads(plan, dumps, table.inputs);

    std::size_t total = 0;
    for (const auto& input : table.inputs) total += input.blocks;
    std::size_t done = 0;
    std::mutex guard;
    for_each_parallel(heads.size(), plan.threads, [&](std::size_t i) {
        measure_head(plan, methods, dumps[heads[i].dump], heads[i]);
        const std::lock_guard lock(guard);
        done += heads[i].tensor->tokens / plan.block_tokens;
        if (progress) progress(done, total);
    });

    const bool by_prompt = every_prompt_known && prompts.size() >= prompts_that_cluster;
    table.cluster = by_prompt ? "prompt" : "head";
    std::set<std::string> clusters;
    for (const Side side : {Side::key, Side::value})
        for (std::size_t m = 0; m < methods.size() * plan.bits.size(); ++m) {
            std::array<std::map<std::string, ClusterSum>, quantities> sums;
            Ledger ledger;
            double entries = 0.0;
            KvRow row;
            for (const auto& head : heads) {
                if (head.tensor->side != side) continue;
                const auto& dump = dumps[head.dump];
                const std::string cluster =
                    by_prompt ? *dump.prompt_id()
                              : fmt::format("{} layer {} head {}", dump.model(), head.tensor->layer, head.head);
                clusters.insert(cluster);
                for (std::size_t q = 0; q < quantities; ++q) {
                    sums[q][cluster].count += head.sums[m].sums[q].count;
                    sums[q][cluster].sum += head.sums[m].sums[q].sum;
                }
                ledger += head.sums[m].ledger;
                entries += static_cast<double>(head.sums[m].entries);
                row.blocks += head.sums[m].blocks;
            }
            if (row.blocks == 0) continue;
            row.side = side;
            row.method = plan.methods[m / plan.bits.size()];
            row.bits = plan.bits[m % plan.bits.size()];
            row.bits_per_entry = static_cast<double>(ledger.total()) / entries;
            for (std::size_t item = 0; item < estimators::item_count; ++item)
                row.ledger.push_back(static_cast<double>(ledger.bits(static_cast<estimators::Item>(item))) / entries);
            row.paper_bits = clustered_mean(sums[paper_bits]);
            row.rank = clustered_mean(sums[rank]);
            row.relative_l2 = clustered_mean(sums[relative_l2]);
            row.ip_bias = clustered_mean(sums[ip_bias]);
            row.ip_std = clustered_mean(sums[ip_std]);
            row.ip_bias_plain = clustered_mean(sums[ip_bias_plain]);
            row.ip_std_plain = clustered_mean(sums[ip_std_plain]);
            table.rows.push_back(std::move(row));
        }
    table.clusters = clusters.size();
    return table;
}

}  // namespace spiked::validation
