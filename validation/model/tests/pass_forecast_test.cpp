#include "validation/model/pass_forecast.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/files/tests/scratch.hpp"
#include "core/runtime/memory.hpp"

namespace spiked::validation {
namespace {

using sim::expect_error;
using sim::ScratchFolder;

/// A random model of 3 layers with 2 heads of 8, written by NumPy.
struct ForecastModel {
    ScratchFolder scratch;
    std::string folder = scratch.path("model");
    sim::LlamaConfig shape;

    ForecastModel() {
        std::filesystem::create_directories(folder);
        EXPECT_EQ(std::system(("/usr/bin/python3 '" SPIKED_SOURCE_DIR "/sim/llama/tests/llama_in_numpy.py' '" + folder +
                               "' untied 80 > '" + folder + "/out'")
                                  .c_str()),
                  0);
        shape = sim::read_llama_config(folder);
    }
    /// Full precision and these methods.
    [[nodiscard]] std::vector<codec::CacheVersion> versions(const std::vector<std::string>& methods,
                                                            const std::vector<double>& budgets = {}) const {
        return codec::cache_versions(shape, codec::cache_requests(methods, {2.0}, budgets), {.block_tokens = 16}, 16);
    }
};

/// What a command would say of these passes.
sim::PassMemory said(const ForecastModel& model, const PlannedPasses& passes) {
    sim::PassMemory found;
    PassNotes notes;
    notes.memory = [&](const sim::PassMemory& bytes, std::size_t, std::size_t) { found = bytes; };
    forecast_memory(notes, model.shape, model.folder, passes);
    return found;
}

TEST(PassForecast, MemoryHasTheRotationsOfAllVersionsAndTheLargestState) {
    const ForecastModel model;
    const auto exact = model.versions({});
    const auto one = model.versions({"tq-mse"});
    const auto two = model.versions({"tq-mse", "svd:1+tq-mse"});
    const auto none = model.versions({"kivi"});
    const auto passes = [](const std::vector<codec::CacheVersion>& versions) {
        return PlannedPasses{versions, {70, 70}, {5, 0}, 16, 1};
    };
    // 3 layers, 2 sides and 2 heads, each with a matrix of 8 x 8 in double and in float.
    constexpr double rotations = 12.0 * 64.0 * 12.0;
    EXPECT_EQ(said(model, passes(exact)).codecs, 0.0);
    EXPECT_EQ(said(model, passes(exact)).state, 0.0);
    EXPECT_EQ(said(model, passes(one)).codecs, rotations);
    EXPECT_EQ(said(model, passes(one)).state, rotations);
    EXPECT_EQ(said(model, passes(two)).codecs, 2.0 * rotations);
    EXPECT_EQ(said(model, passes(two)).state, rotations);
    EXPECT_EQ(said(model, passes(none)).codecs, 0.0);
    EXPECT_EQ(said(model, passes(two)).cache, said(model, passes(exact)).cache);
    EXPECT_EQ(passes(exact).longest(), 75);
    // An eviction keeps what each token was attended to: 1 sum and 32 queries in 6 heads, and the weights of a block.
    EXPECT_EQ(said(model, passes(model.versions({"snapkv"}, {0.5}))).state,
              75.0 * (6.0 * 33.0 + 16.0 * static_cast<double>(model.shape.heads / model.shape.kv_heads)) * 4.0);
}

TEST(PassForecast, PassesThatDoNotFitAreAnErrorWithTheirSizes) {
    const ForecastModel model;
    const auto versions = model.versions({"tq-mse"});
    // One pass takes a third of what is allowed, so four at once are too many, and two are not.
    const auto tokens =
        static_cast<std::size_t>(static_cast<double>(allowed_memory()) / (3.0 * 3.0 * 2.0 * 2.0 * 8.0 * 4.0));
    const auto forecast = [&](std::size_t threads) {
        (void)said(model, {versions, {tokens, tokens}, {}, 16, threads});
    };
    forecast(2);
    expect_error(ErrorKind::memory, [&] { forecast(4); },
                 {"out of memory (the weights take 0.00 GB", "4 times the cache of " + std::to_string(tokens),
                  "are allowed): use fewer threads, cut the sequence"});
}

TEST(PassForecast, TimeGrowsWithTheTextsAndFallsWithTheThreads) {
    const ForecastModel model;
    const sim::Llama llama(model.folder);
    const auto versions = model.versions({"tq-mse"});
    std::vector<std::int32_t> text;
    for (std::int32_t t = 0; t < 40; ++t) text.push_back(t);
    const auto seconds = [&](std::size_t texts, std::size_t threads, std::size_t added = 0) {
        return expected_seconds(
            llama, text,
            {versions, std::vector<std::size_t>(texts, 70), std::vector<std::size_t>(texts, added), 16, threads});
    };
    // The work is measured anew by each call, on a machine with other work; factors of hundreds are beyond that.
    const double one = seconds(1, 1);
    EXPECT_GT(one, 0.0);
    EXPECT_GT(seconds(10'000, 1), 100.0 * one);
    EXPECT_LT(seconds(10'000, 1000), 0.1 * seconds(10'000, 1));
    EXPECT_GT(seconds(1, 1, 100'000), 100.0 * one);
    PassNotes notes;
    std::size_t passes = 0;
    notes.time = [&](double, std::size_t count) { passes = count; };
    forecast_time(notes, llama, text, {versions, {70, 70, 70}, {}, 16, 1});
    EXPECT_EQ(passes, 6);
}

}  // namespace
}  // namespace spiked::validation
