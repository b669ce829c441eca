#include "sim/llama/llama_config.hpp"

#include <cmath>
#include <optional>
#include <utility>

#include "core/files/text_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "core/text/names.hpp"

namespace spiked::sim {
namespace {

constexpr std::uint64_t most_bytes = 1 << 20;
constexpr std::int64_t most = 1 << 24;  // limit of every size

/// A config.json with functions that check the type and range of its keys.
class Keys {
public:
    explicit Keys(std::string path) : path_(std::move(path)) {
        json_ = Json::parse(read_text_file(path_, most_bytes, "a configuration"), path_);
    }

    /// Returns null for an absent key and for null, because both mean "not used" in these files.
    [[nodiscard]] const Json* find(const char* key) const {
        const Json* value = json_.find(key);
        return value == nullptr || value->is_null() ? nullptr : value;
    }
    [[nodiscard]] std::size_t size(const char* key) const {
        const Json* value = find(key);
        const std::int64_t* number = value == nullptr ? nullptr : value->integer();
        if (number == nullptr || *number < 1 || *number > most)
            throw input_error("{}: {} is {} (expected an integer from 1 to {}): is this a Llama-shaped model?", path_,
                              key, value == nullptr ? "missing" : value->text(), most);
        return static_cast<std::size_t>(*number);
    }
    [[nodiscard]] std::size_t size(const char* key, std::size_t otherwise) const {
        return find(key) == nullptr ? otherwise : size(key);
    }
    [[nodiscard]] double positive(const char* key, double otherwise) const {
        const Json* value = find(key);
        return value == nullptr ? otherwise : positive(key, *value);
    }
    [[nodiscard]] double positive(const char* key, const Json& given) const {
        const Json* value = &given;
        const double number = value->real() != nullptr      ? *value->real()
                              : value->integer() != nullptr ? static_cast<double>(*value->integer())
                                                            : std::nan("");
        if (!(number > 0.0) || !std::isfinite(number)) throw wrong(key, "a positive number");
        return number;
    }
    [[nodiscard]] bool flag(const char* key) const {
        const Json* value = find(key);
        if (value == nullptr) return false;
        if (value->boolean() == nullptr) throw wrong(key, "true or false");
        return *value->boolean();
    }
    [[nodiscard]] Error wrong(const char* key, const std::string& expected) const {
        const Json* value = find(key);
        return input_error("{}: {} is {} (expected {}): only plain Llama-shaped models are run", path_, key,
                           value == nullptr ? "missing" : value->text(), expected);
    }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
    Json json_;
};

}  // namespace

LlamaConfig read_llama_config(const std::string& folder) {
    const Keys keys(folder + "/config.json");
    const Json* type = keys.find("model_type");
    if (type == nullptr || type->string() == nullptr || (*type->string() != "llama" && *type->string() != "mistral"))
        throw keys.wrong("model_type", "\"llama\" or \"mistral\"");
    if (const Json* activation = keys.find("hidden_act");
        activation != nullptr && (activation->string() == nullptr || *activation->string() != "silu"))
        throw keys.wrong("hidden_act", "\"silu\"");
    for (const char* key : {"attention_bias", "mlp_bias", "use_qk_norm"})
        if (keys.flag(key)) throw keys.wrong(key, "false");
    std::optional<RopeScaling> scaling;
    // rope_parameters are in place of rope_scaling and rope_theta since 2025.
    for (const char* name : {"rope_scaling", "rope_parameters"})
        if (const Json* object = keys.find(name)) scaling = read_rope_scaling(*object, keys.path() + ": " + name);
    const Json* parameters = keys.find("rope_parameters");
    if (const Json* part = keys.find("partial_rotary_factor");
        part != nullptr && part->text() != "1.0" && part->text() != "1")
        throw keys.wrong("partial_rotary_factor", "1, so that all coordinates are rotated");
    for (const char* key : {"sliding_window", "attn_logit_softcapping", "final_logit_softcapping"})
        if (keys.find(key) != nullptr) throw keys.wrong(key, "none");
    if (const Json* types = keys.find("layer_types"))
        for (const Json& of_layer : types->items() == nullptr ? Json::Array{*types} : *types->items())
            if (of_layer.string() == nullptr || *of_layer.string() != "full_attention")
                throw keys.wrong("layer_types", "\"full_attention\" in every layer");

    LlamaConfig config;
    config.vocabulary = keys.size("vocab_size");
    config.hidden = keys.size("hidden_size");
    config.intermediate = keys.size("intermediate_size");
    config.layers = keys.size("num_hidden_layers");
    config.heads = keys.size("num_attention_heads");
    config.kv_heads = keys.size("num_key_value_heads", config.heads);
    config.head_dim = keys.size("head_dim", config.hidden / config.heads);
    config.context = keys.size("max_position_embeddings");
    config.norm_epsilon = keys.positive("rms_norm_eps", 1e-6);
    const Json* base = parameters == nullptr ? nullptr : parameters->find("rope_theta");
    config.rope.base = base == nullptr ? keys.positive("rope_theta", 10000.0) : keys.positive("rope_theta", *base);
    config.rope.scaling = scaling;
    config.tied = keys.flag("tie_word_embeddings");
    if (config.heads % config.kv_heads != 0)
        throw keys.wrong("num_key_value_heads", fmt::format("a divisor of the {} query heads", config.heads));
    if (config.head_dim == 0 || config.head_dim % 2 != 0)
        throw input_error("{}: heads have {} coordinates (expected an even number): rotary pairs need two each",
                          keys.path(), config.head_dim);
    const auto dim = static_cast<double>(config.head_dim);
    for (const auto& [key, plain] : {std::pair{"embedding_multiplier", 1.0},
                                     {"residual_multiplier", 1.0},
                                     {"logits_scaling", 1.0},
                                     {"logit_scale", 1.0},
                                     {"attention_multiplier", 1.0 / std::sqrt(dim)},
                                     {"query_pre_attn_scalar", dim}})
        if (std::abs(keys.positive(key, plain) / plain - 1.0) > 1e-6)
            throw keys.wrong(key, fmt::format("{:.8g}", plain));
    if (!(config.rope.base > 1.0)) throw keys.wrong("rope_theta", "a number above 1");
    return config;
}

}  // namespace spiked::sim
