#include "sim/llama/llama.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/files/text_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "core/text/printable.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/llama/llama_steps.hpp"

namespace spiked::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_index_bytes = 1 << 24;

/// The tensors of a model in one file, or in several files named by an index.
class Weights {
public:
    explicit Weights(const std::string& folder) : folder_(folder) {
        for (const auto& name : weight_files(folder)) {
            files_.push_back(std::make_unique<SafetensorsFile>(name));
            for (const auto& tensor : files_.back()->tensors())
                location_of_.try_emplace(tensor.name, files_.back().get(), &tensor);
        }
    }

    /// Reads a vector (columns = 0) or a matrix; the file stores the transpose of the result, output x input.
    [[nodiscard]] arma::fmat matrix(const std::string& name, std::size_t rows, std::size_t columns = 0) const {
        const std::vector<std::size_t> shape =
            columns == 0 ? std::vector<std::size_t>{rows} : std::vector<std::size_t>{columns, rows};
        const auto at = location_of_.find(name);
        if (at == location_of_.end())
            throw input_error("{}: tensor {} is missing: is this a Llama-shaped model in Hugging Face's names?",
                              folder_, name);
        const auto& [file, tensor] = at->second;
        read_.insert(name);
        if (tensor->shape != shape)
            throw input_error("{}: {} is {} (expected {} from config.json): do the two files belong together?",
                              file->path(), name, shape_text(tensor->shape), shape_text(shape));
        if (!is_block_dtype(tensor->dtype))
            throw input_error("{}: {} is stored as {} (F16, BF16, F32 or F64 are expected): save the model in bfloat16",
                              file->path(), name, dtype_name(tensor->dtype));
        arma::fmat result(rows, std::max<std::size_t>(columns, 1));
        std::vector<double> part(std::min<std::size_t>(result.n_elem, 1 << 16));
        for (std::size_t first = 0; first < result.n_elem; first += part.size()) {
            const std::size_t count = std::min<std::size_t>(part.size(), result.n_elem - first);
            file->read(*tensor, first, std::span(part).first(count));
            std::transform(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(count), result.memptr() + first,
                           [](double value) { return static_cast<float>(value); });
        }
        if (!result.is_finite())
            throw input_error("{}: {} holds NaN or infinity: the file is damaged", file->path(), name);
        return result;
    }

    /// Throws input_error where a file holds tensors that were not read, because the stored model is then another one.
    void require_all_read(bool tied) const {
        for (const auto& file : files_) {
            std::vector<std::string> unused;
            for (const auto& tensor : file->tensors())
                // Tables of the rotary embedding follow from config.json, and a tied head equals the embedding.
                if (!read_.contains(tensor.name) && !tensor.name.ends_with("rotary_emb.inv_freq") &&
                    !(tied && tensor.name == head_name))
                    unused.push_back(tensor.name);
            if (!unused.empty())
                throw input_error(
                    "{}: {} tensors do not belong to a plain Llama model of the sizes in config.json ({}): biases, "
                    "extra norms and more layers are not supported",
                    file->path(), unused.size(), list_text(unused));
        }
    }

    static constexpr const char* head_name = "lm_head.weight";

private:
    std::string folder_;
    std::vector<std::unique_ptr<SafetensorsFile>> files_;
    std::map<std::string, std::pair<const SafetensorsFile*, const TensorInfo*>> location_of_;
    mutable std::set<std::string> read_;
};

/// Cosines and sines of a block of tokens, tokens x head_dim / 2 each. They are not computed for all positions that a
/// configuration allows, which may be millions.
struct Rotation {
    arma::fmat cosines, sines;

    Rotation(const LlamaConfig& config, std::size_t first, std::size_t count) {
        // apply_rope turns (1, 0) in every pair into (cos, sin), so the angles are those of rope.hpp.
        const std::size_t half = config.head_dim / 2;
        arma::mat pairs(count, config.head_dim, arma::fill::zeros);
        pairs.head_cols(half).ones();
        const arma::mat rotated = apply_rope(pairs, config.rope, static_cast<double>(first));
        cosines = arma::conv_to<arma::fmat>::from(rotated.head_cols(half));
        sines = arma::conv_to<arma::fmat>::from(rotated.tail_cols(half));
    }
};

