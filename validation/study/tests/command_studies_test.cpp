#include "validation/study/command_studies.hpp"

#include <gtest/gtest.h>

#include "core/files/tests/scratch.hpp"
#include "core/runtime/error.hpp"
#include "sim/kv/kv_like.hpp"
#include "validation/kv/kv_measurement.hpp"

namespace spiked::validation {
namespace {

/// A small dump with queries whose keys are rotated, or not.
std::string write_dump(const sim::ScratchFolder& folder, const std::string& name, std::size_t head_dim, bool rotary) {
    sim::KvLikeOptions options;
    options.tokens = 16;
    options.head_dim = head_dim;
    options.hidden = 20;
    options.context.rank = 2;
    options.outliers.channels = 2;
    if (!rotary) options.rotary.reset();
    const std::string path = folder.path(name);
    sim::write_kv_like(path, options, {.layers = 1, .heads = 2});
    return path;
}

KvPlan plan_of(std::vector<std::string> dumps) {
    KvPlan plan;
    plan.dumps = std::move(dumps);
    plan.block_tokens = 8;
    return plan;
}

TEST(CommandStudies, DefaultMethodsFollowFromTheDumps) {
    using Names = std::vector<std::string>;
    const sim::ScratchFolder folder;
    const std::string rotated = write_dump(folder, "rotated.safetensors", 8, true);
    const std::string plain = write_dump(folder, "plain.safetensors", 8, false);
    const Names of_rotated = {"unrope+tcq"};
    EXPECT_EQ(default_methods(plan_of({rotated}), {"tcq"}, of_rotated), (Names{"tcq", "unrope+tcq"}));
    EXPECT_EQ(default_methods(plan_of({rotated, plain}), {"tcq"}, of_rotated), Names{"tcq"});
    KvPlan values = plan_of({rotated});
    values.side = sim::Side::value;
    EXPECT_EQ(default_methods(values, {"tcq"}, of_rotated), Names{"tcq"});
    KvPlan calibrated = plan_of({rotated});
    calibrated.calibration = {plain};
    EXPECT_EQ(default_methods(calibrated, {"tcq"}, of_rotated),
              (Names{"tcq", "palu", "cskv", "ojakv", "kvtc", "unrope+tcq", "unrope+kvtc"}));
    calibrated.dumps = {plain};
    EXPECT_EQ(default_methods(calibrated, {}, of_rotated), (Names{"palu", "cskv", "ojakv", "kvtc"}));
}

TEST(OpenDumps, DumpsThatCannotBeReadHaveNoRotaryKeys) {
    const sim::ScratchFolder folder;
    const std::string rotated = write_dump(folder, "rotated.safetensors", 8, true);
    const std::string broken = folder.write("broken.safetensors", "no dump");
    EXPECT_TRUE(all_have_rotary_keys({rotated}, {}));
    EXPECT_FALSE(all_have_rotary_keys({rotated, broken}, {}));
    EXPECT_FALSE(all_have_rotary_keys({folder.path("missing.safetensors")}, {}));
}

TEST(OpenDumps, ModelsDifferInTheirNameOrTheirChannels) {
    const sim::ScratchFolder folder;
    const std::string narrow = write_dump(folder, "narrow.safetensors", 8, true);
    const std::string wide = write_dump(folder, "wide.safetensors", 10, false);
    EXPECT_EQ(models_of(plan_of({narrow, narrow})), std::set<std::string>{"kv-like (8 channels a head)"});
    EXPECT_EQ(models_of(plan_of({narrow, wide})),
              (std::set<std::string>{"kv-like (10 channels a head)", "kv-like (8 channels a head)"}));
}

std::vector<DumpMethod> methods_of(const std::vector<std::string>& names) {
    std::vector<DumpMethod> methods;
    for (const auto& name : names) methods.push_back(dump_method(name));
    return methods;
}

TEST(CommandStudies, ADumpStudyHoldsAllThatItsNumbersDependOn) {
    const sim::ScratchFolder folder;
    const std::string dump = write_dump(folder, "a.safetensors", 8, true);
    KvPlan plan = plan_of({dump});
    plan.quantizer.seed = stream::StudySeed::parse("0x7");
    const Experiment found =
        dump_experiment(plan, methods_of({"xkv", "tq-mse"}), {2.0, 3.0}, {"spiked kv run a", true});
    EXPECT_EQ(found.name, "kv-run");
    EXPECT_EQ(found.title, "a.safetensors");
    EXPECT_EQ(found.kind, "kv_dump");
    EXPECT_EQ(found.config_source, "spiked kv run a");
    EXPECT_EQ(found.seed.text(), plan.quantizer.seed.text());
    EXPECT_EQ(found.seed_source, "cli");
    EXPECT_EQ(found.raw_per_cell, 0U);
    EXPECT_FALSE(found.claims.empty());
    EXPECT_EQ(found.cells.size(), 4U);  // two heads of keys and of values
    // The names as they were given; the methods with codecs first.
    EXPECT_EQ(found.science.find("methods")->text(), R"(["xkv","tq-mse",2,3])");
    std::vector<std::string> methods;
    for (const auto& method : found.methods) methods.push_back(method.base);
    EXPECT_EQ(methods, (std::vector<std::string>{"sample", "tq-mse", "tq-mse", "xkv", "xkv"}));

    const std::string other = write_dump(folder, "b.safetensors", 8, false);
    const Experiment two = dump_experiment(plan_of({dump, other}), methods_of({"tq-mse"}), {2.0}, {"", false});
    EXPECT_EQ(two.title, "2 dumps");
    EXPECT_EQ(two.seed_source, "config");
    EXPECT_EQ(two.cells.size(), 8U);
}

TEST(CommandStudies, AttentionIsMeasuredUnlessItIsLeftOut) {
    const sim::ScratchFolder folder;
    KvPlan plan = plan_of({write_dump(folder, "a.safetensors", 8, true)});
    EXPECT_TRUE(measures_attention(dump_experiment(plan, methods_of({"tq-mse"}), {2.0}, {})));
    plan.attention = AttentionMode::none;
    EXPECT_FALSE(measures_attention(dump_experiment(plan, methods_of({"tq-mse"}), {2.0}, {})));
}

TEST(CommandStudies, NamesAndBitsAreCheckedBeforeFiles) {
    const KvPlan plan = plan_of({"missing.safetensors"});
    for (const char* method : {"tq-msee", "no-such+tq-mse", "snapkv", "xkv:no=1"})
        sim::expect_error(ErrorKind::usage, [&] { (void)dump_method(method); }, {""});
    for (const char* method : {"tq-mse", "causal-klt"})
        sim::expect_error(ErrorKind::usage, [&] { (void)dump_experiment(plan, methods_of({method}), {9.0}, {}); },
                          {"to 8"});
}

}  // namespace
}  // namespace spiked::validation
