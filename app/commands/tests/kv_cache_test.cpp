// Low-rank caches in `spiked kv frontier` and `kv run`.
#include <gtest/gtest.h>

#include <filesystem>

#include "app/tests/process.hpp"

namespace spiked::app {
namespace {

/// A dump of one of two prompts of one model: 2 layers, 2 heads of dimension 128, 128 tokens.
const std::string& prompt(int index) {
    static const std::array<std::string, 2> paths = [] {
        std::array<std::string, 2> made;
        for (int p = 0; p < 2; ++p) {
            made[p] = scratch("prompt" + std::to_string(p) + ".safetensors");
            EXPECT_EQ(spiked("kv generate -o '" + made[p] + "' --prompt " + std::to_string(p)).code, 0);
        }
        return made;
    }();
    return paths[index];
}

const Json& row_of(const Json& json, const std::string& side, const std::string& method, double bits) {
    for (const auto& row : *json.find("rows")->items())
        if (*row.find("side")->string() == side && *row.find("method")->string() == method &&
            number(row, "bits") == bits)
            return row;
    throw std::runtime_error(side + " " + method + " is missing");
}

TEST(KvCaches, AreInTheFrontierWithTheirBits) {
    const std::string picture = scratch("frontier.svg");
    const Outcome found = spiked("kv frontier '" + prompt(0) + "' --calibrate '" + prompt(1) +
                                 "' --bits 2,3 --method "
                                 "tq-mse,palu:rank=32:heads=1:latents=tq-mse,cskv:window=16:latents=fp16,xkv:rank=16,"
                                 "unrope+xkv:rank=128:factors=fp16,kvtc --json --plot '" +
                                 picture + "'");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json json = found.json();
    ASSERT_EQ(json.find("rows")->items()->size(), 2U * 6 * 2);

    const double tokens = 128;
    const auto& palu = row_of(json, "key", "palu:rank=32:heads=1:latents=tq-mse", 3);
    EXPECT_DOUBLE_EQ(number(palu, "bits_per_entry"), (16 + 3 * 32) / 128.0);
    EXPECT_DOUBLE_EQ(number(palu, "shared_bits"), 16 * 32 / tokens);
    const auto& cskv = row_of(json, "value", "cskv:window=16:latents=fp16", 2);
    EXPECT_DOUBLE_EQ(number(cskv, "bits_per_entry"), (16 * 16.0 + (tokens - 16) * 8.0) / tokens);
    // Both layers joined: 2 x 2 x 128 channels.
    const double channels = 512;
    const auto& xkv = row_of(json, "value", "xkv:rank=16", 2);
    EXPECT_DOUBLE_EQ(number(xkv, "bits_per_entry"),
                     (16 + 16 * 16 + 2 * 16 * (tokens + channels)) / (tokens * channels));
    EXPECT_EQ(number(xkv, "shared_bits"), 0.0);
    EXPECT_TRUE(row_of(json, "key", "tq-mse", 2).find("shared_bits")->is_null());
    // At full rank the cache is restored, after de-rotating and rotating it again.
    EXPECT_LT(number(row_of(json, "key", "unrope+xkv:rank=128:factors=fp16", 2), "relative_l2"), 2e-3);
    EXPECT_GT(number(row_of(json, "key", "xkv:rank=16", 3), "relative_l2"), 0.05);
    EXPECT_GT(number(row_of(json, "key", "kvtc", 2), "relative_l2"),
              number(row_of(json, "key", "kvtc", 3), "relative_l2"));

    const std::string svg = contents(picture);
    for (const char* text : {"</svg>", "convex hull", "Shannon bound of normal entries", "kvtc"})
        EXPECT_NE(svg.find(text), std::string::npos) << text;
}

TEST(KvCaches, DefaultsAndAttention) {
    const Outcome text = spiked("kv frontier '" + prompt(0) + "' --calibrate '" + prompt(1) +
                                "' --bits 2 --layers 0 --heads 0 --rotation rht2 --attention none");
    ASSERT_EQ(text.code, 0) << text.err;
    for (const char* name : {" palu ", " cskv ", " kvtc ", " xkv ", "shared bits"})
        EXPECT_NE(text.out.find(name), std::string::npos) << name;
    const Outcome run =
        spiked("kv run '" + prompt(0) + "' --method tq-mse,xkv:rank=8,xkv:rank=128:factors=fp16 --bits 2 --json");
    ASSERT_EQ(run.code, 0) << run.err;
    const Json json = run.json();
    const auto& exact = row_of(json, "key", "xkv:rank=128:factors=fp16", 2);
    const auto& coarse = row_of(json, "key", "xkv:rank=8", 2);
    EXPECT_LT(number(exact, "attention_output_both"), 0.01);
    EXPECT_GT(number(coarse, "attention_output_both"), 0.05);
    EXPECT_EQ(number(coarse, "mean_rank"), 8.0);
    EXPECT_TRUE(coarse.find("paper_bits")->is_null());
}

TEST(KvCaches, RejectCalibrationOnTheTestedDump) {
    const std::string command = "kv frontier '" + prompt(0) + "' --attention none --bits 2 --side key ";
    const auto rejected = [](const std::string& words, int code, const char* says) {
        const Outcome found = spiked(words);
        EXPECT_EQ(found.code, code) << words << "\n" << found.err;
        EXPECT_NE(found.err.find(says), std::string::npos) << found.err;
        EXPECT_TRUE(found.out.empty());
    };
    rejected(command + "--method palu --calibrate '" + prompt(0) + "'", 2, "same content");
    const std::string copy = scratch("copy.safetensors");
    std::filesystem::copy_file(prompt(0), copy, std::filesystem::copy_options::overwrite_existing);
    rejected(command + "--method kvtc --calibrate '" + prompt(1) + "','" + copy + "'", 2, "same content");
    const std::string wider = scratch("wider.safetensors");
    ASSERT_EQ(spiked("kv generate -o '" + wider + "' --prompt 0 --dtype f32").code, 0);
    rejected(command + "--method palu --calibrate '" + wider + "'", 2, "of the same model");
    rejected(command + "--method cskv", 2, "--calibrate");
    rejected(command + "--method xkv --calibrate '" + prompt(1) + "'", 2, "--calibrate");
    rejected(command + "--method palu --calibrate '" + sample_dump + "'", 4, "layer 1");
    rejected(command + "--method palu:rank=999 --calibrate '" + prompt(1) + "'", 2, "rank 999");
    rejected(command + "--method palu:rnk=9 --calibrate '" + prompt(1) + "'", 2, "rank");
    rejected(command + "--method palu --calibrate nowhere.safetensors", 4, "nowhere.safetensors");
    rejected(command + "--method tq-mse --plot picture.bmp", 2, "picture.bmp");
    rejected("kv encode '" + prompt(0) + "' -o x.spkv --method palu --bits 2", 2, "kv frontier");
    EXPECT_EQ(spiked(command + "--method kvtc --calibrate '" + prompt(1) + "'").code, 0);
}

TEST(KvRun, AWrongNameHasTheSameMessageWhateverOptionsAreGiven) {
    for (const std::string name : {"nonsense", "snapkv", "xkv:no=1"}) {
        const std::string words = "kv run '" + sample_dump + "' --method " + name;
        const Outcome alone = spiked(words);
        EXPECT_EQ(alone.code, 2);
        EXPECT_FALSE(alone.err.empty());
        EXPECT_EQ(spiked(words + " --norm fp16").err, alone.err);
    }
}

}  // namespace
}  // namespace spiked::app