/// Applies the rotary embedding to every head of a block of tokens.
void rotate(arma::fmat& rows, const Rotation& by) {
    const arma::uword half = by.cosines.n_cols;
    for (arma::uword head = 0; head < rows.n_cols; head += 2 * half)
        for (arma::uword i = 0; i < half; ++i)
            for (arma::uword t = 0; t < rows.n_rows; ++t) {
                const float c = by.cosines(t, i);
                const float s = by.sines(t, i);
                const float a = rows(t, head + i);
                const float b = rows(t, head + half + i);
                rows(t, head + i) = a * c - b * s;
                rows(t, head + half + i) = b * c + a * s;
            }
}

/// The columns of one head.
auto of_head(const arma::fmat& rows, std::size_t head, std::size_t head_dim) {
    return rows.cols(head * head_dim, (head + 1) * head_dim - 1);
}

void require_sequence(std::span<const std::int32_t> tokens, const ForwardOptions& options, const LlamaConfig& c) {
    if (tokens.empty() || tokens.size() > c.context)
        throw input_error("a sequence of {} tokens (expected 1 to {}, the model's context): cut it", tokens.size(),
                          c.context);
    for (std::size_t t = 0; t < tokens.size(); ++t)
        if (tokens[t] < 0 || static_cast<std::size_t>(tokens[t]) >= c.vocabulary)
            throw input_error("token {} of a sequence is {} (expected 0 to {}): is it of another vocabulary?", t,
                              tokens[t], c.vocabulary - 1);
    if (options.context && *options.context > tokens.size())
        throw input_error("a context of {} tokens in a sequence of {}: make it shorter", *options.context,
                          tokens.size());
    if (options.block_tokens == 0) throw usage_error("blocks of 0 tokens: give 1 or more");
    if (options.evict && options.keep_own)
        throw precondition_error("evict and keep_own are combined (nothing has attended to the tokens of a block yet)");
}

/// Appends the keys and values of a block of tokens, which begins with token `first`, to the cache of a layer.
void append(std::vector<CachedHead>& cache, const arma::fmat& keys, const arma::fmat& values, std::size_t first) {
    const std::size_t head_dim = keys.n_cols / cache.size();
    for (std::size_t h = 0; h < cache.size(); ++h) {
        CachedHead& cached = cache[h];
        cached.keys = arma::join_cols(cached.keys, of_head(keys, h, head_dim));
        cached.values = arma::join_cols(cached.values, of_head(values, h, head_dim));
        for (std::size_t t = first; t < first + keys.n_rows; ++t) cached.tokens.push_back(t);
    }
}

/// Replaces the cached blocks of a layer from token `from` to token `end`, or evicts.
void replace_rows(std::vector<CachedHead>& cache, std::size_t layer, std::size_t from, std::size_t end,
                  const ForwardOptions& options) {
    for (std::size_t h = 0; h < cache.size(); ++h) {
        CachedHead& cached = cache[h];
        if (options.evict) {
            options.evict(layer, h, end, cached);
            continue;
        }
        for (const Side side : {Side::key, Side::value})
            for (std::size_t at = from; at < end; at += options.block_tokens) {
                arma::fmat& rows = side == Side::key ? cached.keys : cached.values;
                const std::size_t last = std::min(at + options.block_tokens, end) - 1;
                rows.rows(at, last) = options.keep({layer, side, h, at}, arma::fmat(rows.rows(at, last)));
            }
    }
}

}  // namespace

std::vector<std::string> weight_files(const std::string& folder) {
    const std::string single = folder + "/model.safetensors";
    const std::string index = single + ".index.json";
    std::set<std::string> names;
    if (fs::exists(single) || !fs::exists(index)) {
        names.insert(single);
    } else {
        const Json json = Json::parse(read_text_file(index, most_index_bytes, "an index of weights"), index);
        const Json* map = json.find("weight_map");
        if (map == nullptr || map->members() == nullptr)
            throw input_error("{}: weight_map is missing: is this an index of safetensors files?", index);
        for (const auto& [tensor, at] : *map->members()) {
            if (at.string() == nullptr || !at.string()->ends_with(".safetensors") ||
                at.string()->find_first_of(std::string_view("/\0\n", 3)) != std::string::npos)
                throw input_error(
                    "{}: weight_map of {} is {} (expected a .safetensors file of the same folder): "
                    "fetch the index again",
                    index, in_quotes(tensor), in_quotes(at.string() == nullptr ? at.text() : *at.string()));
            names.insert(folder + "/" + *at.string());
        }
    }
    constexpr std::size_t most_files = 1000;
    if (names.size() > most_files)
        throw input_error("{}: weight_map names {} files (at most {}): is this an index of a model?", index,
                          names.size(), most_files);
    std::set<std::pair<dev_t, ino_t>> known;
    for (const auto& name : names)
        if (struct stat status{};
            ::stat(name.c_str(), &status) == 0 && !known.emplace(status.st_dev, status.st_ino).second)
            throw input_error("{}: weight_map names one file twice ({}, by a link): fetch the index again", index,
                              name);
    return {names.begin(), names.end()};
}

