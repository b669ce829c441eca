#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "estimators/cuda/hadamard.hpp"
#include "estimators/cuda/matrix_rotation.hpp"
#include "estimators/cuda/turboquant.hpp"
#include "estimators/tests/quantizer_samples.hpp"
#include "theory/base/cuda/emulated_block.hpp"
#include "theory/lloyd_max.hpp"

/// tq-mse by kernels, on emulated blocks, against the float path of the row quantizer.
namespace spiked::estimators::cuda {
namespace {

using spiked::cuda::EmulatedExecutor;

struct Case {
    RotationKind rotation;
    std::uint32_t rows;
    std::uint32_t dimension;
    unsigned bits;
};

std::ostream& operator<<(std::ostream& out, const Case& one) {
    return out << "rotation " << static_cast<int>(one.rotation) << ", " << one.rows << " x " << one.dimension << ", "
               << one.bits << " bits";
}

QuantizerOptions options_of(const Case& one) {
    QuantizerOptions options;
    options.rotation = one.rotation;
    options.seed = test_seed;
    options.rotation_index = 3;
    return options;
}

/// The kernels with what a host gives them; every array they write starts as NaN, or bytes that are none of theirs.
class Kernels {
public:
    Kernels(const Case& one, std::uint32_t count)
        : one_(one),
          count_(count),
          codebook_(theory::lloyd_max_sphere(static_cast<int>(one.dimension), static_cast<int>(one.bits))),
          thresholds_(codebook_.thresholds.begin(), codebook_.thresholds.end()),
          levels_(codebook_.levels.begin(), codebook_.levels.end()),
          stride_(turboquant_bytes(one.rows, one.dimension, one.bits) + 3),
          bytes(count * stride_, 0xA5),
          status(count, CodingStatus::not_finite) {
        if (one.rotation == RotationKind::haar)
            matrix_ = row_rotation(options_of(one), one.dimension)
                          .rotate(arma::fmat(one.dimension, one.dimension, arma::fill::eye))
                          .t();
    }

    void encode(const std::vector<arma::fmat>& blocks) {
        std::vector<float> from;
        for (const auto& block : blocks) from.insert(from.end(), block.begin(), block.end());
        std::vector<float> factors(std::size_t{count_} * one_.rows, NAN);
        const ScaleRows scale{count_,       one_.rows,   one_.dimension, std::sqrt(static_cast<double>(one_.dimension)),
                              false,        from.data(), status.data(),  factors.data(),
                              bytes.data(), stride_};
        EmulatedExecutor().launch(scale, scale.blocks());
        const std::vector<float> coordinates = turned(from, false);
        const PackCells pack{count_,        one_.rows,      one_.dimension,     one_.bits,    thresholds_.data(),
                             status.data(), factors.data(), coordinates.data(), bytes.data(), stride_};
        EmulatedExecutor().launch(pack, pack.blocks());
    }
    [[nodiscard]] std::vector<float> decode() const {
        std::vector<float> coordinates(std::size_t{count_} * one_.rows * one_.dimension, NAN);
        const UnpackLevels unpack{count_,
                                  one_.rows,
                                  one_.dimension,
                                  one_.bits,
                                  1.0 / std::sqrt(static_cast<double>(one_.dimension)),
                                  levels_.data(),
                                  bytes.data(),
                                  stride_,
                                  coordinates.data()};
        EmulatedExecutor().launch(unpack, unpack.blocks());
        return turned(coordinates, true);
    }

