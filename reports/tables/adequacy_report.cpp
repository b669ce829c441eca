#include "reports/tables/adequacy_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "reports/tables/kv_report.hpp"
#include "reports/tables/text_table.hpp"
#include "validation/kv/block_adequacy.hpp"
#include "validation/kv/kv_table.hpp"

namespace spiked::reports {
namespace {

using validation::AdequacyRow;
using validation::Interval;
using validation::MeanAndError;

std::string name_of(const AdequacyRow& row) {
    if (!row.side) return "all";
    std::string name = fmt::format("{}s", sim::side_name(*row.side));
    if (row.layer) name += fmt::format(", layer {}", *row.layer);
    if (row.head) name += fmt::format(", head {}", *row.head);
    return name;
}

/// A rejected fraction in percent, with `!` where its 95 % limits lie above what the model allows.
std::string percent_text(const Interval& rejected, double allowed) {
    return with_error(100.0 * rejected.estimate, 100.0 * rejected.error, 3) + (rejected.low > allowed ? "!" : " ");
}

std::string plain(const MeanAndError& value) { return with_error(value.mean, value.mcse, 3); }

std::string spectrum_sentence(const AdequacyRow& row, double level) {
    const Interval& shape = row.rejected.front();
    const char* verdict = !(shape.low > level) ? "not more than chance allows"
                          : shape.estimate >= 0.5 && row.power_law.mean > 0.5
                              ? "they look like a power law, without a square-root edge"
                              : "more of them lack a square-root edge than chance allows";
    return fmt::format(
        "{}s: a power law (exponent {} on average) fits the top of the noise better in {:.1f} % of blocks; "
        "edge.shape rejects {:.1f} % (95 % limits {:.1f} to {:.1f}): {}.\n",
        sim::side_name(*row.side), plain(row.exponent), 100.0 * row.power_law.mean, 100.0 * shape.estimate,
        100.0 * shape.low, 100.0 * shape.high, verdict);
}

/// Whether a row has the same blocks as the row that includes it, so that its numbers are the same.
bool repeats_including_row(const std::vector<AdequacyRow>& rows, std::size_t at) {
    if (rows[at].head || at == 0) return false;
    std::size_t whole = at - 1;
    while (rows[whole].head || (rows[at].layer && rows[whole].layer) || (!rows[at].layer && rows[whole].side)) --whole;
    return rows[at].blocks + rows[at].skipped == rows[whole].blocks + rows[whole].skipped;
}

Json value_json(const MeanAndError& value) { return Json::object({{"mean", value.mean}, {"mcse", value.mcse}}); }

/// The degrees of freedom of the rows, and what their errors are about.
std::string errors_note(const validation::Adequacy& adequacy) {
    double fewest = std::numeric_limits<double>::quiet_NaN();
    double most = fewest;
    for (const auto& row : adequacy.rows) {
        fewest = std::fmin(fewest, row.degrees);
        most = std::fmax(most, row.degrees);
    }
    const std::string limits = limits_text(fewest, most);
    return (limits.empty() ? "" : "Standard errors have " + limits + ".\n") +
           errors_sentence(adequacy.cluster, "simulated null laws") + "\n";
}

}  // namespace

std::string adequacy_text(const validation::Adequacy& adequacy, bool heads) {
    std::string text = inputs_text(adequacy.inputs);
    const auto& tests = validation::adequacy_tests();
    double of_model = 0.0;
    for (const auto& test : tests) of_model += test.of_model ? 1.0 : 0.0;
    for (const bool model : {true, false}) {
        std::vector<std::string> header = {"", "blocks"};
        for (const auto& test : tests)
            if (test.of_model == model) header.push_back(test.name + " ");
        if (model) header.insert(header.end(), {"any ", "rank", "of halves", "peak/bound"});
        TextTable table(header);
        for (std::size_t at = 0; at < adequacy.rows.size(); ++at) {
            const auto& row = adequacy.rows[at];
            // With a single side or a single layer only the more specific row is shown.
            if (at + 1 < adequacy.rows.size() && repeats_including_row(adequacy.rows, at + 1)) continue;
            if (row.head && !heads) continue;
            std::vector<std::string> line = {name_of(row), std::to_string(row.blocks)};
            for (std::size_t test = 0; test < tests.size(); ++test)
                if (tests[test].of_model == model) line.push_back(percent_text(row.rejected[test], adequacy.level));
            if (model)
                line.insert(line.end(), {percent_text(row.rejected.back(), std::min(1.0, of_model * adequacy.level)),
                                         plain(row.rank), plain(row.half_rank), plain(row.peak_over_bound)});
            table.add(line);
        }
        text += model ? "\nThe spiked model: fraction of blocks rejected, %\n"
                      : "\nIndependent entries, which the model does not require: fraction of blocks rejected, %\n";
        text += table.text();
    }
    text += "\n";
    for (const auto& row : adequacy.rows)
        if (row.side && !row.layer && row.blocks > 0) text += spectrum_sentence(row, adequacy.level);
    text += fmt::format(
        "\nEach test rejects {:g} % of blocks that its null law describes ({} draws of it a block); any of the "
        "model's: at most {:g} %.\n! marks more than that: the lower of two 95 % limits, which allow for dependent "
        "blocks, lies above it (nominal; with one cluster binomial limits, for independent blocks). In brackets the "
        "standard error in the last digits, clustered by {}.\n",
        100.0 * adequacy.level, adequacy.draws, std::min(100.0, 100.0 * of_model * adequacy.level),
        adequacy.cluster == "head" ? "layer and head" : adequacy.cluster);
    text += errors_note(adequacy);
    for (const auto& test : tests) text += fmt::format("{:<17}{}\n", test.name, test.rejects);
    text += fmt::format(
        "{:<17}rank found by the edge fit, in whole blocks and in random halves of their rows\n"
        "{:<17}largest coordinate of a residual's row over its norm, over the sub-Gaussian bound\n",
        "rank, of halves", "peak/bound");
    const auto skipped = adequacy.rows.front().skipped;
    if (skipped > 0)
        text += fmt::format("{} blocks are not judged: zero, exactly of low rank, or alone in their head.\n", skipped);
    return text;
}

Json adequacy_json(const validation::Adequacy& adequacy) {
    const auto& tests = validation::adequacy_tests();
    Json test_list = Json::array();
    for (const auto& test : tests)
        test_list.push(Json::object({{"name", test.name}, {"rejects", test.rejects}, {"of_model", test.of_model}}));
    Json rows = Json::array();
    for (const auto& row : adequacy.rows) {
        Json rejected = Json::object();
        for (std::size_t test = 0; test < row.rejected.size(); ++test) {
            const Interval& found = row.rejected[test];
            rejected.set(
                test < tests.size() ? tests[test].name : "any",
                Json::object(
                    {{"share", found.estimate}, {"mcse", found.error}, {"low", found.low}, {"high", found.high}}));
        }
        rows.push(Json::object({{"side", row.side ? Json(sim::side_name(*row.side)) : Json()},
                                {"layer", row.layer ? Json(*row.layer) : Json()},
                                {"head", row.head ? Json(*row.head) : Json()},
                                {"blocks", static_cast<std::int64_t>(row.blocks)},
                                {"skipped", static_cast<std::int64_t>(row.skipped)},
                                {"clusters", static_cast<std::int64_t>(row.clusters)},
                                {"df", row.degrees},
                                {"rank", value_json(row.rank)},
                                {"half_rank", value_json(row.half_rank)},
                                {"power_law_better", value_json(row.power_law)},
                                {"exponent", value_json(row.exponent)},
                                {"peak_over_bound", value_json(row.peak_over_bound)},
                                {"rejected", std::move(rejected)}}));
    }
    return Json::object({{"schema", "spiked.adequacy/1"},
                         {"inputs", inputs_json(adequacy.inputs)},
                         {"seed", adequacy.seed.text()},
                         {"level", adequacy.level},
                         {"draws", adequacy.draws},
                         {"cluster", adequacy.cluster},
                         {"tests", std::move(test_list)},
                         {"rows", std::move(rows)},
                         {"notes", adequacy.notes}});
}

}  // namespace spiked::reports
