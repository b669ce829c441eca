#include "sim/llama/llama.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/files/tests/scratch.hpp"
#include "core/runtime/error.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/kv/dump_view.hpp"
#include "sim/llama/llama_dump.hpp"

namespace spiked::sim {
namespace {

namespace fs = std::filesystem;

/// A random model written by NumPy, with NumPy's predictions.
struct Reference {
    std::string folder;
    std::vector<std::int32_t> tokens;
    std::vector<double> nats;  ///< of each token; 0 for the first
};

Reference make_reference(const ScratchFolder& scratch, const std::string& kind, std::size_t count,
                         const std::string& evicted = "", const std::string& kept = "") {
    Reference result{scratch.path(kind), {}, {}};
    fs::create_directories(result.folder);
    const std::string out = result.folder + "/out";
    const std::string line = "/usr/bin/python3 '" SPIKED_SOURCE_DIR "/sim/llama/tests/llama_in_numpy.py' '" +
                             result.folder + "' " + kind + " " + std::to_string(count) +
                             (evicted.empty() ? "" : " '" + evicted + "'") + (kept.empty() ? "" : " '" + kept + "'") +
                             " > '" + out + "'";
    EXPECT_EQ(std::system(line.c_str()), 0);
    std::ifstream file(out);
    std::int32_t token = 0;
    double nats = 0.0;
    while (file >> token >> nats) {
        result.tokens.push_back(token);
        result.nats.push_back(nats);
    }
    EXPECT_EQ(result.tokens.size(), count);
    return result;
}

/// The negative log-likelihood, in nats, of each token given those before it; the model processes the first `count`.
std::vector<double> nats_of(const Llama& model, const std::vector<std::int32_t>& tokens, std::size_t count,
                            ForwardOptions options) {
    std::vector<double> nats(tokens.size(), 0.0);
    options.predicted = [&](std::size_t first, const arma::fmat& rows) {
        for (std::size_t t = 0; t < rows.n_rows && first + t + 1 < tokens.size(); ++t)
            nats[first + t + 1] = -static_cast<double>(rows(t, static_cast<arma::uword>(tokens[first + t + 1])));
    };
    model.forward(std::span(tokens).first(count), options);
    return nats;
}

TEST(Llama, AgreesWithNumpy) {
    const ScratchFolder scratch;
    // Redundant tensors of older files are ignored.
    for (const char* kind : {"tied", "untied", "shards", "scaled", "tied+lm_head.weight",
                             "shards+model.layers.1.self_attn.rotary_emb.inv_freq"}) {
        const Reference expected = make_reference(scratch, kind, 40);
        const Llama model(expected.folder);
        // The sequence is processed at once, in blocks that do not divide it, and token by token.
        for (const std::size_t block : {128UL, 7UL, 1UL}) {
            const auto found = nats_of(model, expected.tokens, 40, {.block_tokens = block});
            for (std::size_t t = 1; t < found.size(); ++t)
                ASSERT_NEAR(found[t], expected.nats[t], 2e-5) << kind << ", blocks of " << block << ", token " << t;
        }
    }
}

TEST(Llama, LaterTokensAttendToTheReplacedBlocks) {
    const ScratchFolder scratch;
    const Reference expected = make_reference(scratch, "untied", 40);
    const Llama model(expected.folder);
    const auto exact = nats_of(model, expected.tokens, 40, {.block_tokens = 16});
    std::size_t calls = 0;
    ForwardOptions options{.block_tokens = 16};
    options.keep = [&](const CacheAddress& address, const arma::fmat& block) {
        ++calls;
        EXPECT_EQ(block.n_rows, 16);
        EXPECT_EQ(block.n_cols, 8);
        EXPECT_EQ(address.first_token % 16, 0);
        return block;
    };
    EXPECT_EQ(nats_of(model, expected.tokens, 40, options), exact);
    EXPECT_EQ(calls, 3 * 2 * 2 * 2);  // layers, heads, sides, full blocks with a token after them

    // The values of the first block are set to 0 in one head of the first layer, which cannot affect tokens before 17.
    options.keep = [](const CacheAddress& address, const arma::fmat& block) -> arma::fmat {
        if (address.layer == 0 && address.head == 1 && address.side == Side::value && address.first_token == 0)
            return 0.0F * block;
        return block;
    };
    const auto lost = nats_of(model, expected.tokens, 40, options);
    for (std::size_t t = 1; t < lost.size(); ++t) EXPECT_EQ(lost[t] == exact[t], t <= 16) << t;
}

TEST(Llama, ReplacesTheBlocksOfALayerAtOnceAsThoseOfItsHeads) {
    const ScratchFolder scratch;
    const Reference expected = make_reference(scratch, "untied", 40);
    const Llama model(expected.folder);
    const auto scale = [](std::size_t layer, std::size_t head, Side side, std::size_t token) {
        return 0.5F + 0.1F * static_cast<float>(2 * layer + head) + (side == Side::key ? 0.05F : 0.0F) +
               0.01F * static_cast<float>(token / 16);
    };
    ForwardOptions apart{.block_tokens = 16};
    apart.keep = [&](const CacheAddress& at, const arma::fmat& block) -> arma::fmat {
        return scale(at.layer, at.head, at.side, at.first_token) * block;
    };
    ForwardOptions together{.block_tokens = 16};
    std::size_t calls = 0;
    together.keep_layer = [&](std::size_t layer, std::size_t first_token, const LayerRows& exact) {
        ++calls;
        LayerRows left = exact;
        for (std::size_t head = 0; head < 2; ++head) {
            left.keys.cols(8 * head, 8 * head + 7) *= scale(layer, head, Side::key, first_token);
            left.values.cols(8 * head, 8 * head + 7) *= scale(layer, head, Side::value, first_token);
        }
        return left;
    };
    for (const bool own : {false, true}) {
        apart.keep_own = together.keep_own = own;
        calls = 0;
        EXPECT_EQ(nats_of(model, expected.tokens, 40, together), nats_of(model, expected.tokens, 40, apart)) << own;
        EXPECT_EQ(calls, 3U * (own ? 3 : 2));  // layers, blocks: with keep_own also the last
    }
}

/// Keys and values of full past blocks are scaled in all layers, so that the changes also propagate through the layers.
TEST(Llama, AgreesWithNumpyForAChangedCache) {
    const ScratchFolder scratch;
    const Reference expected = make_reference(scratch, "untied", 40, "s < 0", "where(s // 16 < t // 16, 0.7, 1.0)");
    ForwardOptions options{.block_tokens = 16};
    options.keep = [](const CacheAddress&, const arma::fmat& block) -> arma::fmat { return 0.7F * block; };
    const auto found = nats_of(Llama(expected.folder), expected.tokens, 40, options);
    const Reference exact = make_reference(scratch, "untied", 40);
    double changed = 0.0;
    for (std::size_t t = 1; t < found.size(); ++t) {
        ASSERT_NEAR(found[t], expected.nats[t], 2e-5) << t;
        changed = std::max(changed, std::abs(expected.nats[t] - exact.nats[t]));
    }
    EXPECT_GT(changed, 0.01);
}

TEST(Llama, WithAContextItsBlocksAreReplacedAndNoOthers) {
    const ScratchFolder scratch;
    const Reference expected = make_reference(scratch, "untied", 40);
    const Llama model(expected.folder);
    std::vector<std::pair<std::size_t, std::size_t>> kept;
    ForwardOptions options{.block_tokens = 16, .context = 22};
    options.keep = [&](const CacheAddress& address, const arma::fmat& block) -> arma::fmat {
        if (address.layer == 0 && address.head == 0 && address.side == Side::key)
            kept.emplace_back(address.first_token, block.n_rows);
        return 0.0F * block;
    };
    const auto lost = nats_of(model, expected.tokens, 40, options);
    EXPECT_EQ(kept, (std::vector<std::pair<std::size_t, std::size_t>>{{0, 16}, {16, 6}}));
    const auto exact = nats_of(model, expected.tokens, 40, {.block_tokens = 16});
    for (std::size_t t = 1; t < lost.size(); ++t) EXPECT_EQ(std::abs(lost[t] - exact[t]) < 1e-5, t <= 16) << t;
    expect_error(ErrorKind::input, [&] { model.forward(expected.tokens, {.context = 41}); },
                 {"a context of 41 tokens"});
}

TEST(Llama, WithKeepOwnNoTokenAttendsToExactRows) {
    const ScratchFolder scratch;
    const Reference expected = make_reference(scratch, "untied", 40);
    const Llama model(expected.folder);
    const auto exact = nats_of(model, expected.tokens, 40, {.block_tokens = 16});
    ForwardOptions options{.block_tokens = 16, .keep_own = true};
    std::size_t calls = 0;
    options.keep = [&](const CacheAddress&, const arma::fmat& block) {
        ++calls;
        return block;
    };
    EXPECT_EQ(nats_of(model, expected.tokens, 40, options), exact);
    EXPECT_EQ(calls, 3 * 2 * 2 * 3);  // layers, heads, sides, blocks
    options.keep = [](const CacheAddress&, const arma::fmat& block) -> arma::fmat { return 2.0F * block; };
    const auto lost = nats_of(model, expected.tokens, 40, options);
    for (std::size_t t = 1; t < lost.size(); ++t) EXPECT_NE(lost[t], exact[t]) << t;
}

/// From every full block, the tokens t with t % 3 == 1 are evicted.
TEST(Llama, LaterTokensDoNotAttendToEvictedTokens) {
    const ScratchFolder scratch;
    const Reference expected = make_reference(scratch, "untied", 40, "(s % 3 == 1) & (s // 16 < t // 16)");
    const Llama model(expected.folder);
    std::vector<std::vector<std::size_t>> columns;
    ForwardOptions options{.block_tokens = 16};
    options.evict = [](std::size_t, std::size_t, std::size_t, CachedHead& cached) {
        for (std::size_t row = cached.tokens.size(); row-- > 0;) {
            if (cached.tokens[row] % 3 != 1) continue;
            cached.keys.shed_row(row);
            cached.values.shed_row(row);
            cached.tokens.erase(cached.tokens.begin() + static_cast<std::ptrdiff_t>(row));
        }
    };
    options.attention = [&](const AttentionBlock& at) {
        EXPECT_EQ(at.weights.n_cols, at.tokens.size());
        if (at.layer == 2 && at.head == 5) columns.push_back(at.tokens);
    };
    const auto found = nats_of(model, expected.tokens, 40, options);
    for (std::size_t t = 1; t < found.size(); ++t) ASSERT_NEAR(found[t], expected.nats[t], 2e-5) << t;
    ASSERT_EQ(columns.size(), 3);
    EXPECT_EQ(columns[0].size(), 16);
    EXPECT_EQ(columns[1].size(), 11 + 16);
    EXPECT_EQ((std::vector<std::size_t>(columns[1].begin(), columns[1].begin() + 4)),
              (std::vector<std::size_t>{0, 2, 3, 5}));
    EXPECT_EQ(columns[2].size(), 11 + 10 + 8);

    // With at_once the whole context is processed before tokens are evicted from it.
    const Reference whole = make_reference(scratch, "untied", 40, "(s % 3 == 1) & (s < 32) & (t >= 32)");
    options.context = 32;
    options.at_once = true;
    const auto late = nats_of(model, whole.tokens, 40, options);
    for (std::size_t t = 1; t < late.size(); ++t) ASSERT_NEAR(late[t], whole.nats[t], 2e-5) << t;
    // Blocks, too, are then replaced after the whole context.
    std::vector<std::pair<std::size_t, std::size_t>> kept;
    ForwardOptions replacing{.block_tokens = 16, .context = 22, .at_once = true};
    replacing.keep = [&](const CacheAddress& address, const arma::fmat& block) -> arma::fmat {
        if (address.layer == 0 && address.head == 0 && address.side == Side::key)
            kept.emplace_back(address.first_token, block.n_rows);
        return 0.0F * block;
    };
    const auto lost = nats_of(model, expected.tokens, 40, replacing);
    EXPECT_EQ(kept, (std::vector<std::pair<std::size_t, std::size_t>>{{0, 16}, {16, 6}}));
    const auto exact = nats_of(model, expected.tokens, 40, {.block_tokens = 16});
    for (std::size_t t = 1; t < lost.size(); ++t) EXPECT_EQ(std::abs(lost[t] - exact[t]) < 1e-5, t <= 22) << t;
}

TEST(Llama, CallbacksReceiveKeysAfterTheRotaryEmbedding) {
    const ScratchFolder scratch;
    const Reference expected = make_reference(scratch, "untied", 40);
    const Llama model(expected.folder);
    ForwardOptions options{.block_tokens = 16};
    std::vector<arma::fmat> kept, seen;
    options.layer = [&](const LayerBlock& at) {
        EXPECT_EQ(at.queries.n_cols, 6 * 8);
        EXPECT_EQ(at.values.n_cols, 2 * 8);
        if (at.layer == 1 && at.first_token == 16) seen = {at.keys.cols(8, 15), at.values.cols(0, 7)};
    };
    options.keep = [&](const CacheAddress& address, const arma::fmat& block) {
        if (address.layer == 1 && address.first_token == 16)
            if ((address.side == Side::key) == (address.head == 1)) kept.push_back(block);
        return block;
    };
    (void)nats_of(model, expected.tokens, 40, options);
    ASSERT_EQ(kept.size(), 2);
    EXPECT_TRUE(arma::approx_equal(kept[0], seen[1], "absdiff", 0.0));
    EXPECT_TRUE(arma::approx_equal(kept[1], seen[0], "absdiff", 0.0));
}

/// Writes `text`, with one occurrence of `from` replaced by `to`, as the configuration.
void write_config(const Reference& model, std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(model.folder + "/config.json") << text.replace(at, from.size(), to);
}

// Newer files have the base of the rotary embedding under another key.
TEST(Llama, ReadsTheBaseFromNewerFiles) {
    const ScratchFolder scratch;
    const Reference good = make_reference(scratch, "tied", 4);
    write_config(good, bytes_of_file(good.folder + "/config.json"), "\"rope_theta\": 500.0",
                 "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 700.0}");
    EXPECT_EQ(read_llama_config(good.folder).rope.base, 700.0);
}

TEST(Llama, DumpsOfScaledPositionsStateTheirScaling) {
    const ScratchFolder scratch;
    const Reference scaled = make_reference(scratch, "scaled", 20);
    const std::string path = scratch.path("scaled.safetensors");
    write_llama_dump(path, Llama(scaled.folder), scaled.tokens, {.model = "scaled"});
    const KvDump dump(path);
    const Rope rope = dump_rotary(dump).rope;
    EXPECT_EQ(rope.base, 500.0);
    EXPECT_EQ(rope.scaling, (RopeScaling{8.0, 1.0, 4.0, 200.0}));
    EXPECT_EQ(token_ids(dump, dump.tensors().front()), scaled.tokens);
}

TEST(Llama, ReadsScalingsOfEveryKind) {
    const ScratchFolder scratch;
    const Reference good = make_reference(scratch, "tied", 4);
    const std::string text = bytes_of_file(good.folder + "/config.json");
    write_config(good, text, "\"rope_scaling\": null", "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.0}");
    EXPECT_EQ(read_llama_config(good.folder).rope.scaling,
              (RopeScaling{.factor = 2.0, .kind = RopeScalingKind::linear}));
    write_config(good, text, "\"rope_scaling\": null",
                 "\"rope_parameters\": {\"rope_theta\": 500.0, \"rope_type\": \"yarn\", \"factor\": 4.0, "
                 "\"original_max_position_embeddings\": 64, \"attention_factor\": 1.5}");
    EXPECT_EQ(read_llama_config(good.folder).rope.scaling,
              (RopeScaling{4.0, 1.0, 32.0, 64.0, RopeScalingKind::yarn, 1.5}));
}

TEST(Llama, RejectsOtherArchitectures) {
    const ScratchFolder scratch;
    const Reference good = make_reference(scratch, "tied", 4);
    const std::string text = bytes_of_file(good.folder + "/config.json");
    const auto with = [&](const std::string& from, const std::string& to, const std::string& part) {
        write_config(good, text, from, to);
        expect_error(ErrorKind::input, [&] { Llama model(good.folder); }, {good.folder, part});
    };
    with("\"llama\"", "\"gpt2\"", "model_type is \"gpt2\" (expected \"llama\"");
    with("\"silu\"", "\"gelu\"", "hidden_act is \"gelu\" (expected \"silu\")");
    with("\"rope_scaling\": null", "\"rope_scaling\": {\"rope_type\": \"llama3\"}", "rope_scaling is");
    with("\"rope_scaling\": null", "\"rope_parameters\": {\"rope_type\": \"llama3\", \"rope_theta\": 500.0}",
         "rope_parameters is");
    const std::string scaled =
        "\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, ";
    with("\"rope_scaling\": null", scaled + "\"high_freq_factor\": 4.0}",
         "original_max_position_embeddings is missing, a positive number is expected");
    with("\"rope_scaling\": null", scaled + "\"high_freq_factor\": 1.0, \"original_max_position_embeddings\": 8192}",
         "high_freq_factor is not above low_freq_factor");
    with("\"rope_scaling\": null", "\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2.0}",
         "rope_scaling has rope_type \"dynamic\" (its frequencies depend on");
    with("\"rope_scaling\": null", "\"partial_rotary_factor\": 0.5", "partial_rotary_factor is 0.5 (expected 1");
    with("\"attention_bias\": false", "\"attention_bias\": true",
         "tensor model.layers.0.self_attn.q_proj.bias is missing");
    with("\"attention_bias\": false", "\"attention_multiplier\": 0.25",
         "attention_multiplier is 0.25 (expected 0.35355339)");
    for (const char* key : {"embedding_multiplier", "residual_multiplier", "logits_scaling"})
        with("\"attention_bias\": false", "\"" + std::string(key) + "\": 12.0", std::string(key) + " is 12");
    with("\"attention_bias\": false", "\"mlp_bias\": true", "tensor model.layers.0.mlp.gate_proj.bias is missing");
    with("\"attention_bias\": false", "\"sliding_window\": 32", "sliding_window is 32 (expected none)");
    with("\"attention_bias\": false", "\"layer_types\": [\"full_attention\", \"sliding_attention\"]", "layer_types is");
    with("\"attention_bias\": false", "\"final_logit_softcapping\": 30.0", "final_logit_softcapping is 30");
    with("\"num_hidden_layers\": 3", "\"num_hidden_layers\": 2",
         "9 tensors do not belong to a model of the type and sizes in config.json (\"model.layers.2.");
    with("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 4", "expected a divisor of the 6 query heads");
    with("\"vocab_size\": 50", "\"vocab_size\": 0", "vocab_size is 0 (expected an integer from 1");
    with("\"hidden_size\": 24, ", "", "hidden_size is missing");
    with("\"intermediate_size\": 40", "\"intermediate_size\": 41",
         "model.layers.0.mlp.gate_proj.weight is [40, 24] (expected [41, 24] from config.json)");
    with("\"num_hidden_layers\": 3", "\"num_hidden_layers\": 4",
         "tensor model.layers.3.input_layernorm.weight is missing");
    with("\"head_dim\": 8", "\"head_dim\": 7", "heads have 7 coordinates (expected an even number)");
    with("\"rope_theta\": 500.0", "\"rope_theta\": 1.0", "rope_theta is 1");
    with("\"rope_scaling\": null", "\"rope_parameters\": {\"rope_theta\": 600.0}",
         "rope_theta is 500.0 (expected that of rope_parameters");
    with("\"rope_scaling\": null", "\"rope_parameters\": {\"rope_theta\": 500.0, \"partial_rotary_factor\": 0.5}",
         "some dimensions only");
    with("\"rope_scaling\": null", "\"no_rope_layers\": [1, 0, 1]", "no_rope_layers is");
    with("{", "{,", "config.json");
    expect_error(ErrorKind::input, [] { Llama model("/no/such/folder"); }, {"/no/such/folder/config.json"});
}

TEST(Llama, RejectsTensorsItWouldNotUse) {
    const ScratchFolder scratch;
    for (const char* name : {"model.layers.0.self_attn.q_proj.bias", "model.layers.2.self_attn.q_norm.weight",
                             "model.layers.3.input_layernorm.weight", "model.embed_positions.weight"})
        for (const char* kind : {"untied", "shards"}) {
            const Reference more = make_reference(scratch, std::string(kind) + "+" + name, 4);
            expect_error(ErrorKind::input, [&] { Llama model(more.folder); },
                         {more.folder, "1 tensors do not belong to a model of the type", name});
        }
}

TEST(Llama, RejectsIllegalSequences) {
    const ScratchFolder scratch;
    const Llama model(make_reference(scratch, "tied", 4).folder);
    const auto rejected = [&](const std::vector<std::int32_t>& tokens, const std::string& part) {
        expect_error(ErrorKind::input, [&] { model.forward(tokens, {}); }, {part});
    };
    rejected({1, 2, 50}, "token 2 of a sequence is 50 (expected 0 to 49)");
    rejected({-1}, "token 0 of a sequence is -1");
    rejected({}, "a sequence of 0 tokens (expected 1 to 64");
    rejected(std::vector<std::int32_t>(65, 1), "a sequence of 65 tokens");
}

/// A configuration that allows a long context does not cost memory.
TEST(Llama, AContextOfMillionsCostsNoMemoryUntilItIsUsed) {
    const ScratchFolder scratch;
    const Reference expected = make_reference(scratch, "tied", 40);
    write_config(expected, bytes_of_file(expected.folder + "/config.json"), "\"max_position_embeddings\": 64",
                 "\"max_position_embeddings\": 16777216");
    const auto most_kibibytes = [] {
        rusage used{};
        getrusage(RUSAGE_SELF, &used);
        return used.ru_maxrss;
    };
    const long before = most_kibibytes();
    const Llama model(expected.folder);
    EXPECT_EQ(model.config().context, 16777216U);
    const auto found = nats_of(model, expected.tokens, 40, {.block_tokens = 7});
    for (std::size_t t = 1; t < found.size(); ++t) ASSERT_NEAR(found[t], expected.nats[t], 2e-5) << t;
#ifdef __SANITIZE_THREAD__
    constexpr long allowed_mebibytes = 1024;  // the sanitizer needs four bytes for each byte of OpenBLAS's first buffer
#else
    constexpr long allowed_mebibytes = 64;
#endif
    EXPECT_LT(most_kibibytes() - before, allowed_mebibytes * 1024);
}

/// Compares with the known perplexities of a trained model in $SPIKED_EXTRA_MODELS/rope-lm, where it is present.
TEST(Llama, ReproducesThePerplexitiesOfATrainedModel) {
    const char* models = std::getenv("SPIKED_EXTRA_MODELS");
    if (models == nullptr) GTEST_SKIP() << "SPIKED_EXTRA_MODELS names no folder";
    if (!fs::exists(std::string(models) + "/rope-lm")) GTEST_SKIP() << "no rope-lm in " << models;
    const Llama model(std::string(models) + "/rope-lm");
    const arma::mat pages = read_matrix(std::string(models) + "/rope-lm/eval-tokens.npy");
    ASSERT_EQ(pages.n_rows, 16);
    std::vector<double> whole, late;
    for (arma::uword page = 0; page < pages.n_rows; ++page) {
        // There are 513 tokens; the last one is only predicted.
        const arma::rowvec row = pages.row(page);
        const auto nats = arma::vec(nats_of(model, {row.begin(), row.end()}, 512, {}));
        whole.push_back(arma::mean(nats.subvec(1, 512)));
        late.push_back(arma::mean(nats.subvec(129, 512)));
    }
    const auto mean = [](const std::vector<double>& v) { return arma::mean(arma::vec(v)); };
    EXPECT_NEAR(whole[0], 2.206545, 1e-4);
    EXPECT_NEAR(late[0], 2.295066, 1e-4);
    EXPECT_NEAR(mean(whole), 1.6368, 1e-4);
    EXPECT_NEAR(mean(late), 1.5589, 1e-4);
}

TEST(LlamaBadInput, ATensorMayBeInOneFileOnly) {
    const ScratchFolder scratch;
    const std::string folder = make_reference(scratch, "tied", 4).folder;
    std::filesystem::copy_file(folder + "/model.safetensors", folder + "/a.safetensors");
    std::filesystem::rename(folder + "/model.safetensors", folder + "/b.safetensors");
    std::ofstream(folder + "/model.safetensors.index.json")
        << R"({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})";
    expect_error(ErrorKind::input, [&] { LlamaWeights weights(folder); }, {folder, "is in two of the files"});
}

TEST(LlamaBadInput, AnIndexMustNameFilesOfItsFolderOnce) {
    const ScratchFolder scratch;
    const std::string index = scratch.path("model.safetensors.index.json");
    const auto files = [&](const std::string& map) {
        std::ofstream(index) << "{\"weight_map\": {" << map << "}}";
        return weight_files(scratch.path(""));
    };
    (void)scratch.write("a.safetensors", "x");
    (void)scratch.write("b.safetensors", "x");
    EXPECT_EQ(files(R"("x": "b.safetensors", "y": "a.safetensors", "z": "a.safetensors")").size(), 2U);
    std::filesystem::create_symlink("a.safetensors", scratch.path("c.safetensors"));
    expect_error(ErrorKind::input, [&] { (void)files(R"("x": "a.safetensors", "y": "c.safetensors")"); },
                 {"one file twice"});
    for (const char* elsewhere : {"../a.safetensors", "/a.safetensors", "a.txt"})
        expect_error(ErrorKind::input, [&] { (void)files("\"x\": \"" + std::string(elsewhere) + "\""); }, {elsewhere});
    std::string many;
    for (int i = 0; i < 1001; ++i)
        many += (i == 0 ? "" : ", ") + ("\"t" + std::to_string(i)) + "\": \"f" + std::to_string(i) + ".safetensors\"";
    expect_error(ErrorKind::input, [&] { (void)files(many); }, {"1001 files"});
}

}  // namespace
}  // namespace spiked::sim