Llama::Llama(const std::string& folder) : config_(read_llama_config(folder)) {
    const Weights weights(folder);
    const auto& c = config_;
    embedding_ = weights.matrix("model.embed_tokens.weight", c.hidden, c.vocabulary);
    for (std::size_t l = 0; l < c.layers; ++l) {
        const std::string at = "model.layers." + std::to_string(l) + ".";
        layers_.push_back({weights.matrix(at + "input_layernorm.weight", c.hidden),
                           weights.matrix(at + "post_attention_layernorm.weight", c.hidden),
                           weights.matrix(at + "self_attn.q_proj.weight", c.hidden, c.heads * c.head_dim),
                           weights.matrix(at + "self_attn.k_proj.weight", c.hidden, c.kv_heads * c.head_dim),
                           weights.matrix(at + "self_attn.v_proj.weight", c.hidden, c.kv_heads * c.head_dim),
                           weights.matrix(at + "self_attn.o_proj.weight", c.heads * c.head_dim, c.hidden),
                           weights.matrix(at + "mlp.gate_proj.weight", c.hidden, c.intermediate),
                           weights.matrix(at + "mlp.up_proj.weight", c.hidden, c.intermediate),
                           weights.matrix(at + "mlp.down_proj.weight", c.intermediate, c.hidden)});
    }
    norm_ = weights.matrix("model.norm.weight", c.hidden);
    if (!c.tied) head_ = weights.matrix(Weights::head_name, c.hidden, c.vocabulary);
    weights.require_all_read(c.tied);
}

void Llama::forward(std::span<const std::int32_t> tokens, const ForwardOptions& options) const {
    const auto& c = config_;
    require_sequence(tokens, options, c);
    std::vector<std::vector<CachedHead>> caches(c.layers, std::vector<CachedHead>(c.kv_heads));

    const std::size_t context = options.context.value_or(0);
    for (std::size_t first = 0, end = 0; first < tokens.size(); first = end) {
        end = std::min(first + options.block_tokens, first < context ? context : tokens.size());
        const std::size_t count = end - first;
        const Rotation rotation(c, first, count);
        const bool replaceable = !options.context  ? count == options.block_tokens
                                 : options.at_once ? end == context
                                                   : end <= context;
        arma::fmat state(count, c.hidden);
        for (std::size_t t = 0; t < count; ++t)
            state.row(t) = embedding_.col(static_cast<arma::uword>(tokens[first + t])).t();
        for (std::size_t l = 0; l < c.layers; ++l) {
            const Layer& layer = layers_[l];
            const arma::fmat normalised = rms_norm(state, layer.attention_norm, c.norm_epsilon);
            arma::fmat queries = normalised * layer.query;
            arma::fmat keys = normalised * layer.key;
            const arma::fmat values = normalised * layer.value;
            rotate(queries, rotation);
            rotate(keys, rotation);
            if (options.layer) options.layer({l, first, queries, keys, values});

            append(caches[l], keys, values, first);
            if (options.keep && options.keep_own) replace_rows(caches[l], l, first, end, options);
            arma::fmat attended(count, c.heads * c.head_dim);
            for (std::size_t h = 0; h < c.heads; ++h) {
                const CachedHead& cached = caches[l][h / (c.heads / c.kv_heads)];
                const arma::fmat weights = attention_weights(of_head(queries, h, c.head_dim), cached.keys);
                if (options.attention) options.attention({l, h, first, weights, cached.tokens});
                attended.cols(h * c.head_dim, (h + 1) * c.head_dim - 1) = weights * cached.values;
            }
            state += attended * layer.output;
            // No later token attends to the last block.
            if ((options.keep || options.evict) && !options.keep_own && replaceable && end < tokens.size())
                replace_rows(caches[l], l, options.at_once ? 0 : first, end, options);
            const arma::fmat mlp_input = rms_norm(state, layer.mlp_norm, c.norm_epsilon);
            state += swiglu(mlp_input, layer.gate, layer.up, layer.down);
        }
        if (!options.predicted) continue;
        arma::fmat logits = rms_norm(state, norm_, c.norm_epsilon) * (c.tied ? embedding_ : head_);
        to_log_probabilities(logits);
        options.predicted(first, logits);
    }
}

}  // namespace spiked::sim
