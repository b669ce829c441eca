#include "sim/kv/dump_formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <functional>
#include <tuple>

#include "core/files/tests/scratch.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/kv/kv_dump.hpp"
#include "sim/kv/name_pattern.hpp"

namespace spiked::sim {
namespace {

constexpr std::size_t cache_layers = 3;
constexpr std::size_t cache_heads = 2;
constexpr std::size_t cache_tokens = 8;
constexpr std::size_t cache_dim = 4;

/// Where an element of the cache is. `batch` counts sequences.
struct CacheAt {
    std::size_t layer = 0;
    std::size_t side = 0;
    std::size_t batch = 0;
    std::size_t head = 0;
    std::size_t token = 0;
    std::size_t channel = 0;
};

double cache_element(const CacheAt& at) {
    return static_cast<double>(
        1 + at.channel +
        cache_dim *
            (at.token + cache_tokens * (at.head + cache_heads * (at.side + 2 * (at.layer + cache_layers * at.batch)))));
}

/// A tensor whose element at an index is the one of the cache that `place` says.
TensorSource stored_cache(const std::string& name, const std::vector<std::size_t>& shape,
                          const std::function<double(const std::vector<std::size_t>&)>& place) {
    std::size_t count = 1;
    for (const auto size : shape) count *= size;
    std::vector<double> values;
    std::vector<std::size_t> index(shape.size());
    for (std::size_t i = 0; i < count; ++i) {
        std::size_t rest = i;
        for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) index[axis] = rest % shape[axis];
        values.push_back(place(index));
    }
    return tensor_of(name, DType::f32, shape, values);
}

using CacheIndex = std::vector<std::size_t>;

/// [batch, head, token, dim] tensors of each layer and side.
std::vector<TensorSource> separate_sides(const std::string& names, const std::array<const char*, 2>& sides) {
    std::vector<TensorSource> all;
    for (std::size_t layer = 0; layer < cache_layers; ++layer)
        for (std::size_t side = 0; side < 2; ++side)
            all.push_back(
                stored_cache(fmt::format(fmt::runtime(names), fmt::arg("layer", layer), fmt::arg("side", sides[side])),
                             {1, cache_heads, cache_tokens, cache_dim}, [&](const CacheIndex& i) {
                                 return cache_element({layer, side, 0, i[1], i[2], i[3]});
                             }));
    return all;
}

class Formats : public testing::Test {
protected:
    std::string write(const std::vector<TensorSource>& all, const Metadata& metadata = {}) {
        const auto path = scratch_.path("dump.safetensors");
        write_safetensors(path, metadata, all);
        return path;
    }

    /// Expects the whole cache, read in blocks of several lengths.
    static void expect_cache(const KvDump& dump, std::size_t count = cache_layers, std::size_t batch = 0) {
        ASSERT_EQ(dump.tensors().size(), 2 * count);
        for (std::size_t layer = 0; layer < count; ++layer)
            for (std::size_t side = 0; side < 2; ++side) {
                const auto* tensor = dump.find(layer, all_sides.at(side));
                ASSERT_NE(tensor, nullptr) << layer << " " << side;
                EXPECT_EQ(tensor->heads, cache_heads);
                ASSERT_EQ(tensor->tokens, cache_tokens);
                ASSERT_EQ(tensor->dim, cache_dim);
                for (std::size_t head = 0; head < cache_heads; ++head)
                    for (std::size_t first = 0; first < cache_tokens; ++first)
                        for (std::size_t length = 1; first + length <= cache_tokens; ++length) {
                            const arma::mat block = dump.read_block(*tensor, head, first, length);
                            for (std::size_t t = 0; t < length; ++t)
                                for (std::size_t j = 0; j < cache_dim; ++j)
                                    ASSERT_EQ(block(t, j), cache_element({layer, side, batch, head, first + t, j}))
                                        << tensor->name;
                        }
            }
    }

