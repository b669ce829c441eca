#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "core/runtime/error.hpp"
#include "estimators/quantizers/quantizer_table.hpp"
#include "estimators/svd/decomposition.hpp"
#include "validation/trials/cuda/device_passes.hpp"
#include "validation/trials/device_trials.hpp"

namespace spiked::validation::cuda {
namespace {

using spiked::cuda::Backend;

constexpr std::size_t plenty = std::size_t{1} << 28;

BlocksToDecompose blocks_of(std::uint32_t rows, std::uint32_t columns, bool in_float) {
    std::mt19937_64 random(5);
    std::normal_distribution<double> normal;
    BlocksToDecompose blocks{rows, columns, 3, in_float, {}};
    for (std::size_t i = 0; i < 2 * std::size_t{rows} * columns; ++i) blocks.blocks.push_back(normal(random));
    return blocks;
}

TEST(DecompositionPass, EveryPartGivesTheSingularValuesOfTheDifferentBlocks) {
    for (const bool in_float : {false, true}) {
        const auto blocks = blocks_of(10, 17, in_float);
        std::vector<double> reference;
        for (const double* block : {blocks.blocks.data(), blocks.blocks.data() + 170})
            for (const double value : estimators::singular_values(arma::mat(block, 10, 17))) reference.push_back(value);
        for (const auto part : {DecompositionPart::bidiagonal, DecompositionPart::values, DecompositionPart::vectors}) {
            const auto pass = decomposition_pass(Backend::emulated, 0, plenty, blocks, 3, part);
            pass->run();
            pass->run();
            EXPECT_EQ(pass->blocks(), 3U);
            const auto found = pass->outcome();
            if (part == DecompositionPart::bidiagonal) {
                EXPECT_TRUE(found.empty());
                continue;
            }
            ASSERT_EQ(found.size(), 20U);
            for (std::size_t k = 0; k < 20; ++k)
                EXPECT_NEAR(found[k], reference[k], (in_float ? 1e-5 : 1e-13) * reference[0]);
        }
    }
}

TEST(DecompositionPass, UsesTheBlocksThatFitInMemoryAndRejectsNaN) {
    const auto blocks = blocks_of(16, 16, false);
    const auto pass = decomposition_pass(Backend::emulated, 0, 200000, blocks, 64, DecompositionPart::vectors);
    EXPECT_LT(pass->blocks(), 64U);
    EXPECT_GE(pass->blocks(), 2U);
    auto broken = blocks;
    broken.blocks[300] = std::nan("");  // an entry of the second block
    const auto with_nan = decomposition_pass(Backend::emulated, 0, plenty, broken, 4, DecompositionPart::values);
    with_nan->run();
    EXPECT_THROW((void)with_nan->outcome(), Error);
}

TEST(CodingPass, HasTheErrorOfTheCodec) {
    estimators::QuantizerOptions options;
    options.rotation = estimators::RotationKind::rht2;
    const auto coding = row_coding(estimators::quantizer_spec("tq-mse"), options, {8, 32}, 4);
    std::mt19937_64 random(6);
    std::normal_distribution<double> normal;
    arma::fmat block(8, 32);
    for (float& entry : block) entry = static_cast<float>(normal(random));
    const FillBlock fill = [&](std::size_t, float* to) { std::copy(block.begin(), block.end(), to); };
    const arma::mat exact = arma::conv_to<arma::mat>::from(block);
    const auto quantizer = estimators::row_quantizer("tq-mse", 32, 4, options);
    const arma::mat decoded = quantizer.decode(quantizer.encode(exact).bytes, 8);
    const double error = arma::accu(arma::square(decoded - exact)) / arma::accu(arma::square(exact));
    for (const auto part : {CodingPart::encode, CodingPart::decode, CodingPart::encode_and_copy}) {
        const auto pass = coding_pass(Backend::emulated, 0, plenty, coding, 3, fill, part);
        pass->run();
        EXPECT_NEAR(pass->outcome().front(), error, 1e-4 * error);
    }
    block(3, 3) = std::nanf("");
    EXPECT_THROW((void)coding_pass(Backend::emulated, 0, plenty, coding, 3, fill, CodingPart::encode), Error);
}

TEST(LibraryPass, GivesTheReasonWhyItIsNotSupported) {
    EXPECT_EQ(library_unsupported_reason(Backend::emulated, blocks_of(16, 16, true)), "no GPU is timed");
    EXPECT_EQ(library_unsupported_reason(Backend::cuda, blocks_of(10, 17, true)), "more columns than rows");
    const std::string problem = library_unsupported_reason(Backend::cuda, blocks_of(17, 10, true));
    if (std::filesystem::exists("/usr/local/cuda/lib64/libcusolver.so"))
        EXPECT_TRUE(problem.empty() || problem == "this build has no CUDA code") << problem;
    else
        EXPECT_FALSE(problem.empty());
}

}  // namespace
}  // namespace spiked::validation::cuda
