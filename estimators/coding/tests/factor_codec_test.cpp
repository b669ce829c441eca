#include "estimators/coding/factor_codec.hpp"

#include <gtest/gtest.h>

#include "estimators/compressors/compressor.hpp"
#include "estimators/tests/quantizer_samples.hpp"
#include "theory/quantization/quantizer_errors.hpp"

namespace spiked::estimators {
namespace {

LowRank random_signal(std::size_t rows, std::size_t columns, std::size_t rank, std::uint64_t replicate) {
    arma::mat left;
    arma::mat right;
    arma::mat unused;
    EXPECT_TRUE(arma::qr_econ(left, unused, gaussian(rows, rank, replicate)));
    EXPECT_TRUE(arma::qr_econ(right, unused, gaussian(columns, rank, replicate + 1000)));
    return {left, arma::linspace(5.0, 2.0, rank), right};
}

struct Stored {
    arma::mat matrix;
    Ledger ledger;
};

Stored through(const FactorOptions& options, const LowRank& signal) {
    const FactorCodec codec(options);
    BitWriter writer;
    codec.write(writer, signal);
    EXPECT_EQ(writer.ledger().total(), 8 * writer.bytes().size());
    const auto read = codec.read(writer.bytes(), signal.left.n_rows, signal.right.n_rows);
    EXPECT_EQ(read.bytes, writer.bytes().size());
    return {read.matrix, writer.ledger()};
}

TEST(FactorCodec, FittedLevelsAreNeverWorseThanTheFixedOnesOnTheirBlock) {
    for (std::size_t trial = 0; trial < 30; ++trial) {
        arma::vec vector = gaussian(10 + 10 * trial, 1, trial).col(0);
        if (trial % 3 == 1) vector = arma::square(vector);
        if (trial % 3 == 2) vector.tail(vector.n_elem / 2).zeros();
        vector /= arma::norm(vector);
        for (const unsigned bits : {1U, 2U, 4U, 8U}) {
            // The right vector is the single entry 1; its decoded value is divided out.
            const auto error = [&](FactorCodebook kind) {
                const FactorOptions options{.codebook = kind, .bits = bits, .norm = NumberFormat::fp64};
                const arma::vec one(1, arma::fill::ones);
                const double squared = through(options, LowRank{one, one, one}).matrix(0, 0);
                return arma::norm(through(options, LowRank{vector, one, one}).matrix.col(0) / std::sqrt(squared) -
                                  vector);
            };
            EXPECT_LE(error(FactorCodebook::lloyd), error(FactorCodebook::normal) * (1.0 + 1e-3))
                << trial << " " << bits;
        }
    }
}

TEST(FactorCodec, FittedLevelsHelpWhereEntriesAreNotNormal) {
    LowRank signal = random_signal(128, 96, 2, 1);
    signal.left = arma::sign(signal.left) / std::sqrt(128.0);
    signal.left.col(1) %= arma::vec(arma::sign(gaussian(128, 1, 9).col(0)));
    const arma::mat matrix = signal.left * arma::diagmat(signal.values) * signal.right.t();
    const auto error = [&](FactorCodebook kind) {
        return relative_error(through({.codebook = kind, .bits = 3}, signal).matrix, matrix);
    };
    EXPECT_LT(error(FactorCodebook::lloyd), 0.85 * error(FactorCodebook::normal));
    EXPECT_LT(error(FactorCodebook::fp16), 1e-3);
}

TEST(FactorCodec, ErrorOfTheFixedLevelsIsTheirDistortionForBothSides) {
    // The relative squared error of a component is about D per side.
    const LowRank signal = random_signal(400, 300, 1, 2);
    for (unsigned bits = 2; bits <= 6; ++bits) {
        const double expected = 2.0 * theory::lloyd_max_normal(static_cast<int>(bits)).distortion;
        const double found = std::pow(relative_error(through({.bits = bits}, signal).matrix, signal.matrix()), 2);
        EXPECT_NEAR(found, expected, 0.25 * expected) << bits;
    }
}

TEST(FactorCodec, BitsByHand) {
    // Rank 3 of 20 x 10: the rank takes 16 bits, the values 3 x 16, and the 3 (20 + 10) entries 4 each, 360: 424 bits =
    // 53 bytes.
    const LowRank signal = random_signal(20, 10, 3, 3);
    const Ledger plain = through({}, signal).ledger;
    EXPECT_EQ(plain.bits(Item::ranks), 16U);
    EXPECT_EQ(plain.bits(Item::singular_values), 48U);
    EXPECT_EQ(plain.bits(Item::factor_indices), 360U);
    EXPECT_EQ(plain.bits(Item::codebooks), 0U);
    EXPECT_EQ(plain.total(), 424U);
    // Fitted levels: two codebooks of 16 levels in fp16, 512 bits more.
    const Ledger fitted = through({.codebook = FactorCodebook::lloyd}, signal).ledger;
    EXPECT_EQ(fitted.bits(Item::codebooks), 512U);
    EXPECT_EQ(fitted.total(), 936U);
    // fp16 entries: 90 x 16 bits. log8 values: 32 bits and 3 bytes.
    const Ledger whole = through({.codebook = FactorCodebook::fp16, .norm = NumberFormat::log8}, signal).ledger;
    EXPECT_EQ(whole.bits(Item::factor_indices), 1440U);
    EXPECT_EQ(whole.bits(Item::singular_values), 56U);
    EXPECT_EQ(whole.total(), 1512U);
    // 3 bits: 16 + 48 + 270 = 334 bits, and two more to fill the last byte.
    const Ledger odd = through({.bits = 3}, signal).ledger;
    EXPECT_EQ(odd.bits(Item::padding), 2U);
    EXPECT_EQ(odd.total(), 336U);
    // Rank 0: only the rank is stored.
    const Stored none =
        through({.codebook = FactorCodebook::lloyd}, LowRank{arma::mat(20, 0), arma::vec(), arma::mat(10, 0)});
    EXPECT_EQ(none.ledger.total(), 16U);
    EXPECT_EQ(arma::abs(none.matrix).max(), 0.0);
}

TEST(FactorCodec, DamagedBytesAreRejected) {
    const LowRank signal = random_signal(20, 10, 3, 4);
    for (const auto kind : {FactorCodebook::normal, FactorCodebook::lloyd, FactorCodebook::fp16}) {
        const FactorCodec codec({.codebook = kind});
        BitWriter writer;
        codec.write(writer, signal);
        for (std::size_t length = 0; length < writer.bytes().size(); ++length)
            message_of([&] { (void)codec.read({writer.bytes().data(), length}, 20, 10); }, ErrorKind::input);
        std::vector<std::uint8_t> bytes = writer.bytes();
        for (const unsigned rank : {11U, 200U}) {
            bytes[0] = static_cast<std::uint8_t>(rank);
            for (const auto& [rows, columns] : {std::pair{20, 10}, {10, 20}}) {
                const std::string message = message_of(
                    [&, rows = rows, columns = columns] { (void)codec.read(bytes, rows, columns); }, ErrorKind::input);
                EXPECT_NE(message.find("rank " + std::to_string(rank)), std::string::npos) << message;
            }
        }
    }
}

/// Error of a block with three strong components at 4 bits, with 4-bit factors.
double composed_error(bool open_loop, FactorCodebook kind) {
    const LowRank signal = random_signal(128, 128, 3, 5);
    // Most of the energy is in the signal: a fraction of .23 remains, as in keys.
    const arma::mat block = 12.0 * signal.matrix() + gaussian(128, 128, 6) * 0.26;
    AnalysedBlock analysed(block);
    const Compressor compressor(parse_method("svd:3+tq-mse"), 128, 4,
                                {.factor_codebook = kind, .open_loop = open_loop, .seed = test_seed});
    return relative_error(compressor.decode(compressor.encode(analysed).encoded.bytes, 128), block);
}

TEST(FactorCodec, AnOpenLoopKeepsTheErrorOfTheFactorsAndAClosedLoopRemovesIt) {
    const double closed = composed_error(false, FactorCodebook::normal);
    const double open = composed_error(true, FactorCodebook::normal);
    std::cout << "4 bits: closed loop " << closed << ", open loop " << open << "\n";
    EXPECT_LT(closed, 0.065);
    EXPECT_GT(open, 0.10);
    // With nearly exact factors the kind of loop makes no difference.
    EXPECT_NEAR(composed_error(true, FactorCodebook::fp16), composed_error(false, FactorCodebook::fp16), 1e-3);
}

}  // namespace
}  // namespace spiked::estimators
