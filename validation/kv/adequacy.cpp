#include "validation/kv/adequacy.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "codec/cache/head_rotation.hpp"
#include "core/runtime/error.hpp"
#include "validation/kv/block_adequacy.hpp"
#include "validation/statistics/clustered.hpp"

namespace spiked::validation {
namespace {

/// Counts and sums of one head, from which the rows of the table are computed.
struct HeadTally {
    const DumpHeadPlace* at;
    std::int64_t cluster = 0;  ///< index of the cluster
    std::uint64_t blocks = 0;
    std::uint64_t skipped = 0;
    double rank = 0.0;
    double half_rank = 0.0;
    double power_law = 0.0;
    double exponent = 0.0;
    double peak_over_bound = 0.0;
    std::vector<double> rejected =
        std::vector<double>(adequacy_tests().size() + 1, 0.0);  ///< by each test; last: by any test of the model
};

HeadTally tally(const DumpHeadPlace& at, std::int64_t cluster, const std::vector<BlockAdequacy>& blocks, double level) {
    HeadTally sums{&at, cluster};
    for (const auto& block : blocks) {
        if (!block.skipped.empty()) {
            ++sums.skipped;
            continue;
        }
        ++sums.blocks;
        sums.rank += static_cast<double>(block.rank);
        sums.half_rank += block.half_rank;
        sums.power_law += block.power_advantage > 0.0 ? 1.0 : 0.0;
        sums.exponent += block.exponent;
        sums.peak_over_bound += block.peak_over_bound;
        bool any = false;
        for (std::size_t test = 0; test < adequacy_tests().size(); ++test) {
            // p-values are multiples of 1 / (1 + draws); the tolerance protects the comparison from rounding.
            const bool rejects = block.p_values[test] <= level * (1.0 + 1e-9);
            sums.rejected[test] += rejects ? 1.0 : 0.0;
            any = any || (rejects && adequacy_tests()[test].of_model);
        }
        sums.rejected.back() += any ? 1.0 : 0.0;
    }
    return sums;
}

AdequacyRow row_of(const std::vector<HeadTally>& heads, const std::function<bool(const DumpHeadPlace&)>& belongs) {
    AdequacyRow row;
    std::vector<const HeadTally*> members;
    for (const auto& head : heads)
        if (belongs(*head.at)) {
            row.blocks += head.blocks;
            row.skipped += head.skipped;
            if (head.blocks > 0) members.push_back(&head);
        }
    const auto clusters_of = [&](const std::function<double(const HeadTally&)>& sum) {
        Parts clusters;
        for (const auto* head : members) {
            auto& part = clusters.sums[head->cluster];
            part.count += static_cast<double>(head->blocks);
            part.sum += sum(*head);
        }
        return clusters;
    };
    constexpr std::pair<MeanAndError AdequacyRow::*, double HeadTally::*> sums[] = {
        {&AdequacyRow::rank, &HeadTally::rank},
        {&AdequacyRow::half_rank, &HeadTally::half_rank},
        {&AdequacyRow::power_law, &HeadTally::power_law},
        {&AdequacyRow::exponent, &HeadTally::exponent},
        {&AdequacyRow::peak_over_bound, &HeadTally::peak_over_bound}};
    for (const auto& [field, sum] : sums)
        row.*field = clusters_of([sum = sum](const HeadTally& head) { return head.*sum; }).mean().mean_and_error();
    row.degrees = row.rank.df;
    for (std::size_t test = 0; test <= adequacy_tests().size(); ++test) {
        const Parts clusters = clusters_of([test](const HeadTally& head) { return head.rejected[test]; });
        row.clusters = clusters.sums.size();
        row.rejected.push_back(clustered_fraction(clusters, 0.05));
    }
    return row;
}

std::vector<AdequacyRow> rows_of(const std::vector<HeadTally>& heads) {
    std::map<sim::Side, std::map<std::size_t, std::set<std::size_t>>> places;
    for (const auto& head : heads) places[head.at->tensor->side][head.at->tensor->layer].insert(head.at->head);
    std::vector<AdequacyRow> rows = {row_of(heads, [](const auto&) { return true; })};
    for (const auto& [side, layers] : places) {
        const auto add = [&, side = side](std::optional<std::size_t> layer, std::optional<std::size_t> head) {
            auto row = row_of(heads, [&](const DumpHeadPlace& at) {
                return at.tensor->side == side && (!layer || at.tensor->layer == *layer) && (!head || at.head == *head);
            });
            row.side = side;
            row.layer = layer;
            row.head = head;
            rows.push_back(std::move(row));
        };
        add(std::nullopt, std::nullopt);
        for (const auto& [layer, in_layer] : layers) {
            add(layer, std::nullopt);
            for (const std::size_t head : in_layer) add(layer, head);
        }
    }
    return rows;
}

void require_blocks(const OpenDumps& open, std::size_t block_tokens) {
    for (const auto& [dump, tensor, head] : open.heads) {
        const std::string where = fmt::format("{}: tensor {}", open.dumps[dump]->path(), tensor->name);
        if (tensor->dim < smallest_judged_side)
            throw input_error("{} has {} channels (a spectrum to judge needs {} or more): leave it out", where,
                              tensor->dim, smallest_judged_side);
        if (tensor->tokens < 2 * block_tokens)
            throw input_error(
                "{} has {} tokens, one block of {} (the law of a block comes from the other blocks of its head): "
                "choose a smaller --block",
                where, tensor->tokens, block_tokens);
    }
}

}  // namespace

Adequacy measure_adequacy(const AdequacyPlan& plan) {
    if (!contains(adequacy_levels, plan.level)) throw precondition_error("tests at the level {}", plan.level);
    const std::size_t block_tokens = plan.blocks.block_tokens;
    if (block_tokens < smallest_judged_side)
        throw usage_error("--block {} is not possible (a spectrum to judge needs {} rows): choose {} or more",
                          block_tokens, smallest_judged_side, smallest_judged_side);
    const OpenDumps open = open_dumps(plan.blocks);
    require_blocks(open, block_tokens);

    const bool by_prompt = open.clusters_by_prompt();
    Adequacy found{.seed = plan.seed, .level = plan.level, .cluster = by_prompt ? "prompt" : "head"};
    found.notes = open.notes;
    found.draws = static_cast<std::size_t>(std::ceil(2.0 / plan.level - 1e-9)) - 1;
    for (std::size_t i = 0; i < open.dumps.size(); ++i)
        found.inputs.push_back({open.name_of(i), open.sha256[i], open.dumps[i]->model(), 0, 0});
    std::uint64_t total = 0;
    for (const auto& [dump, tensor, head] : open.heads) {
        found.inputs[dump].blocks += tensor->tokens / block_tokens;
        found.inputs[dump].tokens_skipped += tensor->tokens % block_tokens;
        total += tensor->tokens / block_tokens;
    }
    std::vector<HeadTally> heads;
    std::map<std::string, std::int64_t> clusters;
    std::uint64_t done = 0;
    for (const auto& at : open.heads) {
        std::vector<arma::mat> blocks;
        for (std::size_t b = 0; b < at.tensor->tokens / block_tokens; ++b)
            blocks.push_back(open.dumps[at.dump]->read_block(*at.tensor, at.head, b * block_tokens, block_tokens));
        const AdequacyDraws draws{
            plan.seed, codec::head_identity(open.sha256[at.dump], at.tensor->name, at.head, block_tokens).text(),
            found.draws, plan.threads};
        const auto [cluster, first] = clusters.emplace(open.cluster_of(at, by_prompt), clusters.size());
        heads.push_back(tally(at, cluster->second, judge_head(blocks, draws), plan.level));
        done += blocks.size();
        if (plan.progress) plan.progress(done, total);
    }
    found.rows = rows_of(heads);
    return found;
}

}  // namespace spiked::validation
