#include "estimators/quantizers/quantizer_table.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "core/text/names.hpp"
#include "core/text/tests/option_limits.hpp"
#include "estimators/coding/byte_stream.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/tests/quantizer_samples.hpp"

namespace spiked::estimators {
namespace {

std::vector<std::string> every_method() {
    std::vector<std::string> names;
    for (const auto& entry : row_quantizers()) names.push_back(entry.name);
    for (const char* name : {"tq-prod:projection=orthogonal", "qjl:projection=orthogonal", "kivi:axis=key:group=5",
                             "kivi:axis=value:group=5:residual=3", "kivi:axis=key:residual=3",
                             "kvquant:axis=key:outliers=0.2", "gear:axis=key:rank=2", "tcq:state=8:scale=unbiased",
                             "pq:length=1", "rabitq:scale=mmse", "ecsq:scale=norm", "mx:group=7:scale=e4m3"})
        names.emplace_back(name);
    return names;
}

/// The formats that a quantizer accepts for --norm; nothing if it stores no numbers in that format.
std::string norm_option(std::string_view name) {
    for (const auto& option : quantizer_spec(name).entry().options)
        if (option.key == "--norm") return option.value.shown;
    return "";
}

/// Quantizers that store minima, means and ranges, which have signs, instead of row norms.
bool has_signed_scales(std::string_view name) {
    const std::string norm = norm_option(name);
    return !norm.empty() && norm.find("log8") == std::string::npos;
}

/// Quantizers for which a row of zeros may be decoded with errors from others of its column or from a low-rank part.
bool mixes_rows(std::string_view name) {
    return name.starts_with("kivi") || name.starts_with("gear") || name.starts_with("svdq") ||
           name.find("axis=key") != std::string_view::npos;
}

/// Quantizers whose arithmetic is in float, and not converted to double.
bool has_float_path(std::string_view name) {
    const std::string plain = parse_name(name).name;
    return plain.starts_with("tq-") || plain.starts_with("eden") || plain.starts_with("kivi") || plain == "qjl" ||
           plain == "rht-uniform";
}

constexpr NumberFormat every_format[] = {NumberFormat::fp16, NumberFormat::bf16, NumberFormat::fp32, NumberFormat::fp64,
                                         NumberFormat::log8};

struct Bits {
    std::uint64_t indices, signs, norms, residual_norms, scales, zeros, factor_indices, singular_values, codebooks,
        ranks, outliers, residual_window, padding, bytes;
};

void expect_bits(const char* name, unsigned bits, NumberFormat norm, const Bits& expected) {
    const QuantizerOptions options{.norm = norm, .group = 3, .seed = test_seed};
    const RowQuantizer quantizer = row_quantizer(name, 8, bits, options);
    const arma::mat rows = gaussian(5, 8, 1);
    for (const Encoded& encoded :
         {quantizer.encode(rows), quantizer.encode_float(arma::conv_to<arma::fmat>::from(rows))}) {
        const std::string what = std::string(name) + " " + std::string(name_of(norm));
        const auto& ledger = encoded.ledger;
        EXPECT_EQ(ledger.bits(Item::indices), expected.indices) << what;
        EXPECT_EQ(ledger.bits(Item::signs), expected.signs) << what;
        EXPECT_EQ(ledger.bits(Item::norms), expected.norms) << what;
        EXPECT_EQ(ledger.bits(Item::residual_norms), expected.residual_norms) << what;
        EXPECT_EQ(ledger.bits(Item::scales), expected.scales) << what;
        EXPECT_EQ(ledger.bits(Item::zeros), expected.zeros) << what;
        EXPECT_EQ(ledger.bits(Item::factor_indices), expected.factor_indices) << what;
        EXPECT_EQ(ledger.bits(Item::singular_values), expected.singular_values) << what;
        EXPECT_EQ(ledger.bits(Item::codebooks), expected.codebooks) << what;
        EXPECT_EQ(ledger.bits(Item::ranks), expected.ranks) << what;
        EXPECT_EQ(ledger.bits(Item::outliers), expected.outliers) << what;
        EXPECT_EQ(ledger.bits(Item::residual_window), expected.residual_window) << what;
        EXPECT_EQ(ledger.bits(Item::padding), expected.padding) << what;
        EXPECT_EQ(encoded.bytes.size(), expected.bytes) << what;
        EXPECT_EQ(ledger.total(), 8 * encoded.bytes.size()) << what;
    }
}

// 5 rows of 8 entries. log8: 32 bits for the largest, 5 bytes.
std::vector<std::string> names_of_matrices(const std::string& name, std::size_t dimension,
                                           const QuantizerOptions& options) {
    std::vector<std::string> names;
    for (const auto& [matrix, values] : quantizer_spec(name).matrices(dimension, 2, options)) {
        EXPECT_GT(values.n_elem, 0U) << name << ", " << matrix;
        names.push_back(matrix);
    }
    return names;
}

TEST(QuantizerTable, KnowsTheMatricesThatACodeIsReadWith) {
    using Names = std::vector<std::string>;
    const QuantizerOptions usual{.seed = test_seed};
    const QuantizerOptions seventh{.seed = test_seed, .rotation_index = 7};
    const QuantizerOptions bare{
        .rotation = RotationKind::identity, .codebook = CodebookKind::normal, .seed = test_seed};
    EXPECT_EQ(names_of_matrices("tq-mse", 8, usual), Names{"haar:8"});
    EXPECT_EQ(names_of_matrices("tq-mse", 8, seventh), Names{"haar:8:7"});
    EXPECT_EQ(names_of_matrices("tq-mse", 8, bare), Names{});
    EXPECT_EQ(names_of_matrices("tq-prod:projection=orthogonal", 8, seventh),
              (Names{"haar:8:7", "projection:orthogonal:8x8:7"}));
    EXPECT_EQ(names_of_matrices("qjl", 8, usual), Names{"projection:gaussian:16x8"});
    EXPECT_EQ(names_of_matrices("rht-uniform", 8, bare), Names{"rht1:8"});
    EXPECT_EQ(names_of_matrices("rht-uniform", 12, usual), Names{"fht-kac:12"});
    EXPECT_EQ(names_of_matrices("tcq:state=6", 8, bare), Names{"trellis:2:6:normal:8"});
    EXPECT_EQ(names_of_matrices("ecsq", 8, usual), (Names{"haar:8", "levels-and-frequencies:2:sphere:8"}));
    for (const char* name : {"kivi", "kvquant", "gear", "svdq", "pq"})
        EXPECT_EQ(names_of_matrices(name, 8, usual), Names{});
}

TEST(RowQuantizerBits, ByHandForEveryMethodAndFormat) {
    expect_bits("tq-mse", 2, NumberFormat::fp16, {.indices = 80, .norms = 80, .bytes = 20});
    expect_bits("tq-mse", 3, NumberFormat::bf16, {.indices = 120, .norms = 80, .bytes = 25});
    expect_bits("tq-mse", 1, NumberFormat::fp32, {.indices = 40, .norms = 160, .bytes = 25});
    expect_bits("tq-mse", 5, NumberFormat::fp64, {.indices = 200, .norms = 320, .bytes = 65});
    expect_bits("tq-mse", 4, NumberFormat::log8, {.indices = 160, .norms = 72, .bytes = 29});
    for (const char* eden : {"eden", "eden-mmse", "eden-norm"}) {
        expect_bits(eden, 2, NumberFormat::fp16, {.indices = 80, .norms = 80, .bytes = 20});
        expect_bits(eden, 7, NumberFormat::log8, {.indices = 280, .norms = 72, .bytes = 44});
        expect_bits(eden, 8, NumberFormat::fp64, {.indices = 320, .norms = 320, .bytes = 80});
    }
    for (const char* prod : {"tq-prod", "tq-prod:projection=orthogonal"}) {
        expect_bits(prod, 2, NumberFormat::fp16,
                    {.indices = 80, .signs = 40, .norms = 80, .residual_norms = 80, .bytes = 35});
        expect_bits(prod, 3, NumberFormat::fp32,
                    {.indices = 120, .signs = 40, .norms = 160, .residual_norms = 160, .bytes = 60});
        expect_bits(prod, 1, NumberFormat::log8,
                    {.indices = 40, .signs = 40, .norms = 72, .residual_norms = 72, .bytes = 28});
    }
    expect_bits("qjl", 1, NumberFormat::fp16, {.signs = 40, .norms = 80, .bytes = 15});
    expect_bits("qjl", 3, NumberFormat::bf16, {.signs = 120, .norms = 80, .bytes = 25});
    expect_bits("qjl:projection=orthogonal", 2, NumberFormat::log8, {.signs = 80, .norms = 72, .bytes = 19});
    // Groups of 3 along 8 channels: 3 per token, 15. Along 5 tokens: 2 per channel, 16. Of 40 entries in turn: 14.
    expect_bits("kivi", 2, NumberFormat::fp16, {.indices = 80, .scales = 240, .zeros = 240, .bytes = 70});
    expect_bits("kivi", 3, NumberFormat::fp32, {.indices = 120, .scales = 480, .zeros = 480, .bytes = 135});
    expect_bits("kivi:axis=key", 2, NumberFormat::bf16, {.indices = 80, .scales = 256, .zeros = 256, .bytes = 74});
    expect_bits("kivi-hf", 1, NumberFormat::fp64, {.indices = 40, .scales = 896, .zeros = 896, .bytes = 229});
    // Two tokens in the window, 256 bits: 9 groups; keys 5 mod 2 = 1 token, 128 bits, groups of 3 and 1 tokens.
    expect_bits("kivi:residual=2", 3, NumberFormat::fp16,
                {.indices = 72, .scales = 144, .zeros = 144, .residual_window = 256, .bytes = 77});
    expect_bits("kivi:axis=key:residual=2", 1, NumberFormat::fp16,
                {.indices = 32, .scales = 256, .zeros = 256, .residual_window = 128, .bytes = 84});
    for (const char* rotated : {"rabitq", "tcq", "tcq:state=5:scale=unbiased"}) {
        expect_bits(rotated, 2, NumberFormat::fp16, {.indices = 80, .norms = 80, .bytes = 20});
        expect_bits(rotated, 3, NumberFormat::log8, {.indices = 120, .norms = 72, .bytes = 24});
    }
    // A group of 8: 4 angles of 4 bits, 2 and 1 of 2 bits, 22 per row, and a radius.
    expect_bits("polarquant", 4, NumberFormat::fp16, {.indices = 110, .norms = 80, .padding = 2, .bytes = 24});
    // 10 sub-vectors of 4 entries, thus 10 centroids; indices of 8 bits. For 8 entries: 5 and 5.
    expect_bits("pq", 2, NumberFormat::fp16, {.indices = 80, .norms = 80, .codebooks = 640, .bytes = 100});
    expect_bits("pq", 1, NumberFormat::fp16, {.indices = 40, .norms = 80, .codebooks = 640, .bytes = 95});
    expect_bits("rht-uniform", 2, NumberFormat::fp16, {.indices = 80, .scales = 240, .zeros = 240, .bytes = 70});
    // Tokens of 8 entries with one outlier at either end: 10 of 3 + 16 bits. Channels of 5: 1 and 1, 16 of 3 + 16.
    expect_bits(
        "kvquant:outliers=0.25", 2, NumberFormat::fp16,
        {.indices = 80, .scales = 80, .zeros = 80, .codebooks = 64, .outliers = 190, .padding = 2, .bytes = 62});
    expect_bits("kvquant:axis=key:outliers=0.25", 1, NumberFormat::fp32,
                {.indices = 40, .scales = 256, .zeros = 256, .codebooks = 32, .outliers = 304, .bytes = 111});
    // The same outliers, padded to a byte; rank, value and 13 entries of the vectors; then kivi.
    expect_bits("gear:rank=1:outliers=0.25", 2, NumberFormat::fp16,
                {.indices = 80,
                 .scales = 240,
                 .zeros = 240,
                 .factor_indices = 208,
                 .singular_values = 16,
                 .ranks = 16,
                 .outliers = 190,
                 .padding = 2,
                 .bytes = 124});
    // 8 means; of 5 latent channels the first and second at 4 bits, each with minimum, scale and 4 bits of padding.
    expect_bits("svdq", 1, NumberFormat::fp16,
                {.indices = 40, .scales = 32, .zeros = 160, .factor_indices = 256, .padding = 8, .bytes = 62});
    // Groups of 3 of 8 entries: 3 per token, 15 bytes.
    expect_bits("mx:group=3", 4, NumberFormat::fp16, {.indices = 160, .scales = 120, .bytes = 35});
    expect_bits("mx", 6, NumberFormat::fp64, {.indices = 240, .scales = 40, .bytes = 35});
    expect_bits("mx:group=3:scale=e4m3", 8, NumberFormat::fp16, {.indices = 320, .scales = 152, .bytes = 59});
    // 5 x 3 entries of 3 bits, 45, and 80 bits of norms: three bits are left over.
    const Encoded odd = row_quantizer("eden", 3, 3, {.seed = test_seed}).encode(gaussian(5, 3, 1));
    EXPECT_EQ(odd.ledger.bits(Item::padding), 3U);
    EXPECT_EQ(odd.bytes.size(), 16U);
}

TEST(RowQuantizer, EveryMethodDecodesEveryShapeWithEveryBitCounted) {
    // The rates are so high that the decoded rows are close, except for signs.
    std::uint32_t draw = 0;
    for (const auto& name : every_method())
        for (int trial = 0; trial < 12; ++trial) {
            const auto words = stream::philox_4x32_10({draw++, 7, 7, 7}, {3, 4});
            const std::size_t d = trial == 0 ? 2 : 2 + words[0] % 40;
            const std::size_t n = trial == 1 ? 1 : trial == 2 ? 0 : 1 + words[1] % 40;
            const NumberFormat format =
                has_signed_scales(name) ? every_format[words[2] % 4] : every_format[words[2] % 5];
            const auto& widths = quantizer_spec(name).entry().widths;
            const unsigned bits = widths[words[3] % widths.size()];
            const auto kind = static_cast<RotationKind>(trial % 3 == 0 ? 0 : trial % 3 == 1 ? 3 : 4);
            const RowQuantizer quantizer =
                row_quantizer(name, d, bits, {.rotation = kind, .norm = format, .group = 7, .seed = test_seed});
            arma::mat rows = gaussian(n, d, draw);
            if (n > 3) rows.row(2).zeros();
            const Encoded encoded = quantizer.encode(rows);
            const std::string what = name + " " + std::to_string(n) + "x" + std::to_string(d) +
                                     " b=" + std::to_string(bits) + " " + std::string(name_of(format));
            ASSERT_EQ(encoded.ledger.total(), 8 * encoded.bytes.size()) << what;
            const arma::mat decoded = quantizer.decode(encoded.bytes, n);
            ASSERT_EQ(arma::size(decoded), arma::size(rows)) << what;
            ASSERT_TRUE(decoded.is_finite()) << what;
            if (n > 3 && !mixes_rows(name)) {
                EXPECT_EQ(arma::abs(decoded.row(2)).max(), 0.0) << what;
            }
            // Coding the same rows again must give the same bytes.
            EXPECT_EQ(quantizer.encode(rows).bytes, encoded.bytes) << what;
            if (bits >= 6 && n > 0 && name.find("qjl") == std::string::npos && kind == RotationKind::haar) {
                EXPECT_LT(relative_error(decoded, rows), 0.15) << what;
            }
            // Any missing byte is an error; for more bytes see the test of exact lengths.
            if (!encoded.bytes.empty()) {
                const std::string message = message_of(
                    [&] {
                        (void)quantizer.decode({encoded.bytes.data(), encoded.bytes.size() - 1}, n);
                    },
                    ErrorKind::input);
                EXPECT_NE(message.find("truncated"), std::string::npos) << message;
                message_of(
                    [&] {
                        (void)quantizer.decode_float({encoded.bytes.data(), encoded.bytes.size() - 1}, n);
                    },
                    ErrorKind::input);
            }
        }
}

TEST(RowQuantizer, OneEntryIsEnough) {
    // In one dimension a coordinate is a sign, for which one bit is enough.
    for (const auto kind :
         {RotationKind::haar, RotationKind::rht1, RotationKind::rht2, RotationKind::fht_kac, RotationKind::identity})
        for (const char* name : {"tq-mse", "tq-prod", "eden", "eden-mmse", "eden-norm"})
            for (const double value : {1.5, -3.0, 0.0}) {
                const RowQuantizer quantizer = row_quantizer(name, 1, 1, {.rotation = kind, .seed = test_seed});
                EXPECT_NEAR(through(quantizer, arma::mat(1, 1, arma::fill::value(value)))(0, 0), value, 1e-12) << name;
                arma::fmat one(1, 1, arma::fill::value(static_cast<float>(value)));
                EXPECT_NEAR(quantizer.decode_float(quantizer.encode_float(one).bytes, 1)(0, 0), value, 1e-6) << name;
            }
    // Norms rounded to fp16 leave a residual far below them, which must be stored as small and not rejected.
    const arma::mat odd(1, 1, arma::fill::value(1.0001));
    EXPECT_NEAR(through(row_quantizer("tq-prod", 1, 1, {.seed = test_seed}), odd)(0, 0), 1.0001, 1e-3);
    const arma::mat small = gaussian(20, 16, 3) * 1e-3;
    EXPECT_LT(relative_error(through(row_quantizer("tq-prod", 16, 8, {.seed = test_seed}), small), small), 0.02);
    // For more bits than a sign needs there are no optimal levels.
    const std::string message = message_of([] { (void)row_quantizer("tq-mse", 1, 2, {}); }, ErrorKind::usage);
    EXPECT_NE(message.find("1"), std::string::npos);
    EXPECT_NO_THROW((void)row_quantizer("kivi", 1, 2, {}));
}

/// The number of fields of this width that differ.
std::size_t different_cells(const Encoded& a, const Encoded& b, std::size_t skip_bits, std::size_t cells,
                            unsigned bits) {
    BitReader first(a.bytes);
    BitReader second(b.bytes);
    for (std::size_t i = 0; i < skip_bits; ++i) {
        (void)first.read(1);
        (void)second.read(1);
    }
    std::size_t different = 0;
    for (std::size_t i = 0; i < cells; ++i) different += first.read(bits) != second.read(bits) ? 1 : 0;
    return different;
}

TEST(RowQuantizerReference, TheFloatPathEqualsTheDoubleOneExceptNextToThresholds) {
    constexpr std::size_t d = 128;
    for (const auto kind : {RotationKind::haar, RotationKind::rht2, RotationKind::fht_kac, RotationKind::identity})
        for (const auto& name : every_method())
            for (const unsigned bits : quantizer_spec(name).entry().widths) {
                const std::size_t n = has_float_path(name) ? 128 : 4;
                const RowQuantizer quantizer =
                    row_quantizer(name, d, bits, {.rotation = kind, .norm = NumberFormat::fp32, .seed = test_seed});
                const arma::fmat rows = gaussian<float>(n, d, bits);
                const arma::mat exact = arma::conv_to<arma::mat>::from(rows);
                const Encoded slow = quantizer.encode(exact);
                const Encoded fast = quantizer.encode_float(rows);
                const std::string what =
                    name + " " + std::to_string(bits) + " bits, rotation " + std::to_string(static_cast<int>(kind));
                ASSERT_EQ(slow.bytes.size(), fast.bytes.size()) << what;
                for (const auto& item : EnumNames<Item>::table)
                    ASSERT_EQ(slow.ledger.bits(item.value), fast.ledger.bits(item.value)) << what;
                // A coordinate has errors of about 1e-6, and thresholds have a density of at most 2^bits / 2: of 16384
                // indices less than 0.02 2^bits differ on average. The limit is ten times that, plus five.
                if (name.starts_with("tq-") || name.starts_with("eden")) {
                    const std::size_t different = different_cells(slow, fast, 32 * n, n * d, bits);
                    EXPECT_LE(different, 5 + 0.2 * std::pow(2.0, bits)) << what;
                }
                // One block decoded by both paths: the same values up to float rounding.
                const arma::mat plain = quantizer.decode(slow.bytes, n);
                const arma::mat quick = arma::conv_to<arma::mat>::from(quantizer.decode_float(slow.bytes, n));
                EXPECT_LT(arma::abs(plain - quick).max(), 4e-6 * arma::abs(plain).max()) << what;
                // Rows coded and decoded in float are as close to the original.
                const arma::mat whole = arma::conv_to<arma::mat>::from(quantizer.decode_float(fast.bytes, n));
                EXPECT_NEAR(relative_error(whole, exact), relative_error(plain, exact), 2e-4) << what;
            }
}

TEST(RowQuantizerReference, TheFloatPathOnOddShapesAndSizes) {
    for (const auto& name : every_method())
        for (const auto& [n, d] : {std::pair{1, 2}, {3, 7}, {9, 33}, {16, 16}, {17, 24}, {0, 4}})
            for (const double size : {1.0, 1e-20, 1e-39, 1e20, 1e36})
                for (const auto kind : {RotationKind::haar, RotationKind::fht_kac}) {
                    // Norms in fp64; the squares of entries of these sizes exceed the range of float.
                    const RowQuantizer quantizer =
                        row_quantizer(name, static_cast<std::size_t>(d), 6,
                                      {.rotation = kind, .norm = NumberFormat::fp64, .group = 5, .seed = test_seed});
                    const bool in_fp16 =
                        name.find("residual") != std::string::npos || name.find("outliers") != std::string::npos;
                    if (in_fp16 && size != 1.0) continue;
                    if (name.starts_with("mx") && size == 1e-39) continue;  // below its scales
                    arma::fmat rows = gaussian<float>(static_cast<std::size_t>(n), static_cast<std::size_t>(d), 9) *
                                      static_cast<float>(size);
                    if (n > 2) rows.row(1).zeros();
                    const arma::mat exact = arma::conv_to<arma::mat>::from(rows);
                    const arma::mat slow = quantizer.decode(quantizer.encode(exact).bytes, rows.n_rows);
                    const Encoded fast = quantizer.encode_float(rows);
                    const arma::mat quick =
                        arma::conv_to<arma::mat>::from(quantizer.decode_float(fast.bytes, rows.n_rows));
                    EXPECT_EQ(fast.ledger.total(), 8 * fast.bytes.size());
                    ASSERT_TRUE(quick.is_finite()) << name << " " << n << "x" << d << " " << size;
                    if (n > 0) {
                        EXPECT_NEAR(relative_error(quick, exact), relative_error(slow, exact), 1e-2)
                            << name << " " << n << "x" << d << " " << size;
                    }
                }
}

TEST(RowQuantizer, NumbersThatCannotBeStoredAreRejectedInOneLine) {
    for (const auto& name : every_method()) {
        const RowQuantizer quantizer =
            row_quantizer(name, 4, quantizer_spec(name).entry().widths[1], {.seed = test_seed});
        for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
            arma::mat rows(20, 4, arma::fill::ones);
            rows(19, 1) = bad;
            message_of([&] { (void)quantizer.encode(rows); }, ErrorKind::input);
            message_of([&] { (void)quantizer.encode_float(arma::conv_to<arma::fmat>::from(rows)); }, ErrorKind::input);
            const arma::mat odd = rows.tail_rows(1);
            message_of([&] { (void)quantizer.encode_float(arma::conv_to<arma::fmat>::from(odd)); }, ErrorKind::input);
        }
        if (!norm_option(name).empty()) {
            const arma::mat large(1, 4, arma::fill::value(1e6));
            EXPECT_NE(message_of([&] { (void)quantizer.encode(large); }, ErrorKind::input).find("fp16"),
                      std::string::npos);
            message_of([&] { (void)quantizer.encode_float(arma::conv_to<arma::fmat>::from(large)); }, ErrorKind::input);
        }
        for (const double bits : {0.0, 9.0, -1.0, std::nan("")})
            message_of([&] { (void)row_quantizer(name, 4, bits, {}); }, ErrorKind::usage);
        if (!name.starts_with("ecsq")) {
            EXPECT_NE(message_of([&] { (void)row_quantizer(name, 4, 2.5, {}); }, ErrorKind::usage).find("ecsq"),
                      std::string::npos);
        }
    }
    for (const char* name : {"tq-prod:projection=haar", "tq-mse:projection=gaussian", "eden:2", "tq_mse", "qjl:m=4",
                             "tcq:state=13", "tcq:state=1", "tcq:scale=norm", "rabitq:scale=tq", "pq:length=-1",
                             "pq:length=0", "kvquant:outliers=0.6", "gear:outliers=-1", "gear:rank=x", "ecsq:rate=2",
                             "polarquant:3", "svdq:rank=2", "mx:group=0", "mx:scale=fp16"})
        message_of([&] { (void)row_quantizer(name, 4, quantizer_spec(name).entry().widths[1], {}); }, ErrorKind::usage);
    EXPECT_NE(message_of([&] { (void)row_quantizer("mx", 4, 3, {}); }, ErrorKind::usage).find("4, 6, 8"),
              std::string::npos);
    message_of([] { (void)number_format("fp8"); }, ErrorKind::usage);
}

TEST(NumberFormat, Log8HasItsDocumentedAccuracy) {
    std::vector<double> values(4000);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = 300.0 * std::exp2(-13.0 * static_cast<double>(i) / 4000.0);
    values.push_back(0.0);
    BitWriter writer;
    const std::vector<double> stored =
        write_and_read_numbers(writer, Item::norms, values, NumberFormat::log8, "row norm");
    EXPECT_EQ(writer.ledger().bits(Item::norms), 32 + 8 * values.size());
    double squares = 0.0;
    std::size_t counted = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double share = values[i] / values[0];
        if (share < 0x1p-12 * 0.98) {
            EXPECT_EQ(stored[i], 0.0);
            continue;
        }
        if (share < 0x1p-12 * 1.02) continue;
        const double error = std::abs(stored[i] / values[i] - 1.0);
        EXPECT_LE(error, 0.017);
        squares += error * error;
        ++counted;
    }
    EXPECT_LE(std::sqrt(squares / static_cast<double>(counted)), 0.01);
    // Negative control: half the bound is exceeded.
    EXPECT_GT(std::sqrt(squares / static_cast<double>(counted)), 0.005);
}

