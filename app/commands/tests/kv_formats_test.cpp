// Dumps as other programs write them: the commands give the same numbers for the same cache.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <optional>

#include "app/tests/process.hpp"
#include "core/files/tests/scratch.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/kv/kv_dump.hpp"
#include "sim/random/normal.hpp"

namespace spiked::app {
namespace {

constexpr std::size_t kv_layers = 2;
constexpr std::size_t kv_heads = 2;
constexpr std::size_t kv_tokens = 48;
constexpr std::size_t kv_dim = 16;

/// [layer][side][head][token][channel], row by row.
const std::vector<double>& kv_values() {
    static const std::vector<double> values = [] {
        std::vector<double> drawn(kv_layers * 2 * kv_heads * kv_tokens * kv_dim);
        stream::fill_normal(stream::Stream({}, "kv formats", stream::Role::noise, 0), drawn);
        for (double& value : drawn) value = static_cast<float>(value);
        return drawn;
    }();
    return values;
}

double kv_value(std::size_t layer, std::size_t side, std::size_t head, std::size_t token, std::size_t channel) {
    return kv_values()[channel + kv_dim * (token + kv_tokens * (head + kv_heads * (side + 2 * layer)))];
}

using Place = std::vector<std::size_t>;

sim::TensorSource kv_tensor(const std::string& name, const std::vector<std::size_t>& shape,
                            const std::function<double(const Place&)>& value_at) {
    std::size_t count = 1;
    for (const auto size : shape) count *= size;
    std::vector<double> values;
    Place index(shape.size());
    for (std::size_t i = 0; i < count; ++i) {
        std::size_t rest = i;
        for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) index[axis] = rest % shape[axis];
        values.push_back(value_at(index));
    }
    return sim::tensor_of(name, sim::DType::f32, shape, values);
}

std::string written(const std::string& name, const std::vector<sim::TensorSource>& tensors,
                    sim::Metadata metadata = {}) {
    const auto path = scratch(name + ".safetensors");
    metadata.emplace_back("model", "tiny");
    sim::write_safetensors(path, metadata, tensors);
    return path;
}

/// [batch, head, token, dim] tensors of each layer and side; `empty` more tokens, of zeros, follow.
std::vector<sim::TensorSource> kv_pairs(const std::function<std::string(std::size_t layer, std::size_t side)>& name,
                                        std::size_t empty = 0) {
    std::vector<sim::TensorSource> tensors;
    for (std::size_t l = 0; l < kv_layers; ++l)
        for (std::size_t s = 0; s < 2; ++s)
            tensors.push_back(kv_tensor(name(l, s), {1, kv_heads, kv_tokens + empty, kv_dim}, [&](const Place& i) {
                return i[2] < kv_tokens ? kv_value(l, s, i[1], i[2], i[3]) : 0.0;
            }));
    return tensors;
}

std::string own_name(std::size_t layer, std::size_t side) {
    return fmt::format("layers.{}.{}", layer, side == 0 ? "key" : "value");
}

const sim::Metadata own_layout = {{"layout", "batch,head,token,dim"}};

/// The results that do not depend on the name and the bytes of the file. Random directions are drawn for each file.
std::string comparable(const Json& json, const std::string& key = "") {
    if (key == "inputs" || key.find("random") != std::string::npos) return "";
    std::string text = key + ":";
    if (json.members() != nullptr) {
        for (const auto& [name, value] : *json.members()) text += comparable(value, name);
        return text;
    }
    if (json.items() == nullptr) return text + json.text() + "\n";
    for (const auto& item : *json.items()) text += comparable(item);
    return text;
}

/// Without the note on how a named format was read.
std::string without_reading(std::string text) {
    const std::size_t at = text.find(": read as ");
    if (at == std::string::npos) return text;
    constexpr std::string_view key = "notes:";  // the line of the first note starts with it
    const std::size_t line = std::max(text.rfind('\n', at) + 1, text.rfind(key, at) + key.size());
    return text.erase(line, text.find('\n', at) + 1 - line);
}

const char* const kv_methods = "--method kivi,tq-mse,svd:1+tq-mse --bits 2,3 --rotation identity --block 16 --json ";

std::string numbers_of(const std::string& dump, const std::string& options = "") {
    const Outcome found = spiked("kv run '" + dump + "' " + kv_methods + options);
    EXPECT_EQ(found.code, 0) << found.err;
    return found.code == 0 ? without_reading(comparable(found.json())) : "";
}

struct KvForm {
    std::string name;
    std::string file;
    std::string options;
};

std::vector<KvForm> kv_forms() {
    std::vector<sim::TensorSource> vllm, bloom;
    for (std::size_t l = 0; l < kv_layers; ++l) {
        vllm.push_back(kv_tensor(fmt::format("model.layers.{}.self_attn.attn", l), {2, 3, 16, kv_heads, kv_dim},
                                 [&](const Place& i) {
                                     const std::size_t page = std::array<std::size_t, 3>{1, 2, 0}.at(i[1]);
                                     return kv_value(l, i[0], i[3], 16 * page + i[2], i[4]);
                                 }));
        bloom.push_back(kv_tensor(fmt::format("past_key_values.{}.0", l), {kv_heads, kv_dim, kv_tokens},
                                  [&](const Place& i) { return kv_value(l, 0, i[0], i[2], i[1]); }));
        bloom.push_back(kv_tensor(fmt::format("past_key_values.{}.1", l), {kv_heads, kv_tokens, kv_dim},
                                  [&](const Place& i) { return kv_value(l, 1, i[0], i[1], i[2]); }));
    }
    const auto lmcache = kv_tensor("tensor_bytes", {2, kv_layers, kv_tokens, kv_heads * kv_dim}, [](const Place& i) {
        return kv_value(i[1], i[0], i[3] / kv_dim, i[2], i[3] % kv_dim);
    });
    const auto mlx = [](std::size_t l, std::size_t s) { return fmt::format("{}.{}", l, s); };
    const auto tuple = [](std::size_t l, std::size_t s) { return fmt::format("past_key_values.{}.{}", l, s); };
    return {
        {"vllm", written("vllm", vllm), "--format vllm --block-table 2,0,1"},
        {"lmcache", written("lmcache", {lmcache}), "--format lmcache --head-dim 16"},
        {"mlx", written("mlx", kv_pairs(mlx)), "--format mlx"},
        {"hf", written("hf", kv_pairs(tuple)), "--format hf"},
        {"bloom", written("bloom", bloom), "--format bloom"},
        {"stated", written("stated", kv_pairs(mlx), {{"format", "mlx"}}), ""},
        {"tokens", written("tokens", kv_pairs(own_name, 20), own_layout), "--tokens :48"},
        {"static",
         written("static", kv_pairs(own_name, 20), {{"layout", "batch,head,token,dim"}, {"skip_empty", "true"}}), ""}};
}

TEST(KvFormats, TheSameCacheGivesTheSameNumbers) {
    const std::string expected = numbers_of(written("own", kv_pairs(own_name), own_layout));
    ASSERT_NE(expected.find("relative_l2"), std::string::npos);
    for (const auto& form : kv_forms()) {
        SCOPED_TRACE(form.name);
        std::string found = numbers_of(form.file, form.options);
        // A note says what was left out.
        if (const auto notes = found.find("notes:"); form.name == "static" && notes != std::string::npos) {
            EXPECT_NE(found.find("20 tokens are zero"), std::string::npos);
            found.erase(notes);
            EXPECT_EQ(found, expected.substr(0, expected.find("notes:")));
            continue;
        }
        EXPECT_EQ(found, expected);
    }
}

/// Rotations are drawn for the bytes of the file (docs/explanation/randomness.md), so that other containers are other
/// draws, as other seeds are.
TEST(KvFormats, RotationsOfAnotherFileChangeErrorsByTheirStandardError) {
    struct Measured {
        double error = 0.0, standard_error = 0.0;
    };
    const auto measured = [](const std::string& dump, const std::string& options) {
        const Outcome found =
            spiked("kv run '" + dump + "' --method tq-mse --bits 2 --block 16 --attention none --json " + options);
        EXPECT_EQ(found.code, 0) << found.err;
        std::vector<Measured> sides;
        if (found.code != 0) return sides;
        const Json json = found.json();
        for (const auto& row : *json.find("rows")->items())
            sides.push_back({*row.find("relative_l2")->real(), *row.find("mcse_relative_l2")->real()});
        return sides;
    };
    const auto own = measured(written("own", kv_pairs(own_name), own_layout), "");
    ASSERT_EQ(own.size(), 2U);
    constexpr double most = 3.0;  // standard errors, which are those of four heads
    for (const auto& form : kv_forms()) {
        SCOPED_TRACE(form.name);
        const auto other = measured(form.file, form.options);
        ASSERT_EQ(other.size(), 2U);
        for (std::size_t side = 0; side < 2; ++side) {
            EXPECT_NE(own[side].error, other[side].error);
            EXPECT_LE(std::abs(own[side].error - other[side].error),
                      most * std::hypot(own[side].standard_error, other[side].standard_error));
        }
    }
}

TEST(KvFormats, StackedLayersInNpz) {
    if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) GTEST_SKIP() << "no NumPy";
    const std::string own = written("npz-own", kv_pairs(own_name), own_layout);
    const std::string npz = scratch("stacked.npz");
    // Keys and values are read from the file with NumPy alone.
    const std::string script = R"(
import json, struct, sys
import numpy as np
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
def read(name):
    first, end = header[name]["data_offsets"]
    return np.frombuffer(data[8 + size + first:8 + size + end], "<f4").reshape(header[name]["shape"])
np.savez(sys.argv[2], k=np.stack([read("layers.%d.key" % l) for l in range(2)]),
         v=np.stack([read("layers.%d.value" % l) for l in range(2)]))
)";
    ASSERT_EQ(std::system(("/usr/bin/python3 -c '" + script + "' '" + own + "' '" + npz + "'").c_str()), 0);
    for (const char* options : {"--format stacked", "--pattern '{side}' --layout layer,batch,head,token,dim"}) {
        const Outcome found = spiked("kv run '" + npz + "' " + kv_methods + options);
        ASSERT_EQ(found.code, 0) << found.err;
        EXPECT_EQ(without_reading(comparable(found.json())), numbers_of(own)) << options;
    }
}

