#include "sim/random/cuda/haar_frames.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "core/device/emulated_block.hpp"
#include "sim/random/cuda/fill_normals.hpp"
#include "sim/random/haar.hpp"

namespace spiked::stream {
namespace {

const StudySeed frames_seed = StudySeed::parse("0x5eed0000000000000000000000000012");

/// Expects the frames that `launch` computes to be within `allowed` of the host's.
template <class Out, class Launch>
void expect_frames(std::uint32_t rows, std::uint32_t columns, bool transposed, double allowed, const Launch& launch) {
    constexpr std::uint32_t count = 6;  // not a multiple of the number of frames per block
    const std::uint64_t first = (std::uint64_t{1} << 32) - 2;
    const Stream one(frames_seed, "cell", Role::rotation, first);
    std::vector<double> normals(count * rows * columns);
    const FillNormals<double> fill{one.key(), one.counter(0)[1], first, count, rows * columns, normals.data()};
    cuda::EmulatedExecutor().launch(fill, fill.blocks());
    std::vector<Out> separate(normals.size(), Out(-100));
    Out* frames = separate.data();
    if constexpr (sizeof(Out) == sizeof(double))
        if (!transposed) frames = normals.data();
    launch(count, rows, columns, normals.data(), frames);
    for (std::uint32_t f = 0; f < count; ++f) {
        const arma::mat expected = haar_frame(Stream(frames_seed, "cell", Role::rotation, first + f), rows, columns);
        const Out* const found = frames + f * rows * columns;
        double worst = 0.0;
        for (std::uint32_t c = 0; c < columns; ++c)
            for (std::uint32_t i = 0; i < rows; ++i)
                worst = std::max(
                    worst,
                    std::abs(static_cast<double>(found[transposed ? i * columns + c : c * rows + i]) - expected(i, c)));
        // Rounding errors in Q grow with the condition number of the Gaussian matrix, in the thousands for square ones.
        EXPECT_LT(worst, allowed) << rows << " x " << columns << ", frame " << f << (transposed ? ", transposed" : "");
    }
}

template <class Out, unsigned warps, unsigned slots>
void expect_frames(std::uint32_t rows, std::uint32_t columns, bool transposed, double allowed) {
    expect_frames<Out>(rows, columns, transposed, allowed, [&](auto count, auto, auto, double* normals, Out* frames) {
        const HaarFrames<Out, warps, slots> kernel{count, rows, columns, normals, frames, transposed};
        cuda::EmulatedExecutor().launch(kernel, kernel.blocks());
    });
}

TEST(HaarFramesReference, OneWarpPerFrameAgreesWithTheHost) {
    for (const bool transposed : {false, true}) {
        for (const auto& [rows, columns] : {std::pair{1U, 1U}, {5U, 5U}, {33U, 2U}, {128U, 7U}})
            expect_frames<double, 1, 4>(rows, columns, transposed, 1e-12);
        expect_frames<double, 1, 8>(250, 3, transposed, 1e-13);
    }
}

TEST(HaarFramesReference, OneBlockPerFrameAgreesWithTheHost) {
    expect_frames<float, 16, 8>(40, 9, true, 1e-7);
    expect_frames<float, 16, 8>(140, 140, false, 1e-7);
    expect_frames<double, 16, 4>(96, 96, false, 1e-11);
}

TEST(HaarRotationsReference, KernelsInRegistersAgreeWithTheHost) {
    const auto launch = [](auto count, auto rows, auto columns, double* normals, float* frames) {
        cuda::EmulatedExecutor executor;
        launch_haar_frames(executor, count, rows, columns, normals, frames);
    };
    for (const auto& [rows, columns] : {std::pair{1U, 1U},
                                        {2U, 2U},
                                        {16U, 16U},
                                        {17U, 17U},
                                        {33U, 2U},
                                        {64U, 64U},
                                        {65U, 65U},
                                        {70U, 70U},
                                        {128U, 33U},
                                        {128U, 128U}})
        expect_frames<float>(rows, columns, false, 1e-6, launch);
}

}  // namespace
}  // namespace spiked::stream
