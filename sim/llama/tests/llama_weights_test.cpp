#include "sim/llama/llama_weights.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/files/tests/scratch.hpp"

namespace spiked::sim {
namespace {

/// Every finite number of 16 bits in order, as stored, and as the reader of dumps converts it.
struct AllNumbers {
    std::shared_ptr<std::byte[]> bytes;
    std::vector<double> values;
};
AllNumbers all_numbers(DType dtype) {
    const unsigned exponent = dtype == DType::f16 ? 0x7c00U : 0x7f80U;
    std::vector<std::uint16_t> words;
    for (unsigned word = 0; word < 65536; ++word)
        if ((word & exponent) != exponent) words.push_back(static_cast<std::uint16_t>(word));
    AllNumbers all{std::make_shared<std::byte[]>(2 * words.size()), std::vector<double>(words.size())};
    std::memcpy(all.bytes.get(), words.data(), 2 * words.size());
    decode({all.bytes.get(), 2 * words.size()}, dtype, all.values);
    return all;
}

TEST(LlamaWeightsIdentity, EveryNumberOf16BitsIsConvertedExactly) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
        const AllNumbers all = all_numbers(dtype);
        const std::size_t count = all.values.size();
        // All at once by the processor's instructions, and one by one without them.
        const arma::frowvec together = WeightMatrix(all.bytes, dtype, count, 1).weights_of(0);
        const WeightMatrix single(all.bytes, dtype, 1, count);
        for (std::size_t i = 0; i < count; ++i) {
            const auto expected = std::bit_cast<std::uint32_t>(static_cast<float>(all.values[i]));
            ASSERT_EQ(std::bit_cast<std::uint32_t>(together(i)), expected) << i;
            ASSERT_EQ(std::bit_cast<std::uint32_t>(single.weights_of(i)(0)), expected) << i;
        }
    }
}

TEST(LlamaWeightsReference, ProductsInPanelsEqualThoseInDouble) {
    constexpr std::size_t inputs = 21, outputs = 600;
    std::vector<double> values(inputs * outputs);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.7 * static_cast<double>(i));
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
        const std::shared_ptr<std::byte[]> bytes = std::make_shared<std::byte[]>(values.size() * dtype_bits(dtype) / 8);
        const std::span<std::byte> stored(bytes.get(), values.size() * dtype_bits(dtype) / 8);
        ASSERT_FALSE(encode(values, dtype, stored));
        arma::mat exact(inputs, outputs);
        decode(stored, dtype, {exact.memptr(), exact.n_elem});
        const WeightMatrix weights(bytes, dtype, inputs, outputs);
        for (const arma::uword rows : {1U, 3U, 40U}) {
            arma::fmat x(rows, inputs);
            for (arma::uword i = 0; i < x.n_elem; ++i) x(i) = std::cos(1.3F * static_cast<float>(i));
            const arma::mat expected = arma::conv_to<arma::mat>::from(x) * exact;
            const auto difference = [&](const arma::fmat& found, const arma::mat& of) {
                return arma::abs(arma::conv_to<arma::mat>::from(found) - of).max();
            };
            EXPECT_LT(difference(weights.product(x), expected), 1e-5);
            WeightMatrix part = weights.part(37, 400);
            EXPECT_LT(difference(part.product(x), expected.cols(37, 436)), 1e-5);
            arma::fvec bias(400);
            for (arma::uword i = 0; i < 400; ++i) bias(i) = static_cast<float>(i);
            part.set_bias(bias);
            EXPECT_LT(difference(part.product(x),
                                 expected.cols(37, 436).eval().each_row() + arma::conv_to<arma::rowvec>::from(bias)),
                      1e-4);
            EXPECT_EQ(part.weights_of(3)(5), static_cast<float>(exact(5, 40)));
        }
    }
}

/// FOLDER/model.safetensors with one matrix, whose numbers begin so many bytes behind a multiple of 64.
std::unique_ptr<LlamaWeights> one_matrix(const ScratchFolder& scratch, std::span<const std::byte> stored, DType dtype,
                                         std::size_t inputs, std::size_t outputs, std::size_t behind) {
    std::string header = fmt::format(R"({{"w": {{"dtype": "{}", "shape": [{}, {}], "data_offsets": [0, {}]}}}})",
                                     dtype_name(dtype), outputs, inputs, stored.size());
    while ((8 + header.size()) % 64 != behind) header += ' ';
    std::string bytes(8, '\0');
    const std::uint64_t size = header.size();
    std::memcpy(bytes.data(), &size, 8);
    bytes += header;
    bytes.append(reinterpret_cast<const char*>(stored.data()), stored.size());
    (void)scratch.write("model.safetensors", bytes);
    return std::make_unique<LlamaWeights>(scratch.path("."));
}

TEST(LlamaWeightsIdentity, MappedNumbersAreThoseThatAreReadFromAnyPlaceOfTheFile) {
    constexpr std::size_t inputs = 21, outputs = 600;
    std::vector<double> values(inputs * outputs);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.7 * static_cast<double>(i));
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
        const std::size_t of_one = dtype_bits(dtype) / 8;
        std::vector<std::byte> stored(values.size() * of_one);
        ASSERT_FALSE(encode(values, dtype, stored));
        for (const arma::uword rows : {1U, 3U, 40U}) {
            arma::fmat x(rows, inputs);
            for (arma::uword i = 0; i < x.n_elem; ++i) x(i) = std::cos(1.3F * static_cast<float>(i));
            arma::fmat expected;
            for (const std::size_t behind : {std::size_t{63}, std::size_t{0}, of_one, std::size_t{40}}) {
                const ScratchFolder scratch;
                // The matrix outlives the object that opened its file, and the name of the file.
                const WeightMatrix weights =
                    one_matrix(scratch, stored, dtype, inputs, outputs, behind)->matrix("w", inputs, outputs);
                std::filesystem::remove(scratch.path("model.safetensors"));
                const arma::fmat found = weights.product(x);
                if (expected.is_empty()) expected = found;
                EXPECT_TRUE(arma::all(arma::vectorise(found == expected))) << dtype_name(dtype) << " " << behind;
            }
        }
    }
}

/// Weights are mapped, so that a file that shrinks ends the process; those that are not aligned are read (control).
TEST(LlamaWeights, AreMappedWhereTheirNumbersAreAligned) {
    const std::vector<std::byte> stored(2 * 300 * 1000);
    const ScratchFolder scratch;  // of the parent, which removes it
    const auto used_after_the_end = [&](std::size_t behind) {
        const WeightMatrix weights = one_matrix(scratch, stored, DType::f16, 300, 1000, behind)->matrix("w", 300, 1000);
        end_where_mapped_files_shrink(4);
        std::filesystem::resize_file(scratch.path("model.safetensors"), 4096);
        ::_exit(weights.weights_of(999).is_zero() ? 0 : 1);
    };
    EXPECT_EXIT(used_after_the_end(0), testing::ExitedWithCode(4), "model.safetensors: shrank while it was read");
    EXPECT_EXIT(used_after_the_end(63), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace spiked::sim