TEST(KvFormats, OtherCommandsReadThemToo) {
    for (const auto& form : kv_forms()) {
        SCOPED_TRACE(form.name);
        const Outcome seen = spiked("kv inspect '" + form.file + "' --block 16 --json " + form.options);
        ASSERT_EQ(seen.code, 0) << seen.err;
        const Json inspected = seen.json();
        const auto& cache = *inspected.find("cache")->items();
        ASSERT_EQ(cache.size(), 4U);
        EXPECT_EQ(*cache[0].find("tokens")->integer(), 48);
        EXPECT_EQ(*cache[0].find("blocks")->integer(), 6);

        const std::string coded = scratch(form.name + ".spkv");
        const std::string back = scratch(form.name + "-back.safetensors");
        const Outcome encoded = spiked("kv encode '" + form.file + "' -o '" + coded +
                                       "' --method tq-mse --bits 8 --block 20 --json " + form.options);
        ASSERT_EQ(encoded.code, 0) << encoded.err;
        const Outcome decoded = spiked("kv decode '" + coded + "' -o '" + back + "' --json");
        ASSERT_EQ(decoded.code, 0) << decoded.err;
        // 2 blocks of 20 in 48 tokens, in 4 tensors of 2 heads; both commands count them alike.
        EXPECT_EQ(*encoded.json().find("blocks")->integer(), 16);
        EXPECT_EQ(*decoded.json().find("blocks")->integer(), 16);
        sim::DumpOptions reading;
        if (form.name == "mlx" || form.name == "hf") reading.format = form.name;
        if (form.name == "hf") reading.layout = "batch,head,token,dim";
        const sim::KvDump dump(back, reading);
        double error = 0.0, size = 0.0;
        for (const auto& tensor : dump.tensors())
            for (std::size_t h = 0; h < kv_heads; ++h) {
                const arma::mat rows = dump.read_block(tensor, h, 0, kv_tokens);
                for (std::size_t t = 0; t < kv_tokens; ++t)
                    for (std::size_t j = 0; j < kv_dim; ++j) {
                        const double exact = kv_value(tensor.layer, tensor.side == sim::Side::key ? 0 : 1, h, t, j);
                        error += (rows(t, j) - exact) * (rows(t, j) - exact);
                        size += exact * exact;
                    }
            }
        EXPECT_LT(std::sqrt(error / size), 0.02);
    }
}

