#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "core/device/emulated_block.hpp"
#include "estimators/quantizers/cuda/row_codec.hpp"
#include "estimators/tests/quantizer_samples.hpp"
#include "theory/quantization/lloyd_max.hpp"

/// Row quantizers by kernels, on emulated blocks, compared with the float path of the CPU.
namespace spiked::estimators::cuda {
namespace {

using spiked::cuda::EmulatedExecutor;

struct Case {
    RotationKind rotation;
    std::uint32_t rows;
    std::uint32_t dimension;
    unsigned bits;
    std::string quantizer = "tq-mse";
    std::uint32_t group = 64;
    GroupAxis axis = GroupAxis::value;
};

std::ostream& operator<<(std::ostream& out, const Case& one) {
    return out << one.quantizer << ", rotation " << static_cast<int>(one.rotation) << ", " << one.rows << " x "
               << one.dimension << ", " << one.bits << " bits, groups of " << one.group << " along axis "
               << static_cast<int>(one.axis);
}

constexpr std::uint64_t first_replicate = 3;

QuantizerOptions options_of(const Case& one, std::uint64_t replicate = first_replicate) {
    QuantizerOptions options;
    options.rotation = one.rotation;
    options.group = one.group;
    options.axis = one.axis;
    options.seed = test_seed;
    options.rotation_index = replicate;
    return options;
}
RowQuantizer cpu(const Case& one, std::uint64_t replicate = first_replicate) {
    return row_quantizer(one.quantizer, one.dimension, one.bits, options_of(one, replicate));
}

RowCodec codec_of(const Case& one) {
    RowCodec codec;
    codec.bits = one.bits;
    const auto stream = [](stream::Role role) { return stream::Stream(test_seed, "quantizer", role, first_replicate); };
    if (one.quantizer == "kivi") {
        codec.groups = {one.group, one.axis == GroupAxis::key, one.rows, one.dimension};
        return codec;
    }
    for (const auto& [name, scale] :
         {std::pair{"eden", RowScale::unbiased}, std::pair{"eden-mmse", RowScale::least_squares},
          std::pair{"eden-norm", RowScale::norm_matched}})
        if (one.quantizer == name) codec.scale = scale;
    if (one.quantizer == "tq-prod") {
        const stream::Stream sketch = stream(stream::Role::projection);
        codec.sketch = {sketch.key(), sketch.counter(0)[1], first_replicate,
                        std::sqrt(0.5 * std::numbers::pi) / one.dimension};
    }
    for (const auto& [kind, rounds] :
         {std::pair{RotationKind::rht1, 1U}, std::pair{RotationKind::rht2, 2U}, std::pair{RotationKind::fht_kac, 4U}})
        if (one.rotation == kind) codec.hadamard.emplace(stream(stream::Role::rotation), one.dimension, rounds);
    return codec;
}

/// Runs the kernels with the data of a host; every array that they write starts as NaN, or as bytes that they do not
/// write.
class Kernels {
public:
    Kernels(const Case& one, std::uint32_t count, bool each_its_own = false)
        : codec_(codec_of(one)),
          codebook_(theory::lloyd_max_sphere(static_cast<int>(one.dimension), static_cast<int>(one.bits))),
          thresholds_(codebook_.thresholds.begin(), codebook_.thresholds.end()),
          levels_(codebook_.levels.begin(), codebook_.levels.end()) {
        const std::size_t entries = std::size_t{count} * one.rows * one.dimension;
        for (auto* array : {&rotated_, &decoded, &projected_}) array->assign(entries, NAN);
        factors_.assign(std::size_t{count} * one.rows, NAN);
        norms_.assign(factors_.size(), NAN);
        on_.count = count;
        on_.rows = one.rows;
        on_.dimension = one.dimension;
        on_.each_its_own = each_its_own;
        const std::size_t square = std::size_t{on_.sketches()} * one.dimension * one.dimension;
        sketch_.assign(square, NAN);
        if (one.rotation == RotationKind::haar && one.quantizer != "kivi")
            for (std::uint32_t b = 0; b < on_.sketches(); ++b) {
                const arma::fmat back = row_rotation(options_of(one, first_replicate + b), one.dimension)
                                            .rotate(arma::fmat(one.dimension, one.dimension, arma::fill::eye));
                const arma::fmat there = back.t();
                matrix_.insert(matrix_.end(), there.begin(), there.end());
            }
        on_.thresholds = thresholds_.data();
        on_.levels = levels_.data();
        on_.signs = signs_.data();
        on_.matrix = matrix_.empty() ? nullptr : matrix_.data();
        on_.sketch = sketch_.data();
        on_.projected = projected_.data();
        on_.norms = norms_.data();
        on_.factors = factors_.data();
        on_.rotated = rotated_.data();
        on_.decoded = decoded.data();
        on_.stride = codec_.bytes(one.rows, one.dimension) + 3;
        bytes.assign(count * on_.stride, 0xA5);
        status.assign(count, CodingStatus::not_finite);
        on_.status = status.data();
        on_.bytes = bytes.data();
    }
    Kernels(const Kernels&) = delete;

