// Decompositions that are asked to stop: they do, wherever the question comes, and give the same bits when made again.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/runtime/error.hpp"
#include "core/runtime/stop_point.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/svd/batch_decomposition.hpp"
#include "estimators/svd/tests/random_blocks.hpp"
#include "estimators/tests/stop_questions.hpp"

namespace spiked::estimators {
namespace {

using namespace random_blocks;

template <class Real>
struct DecomposedWhole {
    std::vector<double> values;
    arma::Mat<Real> left, right;
};

template <class Real>
DecomposedWhole<Real> decomposed(BatchDecomposition<Real>& by, const std::vector<Real>& entries, std::size_t wanted) {
    DecomposedWhole<Real> found;
    by.decompose(entries);
    const auto values = by.singular_values(0);
    found.values.assign(values.begin(), values.end());
    by.leading_vectors(0, wanted, &found.left, &found.right);
    return found;
}

template <class Real>
void expect_equal(const DecomposedWhole<Real>& found, const DecomposedWhole<Real>& expected) {
    EXPECT_EQ(found.values, expected.values);
    EXPECT_TRUE(std::equal(found.left.begin(), found.left.end(), expected.left.begin(), expected.left.end()));
    EXPECT_TRUE(std::equal(found.right.begin(), found.right.end(), expected.right.begin(), expected.right.end()));
}

/// Stops the decomposition of a block at `places` of its stop points, of which there are at least `least`.
template <class Real>
void judge_stops(const arma::mat& block, std::size_t wanted, std::size_t least, std::size_t places) {
    SCOPED_TRACE(fmt::format("{} x {}, {} vectors, {} bytes", block.n_rows, block.n_cols, wanted, sizeof(Real)));
    const auto entries = side_by_side<Real>({block});
    BatchDecomposition<Real> fresh({block.n_rows, block.n_cols});
    const auto expected = decomposed(fresh, entries, wanted);
    BatchDecomposition<Real> one({block.n_rows, block.n_cols});
    StopQuestions all;
    {
        const StopScope scope(all.question());
        expect_equal(decomposed(one, entries, wanted), expected);
    }
    ASSERT_GE(all.asked, least);
    for (std::size_t i = 0; i <= places; ++i) {
        StopQuestions some{1 + i * (all.asked - 1) / places, 0};
        {
            const StopScope scope(some.question());
            try {
                (void)decomposed(one, entries, wanted);
                ADD_FAILURE() << "not stopped at question " << some.stop_at;
            } catch (const Error& error) {
                EXPECT_EQ(error.kind(), ErrorKind::stopped);
            }
        }
        EXPECT_EQ(some.asked, some.stop_at) << "it asked again after it was told to stop";
        expect_equal(decomposed(one, entries, wanted), expected);
    }
}

TEST(StoppedDecompositionIdentity, EveryWayStopsAnywhereAndGivesTheSameBitsAgain) {
    Random random(3);
    judge_stops<double>(random_gaussian(random, 90, 80), 8, 80, 40);
    judge_stops<float>(random_gaussian(random, 80, 90), 8, 80, 40);
    judge_stops<double>(random_gaussian(random, 160, 60), 8, 60, 40);  // by its Gram matrix
    const arma::mat low_rank = random_gaussian(random, 150, 3) * random_gaussian(random, 3, 140);
    judge_stops<double>(low_rank, 3, 140 + 140 / 16, 40);  // small values by bisection
    judge_stops<double>(with_spectrum(random, 90, 80, arma::vec(80, arma::fill::ones)), 8, 80, 40);
    judge_stops<double>(random_gaussian(random, 710, 700), 100, 700 + 2 * 700 / 16, 8);  // in two stages
}

TEST(StoppedDecompositionIdentity, ThreadsThatWorkOnOneMatrixStopToo) {
    Random random(5);
    const arma::mat block = random_gaussian(random, 720, 700);
    const auto entries = side_by_side<double>({block});
    BatchDecomposition<double> alone({720, 700});
    const auto expected = decomposed(alone, entries, 100);
    BatchDecomposition<double> shared({720, 700}, Instructions::best, 3);
    for (const std::size_t question : {3, 20, 40}) {
        StopQuestions some{question, 0};  // of the thread that calls
        {
            const StopScope scope(some.question());
            EXPECT_THROW((void)decomposed(shared, entries, 100), Error) << question;
        }
        expect_equal(decomposed(shared, entries, 100), expected);
    }
}

TEST(StoppedDecomposition, ABlockMayBeAnalysedAgain) {
    Random random(4);
    const arma::mat entries = random_gaussian(random, 60, 50);
    const std::vector<double> shrunk = {1.0, 0.5};
    const arma::mat expected = AnalysedBlock(entries).denoised(shrunk);
    AnalysedBlock block(entries);
    const auto stopped_at = [&](std::size_t question) {
        StopQuestions some{question, 0};
        const StopScope scope(some.question());
        EXPECT_THROW((void)block.denoised(shrunk), Error) << question;
    };
    for (const std::size_t question : {1, 20, 50}) stopped_at(question);
    (void)block.singular_values();
    for (const std::size_t question : {1, 2, 3}) stopped_at(question);  // among the vectors
    const arma::mat found = block.denoised(shrunk);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
}

}  // namespace
}  // namespace spiked::estimators
