#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "core/files/tests/scratch.hpp"
#include "core/runtime/error.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/llama/llama_dump.hpp"
#include "sim/llama/llama_session.hpp"

namespace spiked::sim {
namespace {

namespace fs = std::filesystem;

constexpr const char* decoder_line = "/usr/bin/python3 '" SPIKED_SOURCE_DIR "/sim/llama/tests/decoder_in_numpy.py' ";

bool numpy_is_here() { return std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") == 0; }

/// A small random model of every kind, with NumPy's predictions; written once for all tests.
const std::string& random_models() {
    static const ScratchFolder scratch;
    static const std::string folder = [] {
        const std::string at = scratch.path("models");
        EXPECT_EQ(std::system((decoder_line + ("make '" + at + "'")).c_str()), 0);
        return at;
    }();
    return folder;
}

std::vector<std::int32_t> tokens_of(const std::string& folder, arma::uword row, std::size_t count) {
    const arma::mat all = read_matrix(folder + "/tokens.npy");
    const arma::rowvec tokens = all.row(row);
    return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(count, tokens.n_elem))};
}

arma::mat numbers_in(const std::string& path) {
    arma::mat result;
    EXPECT_TRUE(result.load(path, arma::raw_ascii)) << path;
    return result;
}

/// Log-probabilities after each token, appended in parts of the given sizes, and then one by one.
arma::mat predictions(const Llama& model, std::span<const std::int32_t> tokens, const std::vector<std::size_t>& parts,
                      std::size_t block) {
    arma::mat result(tokens.size(), model.config().vocabulary, arma::fill::zeros);
    LlamaSession session(model, {.block_tokens = block, .predicted = [&](std::size_t first, const arma::fmat& rows) {
                                     result.rows(first, first + rows.n_rows - 1) = arma::conv_to<arma::mat>::from(rows);
                                 }});
    for (const std::size_t part : parts) {
        session.append(tokens.first(part));
        tokens = tokens.subspan(part);
    }
    for (; !tokens.empty(); tokens = tokens.subspan(1)) session.append(tokens.first(1));
    return result;
}

double largest_difference(const arma::mat& a, const arma::mat& b) { return arma::abs(a - b).max(); }

TEST(LlamaFamilyReference, EveryKindPredictsAsNumPyDoes) {
    if (!numpy_is_here()) GTEST_SKIP() << "no NumPy at /usr/bin/python3";
    std::size_t kinds = 0, controls = 0;
    for (const auto& entry : fs::directory_iterator(random_models())) {
        ++kinds;
        const std::string folder = entry.path().string();
        const Llama model(folder);
        const auto tokens = tokens_of(folder, 0, 40);
        const arma::mat expected = numbers_in(folder + "/rows.txt");
        for (const std::size_t block : {128UL, 7UL})
            EXPECT_LT(largest_difference(predictions(model, tokens, {40}, block), expected), 3e-5)
                << folder << ", blocks of " << block;
        EXPECT_LT(largest_difference(predictions(model, tokens, {12, 9}, 8), expected), 3e-5) << folder;
        for (const auto& file : fs::directory_iterator(folder)) {
            if (!file.path().filename().string().starts_with("without-")) continue;
            ++controls;
            EXPECT_GT(largest_difference(numbers_in(file.path().string()), expected), 0.01) << file.path();
        }
    }
    EXPECT_EQ(kinds, 12U);
    EXPECT_EQ(controls, 12U);
}

TEST(LlamaFamily, ReadsWhatTheFamiliesMean) {
    if (!numpy_is_here()) GTEST_SKIP() << "no NumPy at /usr/bin/python3";
    const auto config = [](const std::string& kind) { return read_llama_config(random_models() + "/" + kind); };
    EXPECT_TRUE(config("qwen2").input_bias);
    EXPECT_FALSE(config("qwen2").output_bias);
    EXPECT_TRUE(config("qwen2").windows.empty());
    EXPECT_EQ(config("qwen2-window").windows, (std::vector<std::size_t>{0, 7, 7}));
    EXPECT_EQ(config("qwen3-biases").windows, (std::vector<std::size_t>{9, 0, 9}));
    EXPECT_EQ(config("mistral-window").windows, (std::vector<std::size_t>{7, 7, 7}));
    EXPECT_TRUE(config("mistral").windows.empty());
    EXPECT_EQ(config("phi3-window").window(2), 5U);
}

TEST(LlamaFamily, AWindowHidesTokensFromTheCallbacksToo) {
    if (!numpy_is_here()) GTEST_SKIP() << "no NumPy at /usr/bin/python3";
    const std::string folder = random_models() + "/qwen2-window";
    const Llama model(folder);
    std::size_t seen = 0;
    model.forward(
        tokens_of(folder, 0, 40),
        {.block_tokens = 16, .attention = [&](const AttentionBlock& at) {
             for (arma::uword t = 0; t < at.weights.n_rows; ++t) {
                 EXPECT_NEAR(arma::accu(at.weights.row(t)), 1.0, 1e-5);
                 for (arma::uword s = 0; s < at.weights.n_cols; ++s) {
                     const bool sees = s <= at.first_token + t && (at.layer == 0 || s + 7 > at.first_token + t);
                     EXPECT_EQ(at.weights(t, s) > 0.0F, sees) << at.layer << " " << at.first_token + t << " " << s;
                 }
                 ++seen;
             }
         }});
    EXPECT_EQ(seen, 3U * 6U * 40U);
}

TEST(LlamaFamilyBadInput, ADumpIsNotLongerThanAWindow) {
    if (!numpy_is_here()) GTEST_SKIP() << "no NumPy at /usr/bin/python3";
    const ScratchFolder scratch;
    const std::string folder = random_models() + "/qwen2-window";
    const Llama model(folder);
    const auto tokens = tokens_of(folder, 0, 8);
    const std::string path = scratch.path("cache.safetensors");
    expect_error(ErrorKind::input, [&] { write_llama_dump(path, model, tokens, {.model = "m"}); },
                 {"8 tokens are more than the model's sliding window of 7"});
    EXPECT_FALSE(fs::exists(path));
    write_llama_dump(path, model, std::span(tokens).first(7), {.model = "m"});
    EXPECT_TRUE(fs::exists(path));
}

/// The configuration of a kind with one text replaced, in a folder beside the kind's weights.
void with_config(const ScratchFolder& scratch, const std::string& kind, const std::string& from,
                 const std::string& to) {
    std::string text = bytes_of_file(random_models() + "/" + kind + "/config.json");
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    (void)scratch.write("config.json", text.replace(at, from.size(), to));
    fs::remove(scratch.path("model.safetensors"));
    fs::create_symlink(random_models() + "/" + kind + "/model.safetensors", scratch.path("model.safetensors"));
}

TEST(LlamaFamilyBadInput, RejectsWhatIsNotComputed) {
    if (!numpy_is_here()) GTEST_SKIP() << "no NumPy at /usr/bin/python3";
    const ScratchFolder scratch;
    const auto rejected = [&](const std::string& kind, const std::string& from, const std::string& to,
                              const std::string& part) {
        with_config(scratch, kind, from, to);
        expect_error(ErrorKind::input, [&] { Llama model(scratch.path(".")); }, {part});
    };
    rejected(
        "phi3", "\"phi3\"", "\"gemma2\"",
        "model_type is \"gemma2\" (expected \"llama\", \"mistral\", \"qwen2\", \"qwen3\", \"phi3\"; it scales its");
    rejected("phi3", "\"phi3\"", "\"qwen3_moe\"", "it has a mixture of experts");
    rejected("phi3", "\"phi3\"", "\"my_own\"", "model_type is \"my_own\" (expected \"llama\"");
    rejected("phi3", "\"rope_scaling\": null",
             "\"rope_scaling\": {\"type\": \"longrope\", \"short_factor\": [1.0], \"long_factor\": [2.0]}",
             "rope_type \"longrope\" (it has a factor for each pair");
    rejected("phi3", "\"sliding_window\": 2047", "\"partial_rotary_factor\": 0.75", "partial_rotary_factor is 0.75");
    rejected("phi3", "\"sliding_window\": 2047", "\"attention_bias\": true", "attention_bias is true (expected false)");
    rejected("phi3", "\"sliding_window\": 2047", "\"quantization_config\": {\"quant_method\": \"awq\"}",
             "quantization_config is given, quant_method \"awq\" (the weights are codes");
    rejected("phi3", "\"sliding_window\": 2047", "\"num_local_experts\": 8", "num_local_experts is 8");
    rejected("phi3", "\"sliding_window\": 2047", "\"sliding_window\": 0", "sliding_window is 0 (expected an integer");
    rejected("qwen3", "[\"full_attention\", \"full", "[\"sliding_attention\", \"full", "layer_types is");
    rejected("qwen3", "[\"full_attention\", \"full_attention\", ", "[\"full_attention\", ", "a list for 3 layers");
    rejected("mistral-window", "\"sliding_window\": 7",
             "\"sliding_window\": 7, \"layer_types\": [\"full_attention\", \"full_attention\", \"full_attention\"]",
             "expected \"sliding_attention\" in every layer");
    // Tensors that the configuration does not state, and the other way round.
    rejected("qwen3-biases", "\"attention_bias\": true", "\"attention_bias\": false", "12 tensors do not belong");
    rejected("qwen3", "\"attention_bias\": false", "\"attention_bias\": true",
             "tensor model.layers.0.self_attn.q_proj.bias is missing");
    rejected("qwen3", "\"qwen3\"", "\"qwen2\"", "tensor model.layers.0.self_attn.q_proj.bias is missing");
    rejected("qwen3", "\"qwen3\"", "\"llama\"", "6 tensors do not belong to a model of the type and sizes");
    rejected("phi3", "\"phi3\"", "\"llama\"", "sliding_window is 2047 (expected none)");
}

// The file is mostly a hole, so it takes no disk.
TEST(LlamaFamilyBadInput, RejectsWeightsThatDoNotFitBeforeReadingThem) {
    const ScratchFolder scratch;
    (void)scratch.write("config.json", R"({"model_type": "qwen2", "vocab_size": 16777216, "hidden_size": 1048576,
        "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 8, "max_position_embeddings": 64})");
    const std::string header = R"({"model.embed_tokens.weight":{"dtype":"F16","shape":[16777216,65536],)"
                               R"("data_offsets":[0,2199023255552]}})";
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(header.size());
    const std::string path = scratch.write("model.safetensors", bytes + header);
    std::error_code cannot;
    fs::resize_file(path, 8 + header.size() + 2199023255552ULL, cannot);
    if (cannot) GTEST_SKIP() << "no files of 2 TB here";
    expect_error(ErrorKind::memory, [&] { Llama model(scratch.path(".")); },
                 {"out of memory (the weights take 2199.0 GB, "});
}

// A Mistral file without the key has transformers' window of 4096 tokens; null means none.
TEST(LlamaFamily, AMissingWindowOfMistralIsTheUsualOne) {
    if (!numpy_is_here()) GTEST_SKIP() << "no NumPy at /usr/bin/python3";
    const ScratchFolder scratch;
    with_config(scratch, "mistral-window", "\"sliding_window\": 7, ", "");
    EXPECT_EQ(read_llama_config(scratch.path(".")).windows, (std::vector<std::size_t>{4096, 4096, 4096}));
}

/// The folders of these models in $SPIKED_EXTRA_MODELS, folders between colons.
std::vector<std::string> real_models() {
    const char* extra = std::getenv("SPIKED_EXTRA_MODELS");
    std::istringstream parts(extra == nullptr ? "" : extra);
    std::vector<std::string> found;
    for (std::string part; std::getline(parts, part, ':');)
        for (const char* name : {"/smollm2-135m-instruct", "/qwen2.5-coder-1.5b-instruct"})
            if (fs::exists(part + name)) found.push_back(part + name);
    return found;
}

/// Nats of 200 tokens of three texts within 1e-3, and greedy texts of 24 tokens, in NumPy's single precision.
TEST(LlamaFamilyReference, ARealModelPredictsAndWritesAsNumPyDoes) {
    const std::vector<std::string> folders = real_models();
    if (folders.empty())
        GTEST_SKIP() << "no smollm2-135m-instruct or qwen2.5-coder-1.5b-instruct in SPIKED_EXTRA_MODELS";
    if (!numpy_is_here()) GTEST_SKIP() << "no NumPy at /usr/bin/python3";
    const ScratchFolder scratch;
    const auto numpy = [&](const std::string& work) {
        const std::string out = scratch.path("out");
        EXPECT_EQ(std::system((decoder_line + work + " > '" + out + "'").c_str()), 0);
        return numbers_in(out);
    };
    for (const std::string& folder : folders) {
        const Llama model(folder);
        for (const int row : {0, 6, 13}) {
            const std::string of_text = fmt::format("'{}' {} ", folder, row);
            const auto tokens = tokens_of(folder, row, 200);
            const arma::mat nats = numpy("nats " + of_text + "200");
            ASSERT_EQ(nats.n_elem, 199U);
            double largest = 0.0;
            model.forward(tokens, {.predicted = [&](std::size_t first, const arma::fmat& rows) {
                              for (arma::uword t = 0; t < rows.n_rows && first + t + 1 < tokens.size(); ++t) {
                                  const auto next = static_cast<arma::uword>(tokens[first + t + 1]);
                                  largest = std::max(largest, std::abs(nats(first + t) + double{rows(t, next)}));
                              }
                          }});
            std::cout << folder << ", text " << row << ": largest difference " << largest << " nats\n";
            EXPECT_LT(largest, 1e-3);

            const arma::mat text = numpy("greedy " + of_text + "64 24");
            LlamaSession session(model, {});
            session.append(std::span(tokens).first(64));
            for (arma::uword t = 0; t < 24; ++t) {
                const auto next = static_cast<std::int32_t>(session.log_probabilities().index_max());
                EXPECT_EQ(next, static_cast<std::int32_t>(text(t))) << folder << " " << row << " " << t;
                session.append(std::span(&next, 1));
            }
        }
    }
}

}  // namespace
}  // namespace spiked::sim
