#include "reports/perplexity_report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "reports/text_table.hpp"

namespace spiked::reports {

std::string perplexity_text(const validation::Perplexity& found) {
    std::string text = fmt::format("full precision: {} nats a token, perplexity {:.3f}\n",
                                   with_error(found.nats, found.mcse_nats), std::exp(found.nats));
    if (!found.rows.empty()) {
        TextTable table({"method", "B ", "bits/entry ", "added nats ", "perplexity x"});
        for (const auto& row : found.rows)
            table.add({row.method, fmt::format("{:g}", row.bits), fmt::format("{:.3f}", row.bits_per_entry),
                       with_error(row.added_nats, row.mcse_added_nats),
                       fmt::format("{:.4f}", std::exp(row.added_nats))});
        text += "\n" + table.text();
    }
    return text +
           fmt::format(
               "\n{} tokens of {} documents: those that see a compressed block of {}. Keys and values of full past "
               "blocks are compressed, the block\nbeing read is exact. In brackets standard errors over documents, "
               "of paired differences for added nats{}.\n",
               found.tokens, found.documents, found.block_tokens, found.documents < 2 ? "; one document has none" : "");
}

Json perplexity_json(const validation::Perplexity& found) {
    Json rows = Json::array();
    for (const auto& row : found.rows)
        rows.push(Json::object({{"method", row.method},
                                {"bits", row.bits},
                                {"bits_per_entry", row.bits_per_entry},
                                {"added_nats", row.added_nats},
                                {"mcse_added_nats", row.mcse_added_nats}}));
    return Json::object({{"schema", "spiked.perplexity/1"},
                         {"nats", found.nats},
                         {"mcse_nats", found.mcse_nats},
                         {"tokens", found.tokens},
                         {"documents", found.documents},
                         {"blocks_of", found.block_tokens},
                         {"rows", std::move(rows)}});
}

}  // namespace spiked::reports