    void run(const std::vector<arma::fmat>& blocks) {
        std::vector<float> from;
        for (const auto& block : blocks) from.insert(from.end(), block.begin(), block.end());
        on_.from = from.data();
        EmulatedExecutor executor;
        CodecKernels kernels(executor, codec_, on_);
        kernels.encode();
        kernels.decode();
    }

    [[nodiscard]] std::vector<std::uint8_t> bytes_of(std::size_t block) const {
        const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(block * on_.stride);
        return {from, from + static_cast<std::ptrdiff_t>(on_.stride - 3)};
    }
    [[nodiscard]] arma::fmat decoded_of(std::size_t block) const {
        return {decoded.data() + block * on_.rows * on_.dimension, on_.rows, on_.dimension};
    }
    /// The bytes between those of two blocks.
    [[nodiscard]] bool gaps_are_untouched() const {
        for (std::size_t b = 1; b <= on_.count; ++b)
            for (std::size_t i = 1; i <= 3; ++i)
                if (bytes[b * on_.stride - i] != 0xA5) return false;
        return true;
    }
    [[nodiscard]] const theory::Codebook& codebook() const { return codebook_; }

private:
    RowCodec codec_;
    theory::Codebook codebook_;
    std::vector<float> thresholds_, levels_, matrix_, rotated_, projected_, factors_, sketch_;
    std::vector<float> signs_ = {0.0F, -1.0F, 1.0F};
    std::vector<double> norms_;
    RowCodecArrays on_;

public:
    std::vector<std::uint8_t> bytes;
    std::vector<CodingStatus> status;
    std::vector<float> decoded;
};

/// Rows of very different sizes, some of them zero.
std::vector<arma::fmat> blocks_of(const Case& one, std::size_t count) {
    std::vector<arma::fmat> blocks;
    for (std::size_t b = 0; b < count; ++b) {
        blocks.push_back(gaussian<float>(one.rows, one.dimension, 10 + b));
        for (std::uint32_t t = 0; t < one.rows; ++t)
            blocks.back().row(t) *= t % 7 == 3 ? 0.0F : std::exp2(static_cast<float>(t % 5) * 3.0F - 9.0F);
    }
    return blocks;
}

TEST(CudaRowCodecIdentity, AfterAHadamardRotationBytesAndDecodedRowsEqualTheCpus) {
    std::vector<Case> cases;
    for (unsigned bits = 1; bits <= 8; ++bits) cases.push_back({RotationKind::rht2, 33, 64, bits});
    cases.push_back({RotationKind::rht1, 1, 8, 3});
    cases.push_back({RotationKind::rht2, 128, 128, 4});
    cases.push_back({RotationKind::rht2, 150, 32, 2});
    cases.push_back({RotationKind::fht_kac, 21, 80, 5});
    cases.push_back({RotationKind::identity, 5, 7, 3});
    for (const char* name : {"eden", "eden-mmse", "eden-norm"})
        for (const unsigned bits : {1U, 3U}) cases.push_back({RotationKind::rht2, 37, 32, bits, name});
    for (const GroupAxis axis : {GroupAxis::key, GroupAxis::value})
        for (const unsigned bits : {1U, 2U, 3U, 8U})
            cases.push_back({RotationKind::haar, 37, 24, bits, "kivi", 10, axis});
    cases.push_back({RotationKind::haar, 128, 128, 2, "kivi", 64, GroupAxis::key});
    for (const Case& one : cases) {
        SCOPED_TRACE(testing::Message() << one);
        const auto blocks = blocks_of(one, 3);
        Kernels kernels(one, 3);
        kernels.run(blocks);
        EXPECT_TRUE(kernels.gaps_are_untouched());
        const RowQuantizer quantizer = cpu(one);
        for (std::size_t b = 0; b < blocks.size(); ++b) {
            EXPECT_EQ(kernels.status[b], CodingStatus::coded);
            const Encoded expected = quantizer.encode_float(blocks[b]);
            EXPECT_EQ(kernels.bytes_of(b), expected.bytes);
            const arma::fmat back = quantizer.decode_float(expected.bytes, one.rows);
            EXPECT_TRUE(arma::all(arma::vectorise(back == kernels.decoded_of(b))));
        }
    }
}

/// Each block has the rotation and the sketch of its own replicate. Products of matrices are added in another order, so
/// a sign next to 0 or an index next to a threshold may differ.
TEST(CudaRowCodecReference, TheSketchOfTheResidualEqualsTheCpus) {
    for (const Case& one :
         {Case{RotationKind::rht2, 40, 64, 2, "tq-prod"}, Case{RotationKind::haar, 24, 48, 3, "tq-prod"},
          Case{RotationKind::identity, 16, 20, 1, "tq-prod"}}) {
        SCOPED_TRACE(testing::Message() << one);
        const auto blocks = blocks_of(one, 3);
        Kernels kernels(one, 3, true);
        kernels.run(blocks);
        EXPECT_TRUE(kernels.gaps_are_untouched());
        for (std::size_t b = 0; b < blocks.size(); ++b) {
            EXPECT_EQ(kernels.status[b], CodingStatus::coded);
            const RowQuantizer quantizer = cpu(one, first_replicate + b);
            const auto expected = quantizer.encode_float(blocks[b]).bytes;
            const auto found = kernels.bytes_of(b);
            ASSERT_EQ(found.size(), expected.size());
            std::size_t differ = 0;
            for (std::size_t i = 0; i < found.size(); ++i) differ += found[i] != expected[i];
            EXPECT_LE(differ, found.size() / 200) << "of " << found.size();
            const auto other = cpu(one, first_replicate + b + 1).encode_float(blocks[b]).bytes;
            std::size_t by_chance = 0;
            for (std::size_t i = 0; i < found.size(); ++i) by_chance += found[i] != other[i];
            EXPECT_GT(by_chance, found.size() / 10) << "negative control: the next replicate's sketch";
            const arma::fmat back = quantizer.decode_float(found, one.rows);
            for (std::uint32_t t = 0; t < one.rows; ++t)
                EXPECT_LE(arma::norm(kernels.decoded_of(b).row(t) - back.row(t)), 1e-5F * arma::norm(back.row(t)));
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

TEST(CudaRowCodecReference, AfterAHaarRotationIndicesDifferOnlyNextToAThreshold) {
    for (const Case& one : {Case{RotationKind::haar, 64, 64, 4}, Case{RotationKind::haar, 33, 128, 8}}) {
        SCOPED_TRACE(testing::Message() << one);
        const auto blocks = blocks_of(one, 2);
        Kernels kernels(one, 2);
        kernels.run(blocks);
        const std::vector<float>& decoded = kernels.decoded;
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
                // Both are sums of some hundred products of size 1 in float.
                EXPECT_NEAR(coordinates[i], kernels.codebook().thresholds[lower], 2e-5);
            }
            EXPECT_LT(differ, found.cells.size() / 20) << "negative control: most coordinates lie next to no threshold";
            const arma::fmat back = quantizer.decode_float(kernels.bytes_of(b), one.rows);
            for (std::uint32_t j = 0; j < one.dimension; ++j)
                for (std::uint32_t t = 0; t < one.rows; ++t)
                    EXPECT_NEAR(decoded[entry++], back(t, j), 1e-5F * arma::norm(back.row(t)));
        }
    }
}

TEST(CudaRowCodec, ABlockThatIsNotCodedHasAStatusAndZerosAndDoesNotAffectOthers) {
    const Case one{RotationKind::rht2, 40, 32, 4};
    auto blocks = blocks_of(one, 7);
    blocks[1](39, 31) = NAN;
    blocks[2](3, 0) = INFINITY;
    blocks[3].row(17).fill(1e-18F);
    blocks[4].row(17).fill(1e5F);
    blocks[5].fill(1e-9F);
    blocks[6].zeros();
    Kernels kernels(one, 7);
    kernels.run(blocks);
    const std::vector<CodingStatus> expected = {CodingStatus::coded,          CodingStatus::not_finite,
                                                CodingStatus::not_finite,     CodingStatus::for_the_host,
                                                CodingStatus::norm_too_large, CodingStatus::norm_too_small,
                                                CodingStatus::coded};
    EXPECT_EQ(kernels.status, expected);
    const RowQuantizer quantizer = row_quantizer("tq-mse", one.dimension, one.bits, options_of(one));
    const std::vector<std::uint8_t> zeros(turboquant_bytes(one.rows, one.dimension, one.bits), 0);
    const std::vector<float>& decoded = kernels.decoded;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        const bool coded = kernels.status[b] == CodingStatus::coded;
        EXPECT_EQ(kernels.bytes_of(b), coded ? quantizer.encode_float(blocks[b]).bytes : zeros) << b;
        if (kernels.status[b] != CodingStatus::coded && kernels.status[b] != CodingStatus::for_the_host)
            message_of([&] { static_cast<void>(quantizer.encode_float(blocks[b])); }, ErrorKind::input);
        const auto from = decoded.begin() + static_cast<std::ptrdiff_t>(b * 40 * 32);
        EXPECT_EQ(std::all_of(from, from + 40 * 32, [](float x) { return x == 0.0F; }), b != 0) << b;
    }
    EXPECT_TRUE(kernels.gaps_are_untouched());
}

/// Numbers that the later kernels of a codec cannot store, and groups beyond the range of fp16.
TEST(CudaRowCodec, LaterKernelsAndGroupsAlsoReportNumbersTheyCannotStore) {
    const auto status_of = [](const Case& one, const std::function<void(arma::fmat&)>& spoil) {
        auto blocks = blocks_of(one, 2);
        spoil(blocks[1]);
        Kernels kernels(one, 2);
        kernels.run(blocks);
        SCOPED_TRACE(testing::Message() << one << ", status " << static_cast<int>(kernels.status[1]));
        EXPECT_EQ(kernels.status[0], CodingStatus::coded);
        EXPECT_EQ(kernels.bytes_of(0), cpu(one).encode_float(blocks[0]).bytes);
        if (kernels.status[1] == CodingStatus::coded)
            EXPECT_EQ(kernels.bytes_of(1), cpu(one).encode_float(blocks[1]).bytes);
        else
            message_of([&] { static_cast<void>(cpu(one).encode_float(blocks[1])); }, ErrorKind::input);
        return kernels.status[1];
    };
    const Case eden{RotationKind::rht2, 16, 32, 1, "eden"};
    // The norm fits into fp16, but the unbiased scale does not.
    const auto nearly = [](arma::fmat& block) {
        block *= 60000.0F / std::sqrt(arma::vectorise(arma::sum(arma::square(block), 1)).max());
    };
    const Case kivi{RotationKind::identity, 16, 32, 2, "kivi", 8, GroupAxis::key};
    EXPECT_EQ(status_of(eden, nearly), CodingStatus::norm_too_large);
    EXPECT_EQ(status_of(eden, [](arma::fmat& block) { block(3, 3) = NAN; }), CodingStatus::not_finite);
    EXPECT_EQ(status_of(kivi, [](arma::fmat& block) { block(15, 31) = NAN; }), CodingStatus::not_finite);
    EXPECT_EQ(status_of(kivi, [](arma::fmat& block) { block(0, 7) = -INFINITY; }), CodingStatus::not_finite);
    EXPECT_EQ(status_of(kivi, [](arma::fmat& block) { block(0, 7) = -1e6F; }), CodingStatus::norm_too_large);
    EXPECT_EQ(status_of(kivi, [](arma::fmat& block) { block.fill(1e-9F); }), CodingStatus::norm_too_small);
    EXPECT_EQ(status_of(kivi, [](arma::fmat& block) { block.zeros(); }), CodingStatus::coded);
}

}  // namespace
}  // namespace spiked::estimators::cuda
