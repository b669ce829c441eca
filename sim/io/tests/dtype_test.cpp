#include "sim/io/dtype.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "core/files/tests/scratch.hpp"
#include "core/runtime/error.hpp"

namespace spiked::sim {
namespace {

std::vector<double> decoded(const std::string& bytes, DType dtype, std::endian order = std::endian::little) {
    std::vector<double> values(bytes.size() * 8 / dtype_bits(dtype));
    decode(std::as_bytes(std::span(bytes)), dtype, values, order);
    return values;
}

std::uint16_t encoded16(double value, DType dtype) {
    std::array<std::byte, 2> bytes{};
    (void)encode({&value, 1}, dtype, bytes);
    return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[0]) | std::to_integer<unsigned>(bytes[1]) << 8);
}

TEST(DType, NamesRoundTrip) {
    for (int i = 0; i <= static_cast<int>(DType::u64); ++i) {
        const auto dtype = static_cast<DType>(i);
        EXPECT_EQ(dtype_of_name(dtype_name(dtype)), dtype);
    }
    EXPECT_EQ(dtype_of_name("f16"), std::nullopt);
    EXPECT_EQ(dtype_of_name(""), std::nullopt);
}

TEST(DType, Bfloat16TestPoints) {
    EXPECT_EQ(encoded16(1.0, DType::bf16), 0x3f80);
    EXPECT_EQ(encoded16(-2.5, DType::bf16), 0xc020);
    EXPECT_EQ(encoded16(3.140625, DType::bf16), 0x4049);
    EXPECT_EQ(encoded16(65504.0, DType::bf16), 0x4780);
    EXPECT_EQ(encoded16(1e-40, DType::bf16), 0x0001);
    EXPECT_EQ(encoded16(3.3895314e38, DType::bf16), 0x7f7f);
    EXPECT_EQ(decoded("\x49\x40", DType::bf16), std::vector<double>{3.140625});
}

TEST(DType, Float16TestPoints) {
    EXPECT_EQ(encoded16(1.5, DType::f16), 0x3e00);
    EXPECT_EQ(encoded16(-2.25, DType::f16), 0xc080);
    EXPECT_EQ(encoded16(65504.0, DType::f16), 0x7bff);
    EXPECT_EQ(encoded16(0x1p-24, DType::f16), 0x0001);
    EXPECT_EQ(encoded16(0x1p-25, DType::f16), 0x0000);  // a tie goes to even
    EXPECT_EQ(encoded16(-0.0, DType::f16), 0x8000);
    EXPECT_EQ(decoded(std::string("\x01\x00\xff\x7b\x00\xfc", 6), DType::f16),
              (std::vector<double>{0x1p-24, 65504.0, -std::numeric_limits<double>::infinity()}));
    EXPECT_TRUE(std::isnan(decoded(std::string("\x01\x7c", 2), DType::f16)[0]));
}

/// The value of sign, exponent and fraction fields, by powers of two in long double; no type has more than 4 bits of
/// fraction here, so that sums are exact.
double from_fields(unsigned code, unsigned fraction_bits, int bias) {
    const unsigned exponent = (code & 0x7FU) >> fraction_bits;
    long double significand = exponent == 0 ? 0.0L : 1.0L;
    long double weight = 1.0L;
    for (unsigned bit = fraction_bits; bit-- > 0;) {
        weight /= 2.0L;
        if ((code >> bit & 1U) != 0) significand += weight;
    }
    for (int power = exponent == 0 ? 1 : static_cast<int>(exponent); power < bias; ++power) significand /= 2.0L;
    for (int power = bias; power < static_cast<int>(exponent); ++power) significand *= 2.0L;
    return static_cast<double>((code & 0x80U) != 0 ? -significand : significand);
}

TEST(DTypeReference, EveryFp8CodeHasTheValueOfItsFields) {
    for (unsigned code = 0; code < 256; ++code) {
        const std::string byte(1, static_cast<char>(code));
        const double e4m3 = decoded(byte, DType::f8_e4m3)[0];
        const double e5m2 = decoded(byte, DType::f8_e5m2)[0];
        if ((code & 0x7FU) == 0x7F)
            EXPECT_TRUE(std::isnan(e4m3)) << code;
        else
            EXPECT_EQ(e4m3, from_fields(code, 3, 7)) << code;
        if ((code & 0x7FU) == 0x7C)
            EXPECT_EQ(e5m2, code < 128 ? INFINITY : -INFINITY) << code;
        else if ((code & 0x7FU) > 0x7C)
            EXPECT_TRUE(std::isnan(e5m2)) << code;
        else
            EXPECT_EQ(e5m2, from_fields(code, 2, 15)) << code;
    }
    EXPECT_EQ(decoded("\x7e\x01\x08\xb8", DType::f8_e4m3), (std::vector<double>{448.0, 0x1p-9, 0x1p-6, -1.0}));
    EXPECT_EQ(decoded("\x7b\x01\x04\xbc", DType::f8_e5m2), (std::vector<double>{57344.0, 0x1p-16, 0x1p-14, -1.0}));
    EXPECT_TRUE(std::signbit(decoded("\x80", DType::f8_e4m3)[0]));
}