TEST(NumberFormat, NumbersBeyondTheRangeOfAFormatAreRejected) {
    for (const auto& [format, largest] : {std::pair{NumberFormat::fp16, 65504.0},
                                          {NumberFormat::bf16, 0x1.FEp127},
                                          {NumberFormat::fp32, 0x1.FFFFFEp127},
                                          {NumberFormat::fp64, 0x1.FFFFFFFFFFFFFp1023}}) {
        EXPECT_EQ(decode_number(encode_number(largest, format, "it"), format), largest);
        const double beyond = largest * 1.01;
        const std::string message =
            message_of([&, format = format] { (void)encode_number(beyond, format, "it"); }, ErrorKind::input);
        EXPECT_NE(message.find(name_of(format)), std::string::npos) << message;
    }
    // Below 2^-14 an fp16 number has steps of 2^-24: rounding 16.5 of them loses .5, so fewer than 8 bits remain; of
    // 200.4 they remain.
    EXPECT_NO_THROW(reject_underflow(200.4 * 0x1p-24, NumberFormat::fp16, "it"));
    message_of([] { reject_underflow(16.5 * 0x1p-24, NumberFormat::fp16, "it"); }, ErrorKind::input);
    // In a list the entry largest in magnitude decides, whatever its sign is.
    BitWriter writer;
    message_of(
        [&] {
            write_numbers(writer, Item::zeros, std::vector<double>{0.0, -1e-9}, NumberFormat::fp16, "it");
        },
        ErrorKind::input);
    // Two entries per group, at 1 bit: their distance is the scale and changes by the same amount.
    const RowQuantizer kivi = row_quantizer("kivi", 2, 1, {});
    const auto group = [](double steps) { return arma::mat{{0.0, steps * 0x1p-24}}; };
    EXPECT_NO_THROW((void)kivi.encode(group(200.4)));
    message_of([&] { (void)kivi.encode(group(16.5)); }, ErrorKind::input);
}