TEST(KvFormats, AStoreKeepsHowItsDumpIsRead) {
    std::string codes;
    for (std::size_t i = 0; i < 2 * 32 * 16; ++i) codes += static_cast<char>(i * i % 120);
    const std::string bytes = scratch("bytes.safetensors");
    std::ofstream(bytes, std::ios::binary) << sim::safetensors_bytes(
        R"({"__metadata__":{"layout":"head,token,dim"},"layers.0.key":{"dtype":"U8","shape":[2,32,16],"data_offsets":[0,1024]}})",
        codes);
    struct Reading {
        std::string file, first, other, key;
    };
    for (const Reading& one :
         {Reading{kv_forms()[0].file, kv_forms()[0].options, "--format vllm --block-table 0,1,2", "block_table"},
          Reading{bytes, "--codes e4m3 --scale 0.5", "--codes e5m2 --scale 0.5", "codes"},
          Reading{bytes, "--codes e4m3 --scale 0.5", "--codes e4m3 --scale 0.25", "scale"}}) {
        SCOPED_TRACE(one.key);
        const std::string run = "kv run '" + one.file + "' -o '" + scratch(one.key + ".db") + "' " + kv_methods;
        const Outcome made = spiked(run + one.first);
        ASSERT_EQ(made.code, 0) << made.err;
        EXPECT_EQ(spiked(run + one.first).code, 0) << "the same command goes on with its store";
        const Outcome other = spiked(run + one.other);
        EXPECT_EQ(other.code, 2) << other.err;
        EXPECT_NE(other.err.find(one.key), std::string::npos) << other.err;
    }
}

