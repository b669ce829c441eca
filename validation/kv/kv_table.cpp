#include "validation/kv/kv_table.hpp"

#include <fmt/format.h>

namespace spiked::validation {

MeanAndError KvRow::of(std::string_view metric) const {
    const auto found = means.find(metric);
    return found == means.end() ? MeanAndError{} : found->second;
}

KvTable kv_table(Database& store) {
    KvTable table;
    Statement inputs(store,
                     "SELECT i.path, i.sha256, i.model, sum(c.reps_target), sum(s.num) FROM input i"
                     " JOIN factor f ON f.name = 'input' AND f.num = i.input_id JOIN cell c USING(cell_id)"
                     " JOIN factor s ON s.cell_id = c.cell_id AND s.name = 'tokens_skipped' GROUP BY i.input_id ORDER "
                     "BY i.input_id");
    while (inputs.step())
        table.inputs.push_back({inputs.text(0), inputs.text(1), inputs.text(2),
                                static_cast<std::uint64_t>(inputs.integer(3)),
                                static_cast<std::uint64_t>(inputs.integer(4))});
    Statement cluster(store, "SELECT min(txt) FROM factor WHERE name = 'cluster_by'");
    if (cluster.step()) table.cluster = cluster.text(0);
    table.clusters =
        static_cast<std::size_t>(store.integer("SELECT count(DISTINCT txt) FROM factor WHERE name = 'cluster'"));

    Statement means(
        store,
        "SELECT side, method_id, method, bits, metric, blocks, mean, mcse, (SELECT json_extract(m.params, '$.budget') "
        "FROM method m WHERE m.method_id = v.method_id) FROM v_cluster v ORDER BY side, method_id");
    std::pair<std::string, std::int64_t> current;
    while (means.step()) {
        const std::pair key{means.text(0), means.integer(1)};
        if (table.rows.empty() || key != current) {
            current = key;
            KvRow& row = table.rows.emplace_back();
            row.side = means.text(0);
            row.method = means.text(2);
            row.bits = means.real(3);
            if (!means.is_null(8)) row.budget = means.real(8);
            row.ledger.resize(estimators::item_count);
        }
        KvRow& row = table.rows.back();
        const std::string metric = means.text(4);
        row.means[metric] = {means.real(6), means.real(7)};
        for (std::size_t item = 0; item < estimators::item_count; ++item)
            if (metric == fmt::format("bits.{}", estimators::item_names[item])) row.ledger[item] = means.real(6);
        if (metric == "bits_per_entry") row.blocks = static_cast<std::uint64_t>(means.integer(5));
    }
    return table;
}

}  // namespace spiked::validation
