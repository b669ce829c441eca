#include "validation/kv/kv_table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace spiked::validation {

std::uint64_t BlockMean::blocks() const {
    double count = 0.0;
    for (const auto& [cluster, sum] : clusters.sums) count += sum.count;
    return static_cast<std::uint64_t>(std::llround(count));
}

std::vector<BlockMean> block_means(Database& store) {
    std::vector<BlockMean> found;
    std::map<std::string, std::int64_t> numbers;
    Statement rows(store,
                   "SELECT side.txt, m.method_id, mt.name, cl.txt, SUM(m.n), SUM(m.n * m.mean), me.name, me.base, "
                   "me.bits, json_extract(me.params, '$.budget') FROM moment m JOIN factor side ON side.cell_id = "
                   "m.cell_id AND side.name = 'side'"
                   " JOIN factor cl ON cl.cell_id = m.cell_id AND cl.name = 'cluster' JOIN method me USING(method_id) "
                   "JOIN metric mt USING(metric_id)"
                   " WHERE m.n > 0 GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4");
    while (rows.step()) {
        if (found.empty() || found.back().side != rows.text(0) || found.back().method_id != rows.integer(1) ||
            found.back().metric != rows.text(2)) {
            BlockMean& mean = found.emplace_back();
            mean.side = rows.text(0);
            mean.method_id = rows.integer(1);
            mean.metric = rows.text(2);
            mean.name = rows.text(6);
            mean.method = rows.text(7);
            mean.bits = rows.real(8);
            if (!rows.is_null(9)) mean.budget = rows.real(9);
        }
        const auto number = numbers.emplace(rows.text(3), static_cast<std::int64_t>(numbers.size())).first->second;
        found.back().clusters.sums[number] = {rows.real(4), rows.real(5)};
    }
    return found;
}

MeanAndError KvRow::of(std::string_view metric) const {
    const auto found = means.find(metric);
    return found == means.end() ? MeanAndError{} : found->second;
}

double KvRow::degrees() const {
    double fewest = std::numeric_limits<double>::quiet_NaN();
    for (const auto& [metric, mean] : means) fewest = std::fmin(fewest, mean.df);
    return fewest;
}

KvTable kv_table(Database& store) {
    KvTable table;
    Statement inputs(store,
                     "SELECT i.path, i.sha256, i.model, coalesce(sum((SELECT sum(b.reps - b.failed) FROM batch b "
                     "WHERE b.cell_id = c.cell_id)), 0), sum(s.num) FROM input i JOIN factor f ON f.name = 'input' "
                     "AND f.num = i.input_id JOIN cell c USING(cell_id) JOIN factor s ON s.cell_id = c.cell_id AND "
                     "s.name = 'tokens_skipped' GROUP BY i.input_id ORDER BY i.input_id");
    while (inputs.step())
        table.inputs.push_back({inputs.text(0), inputs.text(1), inputs.text(2),
                                static_cast<std::uint64_t>(inputs.integer(3)),
                                static_cast<std::uint64_t>(inputs.integer(4))});
    Statement cluster(store, "SELECT min(txt) FROM factor WHERE name = 'cluster_by'");
    if (cluster.step()) table.cluster = cluster.text(0);
    table.clusters = static_cast<std::size_t>(
        store.integer("SELECT count(DISTINCT txt) FROM factor f WHERE name = 'cluster' AND EXISTS"
                      " (SELECT 1 FROM moment m WHERE m.cell_id = f.cell_id AND m.n > 0)"));
    table.planned_clusters =
        static_cast<std::size_t>(store.integer("SELECT count(DISTINCT txt) FROM factor WHERE name = 'cluster'"));
    table.partial = store.integer(
                        "SELECT count(*) FROM cell c WHERE c.reps_target > coalesce((SELECT sum(b.reps) FROM batch b "
                        "WHERE b.cell_id = c.cell_id), 0)") > 0;

    std::pair<std::string, std::int64_t> current;
    for (const auto& mean : block_means(store)) {
        const std::pair key{mean.side, mean.method_id};
        if (table.rows.empty() || key != current) {
            current = key;
            KvRow& row = table.rows.emplace_back();
            row.side = mean.side;
            row.method = mean.method;
            row.bits = mean.bits;
            row.budget = mean.budget;
        }
        KvRow& row = table.rows.back();
        const MeanAndError& found = row.means[mean.metric] = mean.clusters.mean().mean_and_error();
        for (const auto& item : EnumNames<estimators::Item>::table)
            if (mean.metric == fmt::format("bits.{}", item.name)) row.ledger[item.value] = found.mean;
        row.counts[mean.metric] = mean.blocks();
        if (mean.metric == "bits_per_entry") row.blocks = mean.blocks();
    }
    return table;
}

}  // namespace spiked::validation