TEST(KvFormats, EmptyTokensAreReported) {
    const auto dump = written("padded", kv_pairs(own_name, 16), own_layout);
    const Outcome found = spiked("kv run '" + dump + "' " + std::string(kv_methods));
    ASSERT_EQ(found.code, 0) << found.err;
    EXPECT_NE(found.err.find("16 of 64 tokens are zero"), std::string::npos) << found.err;
    EXPECT_NE(found.err.find("--skip-empty"), std::string::npos);
    ASSERT_EQ(found.json().find("notes")->items()->size(), 1U);
    const Outcome seen = spiked("kv inspect '" + dump + "'");
    EXPECT_NE(seen.out.find("16 of 64 tokens are zero"), std::string::npos) << seen.out;
}

TEST(KvFormats, ShortLayersAreLeftOut) {
    auto tensors = kv_pairs(own_name);
    for (const char* side : {"key", "value"})
        tensors.push_back(kv_tensor(fmt::format("layers.5.{}", side), {1, kv_heads, 10, kv_dim},
                                    [](const Place& i) { return kv_value(0, 0, i[1], i[2], i[3]); }));
    const auto dump = written("short", tensors, own_layout);
    const Outcome found = spiked("kv run '" + dump + "' " + std::string(kv_methods));
    ASSERT_EQ(found.code, 0) << found.err;
    EXPECT_NE(found.err.find("layers.5.key"), std::string::npos) << found.err;
    EXPECT_NE(found.err.find("--layers"), std::string::npos);
    EXPECT_NE(found.err.find("--block"), std::string::npos);
    // Chosen alone, nothing is left to measure.
    const Outcome none = spiked("kv run '" + dump + "' --layers 5 " + std::string(kv_methods));
    EXPECT_EQ(none.code, 4);
    EXPECT_NE(none.err.find("has 10 tokens, fewer than one block of 16"), std::string::npos) << none.err;
    EXPECT_EQ(spiked("kv run '" + dump + "' --layers 0,1 " + std::string(kv_methods)).err.find("layers.5"),
              std::string::npos);
    const Outcome with_short = spiked("kv run '" + dump + "' --layers 0,5 " + std::string(kv_methods));
    EXPECT_EQ(with_short.code, 4);
    EXPECT_NE(with_short.err.find("layer 5 (asked for with --layers) has 10 tokens, fewer than one block of 16"),
              std::string::npos)
        << with_short.err;
    EXPECT_NE(spiked("kv run '" + dump + "' --layers 0,9 " + std::string(kv_methods)).err.find("no dump has a layer 9"),
              std::string::npos);
}

