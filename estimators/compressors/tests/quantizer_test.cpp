#include <gtest/gtest.h>

#include <cmath>

#include "estimators/coding/byte_stream.hpp"
#include "estimators/coding/row_norms.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/tests/quantizer_samples.hpp"

namespace spiked::estimators {
namespace {

/// A method that is said to draw nothing has the same bytes under any seed; the control is one that draws.
TEST(Seeds, AMethodThatDrawsNothingHasTheSameBytesUnderAnySeed) {
    const auto codes_of = [](const MethodSpec& method, std::uint64_t index) {
        const unsigned bits = method.quantizer.entry().widths[method.quantizer.entry().widths.size() / 2];
        QuantizerOptions options;
        options.rotation_index = index;
        AnalysedBlock block(gaussian<double>(64, 64, 3));
        return Compressor(method, 64, bits, options).encode(block).encoded.bytes;
    };
    std::size_t without = 0;
    for (const auto& entry : row_quantizers()) {
        const MethodSpec method = parse_method(entry.name);
        if (draws_random_numbers(method)) continue;
        ++without;
        EXPECT_EQ(codes_of(method, 0), codes_of(method, 1)) << entry.name;
        const MethodSpec residual = parse_method("svd:pa+" + entry.name);
        EXPECT_FALSE(draws_random_numbers(residual)) << entry.name;
        EXPECT_EQ(codes_of(residual, 0), codes_of(residual, 1)) << entry.name;
    }
    EXPECT_GT(without, 2U);
    for (const char* random : {"tq-mse", "eoptshrink+tq-mse"}) {
        EXPECT_TRUE(draws_random_numbers(parse_method(random))) << random;
        EXPECT_NE(codes_of(parse_method(random), 0), codes_of(parse_method(random), 1)) << random;
    }
}

TEST(BitStream, FieldsOfAnyWidthAreReadBackAndEveryBitIsCounted) {
    BitWriter writer;
    std::vector<std::pair<std::uint64_t, unsigned>> fields;
    for (std::uint32_t i = 0; i < 5000; ++i) {
        const auto words = stream::philox_4x32_10({i, 0, 0, 0}, {1, 2});
        const unsigned bits = 1 + words[0] % 64;
        const std::uint64_t value = (std::uint64_t{words[1]} << 32 | words[2]) & (~0ULL >> (64 - bits));
        fields.emplace_back(value, bits);
        writer.write(i % 2 == 0 ? Item::indices : Item::norms, value, bits);
        if (i % 97 == 0) writer.align();
    }
    writer.align();
    EXPECT_EQ(writer.ledger().total(), 8 * writer.bytes().size());
    BitReader reader(writer.bytes());
    for (std::size_t i = 0; i < fields.size(); ++i) {
        ASSERT_EQ(reader.read(fields[i].second), fields[i].first);
        if (i % 97 == 0) reader.align();
    }
    EXPECT_TRUE(reader.at_end());
    EXPECT_THROW((void)reader.read(64), Error);
}

TEST(BitStream, CellsAndListsAreTheFieldsOneByOne) {
    for (unsigned bits = 1; bits <= 8; ++bits)
        for (const std::size_t count : {0, 1, 7, 8, 31, 32, 33, 100, 257})
            for (const unsigned before : {0U, 3U, 8U}) {
                std::vector<std::uint8_t> cells(count);
                for (std::size_t i = 0; i < count; ++i)
                    cells[i] = static_cast<std::uint8_t>(
                        stream::philox_4x32_10({static_cast<std::uint32_t>(i), bits, 0, 0}, {5, 6})[0] &
                        ((1U << bits) - 1U));
                BitWriter one_by_one;
                BitWriter together;
                for (BitWriter* writer : {&one_by_one, &together})
                    if (before > 0) writer->write(Item::norms, 5, before);
                for (const std::uint8_t cell : cells) one_by_one.write(Item::indices, cell, bits);
                together.write_cells(Item::indices, cells, bits);
                const std::vector<std::uint64_t> list(cells.begin(), cells.end());
                for (const std::uint64_t value : list) one_by_one.write(Item::scales, value, 16);
                together.write_all(Item::scales, list, 16);
                one_by_one.align();
                together.align();
                ASSERT_EQ(one_by_one.bytes(), together.bytes()) << bits << " " << count << " " << before;
                ASSERT_EQ(one_by_one.ledger().total(), together.ledger().total());
                BitReader reader(together.bytes());
                if (before > 0) (void)reader.read(before);
                std::vector<std::uint8_t> read(count);
                reader.read_cells(read, bits);
                ASSERT_EQ(read, cells);
                for (const std::uint64_t value : list) ASSERT_EQ(reader.read(16), value);
                // Bytes that end within the fields.
                const std::size_t needed = (before + count * bits + 7) / 8;
                if (count > 0) {
                    BitReader cut(std::span(together.bytes()).first(needed - 1));
                    if (before <= 8 * (needed - 1) && before > 0) (void)cut.read(before);
                    EXPECT_THROW(cut.read_cells(read, bits), Error);
                }
            }
}

TEST(RowNorms, AreCorrectWhereSquaresExceedTheRangeOfTheirType) {
    const arma::rowvec row = gaussian(1, 40, 12);
    const double norm = arma::norm(row);
    for (const double size : {1.0, 1e-155, 1e-162, 1e-300, 1e154, 1e300})
        EXPECT_NEAR(row_norms(arma::mat(row * size)).front() / (norm * size), 1.0, 1e-14) << size;
    for (const float size : {1.0F, 1e-19F, 1e-21F, 1e-30F, 1e19F, 1e37F}) {
        const arma::fmat small = arma::conv_to<arma::fmat>::from(row) * size;
        const double exact = arma::norm(arma::conv_to<arma::rowvec>::from(small));
        EXPECT_NEAR(row_norms(small).front() / exact, 1.0, 4e-6) << size;
    }
}

TEST(RowNorms, NormsBeyondTheRangeAreRejected) {
    const std::string overflow = message_of([] { (void)row_norms(arma::mat{{1.5e308, 1.5e308}}); }, ErrorKind::input);
    EXPECT_NE(overflow.find("1.5e+308"), std::string::npos) << overflow;
    EXPECT_EQ(overflow.find("NaN"), std::string::npos) << overflow;
    // Also if the other entries are zeros: Armadillo's norm of these is 0.
    for (const double bad : {std::nan(""), HUGE_VAL})
        for (const double beside : {1.0, 0.0}) {
            const auto rejected = [&](const auto& row) {
                return message_of([&] { (void)row_norms(row); }, ErrorKind::input);
            };
            EXPECT_NE(rejected(arma::mat{{beside, bad}}).find("NaN"), std::string::npos) << beside;
            EXPECT_NE(rejected(arma::fmat{{static_cast<float>(beside), static_cast<float>(bad)}}).find("NaN"),
                      std::string::npos)
                << beside;
        }
}

TEST(TurboQuant, RowsOfTheSmallestDoublesAreKeptOrRejected) {
    const arma::mat rows = arma::round(gaussian(3, 16, 13) * 1e4) * 5e-324;
    for (const char* name : {"tq-mse", "tq-prod", "eden", "rabitq", "tcq", "ecsq", "pq", "polarquant"}) {
        message_of([&] { (void)row_quantizer(name, 16, 4, {.seed = test_seed}).encode(rows); }, ErrorKind::input);
        EXPECT_LT(
            arma::norm(
                through(row_quantizer(name, 16, 4, {.norm = NumberFormat::fp64, .seed = test_seed}), rows) * 0x1p1000 -
                    rows * 0x1p1000,
                "fro"),
            0.25 * arma::norm(rows * 0x1p1000, "fro"))
            << name;
    }
}

TEST(TurboQuant, BitsAreThoseOfTheBytesAndByHand) {
    // 128 x 128 at 2 bits: 128 norms of 16 bits and 16384 indices of 2; 5 x 3 at 3 bits: 80 + 45 = 125, padded to 128.
    const Encoded square = row_quantizer("tq-mse", 128, 2, {.seed = test_seed}).encode(gaussian(128, 128, 1));
    EXPECT_EQ(square.bytes.size(), 128U * 2 + 128 * 128 * 2 / 8);
    EXPECT_EQ(square.ledger.bits(Item::norms), 128U * 16);
    EXPECT_EQ(square.ledger.bits(Item::indices), 128U * 128 * 2);
    const Encoded odd = row_quantizer("tq-mse", 3, 3, {.seed = test_seed}).encode(gaussian(5, 3, 1));
    EXPECT_EQ(odd.bytes.size(), 16U);
    EXPECT_EQ(odd.ledger.bits(Item::padding), 3U);
    EXPECT_EQ(odd.ledger.total(), 8 * odd.bytes.size());
}

TEST(TurboQuant, ScalesWithTheRowsExactly) {
    const arma::mat rows = gaussian(20, 64, 2);
    const RowQuantizer quantizer = row_quantizer("tq-mse", 64, 3, {.norm = NumberFormat::fp64, .seed = test_seed});
    const arma::mat once = quantizer.decode(quantizer.encode(rows).bytes, 20);
    const arma::mat scaled = quantizer.decode(quantizer.encode(rows * 1024.0).bytes, 20);
    EXPECT_LT(arma::abs(scaled - once * 1024.0).max(), 1e-12 * arma::abs(scaled).max());
}

TEST(TurboQuant, ZeroRowsStayZeroAndDoNotAffectOthers) {
    arma::mat rows = gaussian(4, 32, 3);
    const RowQuantizer quantizer = row_quantizer("tq-mse", 32, 4, {.seed = test_seed});
    const arma::mat before = quantizer.decode(quantizer.encode(rows).bytes, 4);
    rows.row(2).zeros();
    const arma::mat after = quantizer.decode(quantizer.encode(rows).bytes, 4);
    EXPECT_TRUE(arma::all(after.row(2) == 0.0));
    EXPECT_TRUE(arma::approx_equal(after.row(3), before.row(3), "absdiff", 0.0));
}

TEST(TurboQuant, RowsThatCannotBeStoredAreRejected) {
    const RowQuantizer quantizer = row_quantizer("tq-mse", 4, 2, {.seed = test_seed});
    const arma::mat large(1, 4, arma::fill::value(1e5));
    const std::string overflow = message_of([&] { (void)quantizer.encode(large); }, ErrorKind::input);
    EXPECT_NE(overflow.find("200000"), std::string::npos) << overflow;
    EXPECT_NE(overflow.find("--norm bf16 or fp32"), std::string::npos) << overflow;
    EXPECT_NO_THROW((void)row_quantizer("tq-mse", 4, 2, {.norm = NumberFormat::bf16, .seed = test_seed}).encode(large));
    for (const double bad : {std::nan(""), HUGE_VAL}) {
        arma::mat rows(2, 4, arma::fill::ones);
        rows(1, 1) = bad;
        message_of([&] { (void)quantizer.encode(rows); }, ErrorKind::input);
    }
    const Encoded whole = quantizer.encode(arma::mat(3, 4, arma::fill::ones));
    message_of([&] { (void)quantizer.decode({whole.bytes.data(), whole.bytes.size() - 1}, 3); }, ErrorKind::input);
}

TEST(TurboQuant, BitsOutsideOneToEightAndUnknownNamesAreRejected) {
    for (const unsigned bits : {0U, 9U})
        message_of([&] { (void)row_quantizer("tq-mse", 8, bits, {}); }, ErrorKind::usage);
    const std::string message = message_of([&] { (void)parse_method("tq-mes"); }, ErrorKind::usage);
    EXPECT_NE(message.find("did you mean \"tq-mse\""), std::string::npos) << message;
    for (const char* name : {"svd:1+", "unrope+", ""}) {
        const std::string nothing = message_of([&] { (void)parse_method(name); }, ErrorKind::usage);
        EXPECT_NE(nothing.find(std::string("write ") + name + "tq-mse"), std::string::npos) << nothing;
    }
    for (const char* name : {"eoptshrink", "svd:1+", "+tq-mse", "svd+tq-mse", "tq-mse:3+tq-mse", ""})
        message_of([&] { (void)parse_method(name); }, ErrorKind::usage);
}

TEST(TurboQuant, ProdSketchesTheResidualOfTheStoredNorm) {
    // Norms in log8 have a larger error than 8-bit indices: the norm of the residual shows from which norm it was
    // formed.
    constexpr std::size_t n = 40;
    constexpr std::size_t d = 64;
    const arma::mat rows = gaussian(n, d, 11);
    const QuantizerOptions options{.norm = NumberFormat::log8, .seed = test_seed};
    const RowQuantizer prod = row_quantizer("tq-prod", d, 8, options);
    const arma::vec left =
        arma::sqrt(arma::sum(arma::square(rows - through(row_quantizer("tq-mse", d, 8, options), rows)), 1));
    const arma::vec indices_alone = arma::sqrt(arma::sum(
        arma::square(rows -
                     through(row_quantizer("tq-mse", d, 8, {.norm = NumberFormat::fp64, .seed = test_seed}), rows)),
        1));
    EXPECT_GT(arma::mean(left), 1.3 * arma::mean(indices_alone));  // negative control
    for (const Encoded& encoded : {prod.encode(rows), prod.encode_float(arma::conv_to<arma::fmat>::from(rows))}) {
        BitReader reader(encoded.bytes);
        for (std::size_t bit = 0; bit < 32 + 8 * n + 8 * n * d; ++bit) (void)reader.read(1);
        arma::vec stored(n);
        read_numbers(reader, {stored.memptr(), n}, NumberFormat::log8);
        EXPECT_LT(arma::max(arma::abs(stored / left - 1.0)), 0.02);
    }
}

TEST(TurboQuant, SeedAndIndexChooseTheRotation) {
    const arma::mat rows = gaussian(1, 64, 4);
    const auto bytes = [&](const QuantizerOptions& options) {
        return row_quantizer("tq-mse", 64, 4, options).encode(rows).bytes;
    };
    EXPECT_EQ(bytes({.seed = test_seed}), bytes({.seed = test_seed}));
    EXPECT_NE(bytes({.seed = test_seed}), bytes({.seed = stream::StudySeed::parse("0x1")}));
    EXPECT_NE(bytes({.seed = test_seed}), bytes({.seed = test_seed, .rotation_index = 1}));
}

TEST(Compressor, BitsOfACompositionAddUpByHand) {
    // svd:1 at 128 x 128, 4-bit factors: rank 16, value 16, 256 entries of 4, then the rows.
    AnalysedBlock block(gaussian(128, 128, 5));
    const Compressor compressor(parse_method("svd:1+tq-mse"), 128, 2, {.seed = test_seed});
    const auto [encoded, rank] = compressor.encode(block);
    EXPECT_EQ(rank, 1U);
    EXPECT_EQ(encoded.ledger.bits(Item::ranks), 16U);
    EXPECT_EQ(encoded.ledger.bits(Item::singular_values), 16U);
    EXPECT_EQ(encoded.ledger.bits(Item::factor_indices), 1024U);
    EXPECT_EQ(encoded.ledger.total(), 8 * encoded.bytes.size());
    EXPECT_EQ(encoded.bytes.size(), (16U + 16 + 1024 + 128 * 16 + 128 * 128 * 2) / 8);
    EXPECT_DOUBLE_EQ(compressor.paper_bits(1, 128), 2.0625);
    // Rank 3 of 64 x 128: 3 (64 + 128) 4 / 8192.
    EXPECT_DOUBLE_EQ(compressor.paper_bits(3, 64), 2.28125);
}

TEST(Compressor, TheResidualIsFormedAfterTheFactorsAreDecoded) {
    // A strong rank-one block: an open loop would keep the error of the 4-bit factors (over 10 %) for any number of
    // residual bits.
    const arma::mat block = 50.0 * arma::normalise(gaussian(128, 1, 6)) * arma::normalise(gaussian(128, 1, 7)).t() +
                            gaussian(128, 128, 8) / std::sqrt(128.0);
    AnalysedBlock analysed(block);
    for (const char* method : {"svd:1+tq-mse", "eoptshrink+tq-mse"}) {
        const Compressor compressor(parse_method(method), 128, 8, {.seed = test_seed});
        const auto [encoded, rank] = compressor.encode(analysed);
        EXPECT_EQ(rank, 1U);
        EXPECT_LT(relative_error(compressor.decode(encoded.bytes, 128), block), 0.005) << method;
    }
}

TEST(Compressor, ZeroRowsColumnsAndBlocksAreHandled) {
    arma::mat block = gaussian(40, 24, 9);
    block.row(3).zeros();
    block.col(5).zeros();
    for (const arma::mat& data : {block, arma::mat(40, 24)})
        for (const char* method : {"tq-mse", "svd:1+tq-mse", "eoptshrink+tq-mse"}) {
            AnalysedBlock analysed(data);
            const Compressor compressor(parse_method(method), 24, 8, {.seed = test_seed});
            const auto [encoded, rank] = compressor.encode(analysed);
            const arma::mat decoded = compressor.decode(encoded.bytes, 40);
            EXPECT_TRUE(decoded.is_finite());
            EXPECT_LT(arma::norm(decoded - data, "fro"), 0.02 * arma::norm(data, "fro") + 1e-300) << method;
        }
}

TEST(Compressor, ARankTooLargeForTheBlockIsRejected) {
    for (const auto& [name, most] : {std::pair{"svd:7+tq-mse", 7U},
                                     {"optshrink:6+tq-mse", 7U},
                                     {"eoptshrink:rank=6+kivi", 7U},
                                     {"whiten+svd:7+eden", 7U}})
        for (const bool tall : {true, false}) {
            const auto encode = [&, name = name](std::size_t side) {
                const std::size_t columns = tall ? side : 12;
                AnalysedBlock block(gaussian(tall ? 12 : side, columns, 1));
                (void)Compressor(parse_method(name), columns, 2, {.seed = test_seed}).encode(block);
            };
            EXPECT_NO_THROW(encode(most)) << name;
            const std::string message = message_of([&, most = most] { encode(most - 1); }, ErrorKind::usage);
            EXPECT_NE(message.find(tall ? "12 x 6" : "6 x 12"), std::string::npos) << message;
            EXPECT_NE(message.find("needs 7"), std::string::npos) << message;
        }
    // Rows of zeros are stripped before the rank is estimated; they do not count towards the size of the block.
    arma::mat rows = gaussian(12, 12, 2);
    rows.tail_rows(9).zeros();
    AnalysedBlock block(rows);
    EXPECT_NO_THROW((void)Compressor(parse_method("svd:7+tq-mse"), 12, 2, {.seed = test_seed}).encode(block));
}

TEST(Compressor, AliasesHaveTheirMeaning) {
    AnalysedBlock block(gaussian(64, 32, 10));
    const auto bytes = [&](const char* name) {
        return Compressor(parse_method(name), 32, 3, {.seed = test_seed}).encode(block).encoded.bytes;
    };
    EXPECT_EQ(bytes("eoptshrinkq-mse"), bytes("eoptshrink+tq-mse"));
}

}  // namespace
}  // namespace spiked::estimators
