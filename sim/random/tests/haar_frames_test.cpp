#include "sim/random/cuda/haar_frames.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/device/emulated_block.hpp"
#include "sim/random/cuda/fill_normals.hpp"
#include "sim/random/cuda/haar_rotations.hpp"
#include "sim/random/haar.hpp"

namespace spiked::stream {
namespace {

const StudySeed frames_seed = StudySeed::parse("0x5eed0000000000000000000000000012");

/// Expects the frames that `launch` computes to be within `allowed` of the host's.
template <class Out, class Launch>
void expect_frames(std::uint32_t rows, std::uint32_t columns, double allowed, const Launch& launch) {
    constexpr std::uint32_t count = 6;  // not a multiple of the number of frames per block
    const std::uint64_t first = (std::uint64_t{1} << 32) - 2;
    const Stream one(frames_seed, "cell", Role::rotation, first);
    std::vector<double> normals(count * rows * columns);
    const FillNormals<double> fill{one.key(), one.counter(0)[1], first, count, rows * columns, normals.data()};
    cuda::EmulatedExecutor().launch(fill, fill.blocks());
    std::vector<Out> separate(normals.size(), Out(-100));
    Out* frames = separate.data();
    if constexpr (sizeof(Out) == sizeof(double)) frames = normals.data();
    launch(count, rows, columns, normals.data(), frames);
    for (std::uint32_t f = 0; f < count; ++f) {
        const arma::mat expected = haar_frame(Stream(frames_seed, "cell", Role::rotation, first + f), rows, columns);
        const Out* const found = frames + f * rows * columns;
        double worst = 0.0;
        for (std::uint32_t c = 0; c < columns; ++c)
            for (std::uint32_t i = 0; i < rows; ++i) {
                const auto entry = static_cast<double>(found[c * rows + i]);
                const double off = std::abs(entry - expected(i, c));
                worst = std::isnan(off) ? INFINITY : std::max(worst, off);
            }
        // Rounding errors in Q grow with the condition number of the Gaussian matrix, in the thousands for square ones.
        EXPECT_LT(worst, allowed) << rows << " x " << columns << ", frame " << f;
    }
}

template <class Out, unsigned warps, unsigned slots>
void expect_frames(std::uint32_t rows, std::uint32_t columns, double allowed) {
    expect_frames<Out>(rows, columns, allowed, [&](auto count, auto, auto, double* normals, Out* frames) {
        const HaarFrames<Out, warps, slots> kernel{count, rows, columns, normals, frames};
        cuda::EmulatedExecutor().launch(kernel, kernel.blocks());
    });
}

TEST(HaarFramesReference, OneWarpPerFrameAgreesWithTheHost) {
    for (const auto& [rows, columns] : {std::pair{1U, 1U}, {5U, 5U}, {33U, 2U}, {128U, 7U}})
        expect_frames<double, 1, 4>(rows, columns, 1e-12);
    expect_frames<double, 1, 8>(250, 3, 1e-13);
}

TEST(HaarFramesReference, OneBlockPerFrameAgreesWithTheHost) {
    expect_frames<float, 16, 8>(40, 9, 1e-7);
    expect_frames<float, 16, 8>(140, 140, 1e-7);
    expect_frames<double, 16, 4>(96, 96, 1e-11);
}

/// The frames of the kernels for rotations.
std::vector<float> rotations(std::uint32_t count, std::uint32_t rows, std::uint32_t columns, double* normals) {
    std::vector<double> factors(count * frame_factors(columns), NAN);
    std::vector<std::uint32_t> first_unsure(count);
    std::vector<float> frames(std::size_t{count} * rows * columns, -100.0F);
    cuda::EmulatedExecutor executor;
    launch_haar_rotations(executor, count, rows, columns, normals, {factors.data(), first_unsure.data()},
                          frames.data());
    return frames;
}

TEST(HaarRotationsReference, AgreeWithTheHost) {
    const auto launch = [](auto count, auto rows, auto columns, double* normals, float* frames) {
        const auto found = rotations(count, rows, columns, normals);
        std::copy(found.begin(), found.end(), frames);
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
                                        {128U, 128U},
                                        {140U, 130U},
                                        {200U, 100U}})
        expect_frames<float>(rows, columns, 3e-7, launch);
}

TEST(HaarRotationsReference, ColumnsThatNearlyDependOnOthersAreMadeOrthogonal) {
    constexpr std::uint32_t size = 96;
    // The distance of two columns from the span of those before them, for each frame.
    const std::vector<std::pair<double, double>> distances{{1.0, 1.0},  {1.0, 1e-3},  {1e-3, 1.0},  {1e-5, 1e-6},
                                                           {1.0, 1e-8}, {1e-3, 2e-3}, {1e-2, 2e-3}, {1e-11, 1e-12}};
    arma::arma_rng::set_seed(5);
    arma::cube normals(size, size, distances.size());
    for (std::size_t f = 0; f < distances.size(); ++f) {
        arma::mat basis;
        arma::mat unused;
        arma::qr(basis, unused, arma::mat(size, size, arma::fill::randn));
        arma::mat& matrix = normals.slice(f);
        matrix = basis;
        const arma::vec weights(size, arma::fill::randn);
        for (const auto& [column, distance] : {std::pair{40U, distances[f].first}, {size - 1, distances[f].second}})
            matrix.col(column) = basis.head_cols(column) * weights.head(column) + distance * basis.col(column);
        matrix *= std::sqrt(static_cast<double>(size));
    }
    const auto found = rotations(static_cast<std::uint32_t>(distances.size()), size, size, normals.memptr());
    for (std::size_t f = 0; f < distances.size(); ++f) {
        const arma::fmat q(const_cast<float*>(found.data()) + f * size * size, size, size, false);
        const arma::mat frame = arma::conv_to<arma::mat>::from(q);
        const double error = arma::abs(frame.t() * frame - arma::eye(size, size)).max();
        EXPECT_LT(error, 6e-7) << f;
        if (distances[f].first < 1e-9) continue;  // below the rounding errors of the matrix itself
        arma::mat expected;
        arma::mat r;
        arma::qr(expected, r, normals.slice(f));
        for (std::size_t c = 0; c < size; ++c) expected.col(c) *= r(c, c) < 0.0 ? -1.0 : 1.0;
        EXPECT_LT(arma::abs(frame - expected).max(), 1e-6) << f;
    }
}

}  // namespace
}  // namespace spiked::stream
