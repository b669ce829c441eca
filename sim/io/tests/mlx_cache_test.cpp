#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "core/files/tests/scratch.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/kv/kv_dump.hpp"

namespace spiked::sim {
namespace {

struct MlxTensor {
    std::string name, dtype;
    std::vector<std::size_t> shape;
    std::string bytes;
};

using MlxMetadata = std::vector<std::pair<std::string, std::string>>;

std::string mlx_file(const std::vector<MlxTensor>& all, const MlxMetadata& metadata) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : metadata) pairs.push_back(fmt::format(R"("{}":"{}")", key, value));
    std::string header = fmt::format(R"({{"__metadata__":{{{}}})", fmt::join(pairs, ",")), data;
    for (const auto& one : all) {
        header += fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", one.name, one.dtype,
                              fmt::join(one.shape, ","), data.size(), data.size() + one.bytes.size());
        data += one.bytes;
    }
    return safetensors_bytes(header + "}", data);
}

std::string mlx_floats(const std::vector<float>& values) {
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

constexpr std::size_t mlx_heads = 2, mlx_tokens = 3, mlx_dim = 64, mlx_group = 32;

unsigned mlx_code(std::size_t row, std::size_t channel, std::size_t bits) {
    return static_cast<unsigned>((row * 37 + channel * 11 + 5) % (std::size_t{1} << bits));
}
float mlx_scale(std::size_t row, std::size_t group) { return 0.25F * static_cast<float>(1 + row + 8 * group); }
float mlx_bias(std::size_t row, std::size_t group) {
    return 3.0F - static_cast<float>(row) - static_cast<float>(group);
}

/// Keys or values as mx.quantize packs them: the lowest bit of each code first, one after the other.
std::vector<MlxTensor> mlx_side(const std::string& stem, std::size_t bits) {
    constexpr std::size_t rows = mlx_heads * mlx_tokens, groups = mlx_dim / mlx_group;
    std::string words(rows * mlx_dim * bits / 8, '\0');
    std::vector<float> scales, biases;
    std::size_t bit = 0;
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t channel = 0; channel < mlx_dim; ++channel)
            for (std::size_t i = 0; i < bits; ++i, ++bit)
                if ((mlx_code(row, channel, bits) >> i & 1U) != 0)
                    words[bit / 8] = static_cast<char>(words[bit / 8] | 1 << bit % 8);
        for (std::size_t group = 0; group < groups; ++group) {
            scales.push_back(mlx_scale(row, group));
            biases.push_back(mlx_bias(row, group));
        }
    }
    return {{stem + ".0", "U32", {1, mlx_heads, mlx_tokens, mlx_dim * bits / 32}, words},
            {stem + ".1", "F32", {1, mlx_heads, mlx_tokens, groups}, mlx_floats(scales)},
            {stem + ".2", "F32", {1, mlx_heads, mlx_tokens, groups}, mlx_floats(biases)}};
}

MlxMetadata mlx_metadata(std::size_t bits) {
    return {{"2.0", "QuantizedKVCache"},
            {"0.0.0", "3"},
            {"0.0.1", "32"},
            {"0.0.2", std::to_string(bits)},
            {"1.model", "tiny"}};
}

std::vector<MlxTensor> mlx_layer(std::size_t bits) {
    auto all = mlx_side("0.0", bits);
    const auto values = mlx_side("0.1", bits);
    all.insert(all.end(), values.begin(), values.end());
    return all;
}

