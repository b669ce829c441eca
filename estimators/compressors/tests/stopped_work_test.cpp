// Long work besides decompositions that is asked to stop: it does, and gives the same result when it is done again.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/runtime/error.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/inference/spike_intervals.hpp"
#include "estimators/tests/quantizer_samples.hpp"
#include "estimators/tests/stop_questions.hpp"

namespace spiked::estimators {
namespace {

/// Work that asks at least `least` times whether to stop stops at the first, the last and a question between them.
void judge_stopped_work(const std::string& name, std::size_t least, const std::function<double()>& work) {
    SCOPED_TRACE(name);
    const double expected = work();
    StopQuestions all;
    {
        const StopScope scope(all.question());
        EXPECT_EQ(work(), expected);
    }
    ASSERT_GE(all.asked, least);
    for (const std::size_t question : {std::size_t{1}, all.asked / 2, all.asked}) {
        StopQuestions some{question, 0};
        {
            const StopScope scope(some.question());
            (void)message_of([&] { (void)work(); }, ErrorKind::stopped);
        }
        EXPECT_EQ(some.asked, question) << "it asked again after it was told to stop";
        EXPECT_EQ(work(), expected);
    }
}

TEST(StoppedWorkIdentity, RanksByCopiesOfTheBlockStopBetweenCopies) {
    AnalysedBlock block(gaussian(40, 60, 0) + 1.0);  // one component
    (void)block.vectors(block.singular_values().size());
    for (const auto& [method, least] : std::vector<std::pair<std::string, std::size_t>>{
             {"svd:pa:level=0.01", 99}, {"tw-test:level=0.01:null=signflip", 99}, {"svd:bcv", 4}, {"svd:ddpa", 2}}) {
        const SpectralMethod parsed = parse_estimator(method);
        judge_stopped_work(method, least, [&] { return static_cast<double>(parsed.estimate(block).rank); });
    }
}

TEST(StoppedWorkIdentity, BootstrapIntervalsStopBetweenReplicates) {
    AnalysedBlock block(gaussian(40, 60, 0) + 1.0);
    const std::vector<double> values = block.singular_values();
    const Shrinkage found = parse_estimator("eoptshrink").estimate(block);
    judge_stopped_work("bootstrap", bootstrap_replicates, [&] {
        return (*spike_intervals(found, values, block.shape(), IntervalMethod::bootstrap, 0.95)).at(0).strength->low;
    });
}

TEST(StoppedWorkIdentity, EncodersThatSearchStopBetweenRows) {
    const arma::mat rows = gaussian(32, 16, 0);
    for (const char* method : {"tcq", "pq"}) {
        const RowQuantizer quantizer = row_quantizer(method, 16, 2, {});
        judge_stopped_work(method, 32, [&] { return arma::accu(through(quantizer, rows)); });
    }
}

}  // namespace
}  // namespace spiked::estimators