// Bits of float from Python's ml_dtypes, which is an implementation of others.
TEST(DTypeReference, Fp8AgreesWithMlDtypes) {
    const ScratchFolder scratch;
    const std::string program =
        "import sys, numpy, ml_dtypes as m\n"
        "codes = numpy.arange(256, dtype='u1')\n"
        "for t in (m.float8_e4m3fn, m.float8_e5m2): sys.stdout.buffer.write(codes.view(t).astype('<f4').tobytes())\n";
    const std::string script = scratch.write("codes.py", program), output = scratch.path("codes.f32");
    if (std::system(("/usr/bin/env python3 '" + script + "' > '" + output + "' 2> /dev/null").c_str()) != 0)
        GTEST_SKIP() << "Python without ml_dtypes";
    const std::vector<double> expected = decoded(bytes_of_file(output), DType::f32);
    ASSERT_EQ(expected.size(), 512U);
    std::string codes;
    for (unsigned code = 0; code < 256; ++code) codes += static_cast<char>(code);
    std::vector<double> found = decoded(codes, DType::f8_e4m3);
    const std::vector<double> e5m2 = decoded(codes, DType::f8_e5m2);
    found.insert(found.end(), e5m2.begin(), e5m2.end());
    for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_TRUE(found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i]))) << i;
}

TEST(DType, EveryFloat16AndBfloat16RoundTrips) {
    for (unsigned bits = 0; bits < 0x10000; ++bits)
        for (const auto dtype : {DType::f16, DType::bf16}) {
            const std::string bytes{static_cast<char>(bits & 0xFFU), static_cast<char>(bits >> 8)};
            const double value = decoded(bytes, dtype)[0];
            if (std::isnan(value)) continue;
            ASSERT_EQ(encoded16(value, dtype), bits) << dtype_name(dtype);
        }
}

TEST(DType, DecodesBothByteOrders) {
    EXPECT_EQ(decoded(std::string("\x3e\x00", 2), DType::f16, std::endian::big), std::vector<double>{1.5});
    EXPECT_EQ(decoded(std::string("\x3f\xc0\x00\x00", 4), DType::f32, std::endian::big), std::vector<double>{1.5});
    EXPECT_EQ(decoded(std::string("\x00\x00\xc0\x3f", 4), DType::f32), std::vector<double>{1.5});
    EXPECT_EQ(decoded(std::string("\xff\xfe", 2), DType::i16, std::endian::big), std::vector<double>{-2.0});
    EXPECT_EQ(decoded(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8), DType::i64), std::vector<double>{-1.0});
    EXPECT_EQ(decoded(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8), DType::u64), std::vector<double>{0x1p64});
    EXPECT_EQ(decoded(std::string("\x80\x7f", 2), DType::i8), (std::vector<double>{-128.0, 127.0}));
    EXPECT_EQ(decoded(std::string("\x00\x01", 2), DType::boolean), (std::vector<double>{0.0, 1.0}));
}

TEST(DType, EncodeReportsTheFirstLostValue) {
    const auto lost = [](std::vector<double> values, DType dtype) {
        std::vector<std::byte> bytes(values.size() * dtype_bits(dtype) / 8);
        return encode(values, dtype, bytes);
    };
    EXPECT_EQ(lost({1.0, 65519.99}, DType::f16), std::nullopt);
    EXPECT_EQ(lost({1.0, -65520.0, 1e9}, DType::f16), 1U);
    EXPECT_EQ(lost({INFINITY, NAN}, DType::f16), std::nullopt);  // only finite values can be lost
    EXPECT_EQ(lost({std::numeric_limits<float>::max(), 3.4028236e38}, DType::f32), 1U);
    EXPECT_EQ(lost({3.39e38, 3.3961775292304601e38}, DType::bf16), 1U);
    EXPECT_EQ(lost({std::numeric_limits<double>::max()}, DType::f64), std::nullopt);
}

TEST(DType, WrongSizesAreBugs) {
    std::vector<double> three(3);
    EXPECT_THROW(decode(std::as_bytes(std::span("abcd", 4)), DType::f16, three), Error);
    EXPECT_THROW(decode(std::as_bytes(std::span("abc", 3)), DType::f4, three), Error);
}

}  // namespace
}  // namespace spiked::sim
