#include "sim/llama/llama_readout.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/kv/dump_view.hpp"
#include "sim/llama/llama_steps.hpp"

namespace spiked::sim {
namespace {

Json metadata_json(const KvDump& dump, const char* key, const char* what) {
    const auto text = dump.metadata(key);
    if (!text)
        throw input_error("{}: metadata {} is missing ({}): give a dump of a retrieval model, or --model", dump.path(),
                          key, what);
    return Json::parse(*text, fmt::format("{}: metadata {}", dump.path(), key));
}

/// Reads an integer of at least 0.
std::int64_t non_negative(const KvDump& dump, const Json& object, const std::string& of, const char* key) {
    const Json* value = object.find(key);
    if (value == nullptr || value->integer() == nullptr || *value->integer() < 0)
        throw input_error(
            "{}: metadata {}: {} is {} (expected an integer of at least 0): correct it where the dump is made",
            dump.path(), of, key, value == nullptr ? "missing" : value->text());
    return *value->integer();
}

std::vector<Needle> read_needles(const KvDump& dump, std::size_t tokens) {
    const Json list = metadata_json(dump, "needles", "positions and answers of the needles");
    if (list.items() == nullptr || list.items()->empty())
        throw input_error(
            "{}: metadata needles is not a list of needles (key_at, value_at, asked_at, answer): correct it where the "
            "dump is made",
            dump.path());
    constexpr std::size_t most_needles = 1000;  // each is compared with each
    if (list.items()->size() > most_needles)
        throw input_error("{}: metadata needles has {} entries (at most {} are read): give fewer in one dump",
                          dump.path(), list.items()->size(), most_needles);
    std::vector<Needle> needles;
    std::map<std::size_t, std::size_t> key_tokens, value_tokens, questions;  // token to needle
    for (const Json& entry : *list.items()) {
        const std::string name = fmt::format("needles[{}]", needles.size());
        const auto token_of = [&](const char* key) {
            const auto at = static_cast<std::size_t>(non_negative(dump, entry, name, key));
            if (at >= tokens)
                throw input_error(
                    "{}: metadata {}: {} is {} (the sequence has tokens 0 to {}): does it belong to another dump?",
                    dump.path(), name, key, at, tokens - 1);
            return at;
        };
        Needle needle{token_of("key_at"), token_of("value_at"), token_of("asked_at"), 0};
        if (needle.value_at <= needle.key_at)
            throw input_error(
                "{}: metadata {}: value_at is {} and key_at is {} (expected the value behind its key): correct it "
                "where the dump is made",
                dump.path(), name, needle.value_at, needle.key_at);
        if (needle.value_at >= needle.asked_at)
            throw input_error(
                "{}: metadata {} lies at {} and {} and is asked for at {} (expected after both): correct it where the "
                "dump is made",
                dump.path(), name, needle.key_at, needle.value_at, needle.asked_at);
        const auto require_distinct = [&](std::map<std::size_t, std::size_t>& taken, std::size_t token) {
            const auto [at, distinct] = taken.try_emplace(token, needles.size());
            if (distinct) return;
            const Needle& other = needles[at->second];
            throw input_error(
                "{}: metadata {} lies at {} and {} and is asked for at {}, needles[{}] at {}, {} and {} (expected "
                "distinct tokens): leave one out where the dump is made",
                dump.path(), name, needle.key_at, needle.value_at, needle.asked_at, at->second, other.key_at,
                other.value_at, other.asked_at);
        };
        require_distinct(key_tokens, needle.key_at);
        require_distinct(value_tokens, needle.value_at);
        require_distinct(questions, needle.asked_at);
        needle.answer =
            static_cast<std::int32_t>(std::min<std::int64_t>(non_negative(dump, entry, name, "answer"), 1 << 30));
        needles.push_back(needle);
    }
    return needles;
}

double norm_epsilon(const KvDump& dump, const Json& readout) {
    const Json* value = readout.find("rms_eps");
    const auto number = value == nullptr ? std::nullopt : to_number(value->text());
    if (!number || !(*number > 0.0) || !std::isfinite(*number))
        throw input_error(
            "{}: metadata readout: rms_eps is {} (expected a number above 0, of the model's norms): correct it where "
            "the dump is made",
            dump.path(), value == nullptr ? "missing" : value->text());
    return *number;
}

/// Attention scores are scaled by dim^-0.5; throws where the readout states another scale.
void check_attention_scale(const KvDump& dump, const Json& readout, std::size_t dim) {
    const Json* value = readout.find("attention_scale");
    if (value == nullptr) return;
    const double scale = 1.0 / std::sqrt(static_cast<double>(dim));
    const auto number = to_number(value->text());
    const bool by_name = value->string() != nullptr && *value->string() == "dim^-0.5";
    if (!by_name && !(number && std::abs(*number / scale - 1.0) < 1e-6))
        throw input_error(
            "{}: metadata readout: attention_scale is {} (expected dim^-0.5, {:.8g} of {} channels): other scales are "
            "not supported",
            dump.path(), value->text(), scale, dim);
}

/// The number of context tokens that the metadata state, otherwise that of the tokens before the first question.
std::size_t read_context(const KvDump& dump, const std::vector<Needle>& needles) {
    std::size_t first_question = needles.front().asked_at;
    std::size_t last_needle = 0;
    for (const Needle& needle : needles) {
        first_question = std::min(first_question, needle.asked_at);
        last_needle = std::max(last_needle, needle.value_at);
    }
    const auto stated = dump.metadata("context");
    if (!stated) return first_question;
    const auto tokens = to_integer(*stated);
    if (!tokens || *tokens <= static_cast<std::int64_t>(last_needle) ||
        *tokens > static_cast<std::int64_t>(first_question))
        throw input_error(
            "{}: metadata context is {} (expected {} to {} tokens, with all needles inside and all questions behind): "
            "correct it where the dump is made",
            dump.path(), in_quotes(*stated), last_needle + 1, first_question);
    return static_cast<std::size_t>(*tokens);
}

/// Reads a matrix of rows x columns in the file's orientation; 0: any number.
arma::fmat read_weights(const KvDump& dump, const std::string& name, std::size_t rows, std::size_t columns) {
    const auto& tensors = dump.file().tensors();
    const auto at = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
    if (at == tensors.end())
        throw input_error(
            "{}: tensor {} is missing (it is needed to recompute the last layer): dump it, or give the model with "
            "--model",
            dump.path(), name);
    const std::vector<std::size_t> given = at->shape.size() == 1 ? std::vector{1UL, at->shape[0]} : at->shape;
    const auto fits = [&](std::size_t found, std::size_t expected) {
        return found > 0 && (expected == 0 || found == expected);
    };
    if (!at->dtype || at->fortran_order || given.size() != 2 || !fits(given[0], rows) || !fits(given[1], columns))
        throw input_error("{}: {} is {} {} (expected numbers, {} x {}): do its tensors belong together?", dump.path(),
                          name, at->dtype_text, shape_text(at->shape), rows == 0 ? "any" : std::to_string(rows),
                          columns == 0 ? "any" : std::to_string(columns));
    arma::mat stored(given[1], given[0]);
    dump.file().read(static_cast<std::size_t>(at - tensors.begin()), 0, {stored.memptr(), stored.n_elem});
    if (!stored.is_finite()) throw input_error("{}: {} holds NaN or infinity: the file is damaged", dump.path(), name);
    return arma::conv_to<arma::fmat>::from(stored.t());
}

std::vector<arma::fmat> read_heads(const KvDump& dump, const DumpTensor& tensor) {
    std::vector<arma::fmat> heads;
    for (std::size_t head = 0; head < tensor.heads; ++head)
        heads.push_back(arma::conv_to<arma::fmat>::from(dump.read_block(tensor, head, 0, tensor.tokens)));
    return heads;
}

}  // namespace

LlamaReadout::LlamaReadout(const KvDump& dump) {
    const Json readout = metadata_json(dump, "readout", "how the last layer is recomputed");
    const auto layer = static_cast<std::size_t>(non_negative(dump, readout, "readout", "layer"));
    constexpr std::size_t most_layers = 1000;  // results have an entry for each layer
    if (layer >= most_layers)
        throw input_error("{}: metadata readout: layer is {} (at most {}): does it belong to this dump?", dump.path(),
                          layer, most_layers - 1);
    const auto tensor_of = [&](Side side) -> const DumpTensor& {
        const DumpTensor* tensor = dump.find(layer, side);
        if (tensor == nullptr)
            throw input_error("{}: layer {} has no {} tensor: dump queries, keys and values of the last layer",
                              dump.path(), layer, side_name(side));
        return *tensor;
    };
    const DumpTensor& query = tensor_of(Side::query);
    const DumpTensor& key = tensor_of(Side::key);
    const DumpTensor& value = tensor_of(Side::value);
    if (query.heads % key.heads != 0 || query.tokens != key.tokens || query.dim != key.dim || value.dim != key.dim)
        throw input_error(
            "{}: {} has {} heads, {} tokens and {} channels, but there are {}, {} and {} of {} (expected a multiple of "
            "its heads, and the same tokens and channels): dump both in one run of the model",
            dump.path(), query.name, query.heads, query.tokens, query.dim, key.heads, key.tokens, key.dim, key.name);
    if (dump.metadata("attention").value_or("causal") != "causal")
        throw input_error(
            "{}: metadata attention is {} (expected causal, because a question attends to the tokens before it): give "
            "a dump of a causal model",
            dump.path(), in_quotes(*dump.metadata("attention")));
    needles_ = read_needles(dump, key.tokens);

    shape_.layers = layer + 1;
    shape_.heads = query.heads;
    shape_.kv_heads = key.heads;
    shape_.head_dim = key.dim;
    shape_.context = key.tokens;
    if (has_rotary(dump)) shape_.rope = dump_rotary(dump).rope;
    shape_.norm_epsilon = norm_epsilon(dump, readout);
    check_attention_scale(dump, readout, key.dim);
    first_answer_ = static_cast<std::int32_t>(
        std::min<std::int64_t>(non_negative(dump, readout, "readout", "first_value_token"), 1 << 30));
    if (readout.find("correct") != nullptr)
        correct_ = static_cast<std::size_t>(non_negative(dump, readout, "readout", "correct"));
    if (correct_ && *correct_ > needles_.size())
        throw input_error(
            "{}: metadata readout: correct is {} (expected at most {}, the needles): do they belong to one dump?",
            dump.path(), *correct_, needles_.size());
    context_ = read_context(dump, needles_);

    const std::size_t attended = query.heads * key.dim;
    residual_ = read_weights(dump, "readout.residual", needles_.size(), 0);
    shape_.hidden = residual_.n_cols;
    output_ = read_weights(dump, "readout.wo", shape_.hidden, attended).t();
    gate_ = read_weights(dump, "readout.gate", 0, shape_.hidden).t();
    shape_.intermediate = gate_.n_cols;
    up_ = read_weights(dump, "readout.up", shape_.intermediate, shape_.hidden).t();
    down_ = read_weights(dump, "readout.down", shape_.hidden, shape_.intermediate).t();
    mlp_norm_ = read_weights(dump, "readout.mlp_norm", 1, shape_.hidden).t();
    norm_ = read_weights(dump, "readout.final_norm", 1, shape_.hidden).t();
    answers_ = read_weights(dump, "readout.unembed", 0, shape_.hidden).t();
    for (std::size_t n = 0; n < needles_.size(); ++n)
        if (needles_[n].answer < first_answer_ || answer_of(needles_[n]) >= answers_.n_cols)
            throw input_error(
                "{}: metadata needles[{}]: answer is {} (readout.unembed has tokens {} to {}): correct it where the "
                "dump is made",
                dump.path(), n, needles_[n].answer, first_answer_,
                static_cast<std::size_t>(first_answer_) + answers_.n_cols - 1);
    queries_ = read_heads(dump, query);
    keys_ = read_heads(dump, key);
    values_ = read_heads(dump, value);
}

arma::fmat LlamaReadout::predict(const arma::fmat& attended) const {
    arma::fmat state = residual_ + attended * output_;
    state += swiglu(rms_norm(state, mlp_norm_, shape_.norm_epsilon), gate_, up_, down_);
    arma::fmat logits = rms_norm(state, norm_, shape_.norm_epsilon) * answers_;
    to_log_probabilities(logits);
    return logits;
}

}  // namespace spiked::sim
