#include <gtest/gtest.h>

#include <filesystem>

#include "app/tests/process.hpp"

namespace spiked::app {
namespace {

TEST(KvGenerateCommand, WritesADumpThatOtherCommandsRead) {
    const std::string dump = scratch("like-1.safetensors");
    const std::string again = scratch("like-2.safetensors");
    const std::string words =
        "kv generate --tokens 96 --head-dim 16 --layers 2 --heads 1 --query-heads 3 --dtype f32 -o '";
    const Outcome written = spiked(words + dump + "' --json");
    ASSERT_EQ(written.code, 0) << written.err;
    EXPECT_EQ(*written.json().find("schema")->string(), "spiked.generate/1");
    EXPECT_EQ(number(written.json(), "query_heads"), 3);
    // The same options write the same bytes; another prompt has other tokens.
    ASSERT_EQ(spiked(words + again + "'").code, 0);
    EXPECT_TRUE(contents(dump) == contents(again));
    ASSERT_EQ(spiked(words + again + "' --prompt 1").code, 0);
    EXPECT_TRUE(contents(dump) != contents(again));

    const Outcome inspected = spiked("kv inspect '" + dump + "' --json");
    ASSERT_EQ(inspected.code, 0) << inspected.err;
    const Json inspection = inspected.json();
    EXPECT_EQ(inspection.find("tensors")->items()->size(), 6U);
    const Outcome run = spiked("kv run '" + dump + "' --block 32 --bits 2 --method tq-mse,eoptshrink+tq-mse --json");
    ASSERT_EQ(run.code, 0) << run.err;
    const Json table = run.json();
    EXPECT_EQ(table.find("rows")->items()->size(), 4U);
    for (const Json& row : *table.find("rows")->items()) EXPECT_EQ(number(row, "blocks"), 2 * 3);
    std::filesystem::remove(dump);
    std::filesystem::remove(again);
}

TEST(KvGenerateCommand, PlantsNeedlesThatAreFound) {
    const std::string dump = scratch("needles.safetensors");
    const Outcome written = spiked("kv generate --tokens 512 --head-dim 64 --needles 32 --noise 0.9 -o '" + dump + "'");
    ASSERT_EQ(written.code, 0) << written.err;
    EXPECT_NE(written.out.find("spiked kv retrieve"), std::string::npos);
    const Outcome found = spiked("kv retrieve '" + dump + "' --method tq-mse,unrope+tq-mse --bits 1,4 --json");
    ASSERT_EQ(found.code, 0) << found.err;
    EXPECT_NE(spiked("kv retrieve '" + dump + "' --bits 2").out.find("unrope+"), std::string::npos);
    const Json document = found.json();
    const auto& rows = *document.find("rows")->items();
    EXPECT_GE(number(rows[0], "right"), 0.75);
    EXPECT_LT(number(rows[1], "log_probability"), number(rows[2], "log_probability") - 0.3);
    EXPECT_NEAR(number(rows[2], "log_probability"), number(rows[0], "log_probability"), 0.1);
    EXPECT_EQ(spiked("kv run '" + dump + "' --method tq-mse --bits 2").code, 0);
    // Keys without an embedding cannot be de-rotated, so that there is no default method with unrope.
    ASSERT_EQ(spiked("kv generate --tokens 512 --head-dim 64 --needles 32 --no-rotary -o '" + dump + "'").code, 0);
    const Outcome plain = spiked("kv retrieve '" + dump + "' --bits 2");
    EXPECT_EQ(plain.code, 0) << plain.err;
    EXPECT_EQ(plain.out.find("unrope+"), std::string::npos) << plain.out;
    EXPECT_NE(plain.out.find("eoptshrink+tq-mse"), std::string::npos) << plain.out;
    EXPECT_EQ(spiked("kv retrieve '" + dump + "' --method unrope+tq-mse").code, 4);
    // Questions with a logit that is too small.
    ASSERT_EQ(spiked("kv generate --tokens 512 --needles 32 --needle-logit 1 -o '" + dump + "'").code, 0);
    const Outcome weak = spiked("kv retrieve '" + dump + "'");
    EXPECT_EQ(weak.code, 4);
    EXPECT_NE(weak.err.find("expected at least half"), std::string::npos) << weak.err;
    std::filesystem::remove(dump);
}

TEST(KvGenerateCommand, NeedlesAreFoundAtAnyNoise) {
    const std::string dump = scratch("noise.safetensors");
    double fine = 0.0;
    for (const char* noise : {"0.01", "0.2", "3", "40"}) {
        ASSERT_EQ(spiked("kv generate --tokens 512 --head-dim 64 --needles 32 --noise " + std::string(noise) + " -o '" +
                         dump + "'")
                      .code,
                  0);
        const Outcome found = spiked("kv retrieve '" + dump + "' --method tq-mse --bits 2 --json");
        ASSERT_EQ(found.code, 0) << noise << found.err;
        const Json document = found.json();
        const auto& rows = *document.find("rows")->items();
        EXPECT_GE(number(rows[0], "right"), 0.9) << noise;
        EXPECT_GE(number(rows[0], "attention_mass"), 0.9) << noise;
        // Quantization loses the differences between tokens if these are small compared with their common part.
        if (noise == std::string("0.01")) fine = number(rows[1], "right");
    }
    EXPECT_LT(fine, 0.5);
    std::filesystem::remove(dump);
}

TEST(KvGenerateCommand, RejectsInvalidOptions) {
    for (const char* name : {"y.st", "y", "y.npz"}) {
        const Outcome named = spiked("kv generate -o '" + scratch(name) + "'");
        EXPECT_EQ(named.code, 2);
        EXPECT_NE(named.err.find("name it FILE.safetensors"), std::string::npos) << named.err;
        EXPECT_FALSE(std::filesystem::exists(scratch(name)));
    }
    EXPECT_EQ(spiked("kv generate --tokens 90 --needles 30 -o /tmp/never.safetensors").code, 2);
    EXPECT_EQ(spiked("kv generate --noise 0 --needles 4 -o /tmp/never.safetensors").code, 2);
    EXPECT_EQ(spiked("kv generate --noise -1 -o /tmp/never.safetensors").code, 2);
    EXPECT_EQ(spiked("kv generate --head-dim 3 -o /tmp/never.safetensors").code, 2);
    EXPECT_EQ(spiked("kv generate --layers 0 -o /tmp/never.safetensors").code, 2);
    const Outcome dtype = spiked("kv generate --dtype fp16 -o /tmp/never.safetensors");
    EXPECT_EQ(dtype.code, 2);
    EXPECT_NE(dtype.err.find("did you mean \"f16\""), std::string::npos) << dtype.err;
    EXPECT_EQ(spiked("kv generate --tokens 8 --head-dim 16 -o /nowhere/x.safetensors").code, 6);
}

}  // namespace
}  // namespace spiked::app