    ScratchFolder scratch_;
};

TEST_F(Formats, TuplesOfTransformers) {
    for (const auto& [names, sides] :
         {std::pair<std::string, std::array<const char*, 2>>{"past_key_values.{layer}.{side}", {"0", "1"}},
          {"past_key_values.{layer}.{side}", {"key", "value"}},
          {"{side}_cache.{layer}", {"key", "value"}},
          {"layers.{layer}.{side}", {"keys", "values"}},
          {"{layer}.{side}", {"K", "V"}},
          {"{side}_{layer}", {"k", "v"}}}) {
        SCOPED_TRACE(names);
        const KvDump dump(write(separate_sides(names, sides)), {.format = "hf"});
        expect_cache(dump);
        EXPECT_EQ(dump.layout().text(), "batch,head,token,dim");
        ASSERT_TRUE(dump.layout().plain);
    }
}

TEST_F(Formats, PromptCacheOfMlx) {
    const auto path = write(separate_sides("{layer}.{side}", {"0", "1"}),
                            {{"0.0", "8"}, {"1.model", "tiny"}, {"1.prompt_id", "a"}, {"2.0", "KVCache"}});
    const KvDump dump(path, {.format = "mlx"});
    expect_cache(dump);
    EXPECT_EQ(dump.model(), "tiny");
    EXPECT_EQ(dump.prompt_id(), "a");
    expect_error(ErrorKind::input, [&] { KvDump wrong(path); }, {"--format hf or --format mlx"});
}

/// A layer whose cache does not hold every token in order is left out; a ring that is not full is in order.
TEST_F(Formats, OtherCachesOfMlx) {
    const auto opened = [&](const Metadata& metadata) {
        return KvDump(write(separate_sides("{layer}.{side}", {"0", "1"}), metadata), {.format = "mlx"});
    };
    const KvDump ring = opened({{"2.0", "KVCache"},
                                {"2.1", "RotatingKVCache"},
                                {"0.1.0", "0"},
                                {"0.1.1", "8"},
                                {"0.1.2", "9"},
                                {"2.2", "RotatingKVCache"},
                                {"0.2.2", "8"}});
    EXPECT_NE(ring.find(0, Side::key), nullptr);
    EXPECT_EQ(ring.find(1, Side::key), nullptr);
    EXPECT_NE(ring.find(2, Side::value), nullptr);
    ASSERT_EQ(ring.notes().size(), 1U);
    for (const char* part : {"left out", "\"1.0\", \"1.1\"", "RotatingKVCache with 8 of 9 tokens"})
        EXPECT_NE(ring.notes()[0].find(part), std::string::npos) << ring.notes()[0];
    EXPECT_EQ(opened({{"2.2", "ArraysCache"}}).find(2, Side::key), nullptr);
    expect_error(ErrorKind::input,
                 [&] {
                     (void)opened({{"2.0", "RotatingKVCache"}, {"2.1", "MambaCache"}, {"2.2", "RotatingKVCache"}});
                 },
                 {"layer 0 is a RotatingKVCache", "unknown number"});
}

TEST_F(Formats, LayersThatDoNotFitAreLeftOut) {
    auto all = separate_sides("layers.{layer}.{side}", {"key", "value"});
    all.at(2) = tensor_of("layers.1.key", DType::f32, {2, 3}, std::vector<double>(6, 1.0));  // a convolution's state
    const Metadata metadata = {{"layout", "batch,head,token,dim"}};
    const KvDump dump(write(all, metadata));
    EXPECT_EQ(dump.tensors().size(), 4U);
    EXPECT_EQ(dump.find(1, Side::value), nullptr) << "what is beside it in its layer is of another kind too";
    ASSERT_EQ(dump.notes().size(), 1U);
    EXPECT_NE(dump.notes()[0].find("\"layers.1.key\", \"layers.1.value\""), std::string::npos) << dump.notes()[0];
    EXPECT_EQ(dump.ignored(), (std::vector<std::string>{"layers.1.key", "layers.1.value"}));
    // Layers that were asked for decide what is read.
    const KvDump others(write(all, metadata), {.layers = {0, 2}});
    EXPECT_TRUE(others.notes().empty());
    EXPECT_EQ(others.tensors().size(), 4U);
    EXPECT_EQ(KvDump(write(all, metadata), {.layers = {2}}).tensors().size(), 2U);
    expect_error(ErrorKind::input,
                 [&] {
                     KvDump none(write(all, metadata), {.layers = {0, 1}});
                 },
                 {"\"layers.1.key\" has shape [2, 3]"});
    expect_error(ErrorKind::input, [&] { KvDump none(write({all.at(2)}, metadata)); }, {"\"layers.1.key\""});
}

TEST_F(Formats, WhatMayBeMissingIsNoted) {
    const Metadata metadata = {{"layout", "batch,head,token,dim"}};
    auto all = separate_sides("layers.{layer}.{side}", {"key", "value"});
    EXPECT_TRUE(KvDump(write(all, metadata)).notes().empty());
    all.at(3).name = "layers.1.v";
    const KvDump other_side(write(all, metadata));
    ASSERT_EQ(other_side.notes().size(), 1U);
    EXPECT_NE(other_side.notes()[0].find("layer 1 has keys and no values; outside the cache: \"layers.1.v\""),
              std::string::npos)
        << other_side.notes()[0];
    const auto without_value = [&](std::initializer_list<int> left_out) {
        auto some = separate_sides("layers.{layer}.{side}", {"key", "value"});
        std::erase_if(some, [&](const TensorSource& tensor) {
            return std::ranges::any_of(
                left_out, [&](int layer) { return tensor.name == "layers." + std::to_string(layer) + ".value"; });
        });
        return KvDump(write(some, metadata)).notes();
    };
    EXPECT_EQ(without_value({1}), std::vector<std::string>{"layer 1 has keys and no values"});
    EXPECT_EQ(without_value({0, 2}), std::vector<std::string>{"layers 0, 2 have keys and no values"});
    EXPECT_TRUE(without_value({0, 1, 2}).empty()) << "keys only, as it was meant";
    all.at(3).name = "layers.1.value";
    all.push_back(tensor_of("embedding", DType::f32, {1, 1}, {1.0}));
    EXPECT_TRUE(KvDump(write(all, metadata)).notes().empty());
    all.back().name = "blocks.3.key";
    const KvDump other_name(write(all, metadata));
    ASSERT_EQ(other_name.notes().size(), 1U);
    EXPECT_TRUE(other_name.notes()[0].starts_with("outside the cache: \"blocks.3.key\"")) << other_name.notes()[0];
}

TEST_F(Formats, ANamedFormatSaysHowItWasRead) {
    const auto path = write(separate_sides("{layer}.{side}", {"0", "1"}));
    EXPECT_EQ(KvDump(path, {.format = "hf"}).reading(), "read as batch,head,token,dim: 2 heads, 8 tokens, 4 channels");
    EXPECT_EQ(KvDump(path, {.layout = "batch,head,token,dim", .tensor_pattern = "{layer}.{side}"}).reading(), "");
}

TEST_F(Formats, TheReadingNamesBothDims) {
    auto all = separate_sides("{layer}.{side}", {"0", "1"});
    for (std::size_t i = 1; i < all.size(); i += 2)
        all[i] = stored_cache(all[i].name, {1, cache_heads, cache_tokens, 3}, [](const CacheIndex&) { return 1.0; });
    EXPECT_TRUE(KvDump(write(all), {.format = "hf"}).reading().ends_with("4 channels of keys and 3 of values"));
}

TEST_F(Formats, OptionsWithoutEffectAreRejected) {
    const auto path = write(separate_sides("{layer}.{side}", {"0", "1"}));
    expect_error(ErrorKind::usage, [&] { KvDump dump(path, {.format = "hf", .head_dim = 4}); }, {"--head-dim out"});
    expect_error(ErrorKind::usage, [&] { KvDump dump(path, {.format = "hf", .block_table = "0"}); },
                 {"--block-table out"});
}

TEST_F(Formats, OneTensorNeedsItsName) {
    const auto path =
        write({stored_cache("kv", {cache_layers, 2, cache_heads, cache_tokens, cache_dim}, [](const CacheIndex& i) {
            return cache_element({i[0], i[1], 0, i[2], i[3], i[4]});
        })});
    const std::string layout = "layer,side,head,token,dim";
    expect_error(ErrorKind::input, [&] { KvDump dump(path, {.layout = layout}); }, {"--pattern \"kv\""});
    expect_cache(KvDump(path, {.layout = layout, .tensor_pattern = "kv"}));
}

TEST_F(Formats, OptionsInTheMetadata) {
    const auto with = [&](const char* key, const char* value) {
        return KvDump(write(separate_sides("layers.{layer}.{side}", {"key", "value"}),
                            {{"layout", "batch,head,token,dim"}, {key, value}}));
    };
    for (const char* word : {"true", "True", "1", "yes", "false", "False", "0", "no"})
        EXPECT_NO_THROW((void)with("skip_empty", word)) << word;
    expect_error(ErrorKind::input, [&] { (void)with("skip_empty", "maybe"); }, {"skip_empty is \"maybe\""});
    for (const char* range : {"a:b", "4:4"})
        expect_error(ErrorKind::input, [&] { (void)with("tokens", range); }, {"dump.safetensors", range});
}

TEST(BlockTable, Texts) {
    using Pages = std::vector<std::size_t>;
    for (const char* text : {"3,1,7", "3 1 7", "[3, 1, 7]", "[3 1 7]", " 3, 1,\n 7, ", "[[3 1\n 7]]", "3,1 7"})
        EXPECT_EQ(parse_block_table(text), (Pages{3, 1, 7})) << text;
    EXPECT_EQ(parse_block_table("12"), Pages{12});
    for (const char* bad : {"", "[]", "1,,2", ",1", "1 1", "-1", "1.5", "[1],[2]", "a"})
        EXPECT_FALSE(parse_block_table(bad)) << bad;
}

TEST_F(Formats, MetadataNameTheFormat) {
    expect_cache(KvDump(write(separate_sides("{layer}.{side}", {"0", "1"}), {{"format", "mlx"}})));
    // `pt` is what safetensors of torch writes, and names no format.
    expect_cache(KvDump(write(separate_sides("layers.{layer}.{side}", {"key", "value"}),
                              {{"format", "pt"}, {"layout", "batch,head,token,dim"}})));
    expect_cache(KvDump(write(separate_sides("c{layer}/{side}", {"key", "value"}),
                              {{"pattern", "c{layer}/{side}"}, {"layout", "batch,head,token,dim"}})));
}

TEST_F(Formats, BothSidesInOneTensorOfVllm) {
    std::vector<TensorSource> all;
    for (std::size_t layer = 0; layer < cache_layers; ++layer)
        all.push_back(stored_cache(fmt::format("model.layers.{}.self_attn.attn", layer),
                                   {2, cache_tokens, cache_heads, cache_dim}, [&](const CacheIndex& i) {
                                       return cache_element({layer, i[0], 0, i[2], i[1], i[3]});
                                   }));
    const KvDump dump(write(all), {.format = "vllm"});
    expect_cache(dump);
    EXPECT_EQ(dump.find(2, Side::value)->name, "model.layers.2.self_attn.attn[1]");
    EXPECT_FALSE(dump.layout().plain);
    EXPECT_EQ(dump.layout().text(), "side,token,head,dim");
}

/// A file of vLLM's example connector: the layer is in its name, and heads are in one axis.
TEST_F(Formats, FileOfOneLayerOfVllm) {
    const auto path = scratch_.path("model.layers.7.self_attn.attn.safetensors");
    write_safetensors(path, {},
                      {stored_cache("kv_cache", {2, cache_tokens, cache_heads * cache_dim}, [&](const CacheIndex& i) {
                          return cache_element({0, i[0], 0, i[2] / cache_dim, i[1], i[2] % cache_dim});
                      })});
    const std::string rows = "side,token,hidden";
    const KvDump dump(path, {.layout = rows, .format = "vllm", .head_dim = cache_dim});
    ASSERT_EQ(dump.tensors().size(), 2U);
    EXPECT_EQ(dump.tensors()[0].layer, 7U);
    EXPECT_EQ(dump.read_block(*dump.find(7, Side::value), 1, 3, 2)(1, 2), cache_element({0, 1, 0, 1, 4, 2}));
    expect_error(ErrorKind::input, [&] { KvDump wrong(path, {.layout = rows, .format = "vllm"}); },
                 {"one axis of 8", "--head-dim"});
    // [2, pages, all of a page] has three axes too.
    expect_error(ErrorKind::input, [&] { KvDump wrong(path, {.format = "vllm", .head_dim = cache_dim}); },
                 {"--layout, side,token,hidden for files of the example connector"});
    expect_error(ErrorKind::input, [&] { KvDump wrong(path, {.layout = rows, .format = "vllm", .head_dim = 3}); },
                 {"not whole heads of 3"});
}

TEST_F(Formats, PagesOfVllm) {
    constexpr std::size_t of_page = 2;
    const std::vector<std::size_t> table = {5, 0, 3, 1};
    const auto content = [&](std::size_t layer, std::size_t side, std::size_t page, std::size_t slot, std::size_t head,
                             std::size_t channel) {
        for (std::size_t p = 0; p < table.size(); ++p)
            if (table[p] == page) return cache_element({layer, side, 0, head, p * of_page + slot, channel});
        return -1.0;
    };
    std::vector<TensorSource> all, in_order, by_head;
    for (std::size_t layer = 0; layer < cache_layers; ++layer) {
        const auto name = fmt::format("kv_caches.{}", layer);
        all.push_back(stored_cache(name, {2, 6, of_page, cache_heads, cache_dim},
                                   [&](const CacheIndex& i) { return content(layer, i[0], i[1], i[2], i[3], i[4]); }));
        in_order.push_back(stored_cache(name, {4, 2, of_page, cache_heads, cache_dim}, [&](const CacheIndex& i) {
            return cache_element({layer, i[1], 0, i[3], i[0] * of_page + i[2], i[4]});
        }));
        by_head.push_back(stored_cache(name, {2, 4, cache_heads, of_page, cache_dim}, [&](const CacheIndex& i) {
            return cache_element({layer, i[0], 0, i[2], i[1] * of_page + i[3], i[4]});
        }));
    }
    expect_cache(KvDump(write(all), {.format = "vllm", .block_table = "5,0,3,1"}));
    expect_cache(KvDump(write(all, {{"block_table", "[5, 0, 3, 1]"}}), {.format = "vllm"}));
    const KvDump part(write(all, {{"block_table", "5,0,3,1"}, {"tokens", "7"}}), {.format = "vllm"});
    EXPECT_EQ(part.tensors()[0].tokens, 7U);
    const KvDump unordered(write(in_order), {.format = "vllm"});
    expect_cache(unordered);
    ASSERT_EQ(unordered.notes().size(), 1U);
    EXPECT_NE(unordered.notes()[0].find("--block-table"), std::string::npos);
    EXPECT_EQ(unordered.find(1, Side::key)->name, "kv_caches.1[:,0]");
    expect_cache(KvDump(write(by_head), {.layout = "side,block,head,token,dim", .format = "vllm"}));
    expect_error(ErrorKind::input, [&] { KvDump(write(all), {.format = "vllm", .block_table = "5,6"}); },
                 {"6 pages", "page 6", "--block-table"});
    expect_error(ErrorKind::usage, [&] { KvDump(write(all), {.format = "vllm", .block_table = "5,5"}); },
                 {"each once"});
    expect_error(ErrorKind::usage, [&] { KvDump(write(all), {.format = "vllm", .block_table = "5,x"}); }, {"3,1,7"});
}

/// The same cache in pages of [token, head, dim] and of [head, token, dim], written by NumPy.
TEST_F(Formats, PagesWithKeysInChunksSayHowToJoinThem) {
    const auto any = [](const CacheIndex& i) { return static_cast<double>(i[0]); };
    const std::vector<TensorSource> pages = {stored_cache("layers.0.key", {3, 2, 2, 16, 8}, any),
                                             stored_cache("layers.0.value", {3, 2, 16, 16}, any)};
    const auto path = write(pages);
    for (const DumpOptions& options :
         {DumpOptions{}, DumpOptions{.format = "hf"}, DumpOptions{.layout = "block,token,head,dim"}})
        expect_error(ErrorKind::input, [&] { (void)KvDump(path, options); },
                     {"pages of vLLM 0.x", "k.permute(0, 3, 1, 2, 4).flatten(-2)", "--layout block,token,head,dim"});
    // Other shapes are none.
    const auto other = write(
        {stored_cache("layers.0.key", {3, 2, 2, 16, 8}, any), stored_cache("layers.0.value", {3, 2, 16, 8}, any)});
    expect_error(ErrorKind::input, [&] { (void)KvDump(other); }, {"name its axes with --layout"});
}

TEST_F(Formats, WholePagesOfVllmSayHowToConvertThem) {
    const auto any = [](const CacheIndex& i) { return static_cast<double>(i[0]); };
    const auto path = write({stored_cache("kv_caches.0", {2, 3, 1024}, any)});
    for (const DumpOptions& options : {DumpOptions{}, DumpOptions{.format = "vllm"}, DumpOptions{.format = "hf"}})
        expect_error(
            ErrorKind::input, [&] { (void)KvDump(path, options); },
            {"\"kv_caches.0\" [2, 3, 1024]", "pages of vLLM 0.x", "load_file('FILE')", "block,token,head,dim"});
    // Under the name that the example connector gives, both readings are possible.
    const auto other = write({stored_cache("kv_cache", {2, 3, 1024}, any)});
    expect_error(ErrorKind::input, [&] { (void)KvDump(other, {.format = "vllm"}); },
                 {"side,token,hidden", "pages of vLLM 0.x", "load_file('FILE')"});
    const KvDump connector(other, {.layout = "side,token,hidden", .format = "vllm", .head_dim = 128});
    EXPECT_EQ(connector.tensors()[0].tokens, 3U);
}

TEST_F(Formats, TensorsThatAreOnlyCountedAreNotLayerZero) {
    const auto any = [](const CacheIndex& i) { return static_cast<double>(i[0]); };
    std::vector<TensorSource> all;
    for (const std::string name : {"0", "1", "2", "3"}) all.push_back(stored_cache(name, {1, 2, 16, 8}, any));
    const auto path = write(all);
    for (const DumpOptions& options : {DumpOptions{}, DumpOptions{.format = "stacked"}})
        expect_error(ErrorKind::input, [&] { (void)KvDump(path, options); },
                     {"4 tensors are only counted", "load_file('FILE')", "c['%d'%i]", "--format hf"});
    // Two of them are keys and values of stacked layers.
    all.resize(2);
    EXPECT_EQ(KvDump(write(all), {.format = "stacked"}).tensors().size(), 2U);
}

TEST_F(Formats, NumbersOfLayersAreNoSides) {
    // GPT-2 in ONNX: keys and values of a layer in one tensor.
    std::vector<TensorSource> all;
    for (std::size_t layer = 0; layer < cache_layers; ++layer)
        all.push_back(stored_cache(fmt::format("past_{}", layer), {2, 1, cache_heads, cache_tokens, cache_dim},
                                   [&](const CacheIndex& i) {
                                       return cache_element({layer, i[0], 0, i[2], i[3], i[4]});
                                   }));
    const std::string advice = "give --pattern 'past_{layer}' where that names the cache";
    expect_error(ErrorKind::input, [&] { KvDump(write(all)); }, {advice, "--layout, side among them"});
    expect_error(ErrorKind::input, [&] { KvDump(write(all), {.format = "stacked"}); },
                 {"no tensor is named as stacked"});
    expect_cache(KvDump(write(all), {.layout = "side,batch,head,token,dim", .tensor_pattern = "past_{layer}"}));
    all.pop_back();  // two layers could be keys and values
    expect_error(ErrorKind::input, [&] { KvDump(write(all)); }, {advice});
}

TEST_F(Formats, PatternsThatNamesFollowAreProposedAndWork) {
    for (const auto& [names, sides, pattern] :
         std::vector<std::tuple<std::string, std::array<const char*, 2>, std::string>>{
             {"layers.{layer}.attention.kv_cache.{side}_cache",
              {"k", "v"},
              "layers.{layer}.attention.kv_cache.{side}_cache"},
             {"model/h/{layer}/attn/cached_{side}", {"key", "value"}, "model/h/{layer}/attn/cached_{side}"},
             {"{side}{layer}", {"K", "V"}, "{side}{layer}"},
             {"past_key_values.{layer}.decoder.{side}", {"key", "value"}, "past_key_values.{layer}.decoder.{side}"},
             {"{side}_states.{layer}", {"key", "value"}, "{side}_states.{layer}"}}) {
        const auto path = write(separate_sides(names, sides));
        expect_error(ErrorKind::input, [&] { (void)KvDump(path); }, {"give --pattern '" + pattern + "' where"});
        expect_cache(KvDump(path, {.layout = "batch,head,token,dim", .tensor_pattern = pattern}));
    }
    const auto any = [](const CacheIndex& i) { return static_cast<double>(i[0]); };
    std::vector<TensorSource> heads;
    for (const char* name : {"L0H0_K", "L0H0_V", "L0H1_K", "L0H1_V", "L1H0_K", "L1H0_V"})
        heads.push_back(stored_cache(name, {16, 8}, any));
    expect_error(ErrorKind::input, [&] { KvDump(write(heads)); }, {"--pattern 'L{layer}H{head}_{side}'"});
    // Keys and values of Bloom have their tokens on other axes.
    const auto pair_of = [&](const std::vector<std::size_t>& keys, const std::vector<std::size_t>& values) {
        return write(
            {stored_cache("past_key_values.0.0", keys, any), stored_cache("past_key_values.0.1", values, any)});
    };
    expect_error(ErrorKind::input, [&] { KvDump(pair_of({2, 8, 16}, {2, 16, 8})); }, {"give --format bloom, or"});
    EXPECT_EQ(KvDump(pair_of({2, 8, 16}, {2, 16, 8}), {.format = "bloom"}).tensors().size(), 2U);
    expect_error(ErrorKind::input, [&] { KvDump(pair_of({2, 16, 8}, {2, 16, 8})); }, {"give --pattern"});
    expect_error(ErrorKind::input, [&] { KvDump(pair_of({2, 8, 16}, {2, 12, 8})); }, {"give --pattern"});
    expect_error(ErrorKind::input,
                 [&] {
                     KvDump(write({stored_cache("cache", {2, 2, 1, 2, 16, 8}, any)}));
                 },
                 {"--pattern 'cache'", "side among them"});
    expect_error(ErrorKind::input,
                 [&] {
                     KvDump(write({stored_cache("{x}", {2, 16, 8}, any), stored_cache("other", {2, 16, 8}, any)}));
                 },
                 {"for example {side}_cache.{layer}"});
}

TEST_F(Formats, PaddingOfAnAttentionMaskIsNoted) {
    auto all = separate_sides("layers.{layer}.{side}", {"key", "value"});
    const auto mask = [&](const std::vector<double>& values, const std::vector<std::size_t>& shape) {
        auto with = all;
        with.push_back(tensor_of("attention_mask", DType::f32, shape, values));
        return write(with);
    };
    const auto notes = [](const std::string& path, DumpOptions options = {}) {
        options.layout = "batch,head,token,dim";
        return fmt::format("{}", fmt::join(KvDump(path, options).notes(), "\n"));
    };
    const std::string left =
        "\"attention_mask\" marks 3 of 8 tokens as padding, and they count with the others: leave them out with "
        "--tokens 3:8";
    EXPECT_NE(notes(mask({0, 0, 0, 1, 1, 1, 1, 1}, {1, 8})).find(left), std::string::npos);
    EXPECT_EQ(KvDump(mask({0, 0, 0, 1, 1, 1, 1, 1}, {8}), {.layout = "batch,head,token,dim", .tokens = "3:8"})
                  .tensors()[0]
                  .tokens,
              5U);
    EXPECT_EQ(notes(mask({0, 0, 0, 1, 1, 1, 1, 1}, {8}), {.tokens = "3:8"}).find("padding"), std::string::npos);
    EXPECT_NE(notes(mask({1, 1, 0, 1, 1, 1, 1, 0}, {8})).find("leave them out where the dump is made"),
              std::string::npos);
    EXPECT_EQ(notes(mask({1, 1, 1, 1, 1, 1, 1, 1}, {8})).find("padding"), std::string::npos);
    EXPECT_EQ(notes(mask({0, 1, 1, 1, 1, 1, 1}, {7})).find("padding"), std::string::npos);
}

TEST_F(Formats, PagesWithoutKeysAndValuesOfHeadsAreNamed) {
    const auto any = [](const CacheIndex& i) { return static_cast<double>(i[0]); };
    expect_error(ErrorKind::input,
                 [&] {
                     KvDump(write({stored_cache("layers.0.kv_cache", {4, 16, 24}, any)}), {.format = "vllm"});
                 },
                 {"latents of MLA"});
    expect_error(ErrorKind::input,
                 [&] {
                     KvDump(write({stored_cache("kv_caches.0", {5, 16, 4, 8}, any)}), {.format = "vllm"});
                 },
                 {"vLLM on TPUs", "c[:, :, 0::2]"});
}

TEST_F(Formats, PagesOfHeads) {
    if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) GTEST_SKIP() << "no NumPy";
    ASSERT_EQ(std::system(("cd '" + scratch_.path(".") + R"(' && /usr/bin/python3 -c '
import numpy as np
x = np.random.default_rng(3).normal(size=(2, 5, 4, 3, 8)).astype("f4")
np.savez("nhd.npz", **{"kv_caches.%d" % i: x + i for i in range(2)})
np.savez("hnd.npz", **{"kv_caches.%d" % i: (x + i).transpose(0, 1, 3, 2, 4) for i in range(2)})
np.savez("sides.npz", **{"kv_caches.%d" % i: (x + i).transpose(1, 0, 3, 2, 4) for i in range(2)})
np.savez("pairs.npz", k_cache=x[0].transpose(0, 2, 1, 3), v_cache=x[1].transpose(0, 2, 1, 3))
')")
                              .c_str()),
              0);
    const std::string table = "4,0,3";
    const KvDump expected(scratch_.path("nhd.npz"), {.format = "vllm", .block_table = table});
    const auto expect_same = [&](const KvDump& dump) {
        for (const auto& tensor : dump.tensors()) {
            ASSERT_EQ(tensor.heads, 3U);
            ASSERT_EQ(tensor.tokens, 12U);
            for (std::size_t head = 0; head < 3; ++head)
                EXPECT_TRUE(arma::approx_equal(
                    dump.read_block(tensor, head, 1, 10),
                    expected.read_block(*expected.find(tensor.layer, tensor.side), head, 1, 10), "absdiff", 0.0));
        }
    };
    for (const char* file : {"hnd.npz", "sides.npz"}) {
        const KvDump dump(scratch_.path(file), {.format = "vllm-hnd", .block_table = table});
        EXPECT_EQ(dump.tensors().size(), 4U);
        expect_same(dump);
    }
    // FlashInfer's pair of tensors.
    const KvDump pair(scratch_.path("pairs.npz"),
                      {.layout = "block,head,token,dim", .tensor_pattern = "{side}_cache", .block_table = table});
    EXPECT_EQ(pair.tensors().size(), 2U);
    expect_same(pair);
    expect_error(ErrorKind::input, [&] { KvDump dump(scratch_.path("hnd.npz"), {.block_table = table}); },
                 {"vllm or --format vllm-hnd"});
}

TEST_F(Formats, TwoMeaningsOfAShapeAreNotGuessed) {
    const auto path =
        write({stored_cache("kv_cache", {2, 2, 4, cache_heads, cache_dim}, [](const CacheIndex&) { return 1.0; })});
    expect_error(ErrorKind::input, [&] { KvDump dump(path, {.format = "vllm"}); },
                 {"side,block,token,head,dim or block,side,token,head,dim", "--layout"});
    EXPECT_EQ(KvDump(path, {.layout = "side,block,token,head,dim", .format = "vllm"}).tensors()[0].tokens, 8U);
}

TEST_F(Formats, ChunksOfLmcache) {
    std::vector<TensorSource> chunks;
    for (const std::size_t chunk : {2, 0, 1}) {
        const std::size_t first = 3 * chunk;
        chunks.push_back(
            stored_cache(fmt::format("chunk.{}", chunk),
                         {2, cache_layers, chunk == 2 ? 2U : 3U, cache_heads * cache_dim}, [&](const CacheIndex& i) {
                             return cache_element({i[1], i[0], 0, i[3] / cache_dim, first + i[2], i[3] % cache_dim});
                         }));
    }
    expect_cache(KvDump(write(chunks), {.format = "lmcache", .head_dim = cache_dim}));
    chunks.at(0).name = "chunk.3";
    expect_error(ErrorKind::input, [&] { KvDump(write(chunks), {.format = "lmcache", .head_dim = cache_dim}); },
                 {"chunk 2 of the key of layer 0 is missing", "\"chunk.3[0,0]\" follows \"chunk.1[0,0]\""});
    for (const std::size_t chunk : {0, 1, 2})  // numbered by their first tokens
        chunks.at(chunk).name = fmt::format("chunk.{}", std::array{6, 0, 3}.at(chunk));
    expect_cache(KvDump(write(chunks), {.format = "lmcache", .head_dim = cache_dim}));
    const auto whole =
        write({stored_cache("tensor_bytes", {2, cache_layers, cache_tokens, cache_heads * cache_dim},
                            [&](const CacheIndex& i) {
                                return cache_element({i[1], i[0], 0, i[3] / cache_dim, i[2], i[3] % cache_dim});
                            })},
              {{"head_dim", "4"}, {"format", "lmcache"}});
    const KvDump dump(whole);
    expect_cache(dump);
    EXPECT_EQ(dump.find(2, Side::key)->name, "tensor_bytes[0,2]");
}

TEST_F(Formats, LayersStackedInOneTensor) {
    const auto path =
        write({stored_cache("k", {cache_layers, 1, cache_heads, cache_tokens, cache_dim},
                            [](const CacheIndex& i) {
                                return cache_element({i[0], 0, 0, i[2], i[3], i[4]});
                            }),
               stored_cache("v", {cache_layers, 1, cache_heads, cache_tokens, cache_dim}, [](const CacheIndex& i) {
                   return cache_element({i[0], 1, 0, i[2], i[3], i[4]});
               })});
    expect_cache(KvDump(path, {.format = "stacked"}));
    const KvDump dump(path, {.layout = "layer,batch,head,token,dim", .tensor_pattern = "{side}"});
    expect_cache(dump);
    EXPECT_EQ(dump.find(1, Side::value)->name, "v[1]");
}

TEST_F(Formats, AHeadInATensor) {
    std::vector<TensorSource> all;
    for (std::size_t layer = 0; layer < cache_layers; ++layer)
        for (std::size_t head = cache_heads; head-- > 0;)
            for (std::size_t side = 0; side < 2; ++side)
                all.push_back(stored_cache(fmt::format("l{}h{}{}", layer, head, "kv"[side]), {cache_tokens, cache_dim},
                                           [&](const CacheIndex& i) {
                                               return cache_element({layer, side, 0, head, i[0], i[1]});
                                           }));
    const DumpOptions options{.layout = "token,dim", .tensor_pattern = "l{layer}h{head}{side}"};
    expect_cache(KvDump(write(all), options));
    all.erase(all.begin() + 2);
    expect_error(ErrorKind::input, [&] { KvDump dump(write(all), options); },
                 {"head 0 of the key of layer 0 is missing"});
}

TEST_F(Formats, LayoutsOfSidesDiffer) {
    std::vector<TensorSource> all;
    for (std::size_t layer = 0; layer < cache_layers; ++layer) {
        all.push_back(stored_cache(fmt::format("past_key_values.{}.0", layer), {cache_heads, cache_dim, cache_tokens},
                                   [&](const CacheIndex& i) {
                                       return cache_element({layer, 0, 0, i[0], i[2], i[1]});
                                   }));
        all.push_back(stored_cache(fmt::format("past_key_values.{}.1", layer), {cache_heads, cache_tokens, cache_dim},
                                   [&](const CacheIndex& i) {
                                       return cache_element({layer, 1, 0, i[0], i[1], i[2]});
                                   }));
    }
    const auto path = write(all);
    const KvDump dump(path, {.format = "bloom"});
    expect_cache(dump);
    EXPECT_EQ(dump.layout().text(), "key=head,dim,token value=head,token,dim");
    expect_cache(KvDump(path, {.layout = "key=head,dim,token;value=head,token,dim", .format = "hf"}));
    expect_error(ErrorKind::input, [&] { KvDump one(path, {.layout = "key=head,dim,token", .format = "hf"}); },
                 {"does not name the value"});
    const KvDump keys(path, {.layout = "key=head,dim,token", .format = "hf", .side = Side::key});
    EXPECT_EQ(keys.tensors().size(), cache_layers);
    EXPECT_EQ(keys.tensors()[1].side, Side::key);
    for (const char* bad : {"key=head,dim,token value", "key=head,dim key=head,token,dim", "side=head,token,dim"})
        expect_error(ErrorKind::usage, [&] { KvDump one(path, {.layout = bad, .format = "hf"}); }, {"layout"});
}

TEST_F(Formats, SequencesOfABatch) {
    std::vector<TensorSource> all;
    for (std::size_t layer = 0; layer < cache_layers; ++layer)
        for (std::size_t side = 0; side < 2; ++side)
            all.push_back(stored_cache(fmt::format("{}.{}", layer, side), {3, cache_heads, cache_tokens, cache_dim},
                                       [&](const CacheIndex& i) {
                                           return cache_element({layer, side, i[0], i[1], i[2], i[3]});
                                       }));
    const auto path = write(all, {{"1.prompt_id", "p"}});
    for (std::size_t batch = 0; batch < 3; ++batch) {
        const KvDump dump(path, {.format = "mlx", .batch = batch});
        expect_cache(dump, cache_layers, batch);
        EXPECT_EQ(dump.sequences(), 3U);
        EXPECT_EQ(dump.prompt_id(), fmt::format("p[{}]", batch));
        EXPECT_EQ(dump.find(1, Side::key)->name, fmt::format("1.0[{}]", batch));
    }
    expect_error(ErrorKind::input, [&] { KvDump dump(path, {.format = "mlx"}); }, {"holds 3 sequences", "--batch"});
    expect_error(ErrorKind::usage, [&] { KvDump dump(path, {.format = "mlx", .batch = 3}); }, {"no sequence 3"});
    EXPECT_EQ(KvDump(path, {.format = "mlx", .any_sequence = true}).sequence(), 0U);
}

TEST_F(Formats, TokenRangesAreThoseOfPython) {
    const auto path = write(separate_sides("layers.{layer}.{side}", {"key", "value"}),
                            {{"layout", "batch,head,token,dim"}, {"keys", "post-rope"}, {"position_start", "10"}});
    for (const auto& [text, first, end] : std::vector<std::tuple<std::string, std::size_t, std::size_t>>{
             {"2:6", 2, 6}, {":3", 0, 3}, {"5:", 5, 8}, {"-3:-1", 5, 7}, {":", 0, 8}, {"6:100", 6, 8}}) {
        SCOPED_TRACE(text);
        const KvDump dump(path, {.tokens = text});
        const auto& tensor = *dump.find(1, Side::value);
        ASSERT_EQ(tensor.tokens, end - first);
        EXPECT_EQ(dump.read_block(tensor, 1, 0, 1)(0, 3), cache_element({1, 1, 0, 1, first, 3}));
        EXPECT_EQ(*dump.metadata("position_start"), std::to_string(10 + first));
        EXPECT_EQ(dump.has_all_tokens(), text == ":");
    }
    expect_error(ErrorKind::usage, [&] { KvDump dump(path, {.tokens = "6:6"}); }, {"leaves no token", "--tokens"});
    for (const char* bad : {"6", "a:b", "1:2:3", "1.5:4"})
        expect_error(ErrorKind::usage, [&] { KvDump dump(path, {.tokens = bad}); }, {"FIRST:LAST"});
}

/// Tokens 0, 1 and 7 are zero in every head of layer 0; token 3 in one head only, which does not count.
TEST_F(Formats, EmptyTokens) {
    const auto zero = [](const CacheAt& at, std::initializer_list<std::size_t> empty) {
        return std::find(empty.begin(), empty.end(), at.token) != empty.end() || (at.token == 3 && at.head == 0);
    };
    const auto dump_with = [&](std::initializer_list<std::size_t> empty) {
        std::vector<TensorSource> all;
        for (std::size_t side = 0; side < 2; ++side)
            all.push_back(stored_cache(side == 0 ? "layers.0.key" : "layers.0.value",
                                       {cache_heads, cache_tokens, cache_dim}, [&](const CacheIndex& i) {
                                           const CacheAt at{0, side, 0, i[0], i[1], i[2]};
                                           return zero(at, empty) ? 0.0 : cache_element(at);
                                       }));
        return write(all, {{"layout", "head,token,dim"}, {"keys", "post-rope"}});
    };
    const auto path = dump_with({0, 1, 7});
    const KvDump all(path);
    EXPECT_EQ(all.empty_tokens(0), (std::vector<std::size_t>{0, 1, 7}));
    EXPECT_NE(all.empty_tokens_note().find("3 of 8 tokens are zero"), std::string::npos);
    const KvDump kept(path, {.skip_empty = true});
    EXPECT_EQ(kept.empty_tokens_note(), "");
    EXPECT_EQ(kept.tensors()[0].tokens, 5U);
    EXPECT_EQ(*kept.metadata("position_start"), "2");
    EXPECT_EQ(kept.read_block(kept.tensors()[0], 1, 0, 5)(4, 0), cache_element({0, 0, 0, 1, 6, 0}));
    // Positions that do not follow each other cannot be undone.
    const KvDump gaps(dump_with({4}), {.skip_empty = true});
    EXPECT_EQ(gaps.tensors()[0].tokens, 7U);
    EXPECT_EQ(gaps.read_block(gaps.tensors()[0], 1, 2, 4)(2, 0), cache_element({0, 0, 0, 1, 5, 0}));
    EXPECT_NE(gaps.metadata("keys"), "post-rope");
    const KvDump both(dump_with({4}), {.tokens = "1:7", .skip_empty = true});
    EXPECT_EQ(both.tensors()[0].tokens, 5U);
    EXPECT_EQ(both.read_block(both.tensors()[0], 0, 3, 1)(0, 0), cache_element({0, 0, 0, 0, 5, 0}));
    EXPECT_EQ(KvDump(dump_with({2}), {}).empty_tokens(0), std::vector<std::size_t>{2});
    EXPECT_TRUE(KvDump(dump_with({}), {}).empty_tokens(0).empty());
    expect_error(ErrorKind::input,
                 [&] {
                     KvDump none(dump_with({0, 1, 2, 3, 4, 5, 6, 7}), {.skip_empty = true});
                 },
                 {"every token is zero"});
}

TEST_F(Formats, TokensWithNanAreLeftOutByARange) {
    const auto path = write({stored_cache("layers.0.key", {1, cache_tokens, cache_dim},
                                          [](const CacheIndex& i) { return i[1] < 2 ? NAN : 1.0; })},
                            {{"layout", "head,token,dim"}});
    expect_error(ErrorKind::input,
                 [&] {
                     const KvDump dump(path);
                     (void)dump.read_block(dump.tensors()[0], 0, 0, 4);
                 },
                 {"8 NaN", "--tokens"});
    const KvDump dump(path, {.tokens = "2:"});
    EXPECT_EQ(dump.read_block(dump.tensors()[0], 0, 0, 6).min(), 1.0);
}

TEST_F(Formats, EmptyTensorsAreLeftOut) {
    auto all = separate_sides("layers.{layer}.{side}", {"key", "value"});
    for (auto& tensor : all)
        if (tensor.name.starts_with("layers.2."))
            tensor = tensor_of(tensor.name, DType::f32, {1, cache_heads, 0, cache_dim}, {});
    const KvDump dump(write(all, {{"layout", "batch,head,token,dim"}}));
    expect_cache(dump, 2);
    ASSERT_EQ(dump.notes().size(), 1U);
    EXPECT_NE(dump.notes()[0].find("\"layers.2.key\""), std::string::npos);
}

TEST(NamePattern, MarksAndSpellings) {
    const auto names = [](std::initializer_list<const char*> texts) {
        std::vector<StoredTensor> tensors;
        for (const char* text : texts) tensors.push_back({.name = text});
        return tensors;
    };
    const auto found = NamePattern("l{layer}/{head}-{side}").matches(names({"l3/12-v", "l3/12-x", "l3/12-k", "l/1-k"}));
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].index, 0U);
    EXPECT_EQ(found[0].side, Side::value);
    EXPECT_EQ(found[0].layer, 3U);
    EXPECT_EQ(found[0].head, 12U);
    EXPECT_EQ(found[1].side, Side::key);
    // All sides of a file are written in the same way: `key` before `0`.
    EXPECT_EQ(NamePattern("{layer}.{side}").matches(names({"0.key", "0.0", "0.1"})).size(), 1U);
    EXPECT_EQ(NamePattern("{layer}.{side}").matches(names({"0.0", "0.1", "0.2"})).size(), 2U);
    EXPECT_TRUE(NamePattern("{layer}.{side}").matches(names({"12345678901.key"})).empty());
}

TEST(CacheLayout, Texts) {
    for (const char* text : {"head,token,dim", "side,block,token,head,dim", "token,dim", "side,layer,token,hidden"})
        EXPECT_EQ(parse_cache_layout(text).value().text(), text);
    for (const char* bad : {"", "head,token", "head,dim", "head,token,dim,dim", "head,token,hidden",
                            "head,token,dim,hidden", "rows,token,dim", "token,,dim"})
        EXPECT_FALSE(parse_cache_layout(bad)) << bad;
    EXPECT_EQ(parse_cache_layout("batch,head,dim,token")->plain()->text(), "batch,head,dim,token");
    EXPECT_FALSE(parse_cache_layout("side,head,token,dim")->plain());
}

TEST(DumpFormats, LayoutsAndPatternsAreLegal) {
    for (const auto& format : dump_formats()) {
        for (const auto& layout : format.layouts) EXPECT_TRUE(parse_side_layouts(layout)) << layout;
        for (const auto& pattern : format.patterns) EXPECT_NO_THROW(NamePattern{pattern}) << pattern;
        EXPECT_EQ(dump_formats().find(format.name), &format);
    }
    EXPECT_EQ(dump_formats().find("pt"), nullptr);
}

}  // namespace
}  // namespace spiked::sim