    [[nodiscard]] std::vector<std::uint8_t> bytes_of(std::size_t block) const {
        const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(block * stride_);
        return {from, from + static_cast<std::ptrdiff_t>(stride_ - 3)};
    }
    /// What lies between two blocks' bytes.
    [[nodiscard]] bool gaps_are_untouched() const {
        for (std::size_t b = 1; b <= count_; ++b)
            for (std::size_t i = 1; i <= 3; ++i)
                if (bytes[b * stride_ - i] != 0xA5) return false;
        return true;
    }
    [[nodiscard]] const theory::Codebook& codebook() const { return codebook_; }

private:
    [[nodiscard]] std::vector<float> turned(const std::vector<float>& from, bool back) const {
        if (one_.rotation == RotationKind::identity) return from;
        std::vector<float> to(from.size(), NAN);
        if (one_.rotation == RotationKind::haar) {
            const arma::fmat turning = back ? arma::fmat(matrix_.t()) : matrix_;
            const TurnByMatrix<float> turn{count_, one_.rows, one_.dimension, turning.memptr(), from.data(), to.data()};
            EmulatedExecutor().launch(turn, turn.blocks());
            return to;
        }
        const unsigned rounds = one_.rotation == RotationKind::rht1 ? 1 : (one_.rotation == RotationKind::rht2 ? 2 : 4);
        const TurnByHadamard<float> turn{
            HadamardPlan(stream::Stream(test_seed, "quantizer", stream::Role::rotation, 3), one_.dimension, rounds),
            back,
            false,
            count_,
            one_.rows,
            from.data(),
            to.data()};
        EmulatedExecutor().launch(turn, turn.blocks());
        return to;
    }

    Case one_;
    std::uint32_t count_;
    theory::Codebook codebook_;
    std::vector<float> thresholds_;
    std::vector<float> levels_;
    arma::fmat matrix_;
    std::size_t stride_;

public:
    std::vector<std::uint8_t> bytes;
    std::vector<CodingStatus> status;
};

/// Rows of very different sizes; some are zero.
std::vector<arma::fmat> blocks_of(const Case& one, std::size_t count) {
    std::vector<arma::fmat> blocks;
    for (std::size_t b = 0; b < count; ++b) {
        blocks.push_back(gaussian<float>(one.rows, one.dimension, 10 + b));
        for (std::uint32_t t = 0; t < one.rows; ++t)
            blocks.back().row(t) *= t % 7 == 3 ? 0.0F : std::exp2(static_cast<float>(t % 5) * 3.0F - 9.0F);
    }
    return blocks;
}

TEST(CudaTurboQuantIdentity, AfterAHadamardRotationBytesAndDecodedRowsAreTheCpus) {
    std::vector<Case> cases;
    for (unsigned bits = 1; bits <= 8; ++bits) cases.push_back({RotationKind::rht2, 33, 64, bits});
    cases.push_back({RotationKind::rht1, 1, 8, 3});
    cases.push_back({RotationKind::rht2, 128, 128, 4});
    cases.push_back({RotationKind::rht2, 150, 32, 2});
    cases.push_back({RotationKind::fht_kac, 21, 80, 5});
    cases.push_back({RotationKind::identity, 5, 7, 3});
    for (const Case& one : cases) {
        SCOPED_TRACE(testing::Message() << one);
        const auto blocks = blocks_of(one, 3);
        Kernels kernels(one, 3);
        kernels.encode(blocks);
        EXPECT_TRUE(kernels.gaps_are_untouched());
        const std::vector<float> decoded = kernels.decode();
        const RowQuantizer quantizer = row_quantizer("tq-mse", one.dimension, one.bits, options_of(one));
        for (std::size_t b = 0; b < blocks.size(); ++b) {
            EXPECT_EQ(kernels.status[b], CodingStatus::coded);
            const Encoded expected = quantizer.encode_float(blocks[b]);
            EXPECT_EQ(kernels.bytes_of(b), expected.bytes);
            const arma::fmat back = quantizer.decode_float(expected.bytes, one.rows);
            EXPECT_TRUE(std::equal(back.begin(), back.end(),
                                   decoded.begin() + static_cast<std::ptrdiff_t>(b * one.rows * one.dimension)));
        }
    }
}

/// Indices and norms of a coded block.
struct Fields {
    std::vector<std::uint64_t> norms;
    std::vector<std::uint8_t> cells;

