#include "estimators/quantizers/groups/kivi.hpp"

#include <gtest/gtest.h>

#include "core/device/float16.hpp"
#include "estimators/coding/byte_stream.hpp"
#include "estimators/tests/quantizer_samples.hpp"
#include "theory/quantization/quantizer_errors.hpp"

namespace spiked::estimators {
namespace {

/// The definition, entry by entry, scalars rounded to fp16.
arma::mat plain_kivi(const arma::mat& rows, unsigned bits, std::size_t group, bool key, std::size_t residual) {
    const std::size_t n = rows.n_rows;
    const std::size_t kept = residual == 0 ? 0 : key ? n % residual : std::min<std::size_t>(n, residual);
    const double top = static_cast<double>((1U << bits) - 1U);
    arma::mat decoded(arma::size(rows));
    for (std::size_t t = 0; t < n; ++t)
        for (std::size_t j = 0; j < rows.n_cols; ++j) {
            if (t >= n - kept) {
                decoded(t, j) = from_float16(to_float16(rows(t, j)));
                continue;
            }
            const std::size_t at = (key ? t : j) / group * group;
            const std::size_t end = std::min<std::size_t>(at + group, key ? n - kept : rows.n_cols);
            const arma::mat members =
                key ? arma::mat(rows.submat(at, j, end - 1, j)) : arma::mat(rows.submat(t, at, t, end - 1));
            const double zero = from_float16(to_float16(members.min()));
            const double scale = from_float16(to_float16((members.max() - members.min()) / top));
            const double code = scale > 0 ? std::nearbyint(std::clamp((rows(t, j) - zero) / scale, 0.0, top)) : 0.0;
            decoded(t, j) = zero + code * scale;
        }
    return decoded;
}

TEST(Kivi, TellsItsOptionsFromThoseOfOtherQuantizers) {
    const QuantizerOptions options{.group = 32, .axis = GroupAxis::value, .residual = 5};
    const auto plain = kivi_options(quantizer_spec("kivi:group=16"), options);
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->group, 16U);
    EXPECT_EQ(plain->axis, GroupAxis::value);
    EXPECT_EQ(plain->residual, 5U);
    EXPECT_EQ(kivi_options(quantizer_spec("kivi:axis=key"), options)->axis, GroupAxis::key);
    EXPECT_EQ(kivi_options(quantizer_spec("kivi-hf"), {.axis = GroupAxis::key})->axis, GroupAxis::value);
    EXPECT_TRUE(kivi_options(quantizer_spec("kivi-hf"), options)->runs_on);
    EXPECT_EQ(kivi_options(quantizer_spec("kivi-hf"), options)->kept, 0U);
    EXPECT_FALSE(kivi_options(quantizer_spec("gear"), options));
    EXPECT_FALSE(kivi_options(QuantizerSpec{}, options));
}

TEST(KiviReference, AgreesWithTheDefinitionForBothAxesGroupsAndWindows) {
    for (const bool key : {true, false})
        for (const std::size_t group : {1, 3, 8, 64, 100})
            for (const std::size_t residual : {0, 1, 4, 7, 30, 64})
                for (const unsigned bits : {1U, 2U, 3U, 8U}) {
                    const arma::mat rows = gaussian(30, 20, group * 100 + residual);
                    const RowQuantizer quantizer = row_quantizer(
                        "kivi", 20, bits,
                        {.group = group, .axis = key ? GroupAxis::key : GroupAxis::value, .residual = residual});
                    EXPECT_LT(arma::abs(through(quantizer, rows) - plain_kivi(rows, bits, group, key, residual)).max(),
                              1e-12)
                        << key << " " << group << " " << residual << " " << bits;
                }
}

TEST(KiviHf, IgnoresTheAxisAndTheWindowOfACommand) {
    const arma::mat rows = gaussian(11, 16, 3);
    const auto bytes = [&](const char* name, const QuantizerOptions& options) {
        return row_quantizer(name, 16, 2, options).encode(rows).bytes;
    };
    const auto expected = bytes("kivi:axis=value:residual=0", {.group = 8});
    for (const GroupAxis axis : {GroupAxis::key, GroupAxis::value})
        EXPECT_EQ(bytes("kivi-hf", {.group = 8, .axis = axis, .residual = 4}), expected);
    EXPECT_NE(bytes("kivi", {.group = 8, .axis = GroupAxis::key}), expected);
    EXPECT_EQ(quantizer_spec("kivi-hf").kept_tail({.residual = 4}, 11), 0U);
}

TEST(KiviHf, GroupsThatDoNotDivideATokenGoOnInTheNext) {
    for (const auto& [tokens, dimension, group] : {std::tuple{12, 6, 4}, {8, 32, 64}, {64, 80, 64}, {3, 5, 15}}) {
        const arma::mat rows = gaussian(tokens, dimension, 5);
        // The entries in the order of memory of NumPy, one group a row.
        const arma::mat groups = arma::reshape(arma::vectorise(rows.t()), group, rows.n_elem / group).t();
        const auto size = static_cast<std::size_t>(group);
        const arma::mat decoded = through(row_quantizer("kivi-hf", rows.n_cols, 2, {.group = size}), rows);
        const arma::mat expected = through(row_quantizer("kivi:axis=value", size, 2, {.group = size}), groups);
        EXPECT_EQ(arma::abs(arma::vectorise(decoded.t()) - arma::vectorise(expected.t())).max(), 0.0)
            << tokens << " " << dimension << " " << group;
    }
    // 15 entries in groups of 4: the last group has 3.
    const Encoded encoded = row_quantizer("kivi-hf", 5, 2, {.group = 4}).encode(gaussian(3, 5, 6));
    EXPECT_EQ(encoded.ledger.bits(Item::scales), 4 * 16);
}

TEST(KiviLaw, ErrorOnGaussianGroupsIsThatOfMinMaxGroups) {
    for (const auto& [group, bits] : {std::pair{64, 2U}, {32, 2U}, {64, 4U}}) {
        const double expected = theory::min_max_relative_mse(group, static_cast<int>(bits));
        const RowQuantizer quantizer =
            row_quantizer("kivi", 128, bits, {.norm = NumberFormat::fp64, .group = static_cast<std::size_t>(group)});
        const arma::mat rows = gaussian(4000, 128, 1);
        const arma::vec error = arma::mean(arma::square(through(quantizer, rows) - rows), 1);
        const MeanTest test(error, expected, 3);
        EXPECT_TRUE(test.agrees()) << group << " " << bits << ": " << test;
        std::cout << "group " << group << ", " << bits << " bits: " << std::sqrt(test.mean) << " of the deviation; "
                  << test << "\n";
        if (group == 64 && bits == 2) {
            EXPECT_NEAR(std::sqrt(test.mean), 0.45, 0.006);
        }
        // Negative control: the law of half the group.
        EXPECT_FALSE(MeanTest(error, theory::min_max_relative_mse(group / 2, static_cast<int>(bits)), 3).agrees());
    }
}

TEST(Kivi, TiesGoToTheEvenCode) {
    const arma::mat row = {{0.0, 0.5, 1.0, 1.5, 2.5, 3.0}};
    const Encoded encoded = row_quantizer("kivi:group=6", 6, 2, {}).encode(row);
    BitReader reader(encoded.bytes);
    EXPECT_EQ(from_float16(static_cast<std::uint16_t>(reader.read(16))), 0.0);
    EXPECT_EQ(from_float16(static_cast<std::uint16_t>(reader.read(16))), 1.0);
    for (const std::uint64_t code : {0, 0, 1, 2, 2, 3}) EXPECT_EQ(reader.read(2), code);
}

TEST(Kivi, ConstantGroupsAreDecodedAsTheirMinimumWithCodeZero) {
    for (const char* name : {"kivi:axis=key", "kivi:axis=value"}) {
        const RowQuantizer quantizer = row_quantizer(name, 4, 2, {});
        for (const double value : {0.0, -2.5, 1024.0})
            EXPECT_EQ(arma::abs(through(quantizer, arma::mat(6, 4, arma::fill::value(value))) - value).max(), 0.0);
    }
}

TEST(Kivi, RangesTooSmallForTheFormatAreKeptOrRejected) {
    const RowQuantizer quantizer = row_quantizer("kivi:group=8", 8, 2, {});
    // Small relative to the minimum: the group is decoded as its minimum.
    arma::mat nearly_constant(3, 8, arma::fill::value(5.0));
    nearly_constant(1, 3) += 1e-9;
    EXPECT_LT(arma::abs(through(quantizer, nearly_constant) - nearly_constant).max(), 1e-8);
    // A minimum that is small relative to the range is no problem.
    const arma::mat from_zero = arma::linspace(1e-9, 3.0, 8).t();
    EXPECT_LT(arma::abs(through(quantizer, from_zero) - from_zero).max(), 0.51);
    // All entries are small: they would be decoded as zeros.
    const std::string message = message_of([&] { (void)quantizer.encode(gaussian(3, 8, 1) * 1e-9); }, ErrorKind::input);
    EXPECT_NE(message.find("--norm"), std::string::npos) << message;
    const arma::mat tiny = gaussian(3, 8, 1) * 1e-9;
    EXPECT_LT(relative_error(through(row_quantizer("kivi:group=8", 8, 4, {.norm = NumberFormat::fp32}), tiny), tiny),
              0.2);
    // Tiny ranges with many codes: the scale, not the range, underflows.
    EXPECT_THROW((void)row_quantizer("kivi:group=8", 8, 8, {}).encode(gaussian(3, 8, 1) * 1e-6), Error);
}

TEST(Kivi, WindowsFollowTheAxis) {
    const arma::mat rows = gaussian(11, 4, 2);
    // Keys: 11 mod 4 = 3 tokens; values: the last 4.
    for (const auto& [name, kept] : {std::pair{"kivi:axis=key:residual=4", 3U},
                                     {"kivi:axis=value:residual=4", 4U},
                                     {"kivi:axis=value:residual=40", 11U},
                                     {"kivi:axis=key:residual=40", 11U},
                                     {"kivi:axis=key:residual=11", 0U}}) {
        const RowQuantizer quantizer = row_quantizer(name, 4, 1, {});
        const Encoded encoded = quantizer.encode(rows);
        EXPECT_EQ(encoded.ledger.bits(Item::residual_window), kept * 4 * 16) << name;
        EXPECT_EQ(encoded.ledger.bits(Item::indices), (11 - kept) * 4) << name;
        const arma::mat decoded = quantizer.decode(encoded.bytes, 11);
        if (kept > 0) {
            EXPECT_LT(arma::abs(decoded.tail_rows(kept) - rows.tail_rows(kept)).max(), 2e-3) << name;
        }
    }
}

TEST(Kivi, RejectsWhatItCannotDo) {
    EXPECT_NE(message_of([] { (void)row_quantizer("kivi:group=0", 8, 2, {}); }, ErrorKind::usage).find("group"),
              std::string::npos);
    EXPECT_NE(message_of([] { (void)row_quantizer("kivi", 8, 2, {.group = 0}); }, ErrorKind::usage).find("group"),
              std::string::npos);
    EXPECT_NE(message_of([] { (void)row_quantizer("kivi", 8, 2, {.norm = NumberFormat::log8}); }, ErrorKind::usage)
                  .find("log8"),
              std::string::npos);
    for (const char* name :
         {"kivi:axis=rows", "kivi:residual=-1", "kivi:group=x", "kivi:grp=3", "kivi-hf:axis=key", "kivi-hf:residual=4"})
        message_of([&] { (void)row_quantizer(name, 8, 2, {}); }, ErrorKind::usage);
    const RowQuantizer quantizer = row_quantizer("kivi", 4, 2, {});
    EXPECT_NE(message_of([&] { (void)quantizer.encode(arma::mat(1, 4, arma::fill::value(1e5))); }, ErrorKind::input)
                  .find("--norm bf16 or fp32"),
              std::string::npos);
    // The window is stored in fp16 whatever the format of the groups is.
    for (const double size : {1e5, 1e-9}) {
        const std::string message = message_of(
            [&] {
                (void)row_quantizer("kivi:residual=1", 4, 2, {.norm = NumberFormat::fp32})
                    .encode(arma::mat(1, 4, arma::fill::value(size)));
            },
            ErrorKind::input);
        EXPECT_NE(message.find("residual 0"), std::string::npos) << message;
        EXPECT_EQ(message.find("--norm"), std::string::npos) << message;
    }
}

}  // namespace
}  // namespace spiked::estimators
