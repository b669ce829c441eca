#include "sim/kv/kv_dump.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <set>
#include <thread>

#include "core/device/float16.hpp"
#include "core/files/tests/scratch.hpp"
#include "sim/io/npy.hpp"
#include "sim/io/safetensors.hpp"

namespace spiked::sim {
namespace {

constexpr std::size_t heads = 3;
constexpr std::size_t tokens = 5;
constexpr std::size_t dim = 4;
const std::string bundled = std::string(SPIKED_SOURCE_DIR) + "/sim/kv/tests/data/rope-lm-cut.safetensors";

double element(std::size_t head, std::size_t token, std::size_t j) {
    return static_cast<double>(100 * head + 10 * token + j);
}

/// The tensor of element() with its axes in this layout, in C order.
TensorSource laid_out(const std::string& name, const TensorLayout& layout, DType dtype = DType::f32) {
    std::vector<std::size_t> shape(layout.axes, 1);
    shape[layout.head] = heads;
    shape[layout.token] = tokens;
    shape[layout.dim] = dim;
    std::vector<double> values;
    std::vector<std::size_t> at(layout.axes);
    for (std::size_t i = 0; i < heads * tokens * dim; ++i) {
        std::size_t rest = i;
        for (std::size_t axis = layout.axes; axis-- > 0; rest /= shape[axis]) at[axis] = rest % shape[axis];
        values.push_back(element(at[layout.head], at[layout.token], at[layout.dim]));
    }
    return tensor_of(name, dtype, shape, values);
}

void expect_block(const arma::mat& block, std::size_t head, std::size_t first, std::size_t count) {
    ASSERT_EQ(block.n_rows, count);
    ASSERT_EQ(block.n_cols, dim);
    for (std::size_t t = 0; t < count; ++t)
        for (std::size_t j = 0; j < dim; ++j) ASSERT_EQ(block(t, j), element(head, first + t, j));
}

/// Expects that opening fails with a one-line message that holds the path and every part.
void expect_rejected(const std::string& path, const DumpOptions& options,
                     std::initializer_list<std::string_view> parts) {
    expect_error(ErrorKind::input, [&] { KvDump dump(path, options); }, {path});
    expect_error(
        ErrorKind::input, [&] { KvDump dump(path, options); }, parts);
}

std::string write_dump(const ScratchFolder& scratch, const Metadata& metadata,
                       const std::vector<TensorSource>& tensors) {
    const auto path = scratch.path("dump.safetensors");
    write_safetensors(path, metadata, tensors);
    return path;
}

TensorSource filled(const std::string& name, std::vector<std::size_t> shape, DType dtype = DType::f16) {
    std::size_t count = 1;
    for (const auto size : shape) count *= size;
    return tensor_of(name, dtype, std::move(shape), std::vector<double>(count, 1.0));
}

const Metadata htd{{"layout", "head,token,dim"}};

TEST(TensorLayout, TwelveNamesRoundTrip) {
    EXPECT_EQ(all_layouts().size(), 12U);
    for (const auto& layout : all_layouts()) {
        const auto parsed = parse_layout(layout.text());
        ASSERT_TRUE(parsed);
        EXPECT_EQ(parsed->text(), layout.text());
    }
    EXPECT_TRUE(parse_layout("head, token, dim"));
    for (const char* bad : {"", "head,token", "head,token,token", "head,batch,token,dim", "head,token,dim,", "HTD"})
        EXPECT_FALSE(parse_layout(bad)) << bad;
}

TEST(TensorLayout, LegalLayoutsOfAShape) {
    const std::vector<std::size_t> shape{2, 512, 128};
    EXPECT_EQ(legal_layouts(shape).size(), 6U);
    EXPECT_EQ(legal_layouts(shape, 512), (std::vector<std::string>{"head,token,dim", "dim,token,head"}));
    EXPECT_EQ(legal_layouts(shape, 77).size(), 6U);  // no axis has this size, so it excludes nothing
    EXPECT_EQ(legal_layouts(std::vector<std::size_t>{1, 2, 512, 128}, 512),
              (std::vector<std::string>{"batch,head,token,dim", "batch,dim,token,head"}));
    EXPECT_TRUE(legal_layouts(std::vector<std::size_t>{2, 2, 512, 128}).empty());
    EXPECT_TRUE(legal_layouts(std::vector<std::size_t>{512, 128}).empty());
}

TEST(KvDump, EveryLayoutGivesTheSameBlocks) {
    for (const auto& layout : all_layouts()) {
        SCOPED_TRACE(layout.text());
        const ScratchFolder scratch;
        const auto path = write_dump(scratch, {{"layout", layout.text()}}, {laid_out("layers.0.key", layout)});
        const KvDump dump(path);
        ASSERT_EQ(dump.tensors().size(), 1U);
        const auto& tensor = dump.tensors()[0];
        EXPECT_EQ(tensor.heads, heads);
        EXPECT_EQ(tensor.tokens, tokens);
        EXPECT_EQ(tensor.dim, dim);
        for (std::size_t head = 0; head < heads; ++head)
            for (std::size_t first = 0; first < tokens; ++first)
                for (std::size_t count = 1; first + count <= tokens; ++count)
                    expect_block(dump.read_block(tensor, head, first, count), head, first, count);
    }
}

/// However far apart the elements of a block lie, little memory is needed beside it.
TEST(KvDump, LongVectorsAreReadInChunks) {
    constexpr std::size_t wide_heads = 700;
    constexpr std::size_t many_tokens = 1500;
    const TensorAxes axes =
        axes_of(*parse_layout("dim,token,head"), std::vector<std::size_t>{dim, many_tokens, wide_heads});
    const auto block = gather_block(axes, 9, 2, many_tokens - 3, [&](std::uint64_t first, std::span<double> out) {
        ASSERT_LE(out.size(), std::size_t{1} << 18);
        ASSERT_LE(first + out.size(), wide_heads * many_tokens * dim);
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(first + i);
    });
    for (std::size_t t = 0; t < many_tokens - 3; ++t)
        for (std::size_t j = 0; j < dim; ++j)
            ASSERT_EQ(block(t, j), static_cast<double>((j * many_tokens + t + 2) * wide_heads + 9));
}

/// Elements of a block are far apart in the file, so that both branches of gather_block are used.
TEST(KvDump, ReadsWideTensorsOfEveryLayout) {
    constexpr std::size_t wide_heads = 40;
    constexpr std::size_t many_tokens = 90;
    for (const auto& layout : all_layouts()) {
        SCOPED_TRACE(layout.text());
        std::vector<std::size_t> shape(layout.axes, 1);
        shape[layout.head] = wide_heads;
        shape[layout.token] = many_tokens;
        shape[layout.dim] = dim;
        std::vector<double> stored(wide_heads * many_tokens * dim);
        std::iota(stored.begin(), stored.end(), 0.0);
        for (const bool fortran : {false, true}) {
            const auto block = gather_block(
                axes_of(layout, shape, fortran), 17, 30, 20, [&](std::uint64_t first, std::span<double> out) {
                    ASSERT_LE(first + out.size(), stored.size());
                    std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
                });
            std::vector<std::size_t> at(layout.axes, 0);
            at[layout.head] = 17;
            for (std::size_t t = 0; t < 20; ++t)
                for (std::size_t j = 0; j < dim; ++j) {
                    at[layout.token] = 30 + t;
                    at[layout.dim] = j;
                    std::size_t index = 0;
                    for (std::size_t i = 0; i < shape.size(); ++i) {
                        const std::size_t axis = fortran ? shape.size() - 1 - i : i;
                        index = index * shape[axis] + at[axis];
                    }
                    ASSERT_EQ(block(t, j), stored[index]);
                }
        }
    }
}

TEST(KvDump, BundledDump) {
    const KvDump dump(bundled);
    EXPECT_NE(dump.model().find("rope-lm"), std::string::npos);
    EXPECT_EQ(dump.prompt_id(), "doc0");
    EXPECT_EQ(dump.metadata("keys"), "post-rope");
    EXPECT_EQ(dump.metadata("attention"), "causal");
    EXPECT_EQ(dump.metadata("rope_base"), "10000");
    EXPECT_EQ(dump.metadata("rope_style"), "rotate-half");
    EXPECT_EQ(dump.metadata("position_start"), "0");
    EXPECT_EQ(dump.metadata("tokens"), "256");
    EXPECT_EQ(dump.metadata("nothing"), std::nullopt);
    EXPECT_TRUE(dump.ignored().empty());
    ASSERT_EQ(dump.tensors().size(), 6U);
    std::vector<std::string> names;
    for (const auto& tensor : dump.tensors()) {
        names.push_back(tensor.name);
        EXPECT_EQ(tensor.heads, tensor.side == Side::query ? 4U : 2U);
        EXPECT_EQ(tensor.tokens, 256U);
        EXPECT_EQ(tensor.dim, 128U);
        EXPECT_EQ(tensor.dtype, DType::f16);
    }
    EXPECT_EQ(names, (std::vector<std::string>{"layers.0.key", "layers.0.value", "layers.0.query", "layers.3.key",
                                               "layers.3.value", "layers.3.query"}));
    EXPECT_EQ(dump.find(3, Side::value)->name, "layers.3.value");
    EXPECT_EQ(dump.find(1, Side::value), nullptr);
}

/// Against a decoder that knows nothing of ours: the header cut by hand, one half float at a time.
TEST(KvDump, BlocksOfTheBundledDumpAgainstASlowDecode) {
    const std::string bytes = bytes_of_file(bundled);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    const KvDump dump(bundled);
    for (const auto& tensor : dump.tensors()) {
        const std::string header = bytes.substr(8, length);
        const std::size_t entry = header.find("\"" + tensor.name + "\"");
        const std::string mark = "\"data_offsets\":[";
        const std::size_t begin = std::stoul(header.substr(header.find(mark, entry) + mark.size()));
        for (std::size_t head = 0; head < tensor.heads; ++head)
            for (const std::size_t first : {std::size_t{0}, std::size_t{128}}) {
                const arma::mat block = dump.read_block(tensor, head, first, 128);
                for (std::size_t t = 0; t < 128; ++t)
                    for (std::size_t j = 0; j < tensor.dim; ++j) {
                        const std::size_t index = (head * tensor.tokens + first + t) * tensor.dim + j;
                        std::uint16_t half = 0;
                        std::memcpy(&half, bytes.data() + 8 + length + begin + 2 * index, sizeof half);
                        ASSERT_EQ(block(t, j), from_float16(half)) << tensor.name;
                    }
            }
    }
}

TEST(KvDump, ReadsEveryBlockDtype) {
    for (const auto dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
        const ScratchFolder scratch;
        // Integers below 256 are exact in all four types.
        std::vector<double> values(24);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
        const KvDump dump(write_dump(scratch, htd, {tensor_of("layers.7.value", dtype, {2, 3, 4}, values)}));
        EXPECT_EQ(dump.tensors()[0].dtype, dtype);
        EXPECT_EQ(dump.read_block(dump.tensors()[0], 1, 2, 1)(0, 3), 23.0);
    }
}

TEST(KvDump, OtherNamesAndTensorsOutsideThePattern) {
    const ScratchFolder scratch;
    const std::vector<std::size_t> shape{2, 3, 4};
    const auto path =
        write_dump(scratch, htd,
                   {filled("value_cache.10", shape), filled("key_cache.2", shape), filled("readout.wo", {4, 4}),
                    filled("key_cache.x", shape), filled("key_cache.10", shape), filled("value_cache.2", shape)});
    DumpOptions options;
    options.tensor_pattern = "{side}_cache.{layer}";
    const KvDump dump(path, options);
    std::vector<std::string> names;
    for (const auto& tensor : dump.tensors()) names.push_back(tensor.name);
    EXPECT_EQ(names, (std::vector<std::string>{"key_cache.2", "value_cache.2", "key_cache.10", "value_cache.10"}));
    EXPECT_EQ(dump.ignored(), (std::vector<std::string>{"readout.wo", "key_cache.x"}));
    expect_rejected(path, {}, {"no tensor is named like \"layers.{layer}.{side}\"", "\"value_cache.10\"", "--pattern"});
    options.tensor_pattern = "cache.{layer}.{side}";
    expect_rejected(path, options, {"no tensor is named like \"cache.{layer}.{side}\"", "correct --pattern"});
}

TEST(KvDump, ShortSideNames) {
    const ScratchFolder scratch;
    const KvDump dump(write_dump(
        scratch, htd,
        {filled("layers.0.k", {2, 3, 4}), filled("layers.0.v", {2, 3, 4}), filled("layers.0.q", {4, 3, 4})}));
    ASSERT_EQ(dump.tensors().size(), 3U);
    EXPECT_EQ(dump.tensors()[2].side, Side::query);
}

TEST(KvDump, PromptIdUnderAnotherKey) {
    const ScratchFolder scratch;
    const auto path =
        write_dump(scratch, {{"layout", "head,token,dim"}, {"doc", "a17"}}, {filled("layers.0.key", {2, 3, 4})});
    EXPECT_EQ(KvDump(path).prompt_id(), std::nullopt);
    EXPECT_EQ(KvDump(path).model(), "");
    DumpOptions options;
    options.prompt_id_key = "doc";
    EXPECT_EQ(KvDump(path, options).prompt_id(), "a17");
}

TEST(KvDumpLayout, MissingIsNotGuessed) {
    const ScratchFolder scratch;
    const auto path = write_dump(scratch, {{"tokens", "512"}}, {filled("layers.0.key", {2, 512, 128})});
    expect_rejected(
        path, {},
        {"layout of tensor \"layers.0.key\" unknown", "[2, 512, 128]", "head,token,dim or dim,token,head", "--layout"});
    DumpOptions options;
    options.layout = "head,token,dim";
    EXPECT_EQ(KvDump(path, options).tensors()[0].tokens, 512U);
}

TEST(KvDumpLayout, MustFitTheShape) {
    const ScratchFolder scratch;
    const auto path = write_dump(scratch, htd, {filled("layers.0.key", {1, 2, 3, 4})});
    expect_rejected(
        path, {},
        {"\"layers.0.key\" of shape [1, 2, 3, 4] does not fit layout head,token,dim", "batch,head,token,dim"});
    DumpOptions options;
    options.layout = "batch,head,token,dim";
    EXPECT_EQ(KvDump(path, options).tensors()[0].dim, 4U);
    expect_rejected(write_dump(scratch, htd, {filled("layers.0.key", {6, 4})}), {},
                    {"\"layers.0.key\" has shape [6, 4]", "3 axes"});
}

TEST(KvDumpLayout, StatedTokensMustBeOnTheTokenAxis) {
    const ScratchFolder scratch;
    const auto path =
        write_dump(scratch, {{"layout", "token,head,dim"}, {"tokens", "512"}}, {filled("layers.0.key", {2, 512, 8})});
    expect_rejected(
        path, {},
        {"[2, 512, 8]", "layout token,head,dim", "token axis has 2", "512 tokens", "head,token,dim or dim,token,head"});
    // A cache with a sliding window has fewer tokens than the prompt.
    EXPECT_EQ(KvDump(write_dump(scratch, {{"layout", "head,token,dim"}, {"tokens", "512"}},
                                {filled("layers.0.key", {2, 100, 8})}))
                  .tensors()[0]
                  .tokens,
              100U);
}

TEST(KvDumpLayout, UnknownNamesAreRejected) {
    const ScratchFolder scratch;
    const auto path = write_dump(scratch, {{"layout", "heads first"}}, {filled("layers.0.key", {2, 3, 4})});
    expect_rejected(path, {}, {"metadata layout \"heads first\"", "--layout"});
    DumpOptions options;
    options.layout = "head,tokens,dim";
    expect_error(ErrorKind::usage, [&] { KvDump dump(path, options); },
                 {"\"head,tokens,dim\"", "did you mean \"head,token,dim\"?"});
}

TEST(KvDumpBadInput, Pattern) {
    for (const char* pattern : {"{layer}{layer}{side}", "{side}.{side}", "layers.{number}.{side}", "{layer"}) {
        DumpOptions options;
        options.tensor_pattern = pattern;
        expect_error(ErrorKind::usage, [&] { KvDump dump(bundled, options); }, {"{layer}", "{side}", "once each"});
    }
}

TEST(KvDumpBadInput, Tensors) {
    const ScratchFolder scratch;
    expect_rejected(write_dump(scratch, htd, {}), {}, {"no tensors"});
    expect_rejected(write_dump(scratch, htd, {filled("layers.0.key", {2, 0, 4})}), {}, {"\"layers.0.key\" is empty"});
    expect_rejected(write_dump(scratch, htd, {filled("layers.0.key", {2, 3, 4}), filled("layers.0.value", {3, 3, 4})}),
                    {}, {"\"layers.0.key\" and \"layers.0.value\" disagree", "2 and 3 heads"});
    expect_rejected(write_dump(scratch, htd, {filled("layers.0.key", {2, 3, 4}), filled("layers.00.key", {2, 3, 4})}),
                    {}, {"\"layers.0.key\" and \"layers.00.key\" are both the key of layer 0"});
    const std::string codes = R"({"layers.0.key":{"dtype":"I8","shape":[1,1,4],"data_offsets":[0,4]},)"
                              R"("__metadata__":{"layout":"head,token,dim"}})";
    expect_rejected(scratch.write("i.safetensors", safetensors_bytes(codes, "abcd")), {},
                    {"\"layers.0.key\" has dtype \"I8\"", "scale is not known", "--scale"});
    expect_rejected(scratch.write("dump.bin", "abcdefghijkl"), {}, {"unknown kind of file"});
    expect_rejected(scratch.path("none.safetensors"), {}, {"no such file"});
}

TEST(KvDump, LayersWhoseSidesDisagreeAreLeftOut) {
    const ScratchFolder scratch;
    const auto dump_of = [&](std::vector<std::size_t> second, std::set<std::size_t> layers = {}) {
        return KvDump(write_dump(scratch, {{"layout", "head,token,dim"}},
                                 {filled("layers.0.key", {2, 3, 4}), filled("layers.0.value", {1, 3, 4}),
                                  filled("layers.1.key", {2, 3, 4}), filled("layers.1.value", std::move(second))}),
                      {.layers = {layers.begin(), layers.end()}});
    };
    const KvDump dump = dump_of({2, 3, 4});
    EXPECT_EQ(dump.tensors().size(), 2U);
    EXPECT_EQ(dump.find(0, Side::key), nullptr);
    EXPECT_NE(dump.find(1, Side::value), nullptr);
    ASSERT_EQ(dump.notes().size(), 1U);
    for (const char* part : {"layers that do not fit are left out", "\"layers.0.key\"", "2 and 1 heads"})
        EXPECT_NE(dump.notes()[0].find(part), std::string::npos) << dump.notes()[0];
    expect_error(ErrorKind::input, [&] { (void)dump_of({2, 2, 4}); }, {"\"layers.0.value\" disagree"});
    expect_error(ErrorKind::input, [&] { (void)dump_of({2, 3, 4}, {0}); }, {"\"layers.0.value\" disagree"});
    EXPECT_EQ(dump_of({2, 3, 4}, {1}).notes().size(), 0U);
}

TEST(KvDump, ASideAxisOfThreeIsReadAsKeysValuesAndQueries) {
    const ScratchFolder scratch;
    const KvDump dump(write_dump(scratch, {{"layout", "side,head,token,dim"}, {"pattern", "layers.{layer}"}},
                                 {filled("layers.0", {3, 2, 5, 4})}));
    EXPECT_EQ(dump.tensors().size(), 3U);
    ASSERT_EQ(dump.notes().size(), 1U);
    EXPECT_NE(dump.notes()[0].find("keys, values, queries"), std::string::npos) << dump.notes()[0];
}

TEST(KvDumpBadInput, PackedCodesAreLeftToTheirProgram) {
    const ScratchFolder scratch;
    const std::string codes = R"({"layers.0.key":{"dtype":"I32","shape":[1,1,1],"data_offsets":[0,4]},)"
                              R"("__metadata__":{"layout":"head,token,dim"}})";
    expect_rejected(scratch.write("i.safetensors", safetensors_bytes(codes, "abcd")), {},
                    {"\"I32\"", "packed codes", "dequantize them in the program that wrote them"});
}

TEST(KvDumpBadInput, TextsThatEveryHeadRepeatsAreLimited) {
    const ScratchFolder scratch;
    const auto dump = [&](const Metadata& more, const std::string& name) {
        Metadata metadata = {{"layout", "head,token,dim"}};
        metadata.insert(metadata.end(), more.begin(), more.end());
        return write_dump(scratch, metadata, {filled(name, {2, 3, 4})});
    };
    const std::string most(1000, 'm');
    EXPECT_EQ(KvDump(dump({{"model", most}, {"prompt_id", most}}, "layers.0.key")).model(), most);
    expect_rejected(dump({{"model", most + "m"}}, "layers.0.key"), {}, {"model", "1001 bytes", "at most 1000"});
    expect_rejected(dump({{"doc", most + "m"}}, "layers.0.key"), {.prompt_id_key = "doc"}, {"doc", "1001 bytes"});
    expect_rejected(dump({}, most + ".key.0"), {.tensor_pattern = most + ".{side}.{layer}"}, {"tensor", "1006 bytes"});
}

TEST(KvDumpBadInput, ManyTinyHeadsAreRejectedAsAWrongLayout) {
    const ScratchFolder scratch;
    const auto dump_of = [&](std::size_t count, std::size_t size) {
        return KvDump(write_dump(scratch, {{"layout", "head,token,dim"}}, {filled("layers.0.key", {count, 4, size})}));
    };
    EXPECT_NO_THROW(dump_of(1024, 2).reject_tiny_heads());
    EXPECT_NO_THROW(dump_of(1025, 256).reject_tiny_heads());
    expect_error(ErrorKind::input, [&] { dump_of(1025, 2).reject_tiny_heads(); }, {"1025 heads", "--layout"});
}

TEST(KvDump, FindsTensorsByLayerAndSide) {
    const ScratchFolder scratch;
    const KvDump dump(write_dump(
        scratch, {{"layout", "head,token,dim"}},
        {filled("layers.7.value", {1, 2, 2}), filled("layers.7.key", {1, 2, 2}), filled("layers.0.query", {1, 2, 2})}));
    EXPECT_EQ(dump.find(7, Side::value)->name, "layers.7.value");
    EXPECT_EQ(dump.find(7, Side::key)->name, "layers.7.key");
    EXPECT_EQ(dump.find(0, Side::query)->name, "layers.0.query");
    for (const auto& [layer, side] :
         {std::pair{0, Side::key}, {0, Side::value}, {3, Side::key}, {7, Side::query}, {9, Side::key}})
        EXPECT_EQ(dump.find(static_cast<std::size_t>(layer), side), nullptr) << layer;
}

TEST(KvDumpBadInput, NanAndInfinityNameTheFirstPosition) {
    const ScratchFolder scratch;
    std::vector<double> values(2 * 6 * 4, 1.0);
    values[(1 * 6 + 3) * 4 + 2] = NAN;
    values[(1 * 6 + 4) * 4 + 0] = -INFINITY;
    const auto path = write_dump(scratch, htd, {tensor_of("layers.0.key", DType::f16, {2, 6, 4}, values)});
    const KvDump dump(path);
    const auto& key = dump.tensors()[0];
    EXPECT_EQ(dump.read_block(key, 0, 0, 6).n_rows, 6U);
    expect_error(ErrorKind::input, [&] { (void)dump.read_block(key, 1, 2, 3); },
                 {path, "\"layers.0.key\"", "2 NaN or infinite values", "head 1", "tokens 2 to 4", "token 3, dim 2"});
}

TEST(KvDumpBadInput, FileThatShrinksBetweenOpenAndRead) {
    const ScratchFolder scratch;
    const auto path = write_dump(scratch, htd, {filled("layers.0.key", {2, 100, 64})});
    const KvDump dump(path);
    std::filesystem::resize_file(path, 5000);
    EXPECT_EQ(dump.read_block(dump.tensors()[0], 0, 0, 10).n_rows, 10U);
    expect_error(ErrorKind::input, [&] { (void)dump.read_block(dump.tensors()[0], 1, 0, 10); },
                 {path, "shrank while it was read"});
}

TEST(KvDumpBadInput, BlocksOutsideTheTensorAreBugs) {
    const KvDump dump(bundled);
    const auto& key = dump.tensors()[0];
    expect_error(ErrorKind::internal, [&] { (void)dump.read_block(key, 2, 0, 128); }, {"head 2"});
    expect_error(ErrorKind::internal, [&] { (void)dump.read_block(key, 0, 200, 128); }, {"200+128"});
    expect_error(ErrorKind::internal, [&] { (void)dump.read_block(key, 0, 0, 0); }, {"0+0"});
}

TEST(KvDump, ManyThreadsReadTheSame) {
    const KvDump dump(bundled);
    const auto& key = dump.tensors()[0];
    const arma::mat expected = dump.read_block(key, 1, 128, 128);
    std::vector<std::thread> threads;
    std::vector<int> equal(4, 0);
    for (std::size_t i = 0; i < equal.size(); ++i)
        threads.emplace_back([&, i] {
            for (int round = 0; round < 20; ++round)
                equal[i] += arma::approx_equal(dump.read_block(key, 1, 128, 128), expected, "absdiff", 0.0) ? 1 : 0;
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(equal, std::vector<int>(4, 20));
}

TEST(KvDump, ReadsNpzAndNpy) {
    if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) GTEST_SKIP() << "no NumPy";
    const ScratchFolder scratch;
    ASSERT_EQ(std::system(("cd '" + scratch.path(".") + "' && /usr/bin/python3 -c '" + R"(
import numpy as np
h, t, d = np.meshgrid(np.arange(3), np.arange(5), np.arange(4), indexing="ij")
a = (100 * h + 10 * t + d).astype("f2")
np.savez("plain.npz", **{"layers.0.key": a, "layers.0.value": np.asfortranarray(a), "note": np.array("x")})
np.savez_compressed("packed.npz", **{"layers.%d.%s" % (l, s): a for l in range(3) for s in ("key", "value")})
np.save("layers.4.key.npy", a[None])
)" + "'")
                              .c_str()),
              0);
    DumpOptions options;
    options.layout = "head,token,dim";
    for (const char* name : {"plain.npz", "packed.npz"}) {
        SCOPED_TRACE(name);
        const KvDump dump(scratch.path(name), options);
        EXPECT_EQ(dump.tensors().size(), name == std::string("plain.npz") ? 2U : 6U);
        for (const auto& tensor : dump.tensors())
            for (std::size_t head = 0; head < heads; ++head)
                expect_block(dump.read_block(tensor, head, 1, 3), head, 1, 3);
    }
    EXPECT_EQ(KvDump(scratch.path("plain.npz"), options).ignored(), std::vector<std::string>{"note"});
    expect_rejected(scratch.path("plain.npz"), {}, {"layout of tensor \"layers.0.key\" unknown", "--layout"});
    options.layout = "batch,head,token,dim";
    const KvDump single(scratch.path("layers.4.key.npy"), options);
    EXPECT_EQ(single.tensors()[0].layer, 4U);
    expect_block(single.read_block(single.tensors()[0], 2, 0, 5), 2, 0, 5);
}

TEST(KvDump, SampleDumpToolCuts) {
    const ScratchFolder scratch;
    const auto path = scratch.path("cut.safetensors");
    const std::string tool = std::string(SPIKED_SOURCE_DIR) + "/tools/make-sample-dump";
    const std::string command = "'" + tool + "' '" + bundled + "' '" + path + "' --tokens 100 --layers 3 > /dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0);
    const KvDump whole(bundled);
    const KvDump cut(path);
    ASSERT_EQ(cut.tensors().size(), 3U);
    EXPECT_EQ(cut.metadata("tokens"), "100");
    EXPECT_EQ(cut.metadata("rope_base"), "10000");
    for (const auto& tensor : cut.tensors()) {
        EXPECT_EQ(tensor.tokens, 100U);
        const auto& source = *whole.find(3, tensor.side);
        for (std::size_t head = 0; head < tensor.heads; ++head)
            EXPECT_TRUE(arma::approx_equal(cut.read_block(tensor, head, 40, 60), whole.read_block(source, head, 40, 60),
                                           "absdiff", 0.0));
    }
}

/// Reads every block of every tensor of the dumps in the folder that SPIKED_EXTRA_DUMPS names.
TEST(KvDump, ReadsExtraDumps) {
    const char* folder = std::getenv("SPIKED_EXTRA_DUMPS");
    if (folder == nullptr || *folder == '\0') GTEST_SKIP() << "SPIKED_EXTRA_DUMPS is not set";
    std::size_t files = 0;
    for (const auto& item : std::filesystem::directory_iterator(folder)) {
        if (item.path().extension() != ".safetensors") continue;
        SCOPED_TRACE(item.path().string());
        const KvDump dump(item.path().string());
        double energy = 0.0;
        for (const auto& tensor : dump.tensors())
            for (std::size_t head = 0; head < tensor.heads; ++head)
                for (std::size_t first = 0; first < tensor.tokens; first += 128)
                    energy += arma::accu(arma::square(
                        dump.read_block(tensor, head, first, std::min<std::size_t>(128, tensor.tokens - first))));
        EXPECT_GT(energy, 0.0);
        ++files;
    }
    EXPECT_GT(files, 0U) << folder << " holds no .safetensors file";
}

}  // namespace
}  // namespace spiked::sim
