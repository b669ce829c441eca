#include "validation/engine/time_left.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "validation/engine/tests/fake_study.hpp"

namespace spiked::validation {
namespace {

/// A store of two cells of 100 replicates in batches of 10, of blocks of 8 x 8 and of 16 x 16, and its progress.
struct TwoCells {
    TwoCells() {
        FakeStudy study;
        study.cells.resize(2);
        study.most = 100;
        study.batch = 10;
        Experiment experiment = study.experiment();
        experiment.cells[0].rows = experiment.cells[0].columns = 8;
        experiment.cells[1].rows = experiment.cells[1].columns = 16;
        store.emplace(":memory:", experiment, "test", 1, Json::object());
        progress.emplace(store->database());
    }
    /// A batch of a cell that took so long.
    void run(TimeLeft& left, std::size_t cell, std::size_t batch, double seconds) {
        progress->cells()[cell].add(batch, 0, {});
        left.add(cell, 10, seconds);
    }
    std::optional<Store> store;
    std::optional<StudyProgress> progress;
};

TEST(TimeLeft, FollowsTheTimesOfEachCellNotTheNumberOfReplicates) {
    TwoCells two;
    TimeLeft left(two.store->database(), two.progress->cells(), 1.0);
    EXPECT_TRUE(std::isinf(left.seconds(1.0)));
    two.run(left, 1, 0, 8.0);
    // 90 replicates like those, and 100 that take an eighth of the time each, after what is known so far.
    EXPECT_NEAR(left.seconds(8.0), 72.0 + 10.0, 1e-9);
    EXPECT_NEAR(left.seconds(4.0), 41.0, 1e-9) << "two batches ran at a time";
    two.run(left, 0, 0, 0.02);
    EXPECT_NEAR(left.seconds(8.02), 72.0 + 0.18, 1e-9) << "the small blocks were measured to be much cheaper";
    for (std::size_t batch = 1; batch < 10; ++batch) two.run(left, 1, batch, 8.0);
    EXPECT_NEAR(left.seconds(80.02), 0.18, 1e-9);
    // A number of replicates would say: as long as the 110 took, for 90 more.
    EXPECT_LT(left.seconds(80.02), 0.01 * 80.02 * 90.0 / 110.0);
    for (std::size_t batch = 1; batch < 10; ++batch) two.run(left, 0, batch, 0.02);
    EXPECT_NEAR(left.seconds(80.2), 0.0, 1e-9);
}

TEST(TimeLeft, KnowsTheTimesOfEarlierSessionsAndThePartOfAShard) {
    TwoCells two;
    two.store->database().execute("INSERT INTO batch SELECT 1, 0, 0, 10, 0, session_id, 5, 'ab' FROM session");
    StudyProgress progress(two.store->database());
    TimeLeft left(two.store->database(), progress.cells(), 1.0);
    progress.cells()[0].add(1, 0, {});
    left.add(0, 10, 5.0);
    EXPECT_NEAR(left.seconds(5.0), 8 * 5.0 + 100 * 0.5 * 8.0, 1e-9);
    TimeLeft half(two.store->database(), two.progress->cells(), 0.5);
    two.run(half, 1, 0, 10.0);
    // 40 of its 50, and 50 small ones of .5 s each, as they took before.
    EXPECT_NEAR(half.seconds(10.0), 40.0 + 25.0, 1e-9);
}

}  // namespace
}  // namespace spiked::validation