TEST(KvFormats, SequencesOfABatchAreMeasuredOneByOne) {
    std::vector<sim::TensorSource> tensors;
    for (std::size_t l = 0; l < kv_layers; ++l)
        for (std::size_t s = 0; s < 2; ++s)
            tensors.push_back(kv_tensor(own_name(l, s), {2, kv_heads, kv_tokens, kv_dim}, [&](const Place& i) {
                return kv_value(i[0] == 0 ? l : 1 - l, s, i[1], i[2], i[3]);
            }));
    const auto dump = written("batch", tensors, own_layout);
    const Outcome all = spiked("kv run '" + dump + "' " + std::string(kv_methods));
    ASSERT_EQ(all.code, 0) << all.err;
    EXPECT_NE(all.err.find("2 sequences are measured one by one"), std::string::npos) << all.err;
    const Json measured = all.json();
    const auto& inputs = *measured.find("inputs")->items();
    ASSERT_EQ(inputs.size(), 2U);
    EXPECT_EQ(*inputs[1].find("file")->string(), dump + "[1]");
    EXPECT_EQ(numbers_of(dump, "--batch 0"), numbers_of(written("batch-own", kv_pairs(own_name), own_layout)));
    const Outcome coded = spiked("kv encode '" + dump + "' -o '" + scratch("batch.spkv") + "'");
    EXPECT_EQ(coded.code, 4);
    EXPECT_NE(coded.err.find("--batch"), std::string::npos) << coded.err;
    EXPECT_EQ(spiked("kv encode '" + dump + "' --batch 1 --block 16 -o '" + scratch("batch.spkv") + "'").code, 0);
}

TEST(KvFormats, OneSideIsMeasuredWithItsLayoutAlone) {
    const auto dump = written("one-side", kv_pairs(own_name));
    const std::string methods = kv_methods;
    EXPECT_EQ(numbers_of(dump, "--side key --layout key=batch,head,token,dim"),
              numbers_of(written("own", kv_pairs(own_name), own_layout), "--side key"));
    EXPECT_EQ(spiked("kv run '" + dump + "' --layout key=batch,head,token,dim " + methods).code, 4);
}

/// Once for all dumps that are read alike.
TEST(KvFormats, ANamedFormatSaysHowItIsRead) {
    const auto name = [](std::size_t l, std::size_t s) { return fmt::format("{}.{}", l, s); };
    const auto one = written("alike-one", kv_pairs(name)),
               two = written("alike-two", kv_pairs(name), {{"1.model", "m"}});
    const std::string note = "read as batch,head,token,dim: 2 heads, 48 tokens, 16 channels";
    const Outcome found = spiked("kv run '" + one + "' '" + two + "' --format mlx " + std::string(kv_methods));
    ASSERT_EQ(found.code, 0) << found.err;
    const std::size_t first = found.err.find(note);
    ASSERT_NE(first, std::string::npos) << found.err;
    EXPECT_EQ(found.err.find(note, first + 1), std::string::npos) << found.err;
    EXPECT_NE(spiked("kv inspect '" + one + "' --format mlx").out.find(note), std::string::npos);
    // Options that change nothing are rejected.
    EXPECT_EQ(spiked("kv run '" + one + "' --format mlx --head-dim 16 " + std::string(kv_methods)).code, 2);
    EXPECT_EQ(spiked("kv run '" + one + "' --format mlx --block-table 0 " + std::string(kv_methods)).code, 2);
}

TEST(KvFormats, MessagesNameWhatHelps) {
    const auto mlx =
        written("names", kv_pairs([](std::size_t l, std::size_t s) { return fmt::format("{}.{}", l, s); }));
    const Outcome unknown = spiked("kv run '" + mlx + "'");
    EXPECT_EQ(unknown.code, 4);
    EXPECT_NE(unknown.err.find("--format mlx"), std::string::npos) << unknown.err;
    const Outcome seen = spiked("kv inspect '" + mlx + "'");
    EXPECT_EQ(seen.code, 0) << seen.err;
    EXPECT_NE(seen.out.find("--format mlx"), std::string::npos) << seen.out;
    const Outcome wrong = spiked("kv run '" + mlx + "' --pattern 'x.{layer}.{side}'");
    EXPECT_EQ(wrong.code, 4);
    EXPECT_NE(wrong.err.find("correct --pattern"), std::string::npos) << wrong.err;
    EXPECT_EQ(spiked("kv run '" + mlx + "' --format lmcashe").code, 2);
    EXPECT_EQ(spiked("kv run '" + mlx + "' --format mlx --tokens 3").code, 2);
    EXPECT_EQ(spiked("kv run '" + mlx + "' --format mlx --tokens 9:9").code, 2);
}

}  // namespace
}  // namespace spiked::app
