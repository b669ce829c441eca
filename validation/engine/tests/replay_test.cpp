#include "validation/engine/replay.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "validation/engine/tests/fake_study.hpp"

namespace spiked::validation {
namespace {

TEST(Replay, CellsAreFoundByNumberLabelOrHash) {
    const Experiment experiment = FakeStudy{}.experiment();
    const std::string path = scratch_path("replay-cells");
    run_into(experiment, path);
    Database store = open_store(path);
    EXPECT_EQ(find_cell(store, "1"), 0U);
    EXPECT_EQ(find_cell(store, "cell c"), 2U);
    EXPECT_EQ(find_cell(store, experiment.cells[3].hash()), 3U);
    EXPECT_EQ(find_cell(store, experiment.cells[3].hash().substr(0, 8)), 3U);
    for (const std::string& name : {std::string("6"), std::string("cell"), experiment.cells[3].hash().substr(0, 7)})
        EXPECT_NE(message_of([&] { (void)find_cell(store, name); }, ErrorKind::usage).find("is no cell of this store"),
                  std::string::npos)
            << name;
}

TEST(Replay, ComparesEveryValueWithTheStoredOne) {
    FakeStudy study;
    study.raw = 10;
    const Experiment experiment = study.experiment();
    const std::string path = scratch_path("replay");
    run_into(experiment, path);
    {
        Database store = open_store(path);
        for (std::size_t replicate = 0; replicate < 10; ++replicate) {
            const Replay found = replay(store, experiment, 1, replicate, 0.0);
            EXPECT_EQ(found.failure, "");
            EXPECT_EQ(found.values.size(), 7U);
            EXPECT_EQ(found.compared(), 7U);
            EXPECT_EQ(found.differing(), 0U) << replicate;
        }
        // Values from replicate 10 on are not kept.
        const Replay later = replay(store, experiment, 1, 10, 0.0);
        EXPECT_EQ(later.values.size(), 7U);
        EXPECT_EQ(later.compared(), 0U);
        EXPECT_EQ(later.differing(), 0U);
    }
    // Control: one changed value.
    edit(path, "UPDATE value SET v = v + 1e-6 WHERE cell_id = 2 AND rep = 4 AND method_id = 1 AND k = 1");
    Database store = open_store(path);
    const Replay changed = replay(store, experiment, 1, 4, 0.0);
    EXPECT_EQ(changed.differing(), 1U);
    EXPECT_FALSE(changed.values[0].same);
    EXPECT_NEAR(changed.values[0].stored - changed.values[0].now.value, 1e-6, 1e-12);
    EXPECT_EQ(replay(store, experiment, 1, 4, tolerance_between_backends).differing(), 0U);
}

TEST(Replay, MissingValuesAreTheSameOnlyAsEachOther) {
    const Experiment experiment = FakeStudy{}.experiment();
    const std::string path = scratch_path("replay-missing");
    run_into(experiment, path);
    std::size_t missing = 0;
    std::uint64_t one = 0;
    {
        Database store = open_store(path);
        for (std::uint64_t replicate = 0; replicate < 47; ++replicate)
            for (const auto& value : replay(store, experiment, 0, replicate, 0.0).values)
                if (std::isnan(value.now.value)) {
                    EXPECT_TRUE(value.kept && value.same && std::isnan(value.stored));
                    ++missing;
                    one = replicate;
                }
    }
    ASSERT_GT(missing, 0U);
    edit(path, "UPDATE value SET v = 1.0 WHERE v IS NULL AND cell_id = 1 AND rep = " + std::to_string(one));
    Database store = open_store(path);
    EXPECT_EQ(replay(store, experiment, 0, one, tolerance_between_backends).differing(), 1U);
}

TEST(Replay, AFailureIsComparedWithTheStoredOne) {
    FakeStudy study;
    study.cells = {{"fails", 1.0, 1.0, 1.0}};
    study.most = 5;
    const Experiment experiment = study.experiment();
    const std::string path = scratch_path("replay-failure");
    run_into(experiment, path);
    Database store = open_store(path);
    const Replay found = replay(store, experiment, 0, 3, 0.0);
    EXPECT_EQ(found.failure, "planted failure of 3");
    EXPECT_EQ(found.stored_failure, found.failure);
    EXPECT_TRUE(found.values.empty());
}

}  // namespace
}  // namespace spiked::validation
