#include "validation/model/needle_prompts_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/files/text_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/json_fields.hpp"
#include "core/text/printable.hpp"

namespace spiked::validation {
namespace {

constexpr const char* prompts_schema = "spiked.needle-prompts/1";
constexpr std::uint64_t most_prompt_bytes = std::uint64_t{64} << 20;
// Limits that bound the memory and time of a forged file.
constexpr std::size_t most_token_bytes = 256;
constexpr std::size_t most_needles = 100;
constexpr std::int64_t most_needle_tokens = 1000;

/// The token ids in a list; `where` names it in messages.
std::vector<std::int32_t> token_ids(const Json::Array& items, const std::string& where, std::size_t vocabulary) {
    std::vector<std::int32_t> ids;
    for (const Json& item : items) {
        const auto* id = item.integer();
        if (id == nullptr || *id < 0 || static_cast<std::size_t>(*id) >= vocabulary)
            throw input_error(
                "{}: token {} is {} (expected a whole number from 0 to {}, the model's vocabulary): make the prompts "
                "from this model's folder",
                where, ids.size(), printable(item.text()), vocabulary - 1);
        ids.push_back(static_cast<std::int32_t>(*id));
    }
    return ids;
}

std::string text_of_tokens(const FactPrompts& file, std::span<const std::int32_t> tokens) {
    std::string text;
    for (const std::int32_t id : tokens)
        if (static_cast<std::size_t>(id) < file.vocabulary.size())
            text += file.vocabulary[static_cast<std::size_t>(id)];
    return text;
}

FactNeedle read_needle(const Json& json, const std::string& where, const FactPrompts& file, const FactPrompt& prompt,
                       const sim::LlamaConfig& model) {
    const JsonFields fields(json, where);
    FactNeedle needle{.key = fields.text("key"), .answer = fields.text("answer"), .depth = fields.real("depth")};
    const auto length = static_cast<std::int64_t>(prompt.tokens.size());
    needle.first_token = fields.number("first_token", 0, length - 1);
    needle.tokens = fields.number("tokens", 1,
                                  std::min(most_needle_tokens, length - static_cast<std::int64_t>(needle.first_token)));
    if (!(needle.depth >= 0.0 && needle.depth <= 1.0)) fields.reject("has a \"depth\" that is not from 0 to 1");
    const auto spelled =
        file.text(token_ids(fields.items("answer_tokens"), where + ", answer_tokens", model.vocabulary));
    if (needle.answer.empty() || !states(spelled, needle.answer))
        throw input_error("{}: its answer_tokens are the text {} (expected {}): make the file again with its tokenizer",
                          where, in_quotes(spelled), in_quotes(needle.answer));
    const std::span<const std::int32_t> all(prompt.tokens);
    const auto at = text_of_tokens(file, all.subspan(needle.first_token, needle.tokens));
    if (!prompt.control && !states(at, needle.answer))
        throw input_error(
            "{}: tokens {} to {} of the prompt are {} (its answer {} is expected there): make the file again", where,
            needle.first_token, needle.first_token + needle.tokens - 1, in_quotes(at), in_quotes(needle.answer));
    return needle;
}

FactPrompt read_prompt(const Json& json, const std::string& where, const FactPrompts& file,
                       const sim::LlamaConfig& model) {
    const JsonFields fields(json, where);
    FactPrompt prompt;
    prompt.tokens = token_ids(fields.items("tokens"), where, model.vocabulary);
    if (prompt.tokens.empty()) fields.reject("has no \"tokens\"");
    prompt.context = fields.number("context", 1);
    prompt.question_at = fields.number("question_at", 1, static_cast<std::int64_t>(prompt.tokens.size()) - 1);
    prompt.most_tokens = fields.number("most_tokens", 1, 1 << 20);
    prompt.control = fields.boolean("control");
    if (prompt.tokens.size() + prompt.most_tokens > model.context)
        throw input_error("{}: {} tokens and an answer of {} (the model's context is {}): make shorter prompts", where,
                          prompt.tokens.size(), prompt.most_tokens, model.context);
    const auto& needles = fields.items("needles");
    if (needles.empty() || needles.size() > most_needles)
        fields.reject(fmt::format("has {} \"needles\" (expected 1 to {})", needles.size(), most_needles));
    const std::string text = prompt.control ? file.text(prompt.tokens) : "";
    for (std::size_t n = 0; n < needles.size(); ++n) {
        prompt.needles.push_back(read_needle(needles[n], fmt::format("{}, needle {}", where, n), file, prompt, model));
        if (const std::string& answer = prompt.needles.back().answer; states(text, answer))
            throw input_error(
                "{}, needle {}: its answer {} stands in the prompt (a control must not have it): make the file again",
                where, n, in_quotes(answer));
    }
    return prompt;
}

}  // namespace

std::string FactPrompts::text(const std::vector<std::int32_t>& tokens) const { return text_of_tokens(*this, tokens); }

FactPrompts read_fact_prompts(const std::string& path, const sim::LlamaConfig& model) {
    const Json json = Json::parse(read_text_file(path, most_prompt_bytes, "a file of prompts"), path);
    if (text_of(json, "schema") != prompts_schema)
        throw input_error("{}: no prompts with needles (\"schema\" is not {}): make them by tools/needle-prompts", path,
                          prompts_schema);
    const JsonFields fields(json, path);
    FactPrompts file{.model = fields.text("model")};
    file.end_tokens = token_ids(fields.items("end_tokens"), path + ": end_tokens", model.vocabulary);
    for (const Json& text : fields.items("vocabulary")) {
        if (text.string() == nullptr || text.string()->size() > most_token_bytes)
            fields.reject(
                fmt::format("has a \"vocabulary\" that is not a list of texts of at most {} bytes", most_token_bytes));
        file.vocabulary.push_back(*text.string());
    }
    for (const Json& prompt : fields.items("prompts"))
        file.prompts.push_back(
            read_prompt(prompt, fmt::format("{}: prompt {}", path, file.prompts.size()), file, model));
    if (std::all_of(file.prompts.begin(), file.prompts.end(), [](const FactPrompt& prompt) { return prompt.control; }))
        fields.reject("has no prompt that is not a control");
    return file;
}

bool states(const std::string& text, const std::string& answer) {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    for (std::size_t at = text.find(answer); at != std::string::npos; at = text.find(answer, at + 1)) {
        const std::size_t end = at + answer.size();
        if ((at == 0 || !digit(text[at - 1])) && (end == text.size() || !digit(text[end]))) return true;
    }
    return false;
}

}  // namespace spiked::validation