TEST(MlxCache, CodesOfEveryWidthAreUnpacked) {
    const ScratchFolder scratch;
    for (const std::size_t bits : {2U, 3U, 4U, 5U, 6U, 8U}) {
        SCOPED_TRACE(bits);
        const KvDump dump(scratch.write("cache.safetensors", mlx_file(mlx_layer(bits), mlx_metadata(bits))),
                          {.format = "mlx"});
        ASSERT_EQ(dump.tensors().size(), 2U);
        EXPECT_TRUE(dump.notes().empty());
        EXPECT_TRUE(dump.ignored().empty());
        EXPECT_EQ(dump.model(), "tiny");
        for (const auto& tensor : dump.tensors()) {
            EXPECT_EQ(tensor.dtype, DType::f32);
            ASSERT_EQ(tensor.heads, mlx_heads);
            ASSERT_EQ(tensor.dim, mlx_dim);
            for (std::size_t head = 0; head < mlx_heads; ++head) {
                const arma::mat block = dump.read_block(tensor, head, 1, 2);
                for (std::size_t t = 0; t < 2; ++t)
                    for (std::size_t c = 0; c < mlx_dim; ++c) {
                        const std::size_t row = head * mlx_tokens + t + 1, group = c / mlx_group;
                        EXPECT_EQ(block(t, c),
                                  double{mlx_scale(row, group)} * mlx_code(row, c, bits) + double{mlx_bias(row, group)})
                            << head << ' ' << t << ' ' << c;
                    }
            }
        }
    }
    const auto path = scratch.path("cache.safetensors");
    EXPECT_EQ(read_matrix(path + ":0.1:1", "batch,head,token,dim")(0, 1),
              double{mlx_scale(3, 0)} * mlx_code(3, 1, 8) + double{mlx_bias(3, 0)});
}

TEST(MlxCache, OlderFilesStateTheStepToo) {
    const ScratchFolder scratch;
    auto metadata = mlx_metadata(4);
    metadata[1] = {"0.0.0", "256"};
    metadata[2] = {"0.0.1", "3"};
    metadata[3] = {"0.0.2", "32"};
    metadata.emplace_back("0.0.3", "4");
    const KvDump dump(scratch.write("cache.safetensors", mlx_file(mlx_layer(4), metadata)), {.format = "mlx"});
    EXPECT_EQ(dump.read_block(dump.tensors()[0], 0, 0, 1)(0, 0), 0.25 * mlx_code(0, 0, 4) + 3.0);
}

TEST(MlxCache, PartsThatDoNotAgreeAreRejected) {
    const ScratchFolder scratch;
    const auto rejected = [&](const std::vector<MlxTensor>& all, const MlxMetadata& metadata, std::string_view why) {
        const auto path = scratch.write("cache.safetensors", mlx_file(all, metadata));
        expect_error(ErrorKind::input, [&] { KvDump dump(path, {.format = "mlx"}); }, {why, "mx.dequantize"});
    };
    const auto layer = mlx_layer(4);
    rejected(layer, mlx_metadata(8), "do not agree for groups of 32 and 8 bits");
    rejected(layer, {{"2.0", "QuantizedKVCache"}}, "do not state group_size and bits");
    for (const char* bits : {"0", "7", "9", "-4", "x"}) {
        auto metadata = mlx_metadata(4);
        metadata[3].second = bits;
        rejected(layer, metadata, "do not state group_size and bits");
    }
    auto lacking = layer;
    lacking.erase(lacking.begin() + 2);
    rejected(lacking, mlx_metadata(4), "biases are missing");
    auto typed = layer;
    typed[0].dtype = "I32";
    rejected(typed, mlx_metadata(4), "U32 and two floating-point ones");
    auto shaped = layer;
    shaped[1].shape = {1, mlx_heads, 1, 2 * mlx_tokens};
    rejected(shaped, mlx_metadata(4), "do not agree");
}

/// A shape without elements may claim rows of any length: 32 times 2^59 words would be 0 in 64 bits.
TEST(MlxCache, ImpossibleRowsOfNoElementsAreRejected) {
    const ScratchFolder scratch;
    const std::size_t claimed = std::size_t{1} << 59U;
    std::vector<MlxTensor> all;
    for (const std::string side : {"0.0", "0.1"})
        for (const std::string part : {".0", ".1", ".2"})
            all.push_back(
                {side + part, part == ".0" ? "U32" : "F32", {1, 1, 0, part == ".0" ? claimed : std::size_t{0}}, ""});
    const auto path = scratch.write("cache.safetensors", mlx_file(all, mlx_metadata(4)));
    expect_error(ErrorKind::input, [&] { (void)open_tensors(path); }, {"shapes", "do not agree"});
}

/// Files whose metadata do not name the cache keep their tensors.
TEST(MlxCache, OtherFilesAreAsTheyAre) {
    const ScratchFolder scratch;
    const auto path = scratch.write("cache.safetensors", mlx_file(mlx_layer(4), {{"2.0", "KVCache"}}));
    EXPECT_EQ(open_tensors(path)->tensors().size(), 6U);
}

}  // namespace
}  // namespace spiked::sim
