// tools/export-kv: caches of three kinds, and the real library if it is installed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "app/tests/process.hpp"

namespace spiked::app {
namespace {

constexpr const char* check = SPIKED_SOURCE_DIR "/app/commands/tests/export_kv_check.py";

int python(const std::string& program, const std::string& words) {
    return std::system(("'" + program + "' " + words).c_str());
}

TEST(ExportKv, CachesOfEveryKindGiveTheSameDump) {
    const std::string folder = scratch("export");
    std::filesystem::create_directory(folder);
    ASSERT_EQ(python("/usr/bin/python3", std::string("'") + check + "' stand-in '" + folder + "'"), 0);
    const std::string first = contents(folder + "/tuple.safetensors");
    for (const char* other : {"lists", "layers"}) EXPECT_EQ(contents(folder + "/" + other + ".safetensors"), first);
    const Outcome seen = spiked("kv inspect '" + folder + "/layers.safetensors' --json");
    ASSERT_EQ(seen.code, 0) << seen.err;
    for (const char* text : {"layers.2.value", "\"prompt_id\": \"page 1\"", "\"rope_base\": \"10000.0\""})
        EXPECT_NE(seen.out.find(text), std::string::npos) << text << "\n" << seen.out;
    // The values of head 1 of layer 2; each entry encodes its position.
    ASSERT_EQ(spiked("spectrum '" + folder + "/layers.safetensors:layers.2.value:1' --estimator svd:16 --denoised '" +
                     folder + "/values.npy'")
                  .code,
              0);
    const std::string program = "import numpy; x = numpy.load('" + folder +
                                "/values.npy'); t, d = numpy.indices((128, 16)); y = 4 * 2 + 2 + 1 + (t % 8 * 16 + d) "
                                "/ 128; assert x.shape == (128, 16) and abs(x - y).max() < 1e-9, abs(x - y).max()";
    EXPECT_EQ(python("/usr/bin/python3", "-c \"" + program + "\""), 0);
    EXPECT_EQ(spiked("kv run '" + folder + "/some.safetensors' --method tq-mse --bits 2").code, 0);
    // Keys with the rotary scaling of Llama 3.1, whose base alone would not undo it.
    const Outcome scaled =
        spiked("kv run '" + folder + "/scaled.safetensors' --side key --method unrope+tq-mse --bits 2");
    EXPECT_EQ(scaled.code, 0) << scaled.err;
}

TEST(ExportKv, QueriesThatAreNarrowerThanKeysGiveANote) {
    const std::string folder = scratch("narrow");
    std::filesystem::create_directory(folder);
    const std::string program = std::string("import importlib.machinery as m, numpy; e = m.SourceFileLoader('e', '") +
                                SPIKED_SOURCE_DIR +
                                "/tools/export-kv').load_module(); r = numpy.random.default_rng(1).standard_normal; "
                                "e.write_dump('" +
                                folder +
                                "/narrow.safetensors', [(r((2, 128, 16)), r((2, 128, 16)))], {0: r((2, 128, 4))}, "
                                "{'attention': 'causal', 'keys': 'post-rope'})";
    ASSERT_EQ(python("/usr/bin/python3", "-B -W ignore -c \"" + program + "\""), 0);
    const std::string why =
        "queries are not used (tensor \"layers.0.query\" has 2 heads, 128 tokens and 4 channels, its keys 2, 128 and "
        "16";
    const Outcome seen = spiked("kv inspect '" + folder + "/narrow.safetensors'");
    EXPECT_EQ(seen.code, 0);
    EXPECT_NE(seen.out.find(why), std::string::npos) << seen.out;
    const Outcome run = spiked("kv run '" + folder + "/narrow.safetensors' --method tq-mse --bits 2");
    EXPECT_EQ(run.code, 0);
    EXPECT_NE(run.err.find(why), std::string::npos) << run.err;
    EXPECT_EQ(run.err.find(why), run.err.rfind(why)) << "reported once";
}

/// SPIKED_TRANSFORMERS_PYTHON names a Python that has torch and transformers, for example one of a virtual environment.
TEST(ExportKvReference, QueriesAndKeysGiveTheAttentionOfTheRealModel) {
    const char* known = std::getenv("SPIKED_TRANSFORMERS_PYTHON");
    const std::string program = known == nullptr ? "/usr/bin/python3" : known;
    if (python(program, "-c 'import torch, transformers' >/dev/null 2>&1") != 0)
        GTEST_SKIP() << program << " has no torch or no transformers";
    const std::string folder = scratch("export-real");
    std::filesystem::create_directory(folder);
    ASSERT_EQ(python(program, std::string("'") + check + "' real '" + folder + "' 2>/dev/null"), 0);
    const Outcome run = spiked("kv run '" + folder + "/llama.safetensors' --method tq-mse --bits 4 --json");
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_NE(run.out.find("attention_logits"), std::string::npos);
    EXPECT_EQ(spiked("kv run '" + folder + "/gpt2.safetensors' --method tq-mse --bits 4").code, 0);
}

}  // namespace
}  // namespace spiked::app