    Fields(const std::vector<std::uint8_t>& bytes, const Case& one) : cells(one.rows * one.dimension) {
        BitReader reader(bytes);
        for (std::uint32_t t = 0; t < one.rows; ++t) norms.push_back(reader.read(16));
        reader.read_cells(cells, one.bits);
        reader.require_end();
    }
};

TEST(CudaTurboQuantReference, AfterAHaarRotationIndicesDifferOnlyNextToAThreshold) {
    for (const Case& one : {Case{RotationKind::haar, 64, 64, 4}, Case{RotationKind::haar, 33, 128, 8}}) {
        SCOPED_TRACE(testing::Message() << one);
        const auto blocks = blocks_of(one, 2);
        Kernels kernels(one, 2);
        kernels.encode(blocks);
        const std::vector<float> decoded = kernels.decode();
        const QuantizerOptions options = options_of(one);
        const RowQuantizer quantizer = row_quantizer("tq-mse", one.dimension, one.bits, options);
        std::size_t entry = 0;
        for (std::size_t b = 0; b < blocks.size(); ++b) {
            const Fields found(kernels.bytes_of(b), one);
            const Fields expected(quantizer.encode_float(blocks[b]).bytes, one);
            EXPECT_EQ(found.norms, expected.norms);
            const arma::mat coordinates =
                unit_rows(arma::conv_to<arma::mat>::from(blocks[b]), row_rotation(options, one.dimension)).coordinates;
            std::size_t differ = 0;
            for (std::size_t i = 0; i < found.cells.size(); ++i) {
                if (found.cells[i] == expected.cells[i]) continue;
                ++differ;
                const auto lower = std::min(found.cells[i], expected.cells[i]);
                EXPECT_EQ(std::max(found.cells[i], expected.cells[i]), lower + 1);
                // Both sum some hundred products of size 1 in float.
                EXPECT_NEAR(coordinates[i], kernels.codebook().thresholds[lower], 2e-5);
            }
            EXPECT_LT(differ, found.cells.size() / 20) << "a control: most coordinates lie next to no threshold";
            const arma::fmat back = quantizer.decode_float(kernels.bytes_of(b), one.rows);
            for (std::uint32_t j = 0; j < one.dimension; ++j)
                for (std::uint32_t t = 0; t < one.rows; ++t)
                    EXPECT_NEAR(decoded[entry++], back(t, j), 1e-5F * arma::norm(back.row(t)));
        }
    }
}

TEST(CudaTurboQuant, ABlockThatIsNotCodedHasAStatusAndZerosAndLeavesTheOthersAlone) {
    const Case one{RotationKind::rht2, 40, 32, 4};
    auto blocks = blocks_of(one, 7);
    blocks[1](39, 31) = NAN;
    blocks[2](3, 0) = INFINITY;
    blocks[3].row(17).fill(1e-18F);
    blocks[4].row(17).fill(1e5F);
    blocks[5].fill(1e-9F);
    blocks[6].zeros();
    Kernels kernels(one, 7);
    kernels.encode(blocks);
    const std::vector<CodingStatus> expected = {CodingStatus::coded,          CodingStatus::not_finite,
                                                CodingStatus::not_finite,     CodingStatus::for_the_host,
                                                CodingStatus::norm_too_large, CodingStatus::norm_too_small,
                                                CodingStatus::coded};
    EXPECT_EQ(kernels.status, expected);
    const RowQuantizer quantizer = row_quantizer("tq-mse", one.dimension, one.bits, options_of(one));
    const std::vector<std::uint8_t> zeros(turboquant_bytes(one.rows, one.dimension, one.bits), 0);
    const std::vector<float> decoded = kernels.decode();
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        const bool coded = kernels.status[b] == CodingStatus::coded;
        EXPECT_EQ(kernels.bytes_of(b), coded ? quantizer.encode_float(blocks[b]).bytes : zeros) << b;
        if (kernels.status[b] != CodingStatus::coded && kernels.status[b] != CodingStatus::for_the_host)
            message_of([&] { static_cast<void>(quantizer.encode_float(blocks[b])); }, ExitCode::unusable_input);
        const auto from = decoded.begin() + static_cast<std::ptrdiff_t>(b * 40 * 32);
        EXPECT_EQ(std::all_of(from, from + 40 * 32, [](float x) { return x == 0.0F; }), b != 0) << b;
    }
    EXPECT_TRUE(kernels.gaps_are_untouched());
}

}  // namespace
}  // namespace spiked::estimators::cuda
