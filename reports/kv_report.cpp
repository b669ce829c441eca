#include "reports/kv_report.hpp"

#include <fmt/format.h>

#include "reports/text_table.hpp"
#include "sim/printable.hpp"

namespace spiked::reports {
namespace {

using validation::ClusteredValue;

std::string percent(const ClusteredValue& share) { return with_error(100.0 * share.mean, 100.0 * share.mcse); }
std::string plain(const ClusteredValue& value) { return with_error(value.mean, value.mcse); }

}  // namespace

std::string kv_text(const validation::KvTable& table) {
    std::string text;
    for (const auto& input : table.inputs) {
        text += fmt::format("{}  {} blocks  {}\n", input.file, input.blocks, sim::printable(input.model));
        if (input.tokens_skipped > 0)
            text += fmt::format("  {} tokens of partial last blocks left out\n", input.tokens_skipped);
    }
    for (const char* side : {"key", "value"}) {
        TextTable rows({"method", "B", "mean rank", "bits", "paper bits", "rel. L2 %", "IP bias", "IP std",
                        "IP bias plain", "IP std plain"});
        std::uint64_t blocks = 0;
        for (const auto& row : table.rows) {
            if (row.side != side) continue;
            blocks = row.blocks;
            rows.add({row.method, fmt::format("{}", row.bits), plain(row.rank), plain(row.bits_per_entry),
                      plain(row.paper_bits), percent(row.relative_l2), plain(row.ip_bias), plain(row.ip_std),
                      plain(row.ip_bias_plain), plain(row.ip_std_plain)});
        }
        if (blocks > 0) text += fmt::format("\n{}s, {} blocks\n{}", side, blocks, rows.text());
    }
    text += fmt::format(
        "\nMeans over blocks; in brackets the standard error in the last digits, clustered by {} ({} clusters).\n"
        "bits: stored bits an entry, counted from the bytes. paper bits: b + r (n + d) b_s / (n d), norms left out.\n"
        "IP: error of the cosine of different rows, decoded rows renormalised as in the paper; plain: not "
        "renormalised.\n",
        table.cluster == "head" ? "layer and head" : table.cluster, table.clusters);
    return text;
}

Json ledger_json(const std::vector<double>& bits_per_entry) {
    Json ledger = Json::object();
    for (std::size_t item = 0; item < estimators::item_count; ++item)
        ledger.set(std::string(estimators::item_names[item]), bits_per_entry[item]);
    return ledger;
}

Json kv_json(const validation::KvTable& table) {
    Json inputs = Json::array();
    for (const auto& input : table.inputs)
        inputs.push(Json::object({{"file", input.file},
                                  {"sha256", input.sha256},
                                  {"model", input.model.empty() ? Json() : Json(input.model)},
                                  {"blocks", static_cast<std::int64_t>(input.blocks)},
                                  {"tokens_skipped", static_cast<std::int64_t>(input.tokens_skipped)}}));
    Json rows = Json::array();
    for (const auto& row : table.rows) {
        Json line = Json::object({{"side", row.side},
                                  {"method", row.method},
                                  {"bits", validation::bits_json(row.bits)},
                                  {"bits_per_entry", row.bits_per_entry.mean},
                                  {"paper_bits", row.paper_bits.mean},
                                  {"ledger", ledger_json(row.ledger)}});
        const std::pair<const char*, const ClusteredValue*> means[] = {
            {"mean_rank", &row.rank}, {"relative_l2", &row.relative_l2},     {"ip_bias", &row.ip_bias},
            {"ip_std", &row.ip_std},  {"ip_bias_plain", &row.ip_bias_plain}, {"ip_std_plain", &row.ip_std_plain}};
        for (const auto& [name, value] : means) line.set(name, value->mean);
        for (const auto& [name, value] : means) line.set(std::string("mcse_") + name, value->mcse);
        line.set("mcse_bits_per_entry", row.bits_per_entry.mcse).set("mcse_paper_bits", row.paper_bits.mcse);
        line.set("blocks", static_cast<std::int64_t>(row.blocks));
        rows.push(std::move(line));
    }
    return Json::object({{"schema", "spiked.kv/1"},
                         {"inputs", std::move(inputs)},
                         {"cluster", table.cluster},
                         {"clusters", table.clusters},
                         {"rows", std::move(rows)}});
}

}  // namespace spiked::reports
