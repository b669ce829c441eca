// Caches in 8-bit codes with scales, and keys with scaled rotary positions: the commands measure and code the numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "app/tests/process.hpp"
#include "core/files/tests/scratch.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/kv/dump_view.hpp"
#include "sim/kv/kv_dump.hpp"
#include "sim/random/normal.hpp"

namespace spiked::app {
namespace {

constexpr std::size_t code_heads = 2, code_tokens = 32, code_dim = 16;
constexpr std::size_t code_rows = code_heads * code_tokens;

/// Codes of -100 to 100, row by row.
std::vector<int> drawn_codes(std::uint64_t replicate) {
    std::vector<double> drawn(code_rows * code_dim);
    stream::fill_normal(stream::Stream({}, "kv codes", stream::Role::noise, replicate), drawn);
    std::vector<int> codes;
    for (const double value : drawn)
        codes.push_back(static_cast<int>(std::lround(std::fmin(100.0, std::fmax(-100.0, 30.0 * value)))));
    return codes;
}

/// The scale of a row is a power of two, so that the numbers are exact in any order of computation.
float scale_of(std::size_t row) { return std::ldexp(1.0F, static_cast<int>(row % 5) - 8); }

std::vector<double> numbers_of_codes(std::uint64_t replicate) {
    std::vector<double> numbers;
    for (const int code : drawn_codes(replicate))
        numbers.push_back(static_cast<double>(scale_of(numbers.size() / code_dim)) * code);
    return numbers;
}

/// The codes of a key and a value as int8, and the scale of each head and token.
std::string dump_of_codes(const std::string& name) {
    std::string header = R"({"__metadata__":{"layout":"head,token,dim","model":"tiny"})", data;
    const auto add = [&](const std::string& tensor, const std::string& dtype, const std::string& shape,
                         const std::string& bytes) {
        header += ",\"" + tensor + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":[)" +
                  std::to_string(data.size()) + "," + std::to_string(data.size() + bytes.size()) + "]}";
        data += bytes;
    };
    for (const std::uint64_t side : {0, 1}) {
        const std::string tensor = side == 0 ? "layers.0.key" : "layers.0.value";
        std::string scales(code_rows * sizeof(float), '\0'), codes;
        for (std::size_t row = 0; row < code_rows; ++row) {
            const float scale = scale_of(row);
            std::memcpy(scales.data() + row * sizeof(float), &scale, sizeof(float));
        }
        for (const int code : drawn_codes(side)) codes += static_cast<char>(code);
        add(tensor + "_scale", "F32", "[2,32,1]", scales);
        add(tensor, "I8", "[2,32,16]", codes);
    }
    const std::string path = scratch(name);
    std::ofstream(path, std::ios::binary) << sim::safetensors_bytes(header + "}", data);
    return path;
}

std::string dump_of_numbers(const std::string& name, sim::Metadata metadata = {}) {
    metadata.insert(metadata.begin(), {{"layout", "head,token,dim"}, {"model", "tiny"}});
    const std::vector<std::size_t> shape = {code_heads, code_tokens, code_dim};
    sim::write_safetensors(scratch(name), metadata,
                           {sim::tensor_of("layers.0.key", sim::DType::f32, shape, numbers_of_codes(0)),
                            sim::tensor_of("layers.0.value", sim::DType::f32, shape, numbers_of_codes(1))});
    return scratch(name);
}

/// The results that depend neither on the bytes of the file nor on directions drawn for it.
std::string measured(const Json& json, const std::string& key = "") {
    if (key == "inputs" || key.find("random") != std::string::npos) return "";
    std::string text = key + ":";
    if (json.members() != nullptr)
        for (const auto& [name, value] : *json.members()) text += measured(value, name);
    else if (json.items() != nullptr)
        for (const auto& item : *json.items()) text += measured(item);
    else
        text += json.text() + "\n";
    return text;
}

const std::string with_scale = "' --scale 'layers.{layer}.{side}_scale' ";

TEST(KvScales, CodesAreMeasuredAsTheirNumbers) {
    const std::string how = "--method kivi,tq-mse --bits 2,3 --rotation identity --block 16 --json ";
    const Outcome codes = spiked("kv run '" + dump_of_codes("codes.safetensors") + with_scale + how);
    const Outcome numbers = spiked("kv run '" + dump_of_numbers("numbers.safetensors") + "' " + how);
    ASSERT_EQ(codes.code, 0) << codes.err;
    ASSERT_EQ(numbers.code, 0) << numbers.err;
    ASSERT_NE(measured(numbers.json()).find("relative_l2"), std::string::npos);
    EXPECT_EQ(measured(codes.json()), measured(numbers.json()));
}

TEST(KvScales, CompressedFilesHoldTheNumbers) {
    const std::string coded = scratch("codes.spkv"), back = scratch("codes-back.safetensors");
    const Outcome encoded = spiked("kv encode '" + dump_of_codes("coded.safetensors") + with_scale + "-o '" + coded +
                                   "' --method tq-mse --bits 8 --block 16");
    ASSERT_EQ(encoded.code, 0) << encoded.err;
    ASSERT_EQ(spiked("kv decode '" + coded + "' -o '" + back + "'").code, 0);
    const sim::KvDump dump(back);
    ASSERT_EQ(dump.tensors().size(), 2U);
    EXPECT_TRUE(dump.ignored().empty()) << "the scales are used up";
    for (const auto& tensor : dump.tensors()) {
        EXPECT_EQ(tensor.dtype, sim::DType::f32);
        const auto exact = numbers_of_codes(tensor.side == sim::Side::key ? 0 : 1);
        double error = 0.0, size = 0.0;
        for (std::size_t h = 0; h < code_heads; ++h) {
            const arma::mat rows = dump.read_block(tensor, h, 0, code_tokens);
            for (std::size_t t = 0; t < code_tokens; ++t)
                for (std::size_t j = 0; j < code_dim; ++j) {
                    const double number = exact[(h * code_tokens + t) * code_dim + j];
                    error += (rows(t, j) - number) * (rows(t, j) - number);
                    size += number * number;
                }
        }
        EXPECT_LT(std::sqrt(error / size), 0.02);
    }
}

TEST(KvScales, IntegersNeedAScale) {
    const std::string dump = dump_of_codes("unscaled.safetensors");
    for (const std::string command : {"kv run", "kv adequacy"}) {
        const Outcome found = spiked(command + " '" + dump + "' --block 16");
        EXPECT_EQ(found.code, 4);
        EXPECT_NE(found.err.find("--scale"), std::string::npos) << found.err;
    }
    const Outcome matrix = spiked("spectrum '" + dump + ":layers.0.key:0'");
    EXPECT_EQ(matrix.code, 4);
    EXPECT_NE(matrix.err.find("codes"), std::string::npos) << matrix.err;
}

TEST(KvScales, RotaryScalingIsKeptInCompressedFiles) {
    const std::string yarn = R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64})";
    const std::string dump = dump_of_numbers(
        "yarn.safetensors",
        {{"keys", "post-rope"}, {"rope_base", "500"}, {"rope_style", "rotate-half"}, {"rope_scaling", yarn}});
    const std::string coded = scratch("yarn.spkv"), back = scratch("yarn-back.safetensors");
    const Outcome encoded =
        spiked("kv encode '" + dump + "' -o '" + coded + "' --method unrope+tq-mse --bits 8 --block 16");
    ASSERT_EQ(encoded.code, 0) << encoded.err;
    ASSERT_EQ(spiked("kv decode '" + coded + "' -o '" + back + "'").code, 0);
    const sim::KvDump before(dump), after(back);
    EXPECT_EQ(after.metadata("rope_scaling"), yarn);
    EXPECT_EQ(sim::dump_rotary(after).rope, sim::dump_rotary(before).rope);
    const arma::mat exact = before.read_block(before.tensors()[0], 1, 0, code_tokens);
    const arma::mat found = after.read_block(after.tensors()[0], 1, 0, code_tokens);
    EXPECT_LT(arma::norm(found - exact, "fro") / arma::norm(exact, "fro"), 0.02);
    const Outcome dynamic =
        spiked("kv run '" +
               dump_of_numbers("dynamic.safetensors", {{"keys", "post-rope"},
                                                       {"rope_base", "500"},
                                                       {"rope_style", "rotate-half"},
                                                       {"rope_scaling", R"({"rope_type": "dynamic"})"}}) +
               "' --block 16 --method unrope+tq-mse --bits 2");
    EXPECT_EQ(dynamic.code, 4);
    EXPECT_NE(dynamic.err.find("depend on the length of the sequence"), std::string::npos) << dynamic.err;
}

}  // namespace
}  // namespace spiked::app
