#include "sim/kv/dump_scales.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstring>
#include <functional>
#include <limits>

#include "core/files/tests/scratch.hpp"
#include "sim/kv/kv_dump.hpp"

namespace spiked::sim {
namespace {

/// A tensor as stored, of any dtype.
struct RawTensor {
    std::string name, dtype;
    std::vector<std::size_t> shape;
    std::string bytes;
};

std::string raw_floats(const std::vector<float>& values) {
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

constexpr std::size_t scaled_heads = 2, scaled_tokens = 6, scaled_dim = 4;

/// The code of an entry; all differ from those around them.
double code_at(std::size_t head, std::size_t token, std::size_t channel) {
    return static_cast<double>((head * 53 + token * 19 + channel * 7) % 101) - 50.0;
}

std::string all_codes() {
    std::string bytes;
    for (std::size_t i = 0; i < scaled_heads * scaled_tokens * scaled_dim; ++i)
        bytes += static_cast<char>(
            static_cast<int>(code_at(i / scaled_dim / scaled_tokens, i / scaled_dim % scaled_tokens, i % scaled_dim)));
    return bytes;
}

class Scales : public testing::Test {
protected:
    std::string write(const std::vector<RawTensor>& all,
                      const std::vector<std::pair<std::string, std::string>>& more = {},
                      const std::string& layout = "head,token,dim") {
        std::string header = fmt::format(R"({{"__metadata__":{{"layout":"{}")", layout), data;
        for (const auto& [key, value] : more) header += fmt::format(R"(,"{}":"{}")", key, value);
        header += "}";
        for (const auto& one : all) {
            header += fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", one.name, one.dtype,
                                  fmt::join(one.shape, ","), data.size(), data.size() + one.bytes.size());
            data += one.bytes;
        }
        return scratch_.write(fmt::format("{}.safetensors", files_++), safetensors_bytes(header + "}", data));
    }
    /// A dump of the codes as int8 with a tensor `layers.0.key_scale`.
    std::string with_scale(const std::vector<std::size_t>& shape, const std::vector<float>& scale) {
        return write({{"layers.0.key", "I8", {scaled_heads, scaled_tokens, scaled_dim}, all_codes()},
                      {"layers.0.key_scale", "F32", shape, raw_floats(scale)}},
                     {{"scale", "layers.{layer}.{side}_scale"}});
    }
    using Expected = std::function<double(std::size_t, std::size_t, std::size_t)>;
    static void expect_entries(const KvDump& dump, const DumpTensor& tensor, const Expected& expected) {
        ASSERT_EQ(tensor.heads, scaled_heads);
        ASSERT_EQ(tensor.tokens, scaled_tokens);
        for (std::size_t head = 0; head < scaled_heads; ++head) {
            const arma::mat block = dump.read_block(tensor, head, 1, scaled_tokens - 1);
            for (std::size_t t = 1; t < scaled_tokens; ++t)
                for (std::size_t c = 0; c < scaled_dim; ++c)
                    EXPECT_EQ(block(t - 1, c), expected(head, t, c)) << head << ' ' << t << ' ' << c;
        }
    }

    const ScratchFolder scratch_;
    int files_ = 0;
};

TEST_F(Scales, OneNumberOrOneTensorForAll) {
    const std::string path = write({{"layers.0.key", "I8", {scaled_heads, scaled_tokens, scaled_dim}, all_codes()}});
    DumpOptions options;
    options.scale = "0.25";
    options.zero_point = "-3";
    const KvDump dump(path, options);
    expect_entries(dump, dump.tensors()[0], [](auto h, auto t, auto c) { return 0.25 * (code_at(h, t, c) + 3); });
    EXPECT_EQ(dump.tensors()[0].dtype, DType::f32);
    EXPECT_FALSE(dump.layout().plain.has_value()) << "the stored bytes are not the numbers of the cache";
    EXPECT_TRUE(dump.notes().empty());
    for (const std::vector<std::size_t>& shape : {std::vector<std::size_t>{}, {1}, {1, 1, 1}}) {
        const KvDump of_tensor(with_scale(shape, {0.5F}));
        expect_entries(of_tensor, of_tensor.tensors()[0],
                       [](auto h, auto t, auto c) { return 0.5 * code_at(h, t, c); });
        EXPECT_TRUE(of_tensor.ignored().empty()) << "the scale is not a tensor beside the cache";
    }
}

TEST_F(Scales, VaryAlongTheirAxes) {
    const std::vector<float> of_head = {0.5F, 2.0F}, of_token = {1.0F, 2.0F, 4.0F, 8.0F, 16.0F, 32.0F},
                             of_channel = {0.25F, 0.5F, 1.0F, 2.0F};
    for (const std::vector<std::size_t>& shape :
         {std::vector<std::size_t>{scaled_heads, 1, 1}, {scaled_heads, 1}, {scaled_heads}}) {
        const KvDump dump(with_scale(shape, of_head));
        expect_entries(dump, dump.tensors()[0], [&](auto h, auto t, auto c) { return of_head[h] * code_at(h, t, c); });
    }
    for (const std::vector<std::size_t>& shape : {std::vector<std::size_t>{1, scaled_tokens, 1}, {scaled_tokens}}) {
        const KvDump dump(with_scale(shape, of_token));
        expect_entries(dump, dump.tensors()[0], [&](auto h, auto t, auto c) { return of_token[t] * code_at(h, t, c); });
    }
    const KvDump by_channel(with_scale({1, 1, scaled_dim}, of_channel));
    expect_entries(by_channel, by_channel.tensors()[0],
                   [&](auto h, auto t, auto c) { return of_channel[c] * code_at(h, t, c); });
    std::vector<float> of_row;
    for (std::size_t i = 0; i < scaled_heads * scaled_tokens; ++i) of_row.push_back(static_cast<float>(i + 1) / 4.0F);
    for (const std::vector<std::size_t>& shape :
         {std::vector<std::size_t>{scaled_heads, scaled_tokens, 1}, {scaled_heads, scaled_tokens}}) {
        const KvDump dump(with_scale(shape, of_row));
        expect_entries(dump, dump.tensors()[0],
                       [&](auto h, auto t, auto c) { return of_row[h * scaled_tokens + t] * code_at(h, t, c); });
    }
}

TEST_F(Scales, ZeroPointsOfUnsignedCodesVaryToo) {
    std::string codes = all_codes();
    for (char& code : codes) code = static_cast<char>(code + 60);
    const std::string path = write({{"layers.0.value", "U8", {scaled_heads, scaled_tokens, scaled_dim}, codes},
                                    {"layers.0.value_scale", "F32", {scaled_heads, 1, 1}, raw_floats({0.5F, 2.0F})},
                                    {"layers.0.value_zero", "U8", {scaled_heads, 1, 1}, std::string("\x3c\x32", 2)}});
    DumpOptions options;
    options.scale = "layers.{layer}.{side}_scale";
    options.zero_point = "layers.{layer}.{side}_zero";
    const KvDump dump(path, options);
    expect_entries(dump, dump.tensors()[0], [](auto h, auto t, auto c) {
        return h == 0 ? 0.5 * code_at(h, t, c) : 2.0 * (code_at(h, t, c) + 10);
    });
}

/// Both sides in one paged tensor, [side, block, token, head, dim], whose pages are in another order.
TEST_F(Scales, FollowThePagesOfACache) {
    constexpr std::size_t page = 2;
    const std::array<std::size_t, 3> table = {2, 0, 1};  // page of tokens 0 1, 2 3, 4 5
    std::string codes(2 * scaled_heads * scaled_tokens * scaled_dim, '\0');
    std::vector<float> scale(2 * scaled_tokens);
    for (std::size_t side = 0; side < 2; ++side)
        for (std::size_t t = 0; t < scaled_tokens; ++t) {
            const std::size_t row = (side * 3 + table[t / page]) * page + t % page;
            scale[row] = static_cast<float>(t + 1 + 10 * side);
            for (std::size_t h = 0; h < scaled_heads; ++h)
                for (std::size_t c = 0; c < scaled_dim; ++c)
                    codes[(row * scaled_heads + h) * scaled_dim + c] =
                        static_cast<char>(static_cast<int>(code_at(h, t, c)));
        }
    for (const bool ordered : {false, true}) {
        const std::string path = write({{"kv_cache.5", "I8", {2, 3, page, scaled_heads, scaled_dim}, codes},
                                        {"kv_scale.5", "F32", {2, 3, page, 1, 1}, raw_floats(scale)}},
                                       {{"pattern", "kv_cache.{layer}"},
                                        {"scale", "kv_scale.{layer}"},
                                        {"block_table", ordered ? "0,1,2" : "2,0,1"}},
                                       "side,block,token,head,dim");
        const KvDump dump(path);
        ASSERT_EQ(dump.tensors().size(), 2U);
        for (std::size_t side = 0; side < 2; ++side)
            expect_entries(dump, dump.tensors()[side], [&](auto h, auto t, auto c) {
                // In the order of the file, page 0 holds tokens 2 3, page 1 tokens 4 5, page 2 tokens 0 1.
                const std::size_t token = ordered ? (t + page) % scaled_tokens : t;
                return static_cast<double>(token + 1 + 10 * side) * code_at(h, token, c);
            });
    }
}

TEST_F(Scales, Fp8WithoutAScaleIsReadAsItIsWithANote) {
    const std::string codes("\x38\xc4\x7e\x01", 4);
    const KvDump plain(
        write({{"layers.0.key", "F8_E4M3", {1, 1, 4}, codes}, {"layers.1.key", "F8_E4M3", {1, 1, 4}, codes}}));
    const arma::mat expected = {{1.0, -3.0, 448.0, 0x1p-9}};
    EXPECT_EQ(arma::abs(plain.read_block(plain.tensors()[0], 0, 0, 1) - expected).max(), 0.0);
    EXPECT_EQ(plain.tensors()[0].dtype, DType::f16);
    ASSERT_EQ(plain.notes().size(), 1U);
    EXPECT_NE(plain.notes()[0].find("--scale"), std::string::npos);
    DumpOptions options;
    options.scale = "2";
    const KvDump scaled(plain.path(), options);
    EXPECT_EQ(arma::abs(scaled.read_block(scaled.tensors()[1], 0, 0, 1) - 2.0 * expected).max(), 0.0);
    EXPECT_TRUE(scaled.notes().empty());
    const KvDump nan(write({{"layers.0.key", "F8_E4M3", {1, 1, 4}, std::string("\x38\x7f\x38\x38", 4)}}));
    expect_error(ErrorKind::input, [&] { (void)nan.read_block(nan.tensors()[0], 0, 0, 1); },
                 {"1 NaN or infinite value"});
}

TEST_F(Scales, ScalesThatAreNotPositiveAreRejected) {
    const auto reads = [](const std::string& path) {
        const KvDump dump(path);
        (void)dump.read_block(dump.tensors()[0], 0, 0, scaled_tokens);
    };
    for (const float bad :
         {0.0F, -1.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        std::vector<float> scale(scaled_heads * scaled_tokens, 1.0F);
        scale[2] = bad;
        expect_error(ErrorKind::input,
                     [&] {
                         reads(with_scale({scaled_heads, scaled_tokens, 1}, scale));
                     },
                     {"\"layers.0.key_scale\" holds the scale", "positive, finite"});
        expect_error(ErrorKind::input, [&] { reads(with_scale({1}, {bad})); }, {"\"layers.0.key_scale\""});
    }
}

/// torch saves FP8 numbers that were viewed as uint8 with the dtype U8.
TEST_F(Scales, BytesOfAKindThatIsNamed) {
    const std::string bytes("\x38\xc4\x7e\x01", 4);
    struct Case {
        std::string codes;
        arma::mat numbers;
    };
    // Worked by hand: of E4M3, 0x38 is 2^0, 0xc4 is -1.5 2^1, 0x7e the largest; of E5M2, the first bytes of binary16.
    const Case cases[] = {{"e4m3", {{1.0, -3.0, 448.0, 0x1p-9}}},
                          {"e5m2", {{0.5, -4.0, std::numeric_limits<double>::infinity(), 0x1p-16}}},
                          {"int8", {{56.0, -60.0, 126.0, 1.0}}}};
    for (const auto& [codes, numbers] : cases)
        for (const char* dtype : {"U8", "I8"}) {
            SCOPED_TRACE(codes + dtype);
            // E5M2 has an infinity at 0x7c only: 0x7e is NaN.
            const std::string held = codes == "e5m2" ? std::string("\x38\xc4\x7b\x01", 4) : bytes;
            arma::mat expected = numbers;
            if (codes == "e5m2") expected(0, 2) = 57344.0;
            const auto path = write({{"layers.0.key", dtype, {1, 1, 4}, held}});
            DumpOptions options;
            options.codes = codes;
            options.scale = "2";
            const KvDump scaled(path, options);
            EXPECT_EQ(arma::abs(scaled.read_block(scaled.tensors()[0], 0, 0, 1) - 2.0 * expected).max(), 0.0);
            const KvDump stated(write({{"layers.0.key", dtype, {1, 1, 4}, held}}, {{"codes", codes}, {"scale", "2"}}));
            EXPECT_EQ(arma::abs(stated.read_block(stated.tensors()[0], 0, 0, 1) - 2.0 * expected).max(), 0.0);
            options.scale = "";
            if (codes == "int8") {
                expect_error(ErrorKind::input, [&] { KvDump dump(path, options); }, {"give it with --scale"});
                continue;
            }
            const KvDump plain(path, options);
            EXPECT_EQ(arma::abs(plain.read_block(plain.tensors()[0], 0, 0, 1) - expected).max(), 0.0);
            ASSERT_EQ(plain.notes().size(), 1U);
            EXPECT_NE(plain.notes()[0].find("FP8 numbers are read as they are stored"), std::string::npos);
        }
    DumpOptions options;
    options.codes = "e4m3";
    const auto fp8 = write({{"layers.0.key", "F8_E4M3", {1, 1, 4}, bytes}});
    expect_error(ErrorKind::usage, [&] { KvDump dump(fp8, options); }, {"leave --codes out"});
    options.codes = "e3m4";
    expect_error(ErrorKind::usage, [&] { KvDump dump(fp8, options); }, {"\"e3m4\"", "e4m3"});
    expect_error(ErrorKind::input,
                 [&] {
                     KvDump dump(write({{"layers.0.key", "U8", {1, 1, 4}, bytes}}, {{"codes", "fp8"}}));
                 },
                 {"metadata codes", "--codes"});
    expect_error(ErrorKind::input,
                 [&] {
                     KvDump dump(write({{"layers.0.key", "U8", {1, 1, 4}, bytes}}));
                 },
                 {"--codes e4m3"});
}

/// Groups of channels, of tokens, and of both.
TEST_F(Scales, HoldForGroups) {
    const auto opened = [&](const std::vector<std::size_t>& shape, const std::vector<float>& scale) {
        return KvDump(with_scale(shape, scale));
    };
    const auto some = [](std::size_t count) {
        std::vector<float> scale;
        for (std::size_t i = 0; i < count; ++i) scale.push_back(static_cast<float>(1U << i % 7) / 4.0F + 1.0F);
        return scale;
    };
    const auto expect_note = [](const KvDump& dump, const std::string& text) {
        ASSERT_EQ(dump.notes().size(), 1U);
        EXPECT_NE(dump.notes()[0].find("varies along " + text), std::string::npos) << dump.notes()[0];
    };
    const auto of_all = some(scaled_heads * scaled_tokens * 2), of_tokens = some(scaled_heads * 3 * scaled_dim);
    const KvDump channels = opened({scaled_heads, scaled_tokens, 2}, of_all);
    expect_entries(channels, channels.tensors()[0], [&](auto h, auto t, auto c) {
        return of_all[(h * scaled_tokens + t) * 2 + c / 2] * code_at(h, t, c);
    });
    expect_note(channels, "head, token, dim in groups of 2");
    const KvDump tokens = opened({scaled_heads, 3, scaled_dim}, of_tokens);
    expect_entries(tokens, tokens.tensors()[0], [&](auto h, auto t, auto c) {
        return of_tokens[(h * 3 + t / 2) * scaled_dim + c] * code_at(h, t, c);
    });
    expect_note(tokens, "head, token in groups of 2, dim");
    const KvDump both = opened({1, 2, 2}, some(4));
    expect_entries(both, both.tensors()[0],
                   [&](auto h, auto t, auto c) { return some(4)[t / 3 * 2 + c / 2] * code_at(h, t, c); });
    const KvDump left_out = opened({3}, some(3));
    expect_entries(left_out, left_out.tensors()[0],
                   [&](auto h, auto t, auto c) { return some(3)[t / 2] * code_at(h, t, c); });
    expect_note(left_out, "token in groups of 2");
}

/// A scale of [tokens, groups] for all heads, and one whose meaning its shape does not tell.
TEST_F(Scales, GroupsThatCanBeReadInSeveralWaysAreRejected) {
    const auto codes = [](std::size_t heads, std::size_t tokens, std::size_t dim) {
        return RawTensor{"layers.0.key", "I8", {heads, tokens, dim}, std::string(heads * tokens * dim, '\1')};
    };
    const auto scale = [](const std::vector<std::size_t>& shape) {
        std::size_t count = 1;
        for (const auto size : shape) count *= size;
        std::vector<float> values;
        for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i + 1));
        return RawTensor{"s", "F32", shape, raw_floats(values)};
    };
    DumpOptions options;
    options.scale = "s";
    const KvDump rows(write({codes(3, 8, 16), scale({8, 4})}), options);
    for (std::size_t head = 0; head < 3; ++head) {
        const arma::mat block = rows.read_block(rows.tensors()[0], head, 2, 5);
        for (std::size_t t = 0; t < 5; ++t)
            for (std::size_t c = 0; c < 16; ++c) EXPECT_EQ(block(t, c), static_cast<double>((t + 2) * 4 + c / 4 + 1));
    }
    expect_error(ErrorKind::input,
                 [&] {
                     KvDump dump(write({codes(3, 8, 16), scale({4})}), options);
                 },
                 {"it can vary along token in groups of 2, or along dim in groups of 4", "all axes of the codes"});
    // [tokens, heads] of codes with heads first is in another order, not in groups.
    expect_error(ErrorKind::input,
                 [&] {
                     KvDump dump(write({codes(2, 8, 16), scale({8, 2})}), options);
                 },
                 {"does not fit"});
    // Sizes that agree are meant before groups, and a note says so.
    const KvDump heads(write({codes(4, 8, 16), scale({4})}), options);
    EXPECT_EQ(heads.read_block(heads.tensors()[0], 2, 0, 1)(0, 15), 3.0);
    ASSERT_EQ(heads.notes().size(), 1U);
    EXPECT_NE(heads.notes()[0].find("varies along head"), std::string::npos);
    for (const std::vector<std::size_t>& shape : {std::vector<std::size_t>{1, 8, 3}, {1, 3, 16}, {2, 8, 16}})
        expect_error(ErrorKind::input,
                     [&] {
                         KvDump dump(write({codes(4, 8, 16), scale(shape)}), options);
                     },
                     {"equal groups of tokens or channels"});
}

/// Heads and channels in one axis: groups lie within heads.
TEST_F(Scales, GroupsOfChannelsThatHoldAllHeads) {
    std::string bytes(2 * 12, '\1');
    std::vector<float> scale;
    for (std::size_t i = 0; i < 2 * 6; ++i) scale.push_back(static_cast<float>(i + 1));
    const auto file = [&](const std::vector<std::size_t>& shape) {
        return write({{"layers.0.key", "I8", {2, 12}, bytes}, {"s", "F32", shape, raw_floats(scale)}}, {},
                     "token,hidden");
    };
    DumpOptions options;
    options.scale = "s";
    options.head_dim = 4;
    const KvDump dump(file({2, 6}), options);
    ASSERT_EQ(dump.tensors()[0].heads, 3U);
    for (std::size_t head = 0; head < 3; ++head)
        for (std::size_t t = 0; t < 2; ++t)
            for (std::size_t c = 0; c < 4; ++c)
                EXPECT_EQ(dump.read_block(dump.tensors()[0], head, t, 1)(0, c),
                          static_cast<double>(t * 6 + (head * 4 + c) / 2 + 1));
    options.head_dim = 3;  // a group of 2 channels would lie in two heads
    expect_error(ErrorKind::input, [&] { KvDump other(file({2, 6}), options); }, {"does not fit"});
}

/// Bytes may be integers or FP8 numbers, so a scale alone does not say what they mean.
TEST_F(Scales, BytesNeedAZeroPoint) {
    std::string codes = all_codes();
    for (char& code : codes) code = static_cast<char>(code + 50);
    const auto path = write({{"layers.0.key", "U8", {scaled_heads, scaled_tokens, scaled_dim}, codes}});
    DumpOptions options;
    options.scale = "0.5";
    expect_error(ErrorKind::input, [&] { KvDump dump(path, options); },
                 {"--codes e4m3 or --codes e5m2", "--codes int8", "--zero-point 0"});
    options.zero_point = "0";
    const KvDump dump(path, options);
    expect_entries(dump, dump.tensors()[0], [](auto h, auto t, auto c) { return 0.5 * (code_at(h, t, c) + 50); });
}

TEST_F(Scales, WhatDoesNotFitIsRejected) {
    const auto opened = [](const std::string& path, const std::string& scale = "", const std::string& zero = "") {
        DumpOptions options;
        options.scale = scale;
        options.zero_point = zero;
        return KvDump(path, options).notes();
    };
    const RawTensor codes{"layers.0.key", "I8", {scaled_heads, scaled_tokens, scaled_dim}, all_codes()};
    const RawTensor numbers{"layers.0.value",
                            "F32",
                            {scaled_heads, scaled_tokens, scaled_dim},
                            raw_floats(std::vector<float>(scaled_heads * scaled_tokens * scaled_dim, 1.0F))};
    const std::string plain = write({codes});
    expect_error(ErrorKind::input, [&] { opened(plain); }, {plain, "\"layers.0.key\" has dtype \"I8\"", "--scale"});
    expect_error(ErrorKind::input, [&] { opened(plain, "k_scale"); },
                 {"no tensor is named like the scale \"k_scale\""});
    for (const char* bad : {"0", "-1"})
        expect_error(ErrorKind::usage, [&] { opened(plain, bad); }, {"a positive number is needed", "--scale"});
    expect_error(ErrorKind::input, [&] { opened(plain, "1", "inf"); }, {"the zero point \"inf\""});
    expect_error(ErrorKind::usage, [&] { opened(plain, "{lay}_scale"); }, {"{lay}"});
    for (const char* bad : {"0", "-2", "nan", "{lay}"})
        expect_error(ErrorKind::input, [&] { opened(write({codes}, {{"scale", bad}})); }, {"scale"});
    for (const std::vector<std::size_t>& shape :
         {std::vector<std::size_t>{5}, {1, scaled_tokens}, {scaled_tokens, scaled_heads}}) {
        std::size_t count = 1;
        for (const auto size : shape) count *= size;
        if (shape == std::vector<std::size_t>{1, scaled_tokens}) {
            EXPECT_TRUE(opened(with_scale(shape, std::vector<float>(count, 1.0F))).empty());
            continue;
        }
        expect_error(ErrorKind::input, [&] { opened(with_scale(shape, std::vector<float>(count, 1.0F))); },
                     {"\"layers.0.key_scale\"", "does not fit tensor \"layers.0.key\" of shape [2, 6, 4]"});
    }
    // As many heads as channels: which of them a single axis counts is not guessed.
    expect_error(ErrorKind::input,
                 [&] {
                     opened(write({{"layers.0.key", "I8", {2, 3, 2}, std::string(12, '\1')},
                                   {"s", "F32", {2}, raw_floats({1.0F, 2.0F})}}),
                            "s");
                 },
                 {"does not fit", "store it with all axes of the codes"});
    const std::string one_of_two =
        write({codes,
               {"layers.1.key", "I8", {scaled_heads, scaled_tokens, scaled_dim}, all_codes()},
               {"s.0.key", "F32", {1}, raw_floats({1.0F})}});
    expect_error(ErrorKind::input, [&] { opened(one_of_two, "s.{layer}.{side}"); },
                 {"\"layers.1.key\" has no scale", "for layer 1, key"});
    expect_error(ErrorKind::usage, [&] { opened(write({numbers}), "2"); }, {"holds codes", "leave --scale out"});
    const auto unused = opened(write({numbers}, {{"scale", "2"}}));
    ASSERT_EQ(unused.size(), 1U);
    EXPECT_NE(unused[0].find("not used"), std::string::npos);
    // Numbers beside codes are not scaled.
    DumpOptions options;
    options.scale = "2";
    const KvDump mixed(write({codes, numbers}), options);
    EXPECT_EQ(mixed.read_block(mixed.tensors()[1], 0, 0, 1)(0, 0), 1.0);
    EXPECT_EQ(mixed.read_block(mixed.tensors()[0], 0, 0, 1)(0, 0), 2.0 * code_at(0, 0, 0));
}

}  // namespace
}  // namespace spiked::sim
