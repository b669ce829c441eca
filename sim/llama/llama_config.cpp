#include "sim/llama/llama_config.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/files/text_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "core/text/names.hpp"

namespace spiked::sim {
namespace {

constexpr std::uint64_t most_bytes = 1 << 20;
constexpr std::int64_t most = 1 << 24;  // limit of every size

/// The parts that the layers of a model_type may have.
struct Family {
    std::string_view type;
    bool input_bias = false;      ///< always has biases on queries, keys and values
    bool attention_bias = false;  ///< attention_bias adds them, and one on the output of attention
    bool mlp_bias = false;        ///< mlp_bias adds biases in the MLP
    bool head_norms = false;
    bool fused = false;
    enum class Window : std::uint8_t { none, every_layer, some_layers } window = Window::none;
    std::int64_t usual_window = 0;   ///< for a file without the key; 0: none
    std::size_t usual_head_dim = 0;  ///< for a file without the key; 0: hidden size / heads
    double usual_epsilon = 1e-6;
};
constexpr Family families[] = {
    {.type = "llama", .attention_bias = true, .mlp_bias = true},
    {.type = "mistral", .window = Family::Window::every_layer, .usual_window = 4096},
    {.type = "qwen2", .input_bias = true, .window = Family::Window::some_layers, .usual_window = 4096},
    {.type = "qwen3",
     .attention_bias = true,
     .head_norms = true,
     .window = Family::Window::some_layers,
     .usual_window = 4096,
     .usual_head_dim = 128},
    {.type = "phi3", .fused = true, .window = Family::Window::every_layer, .usual_epsilon = 1e-5},
};

/// Beginnings of other model_types, and what the model has that is not computed.
struct OtherFamily {
    std::string_view beginning;
    std::string_view why;
};
constexpr OtherFamily other_families[] = {
    {"mixtral", "it has a mixture of experts"},
    {"qwen2_moe", "it has a mixture of experts"},
    {"qwen3_moe", "it has a mixture of experts"},
    {"phimoe", "it has a mixture of experts"},
    {"gpt_oss", "it has a mixture of experts and sinks in its attention"},
    {"deepseek", "it has latent attention and a mixture of experts"},
    {"gemma", "it scales its embedding and has other norms"},
    {"cohere", "attention and MLP are parallel"},
    {"granite", "it has multipliers"},
    {"smollm3", "some of its layers have no rotary embedding"},
    {"llama4", "it has a mixture of experts, and layers without a rotary embedding"},
    {"qwen2_vl", "its positions have three coordinates"},
    {"qwen2_5_vl", "its positions have three coordinates"},
    {"qwen3_next", "it has layers of linear attention"},
    {"glm", "its rotary embedding turns some coordinates only"},
    {"phi3small", "it has sparse attention and another MLP"},
    {"phi4mm", "it has adapters for images and sound"},
    {"phi", "attention and MLP are parallel, with layer norms"},
    {"mistral3", "its language model is a part of it (text_config)"},
    {"qwen3_vl", "its positions have three coordinates"},
    {"qwen2_5_omni", "its positions have three coordinates"},
    {"internlm2", "its projections of queries, keys and values are interleaved in one matrix"},
    {"starcoder2", "it has layer norms and another MLP"},
    {"exaone4", "it has norms in other places"},
    {"gpt", "it has layer norms and another MLP"},
    {"olmo", "it has norms in other places"},
    {"mamba", "it has no attention"},
};

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
    /// Whether the file has the key, even if it is null.
    [[nodiscard]] bool states(const char* key) const { return json_.find(key) != nullptr; }
    [[nodiscard]] std::size_t size(const char* key, std::int64_t least = 1) const {
        const Json* value = find(key);
        const std::int64_t* number = value == nullptr ? nullptr : value->integer();
        if (number == nullptr || *number < least || *number > most)
            throw input_error("{}: {} is {} (expected an integer from {} to {}): is this a Llama-shaped model?", path_,
                              key, value == nullptr ? "missing" : value->text(), least, most);
        return static_cast<std::size_t>(*number);
    }
    [[nodiscard]] std::size_t size_or(const char* key, std::size_t otherwise, std::int64_t least = 1) const {
        return find(key) == nullptr ? otherwise : size(key, least);
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

const Family& read_family(const Keys& keys) {
    const Json* type = keys.find("model_type");
    const std::string name = type == nullptr || type->string() == nullptr ? "" : *type->string();
    std::string known;
    for (const Family& family : families) {
        if (family.type == name) return family;
        known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", family.type);
    }
    for (const auto& other : other_families)
        if (name.starts_with(other.beginning)) throw keys.wrong("model_type", fmt::format("{}; {}", known, other.why));
    throw keys.wrong("model_type", known);
}

/// Throws for parts of a model that are not computed.
void reject_unknown_parts(const Keys& keys, const Family& family, double head_dim) {
    if (const Json* quantized = keys.find("quantization_config")) {
        const Json* method = quantized->find("quant_method");
        throw input_error(
            "{}: quantization_config is given{} (the weights are codes, not numbers): take the model in bfloat16",
            keys.path(), method == nullptr ? "" : fmt::format(", quant_method {}", method->text()));
    }
    if (const Json* activation = keys.find("hidden_act");
        activation != nullptr && (activation->string() == nullptr || *activation->string() != "silu"))
        throw keys.wrong("hidden_act", "\"silu\"");
    if (!family.attention_bias && !family.input_bias && keys.flag("attention_bias"))
        throw keys.wrong("attention_bias", "false");
    if (!family.mlp_bias && keys.flag("mlp_bias")) throw keys.wrong("mlp_bias", "false");
    if (keys.flag("use_qk_norm")) throw keys.wrong("use_qk_norm", "false");
    if (const Json* part = keys.find("partial_rotary_factor");
        part != nullptr && part->text() != "1.0" && part->text() != "1")
        throw keys.wrong("partial_rotary_factor", "1, so that all coordinates are rotated");
    if (const Json* layers = keys.find("no_rope_layers");
        layers != nullptr && layers->text().find('0') != std::string::npos)
        throw keys.wrong("no_rope_layers", "1 for every layer, which then has a rotary embedding");
    for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping", "num_local_experts", "num_experts"})
        if (keys.find(key) != nullptr) throw keys.wrong(key, "none");
    for (const auto& [key, plain] : {std::pair{"embedding_multiplier", 1.0},
                                     {"residual_multiplier", 1.0},
                                     {"logits_scaling", 1.0},
                                     {"logit_scale", 1.0},
                                     {"attention_multiplier", 1.0 / std::sqrt(head_dim)},
                                     {"query_pre_attn_scalar", head_dim}})
        if (std::abs(keys.positive(key, plain) / plain - 1.0) > 1e-6)
            throw keys.wrong(key, fmt::format("{:.8g}", plain));
}

/// LlamaConfig::windows. A family with a window in some layers states them by layer_types, or has it from
/// max_window_layers on.
std::vector<std::size_t> read_windows(const Keys& keys, const Family& family, std::size_t layers) {
    using Window = Family::Window;
    std::size_t window = keys.find("sliding_window") != nullptr ? keys.size("sliding_window")
                         : keys.states("sliding_window")        ? 0
                                                                : static_cast<std::size_t>(family.usual_window);
    if (family.window == Window::none && window > 0) throw keys.wrong("sliding_window", "none");
    if (family.window == Window::some_layers && !keys.flag("use_sliding_window")) window = 0;
    std::vector<std::size_t> windows(layers, window);
    if (family.window == Window::some_layers && window > 0)
        std::fill_n(windows.begin(), std::min(layers, keys.size_or("max_window_layers", 28, 0)), 0);
    if (const Json* types = keys.find("layer_types")) {
        if (types->items() == nullptr || types->items()->size() != layers)
            throw keys.wrong("layer_types", fmt::format("a list for {} layers", layers));
        for (std::size_t l = 0; l < layers; ++l) {
            const std::string* type = (*types->items())[l].string();
            const bool slides = type != nullptr && *type == "sliding_attention";
            if ((!slides && (type == nullptr || *type != "full_attention")) || (slides && window == 0))
                throw keys.wrong("layer_types", window == 0 ? "\"full_attention\" in every layer"
                                                            : "\"full_attention\" or \"sliding_attention\"");
            if (family.window == Window::every_layer && window > 0 && !slides)
                throw keys.wrong("layer_types", "\"sliding_attention\" in every layer");
            windows[l] = slides ? window : 0;
        }
    }
    if (std::all_of(windows.begin(), windows.end(), [](std::size_t w) { return w == 0; })) windows.clear();
    return windows;
}

}  // namespace

LlamaConfig read_llama_config(const std::string& folder) {
    const Keys keys(folder + "/config.json");
    const Family& family = read_family(keys);
    LlamaConfig config;
    config.vocabulary = keys.size("vocab_size");
    config.hidden = keys.size("hidden_size");
    config.intermediate = keys.size("intermediate_size");
    config.layers = keys.size("num_hidden_layers");
    config.heads = keys.size("num_attention_heads");
    config.kv_heads = keys.size_or("num_key_value_heads", config.heads);
    config.head_dim =
        keys.size_or("head_dim", family.usual_head_dim != 0 ? family.usual_head_dim : config.hidden / config.heads);
    config.context = keys.size("max_position_embeddings");
    config.norm_epsilon = keys.positive("rms_norm_eps", family.usual_epsilon);
    // rope_parameters are in place of rope_scaling and rope_theta since 2025.
    for (const char* name : {"rope_scaling", "rope_parameters"})
        if (const Json* object = keys.find(name))
            config.rope.scaling = read_rope_scaling(*object, keys.path() + ": " + name);
    const Json* parameters = keys.find("rope_parameters");
    const Json* base = parameters == nullptr ? nullptr : parameters->find("rope_theta");
    config.rope.base = base == nullptr ? keys.positive("rope_theta", 10000.0) : keys.positive("rope_theta", *base);
    if (base != nullptr && keys.find("rope_theta") != nullptr && keys.positive("rope_theta", 0.0) != config.rope.base)
        throw keys.wrong("rope_theta", "that of rope_parameters, or none");
    config.tied = keys.flag("tie_word_embeddings");
    config.output_bias = family.attention_bias && keys.flag("attention_bias");
    config.input_bias = family.input_bias || config.output_bias;
    config.mlp_bias = keys.flag("mlp_bias");
    config.head_norms = family.head_norms;
    config.fused = family.fused;
    if (config.heads % config.kv_heads != 0)
        throw keys.wrong("num_key_value_heads", fmt::format("a divisor of the {} query heads", config.heads));
    if (config.head_dim == 0 || config.head_dim % 2 != 0)
        throw input_error("{}: heads have {} coordinates (expected an even number): rotary pairs need two each",
                          keys.path(), config.head_dim);
    if (!(config.rope.base > 1.0)) throw keys.wrong("rope_theta", "a number above 1");
    reject_unknown_parts(keys, family, static_cast<double>(config.head_dim));
    config.windows = read_windows(keys, family, config.layers);
    return config;
}

}  // namespace spiked::sim