TEST(NumberFormat, NormsOfEveryFormatAddTheExpectedError) {
    const arma::mat rows = gaussian(500, 64, 4);
    const auto squared = [&](NumberFormat format) {
        return std::pow(
            relative_error(through(row_quantizer("tq-mse", 64, 2, {.norm = format, .seed = test_seed}), rows), rows),
            2);
    };
    const double exact = squared(NumberFormat::fp64);
    EXPECT_NEAR(squared(NumberFormat::fp32), exact, 1e-8);
    EXPECT_NEAR(squared(NumberFormat::fp16), exact, 1e-5);
    EXPECT_NEAR(squared(NumberFormat::bf16), exact, 1e-4);
    EXPECT_NEAR(squared(NumberFormat::log8), exact, 5e-4);
}

TEST(Compressor, EveryQuantizerWorksAfterAnEstimatorAlsoAtRankZero) {
    const arma::mat noise = gaussian(40, 24, 5);
    arma::mat spiked = noise;
    spiked += 40.0 * arma::normalise(gaussian(40, 1, 6)) * arma::normalise(gaussian(24, 1, 7)).t();
    for (const auto& name : every_method())
        for (const arma::mat& block : {noise, spiked, arma::mat(40, 24)}) {
            AnalysedBlock analysed(block);
            const Compressor compressor(parse_method("gd-shrink+" + name), 24, 6,
                                        {.norm = NumberFormat::fp16, .seed = test_seed});
            const auto [encoded, rank] = compressor.encode(analysed);
            EXPECT_EQ(encoded.ledger.total(), 8 * encoded.bytes.size()) << name;
            const arma::mat decoded = compressor.decode(encoded.bytes, 40);
            EXPECT_TRUE(decoded.is_finite()) << name;
            if (name.find("qjl") == std::string::npos) {
                EXPECT_LE(arma::norm(decoded - block, "fro"), 0.1 * arma::norm(block, "fro"))
                    << name << " rank " << rank;
            }
            message_of(
                [&, &encoded = encoded] {
                    (void)compressor.decode({encoded.bytes.data(), encoded.bytes.size() - 1}, 40);
                },
                ErrorKind::input);
        }
}

