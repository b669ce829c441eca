#include "reports/tables/model_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text/printable.hpp"
#include "reports/tables/text_table.hpp"

namespace spiked::reports {
namespace {

/// The parts of bits_per_entry by what they store.
Json ledger_json(const codec::CacheBits& bits) {
    return Json::object(
        {{"rows", bits.rows}, {"positions", bits.positions}, {"scores", bits.scores}, {"exact_rows", bits.exact}});
}

/// A sentence on what the bits hold besides rows and positions, empty where they hold nothing else.
template <class Rows>
std::string eviction_note(const Rows& rows) {
    return std::any_of(rows.begin(), rows.end(),
                       [](const auto& row) { return row.ledger.scores + row.ledger.exact > 0.0; })
               ? " The bits of evictions include what later evictions need: scores (h2o), exact rows (methods that "
                 "code whole blocks)."
               : "";
}

/// A row of any of these documents: its method with what that stores, then the other members.
template <class Row>
Json coded_row_json(const Row& row, const Json::Object& others) {
    Json json = Json::object({{"method", row.method},
                              {"bits", row.bits},
                              {"budget", row.budget ? Json(*row.budget) : Json()},
                              {"bits_per_entry", row.ledger.total()},
                              {"ledger", ledger_json(row.ledger)}});
    for (const auto& [key, value] : others) json.set(key, value);
    return json;
}

/// The degrees of freedom of errors over documents, which all count the same; NaN for one document.
double degrees_of(const validation::Perplexity& found) {
    return found.documents < 2 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(found.documents) - 1.0;
}

/// A sentence with the degrees of freedom, empty without a number, and what is random in the errors.
std::string errors_note(double degrees, std::string_view cluster) {
    const std::string limits = limits_text(degrees, degrees);
    return limits.empty() ? "" : fmt::format("They have {}. {}\n", limits, errors_sentence(cluster));
}

}  // namespace

std::string perplexity_text(const validation::Perplexity& found) {
    std::string text = fmt::format("full precision: {} nats a token, perplexity {:.3f}\n",
                                   with_error(found.nats, found.mcse_nats), std::exp(found.nats));
    if (!found.rows.empty()) {
        TextTable table({"method", "B ", "bits/entry ", "added nats ", "perplexity x"});
        for (const auto& row : found.rows)
            table.add({method_at(row.method, row.budget), fmt::format("{:g}", row.bits),
                       fmt::format("{:.3f}", row.ledger.total()), with_error(row.added_nats, row.mcse_added_nats),
                       fmt::format("{:.4f}", std::exp(row.added_nats))});
        text += "\n" + table.text();
    }
    return text +
           fmt::format(
               "\n{} tokens of {} documents, all of which see a compressed block of {} tokens. Keys and values of full "
               "past blocks are compressed, the current block is exact. In brackets standard errors over documents, "
               "of paired differences for added nats{}; each document is coded with its own random rotations.{}\n{}",
               found.tokens, found.documents, found.block_tokens,
               found.documents < 2 ? " (none with one document)" : "", eviction_note(found.rows),
               errors_note(degrees_of(found), "document"));
}

Json perplexity_json(const validation::Perplexity& found) {
    Json rows = Json::array();
    for (const auto& row : found.rows)
        rows.push(coded_row_json(
            row,
            {{"added_nats", row.added_nats}, {"mcse_added_nats", row.mcse_added_nats}, {"df", degrees_of(found)}}));
    return Json::object({{"schema", "spiked.perplexity/1"},
                         {"nats", found.nats},
                         {"mcse_nats", found.mcse_nats},
                         {"df", degrees_of(found)},
                         {"tokens", found.tokens},
                         {"documents", found.documents},
                         {"blocks_of", found.block_tokens},
                         {"rows", std::move(rows)}});
}

std::string retrieval_text(const validation::Retrieval& found, bool heads) {
    const auto shown = [](const validation::MeanAndError& value) { return with_error(value.mean, value.mcse); };
    // Differences between methods need at least two methods besides full precision.
    const bool compared = found.rows.size() > 2;
    std::vector<std::string> titles = {"method", "B ", "bits/entry ", "right ", "lost ", "log p of answer "};
    if (compared) titles.insert(titles.end(), {"right - first ", "log p - first "});
    titles.emplace_back("attention on needle");
    TextTable table(titles);
    for (const auto& row : found.rows) {
        const auto index = &row - found.rows.data();
        std::vector<std::string> cells = {method_at(row.method, row.budget),         fmt::format("{:g}", row.bits),
                                          fmt::format("{:.3f}", row.ledger.total()), shown(row.right),
                                          index == 0 ? "" : shown(row.lost),         shown(row.log_probability)};
        for (const auto* gain : {&row.right_over_first, &row.log_probability_over_first})
            if (compared) cells.push_back(index == 1 ? "" : shown(*gain));
        cells.push_back(shown(row.mass));
        table.add(cells);
    }
    std::string text = table.text();
    if (heads) {
        TextTable by_head({"method", "B ", "layer ", "head ", "mass on needle ", "peaks there"});
        for (const auto& row : found.rows)
            for (const auto& at : row.heads)
                by_head.add({method_at(row.method, row.budget), fmt::format("{:g}", row.bits), std::to_string(at.layer),
                             std::to_string(at.head), shown(at.mass), shown(at.peaks)});
        text += "\n" + by_head.text();
    }
    return text +
           fmt::format(
               "\n{}. Keys and values of {} are compressed in {}{}.{}\nAttention: that of the head that finds the "
               "needles best in full precision.{} Means over questions{}; each prompt is coded with its own random "
               "rotations.\n{}",
               found.dumps.empty()
                   ? fmt::format("{} questions each in {} prompts of {} needles in {} tokens",
                                 found.questions / found.prompts, found.prompts, found.needles, found.context)
                   : fmt::format("{} questions of {}, log p among the answer tokens only", found.questions,
                                 found.prompts == 1 ? "a dump" : fmt::format("{} dumps", found.prompts)),
               found.exact_questions ? "the context" : "all tokens",
               found.last_layer_only ? "the last layer" : "all layers", found.at_once ? ", after it has been read" : "",
               found.observe_questions ? " Evictions have seen the attention of the questions." : "",
               compared ? fmt::format(" First: {} of {:g} bits.", method_at(found.rows[1].method, found.rows[1].budget),
                                      found.rows[1].bits)
                        : "",
               found.prompts < 2 ? ", without standard errors because there is one prompt"
                                 : fmt::format(", in brackets standard errors over prompts, paired for what is lost{}",
                                               compared ? " and for differences to the first" : ""),
               found.rows.empty() ? "" : errors_note(found.rows.front().right.df, "prompt"));
}

Json retrieval_json(const validation::Retrieval& found) {
    const auto numbers = [](const auto& values) {
        Json list = Json::array();
        for (const auto value : values) list.push(value);
        return list;
    };
    Json dumps = Json::array();
    for (const auto& dump : found.dumps) dumps.push(dump);
    Json rows = Json::array();
    for (const auto& row : found.rows) {
        Json heads = Json::array();
        for (const auto& at : row.heads)
            heads.push(Json::object({{"layer", at.layer},
                                     {"head", at.head},
                                     {"attention_mass", at.mass.mean},
                                     {"mcse_attention_mass", at.mass.mcse},
                                     {"peaks", at.peaks.mean},
                                     {"mcse_peaks", at.peaks.mcse}}));
        rows.push(coded_row_json(row, {{"questions_exact", found.exact_questions},
                                       {"layers", found.last_layer_only ? "last" : "all"},
                                       {"right", row.right.mean},
                                       {"mcse_right", row.right.mcse},
                                       {"lost", row.lost.mean},
                                       {"mcse_lost", row.lost.mcse},
                                       {"log_probability", row.log_probability.mean},
                                       {"mcse_log_probability", row.log_probability.mcse},
                                       {"right_over_first", row.right_over_first.mean},
                                       {"mcse_right_over_first", row.right_over_first.mcse},
                                       {"log_probability_over_first", row.log_probability_over_first.mean},
                                       {"mcse_log_probability_over_first", row.log_probability_over_first.mcse},
                                       {"df", row.right.df},
                                       {"right_by_prompt", numbers(row.right_by_prompt)},
                                       {"log_probability_by_prompt", numbers(row.log_probability_by_prompt)},
                                       {"attention_mass", row.mass.mean},
                                       {"mcse_attention_mass", row.mass.mcse},
                                       {"prompts", found.prompts},
                                       {"questions", found.questions},
                                       {"heads", std::move(heads)}}));
    }
    return Json::object({{"schema", "spiked.retrieve/1"},
                         {"dumps", std::move(dumps)},
                         {"needles", found.dumps.empty() ? Json(found.needles) : Json()},
                         {"context", found.dumps.empty() ? Json(found.context) : Json()},
                         {"at_once", found.at_once},
                         {"observe_questions", found.observe_questions},
                         {"questions_by_prompt", numbers(found.questions_by_prompt)},
                         {"rows", std::move(rows)}});
}

namespace {

/// `0.950 [0.87, 0.99]`.
std::string recall_cell(const validation::Recall& recall) {
    return fmt::format("{:.3f} [{:.2f}, {:.2f}]", recall.fraction, recall.low, recall.high);
}

std::string answer_method(const validation::AnswerRow& row) { return method_at(row.method, row.budget); }

/// Recall by context, number of needles and depth; "all" stands for a property that a row does not select by.
std::string recall_table(const validation::GeneratedAnswers& found) {
    TextTable table({"method", "B ", "context ", "needles ", "depth ", "asked ", "recall"});
    const auto or_all = [](const std::optional<std::size_t>& value) {
        return value ? std::to_string(*value) : std::string("all");
    };
    for (const auto& row : found.rows)
        for (const auto& part : row.parts)
            table.add({answer_method(row), fmt::format("{:g}", row.bits), or_all(part.context), or_all(part.needles),
                       part.tenth ? fmt::format("{}-{} %", 10 * *part.tenth, 10 * (*part.tenth + 1)) : "all",
                       std::to_string(part.asked), recall_cell(part)});
    return table.text();
}

Json recall_json(const validation::Recall& recall) {
    const auto number_or_null = [](const std::optional<std::size_t>& value) { return value ? Json(*value) : Json(); };
    Json json = Json::object(
        {{"context", number_or_null(recall.context)}, {"needles", number_or_null(recall.needles)}, {"depth", Json()}});
    if (recall.tenth) {
        const auto low = static_cast<double>(*recall.tenth);
        json.set("depth", Json(std::vector<double>{low / 10.0, (low + 1.0) / 10.0}));
    }
    json.set("asked", recall.asked);
    json.set("prompts", recall.prompts);
    json.set("recall", recall.fraction);
    json.set("low", recall.low);
    json.set("high", recall.high);
    return json;
}

Json answer_row_json(const validation::AnswerRow& row) {
    Json parts = Json::array();
    for (const auto& part : row.parts) parts.push(recall_json(part));
    Json answers = Json::array();
    for (const auto& answer : row.answers) {
        Json stated = Json::array();
        for (const bool one : answer.found) stated.push(one);
        answers.push(Json::object({{"text", answer.text},
                                   {"tokens", answer.tokens.size()},
                                   {"ended", answer.ended},
                                   {"found", std::move(stated)}}));
    }
    return coded_row_json(row, {{"recall", row.recall.fraction},
                                {"low", row.recall.low},
                                {"high", row.recall.high},
                                {"lost", row.lost.mean},
                                {"mcse_lost", row.lost.mcse},
                                {"df", row.lost.df},
                                {"control", row.control ? recall_json(*row.control) : Json()},
                                {"answer_tokens", row.tokens},
                                {"ended", row.ended},
                                {"parts", std::move(parts)},
                                {"answers", std::move(answers)}});
}

}  // namespace

std::string answers_text(const validation::GeneratedAnswers& found, bool parts) {
    const auto& exact = found.rows.front();
    TextTable table({"method", "B ", "bits/entry ", "recall ", "lost ", "absent facts ", "answer tokens"});
    for (const auto& row : found.rows)
        table.add({answer_method(row), fmt::format("{:g}", row.bits), fmt::format("{:.3f}", row.ledger.total()),
                   recall_cell(row.recall), &row == &exact ? "" : with_error(row.lost.mean, row.lost.mcse),
                   row.control ? recall_cell(*row.control) : "", fmt::format("{:.1f}", row.tokens)});
    std::string text = table.text();
    if (parts) {
        text += "\n" + recall_table(found) + "\nanswers to the first prompt:\n";
        for (const auto& row : found.rows)
            text += fmt::format("{}, {:g}: {}\n", answer_method(row), row.bits, one_line(row.answers.front().text));
    }
    text += fmt::format(
        "\nrecall: fraction of the {} facts asked for in {} prompts whose number stands in the answer that the model "
        "writes over its compressed cache (greedily). In square brackets 95 % limits over prompts; lost: full "
        "precision minus this, paired by prompt. Keys and values of {} are compressed in {}{}.{}{}\n{}",
        exact.recall.asked, exact.recall.prompts,
        found.observe_questions ? "the prompt"
        : found.exact_questions ? "the text before the question"
                                : "all full past blocks, also those of the answer,",
        found.last_layer_only ? "the last layer" : "all layers", found.at_once ? ", after it has been read" : "",
        eviction_note(found.rows),
        exact.control ? " Absent facts: asked for without being in the prompt; a recall above 0 is a defect." : "",
        found.rows.size() < 2 ? "" : errors_note(found.rows[1].lost.df, "prompt"));
    if (exact.recall.fraction < 0.5)
        text +=
            "note: in full precision the model states fewer than half of the facts, so that there is little to lose\n";
    return text;
}

Json answers_json(const validation::GeneratedAnswers& found) {
    Json rows = Json::array();
    for (const auto& row : found.rows) rows.push(answer_row_json(row));
    Json prompts = Json::array();
    for (const auto& prompt : found.file.prompts) {
        Json needles = Json::array();
        for (const auto& needle : prompt.needles)
            needles.push(Json::object({{"key", needle.key}, {"answer", needle.answer}, {"depth", needle.depth}}));
        prompts.push(Json::object({{"context", prompt.context},
                                   {"tokens", prompt.tokens.size()},
                                   {"control", prompt.control},
                                   {"needles", std::move(needles)}}));
    }
    return Json::object({{"schema", "spiked.answers/1"},
                         {"model", found.file.model},
                         {"blocks_of", found.block_tokens},
                         {"layers", found.last_layer_only ? "last" : "all"},
                         {"questions_exact", found.exact_questions && !found.observe_questions},
                         {"at_once", found.at_once},
                         {"observe_questions", found.observe_questions},
                         {"prompts", std::move(prompts)},
                         {"rows", std::move(rows)}});
}

}  // namespace spiked::reports