TEST(Compressor, ResidualsMayUnderflowBlocksMayNot) {
    const arma::mat low_rank = gaussian(30, 1, 8) * gaussian(20, 1, 9).t() * 0.01;
    for (const auto& name : every_method()) {
        const Compressor compressor(parse_method("svd:1+" + name), 20, 8,
                                    {.factor_codebook = FactorCodebook::fp16, .seed = test_seed});
        AnalysedBlock analysed(low_rank);
        const arma::mat decoded = compressor.decode(compressor.encode(analysed).encoded.bytes, 30);
        EXPECT_LT(relative_error(decoded, low_rank), 2e-3) << name;
        AnalysedBlock tiny(low_rank * 1e-9);
        message_of([&] { (void)compressor.encode(tiny); }, ErrorKind::input);
        // Also where no component is stored that could be too small.
        AnalysedBlock noise(gaussian(30, 20, 10) * 1e-9);
        message_of([&] { (void)Compressor(parse_method("svd:0+" + name), 20, 8, {.seed = test_seed}).encode(noise); },
                   ErrorKind::input);
    }
}

/// fp16 cannot represent the norm of such a row, but every entry: quantizers that store no norms must accept it.
TEST(Compressor, LargeNormsAreRejectedOnlyWhereTheyAreStored) {
    const arma::mat noise = gaussian(64, 64, 11) * 1e4;
    const Compressor groups(parse_method("eoptshrink:edgefit+kivi"), 64, 4, {.seed = test_seed});
    AnalysedBlock analysed(noise);
    const auto encoded = groups.encode(analysed);
    ASSERT_EQ(encoded.rank, 0U);
    EXPECT_LT(relative_error(groups.decode(encoded.encoded.bytes, 64), noise), 0.15);
    const Compressor norms(parse_method("eoptshrink:edgefit+tq-mse"), 64, 4, {.seed = test_seed});
    EXPECT_NE(message_of([&] { (void)norms.encode(analysed); }, ErrorKind::input).find("does not fit fp16"),
              std::string::npos);
}

TEST(RowQuantizers, RejectOtherValuesOfTheirOptionsWhenANameIsParsed) {
    std::size_t tried = 0;
    for (const auto& entry : row_quantizers())
        for (const auto& option : entry.options)
            for (const auto& text : texts_not_accepted(option)) {
                const std::string name = entry.name + ":" + text;
                EXPECT_NE(message_of([&] { (void)quantizer_spec(name); }, ErrorKind::usage).find(option.key),
                          std::string::npos)
                    << name;
                ++tried;
            }
    EXPECT_GT(tried, 20U);
}

TEST(RowQuantizers, ListTheFormatsOfNormsTheyAccept) {
    const arma::mat rows = gaussian(16, 32, 901);
    for (const auto& entry : row_quantizers()) {
        const std::string norm = norm_option(entry.name);
        const auto build = [&](NumberFormat format) {
            return row_quantizer(entry.name, 32, entry.widths.back(), {.norm = format, .seed = test_seed});
        };
        for (const NumberFormat format : every_format)
            if (norm.empty())
                EXPECT_EQ(build(format).encode(rows).bytes, build(NumberFormat::fp16).encode(rows).bytes) << entry.name;
            else if (norm.find(name_of(format)) != std::string::npos)
                EXPECT_NO_THROW((void)build(format)) << entry.name;
            else
                EXPECT_NE(message_of([&] { (void)build(format); }, ErrorKind::usage).find("\"" + entry.name + "\""),
                          std::string::npos);
    }
}

TEST(RowQuantizers, DecodeExactlyTheBytesTheyWrote) {
    const arma::mat rows = gaussian(16, 32, 900);
    for (const auto& entry : row_quantizers()) {
        const RowQuantizer quantizer =
            row_quantizer(entry.name, 32, entry.widths.back(), {.group = 8, .seed = test_seed});
        std::vector<std::uint8_t> bytes = quantizer.encode(rows).bytes;
        EXPECT_NO_THROW((void)quantizer.decode(bytes, 16)) << entry.name;
        bytes.push_back(0);
        (void)message_of([&] { (void)quantizer.decode(bytes, 16); }, ErrorKind::input);
        (void)message_of([&] { (void)quantizer.decode_float(bytes, 16); }, ErrorKind::input);
        bytes.resize(bytes.size() - 2);
        (void)message_of([&] { (void)quantizer.decode(bytes, 16); }, ErrorKind::input);
    }
}

}  // namespace
}  // namespace spiked::estimators
