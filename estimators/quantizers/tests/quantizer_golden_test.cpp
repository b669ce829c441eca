#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <sstream>

#include "core/files/sha256.hpp"
#include "core/text/json.hpp"
#include "estimators/coding/byte_stream.hpp"
#include "estimators/rotations/hadamard.hpp"
#include "estimators/tests/quantizer_samples.hpp"

namespace spiked::estimators {
namespace {

const Json& golden() {
    static const Json document = [] {
        std::ifstream file(std::string(SPIKED_SOURCE_DIR) + "/estimators/quantizers/tests/data/quantizer_golden.json");
        std::stringstream text;
        text << file.rdbuf();
        return Json::parse(text.str(), "golden");
    }();
    return document;
}

double number(const Json& value) {
    return value.real() != nullptr ? *value.real() : static_cast<double>(*value.integer());
}

arma::rowvec row_of(const Json& list) {
    arma::rowvec row(list.items()->size());
    for (std::size_t i = 0; i < row.n_elem; ++i) row(i) = number((*list.items())[i]);
    return row;
}

arma::mat matrix_of(const Json& list) {
    arma::mat matrix(list.items()->size(), list.items()->front().items()->size());
    for (std::size_t i = 0; i < matrix.n_rows; ++i) matrix.row(i) = row_of((*list.items())[i]);
    return matrix;
}

double largest_difference(const arma::mat& a, const arma::mat& b) { return arma::abs(a - b).max(); }

const QuantizerOptions golden_flags = {
    .rotation = RotationKind::identity, .codebook = CodebookKind::normal, .norm = NumberFormat::fp64};

const arma::mat one_to_eight = arma::linspace(1.0, 8.0, 8).t();

std::vector<std::uint64_t> indices_of(const Encoded& encoded, unsigned bits) {
    BitReader reader(encoded.bytes);
    (void)reader.read(64);  // norm
    std::vector<std::uint64_t> indices(8);
    for (auto& index : indices) index = reader.read(bits);
    return indices;
}

TEST(QuantizerStability, TurboQuantIndicesAndValues) {
    for (const unsigned bits : {2U, 3U}) {
        const Json& expected = *golden().find("tq_id_b" + std::to_string(bits));
        const RowQuantizer quantizer = row_quantizer("tq-mse", 8, bits, golden_flags);
        const Encoded encoded = quantizer.encode(one_to_eight);
        BitReader reader(encoded.bytes);
        EXPECT_EQ(decode_number(reader.read(64), NumberFormat::fp64), number(*expected.find("norm")));
        const arma::rowvec indices = row_of(*expected.find("idx"));
        EXPECT_EQ(indices_of(encoded, bits), std::vector<std::uint64_t>(indices.begin(), indices.end()));
        const arma::mat decoded = quantizer.decode(encoded.bytes, 1);
        EXPECT_LT(largest_difference(decoded, row_of(*expected.find("xhat_tq"))), 1e-12);
        EXPECT_NEAR(relative_error(decoded, one_to_eight), number(*expected.find("relL2")), 1e-12);
    }
}

TEST(QuantizerStability, EdenScales) {
    // The golden scales multiply levels at unit variance; the stored number is that times sqrt(d).
    for (const unsigned bits : {2U, 3U})
        for (const auto& [name, key] :
             {std::pair{"eden", "scale_unb"}, {"eden-mmse", "scale_mmse"}, {"eden-norm", "scale_nc"}}) {
            const Json& expected = *golden().find("tq_id_b" + std::to_string(bits));
            const RowQuantizer quantizer = row_quantizer(name, 8, bits, golden_flags);
            const Encoded encoded = quantizer.encode(one_to_eight);
            BitReader reader(encoded.bytes);
            const double scale = number(*expected.find(key));
            EXPECT_NEAR(decode_number(reader.read(64), NumberFormat::fp64), scale * std::sqrt(8.0), 1e-12) << name;
            const arma::mat levels =
                row_of(*expected.find("xhat_tq")) / number(*expected.find("norm")) * std::sqrt(8.0);
            EXPECT_LT(largest_difference(quantizer.decode(encoded.bytes, 1), scale * levels), 1e-12) << name;
        }
}

TEST(QuantizerStability, OneBitScalesOfRabitq) {
    // Sign codes have one shape: EDEN's scales at one bit are those of RaBitQ, whatever the level is.
    const Json& expected = *golden().find("rabitq1");
    const arma::mat v = row_of(*expected.find("v"));
    const arma::rowvec bits = row_of(*expected.find("bits"));
    for (const auto& [name, key] : {std::pair{"eden", "scale_unb"}, {"eden-mmse", "scale_mmse"}}) {
        const RowQuantizer quantizer = row_quantizer(name, 8, 1, golden_flags);
        const Encoded encoded = quantizer.encode(v);
        EXPECT_EQ(indices_of(encoded, 1), std::vector<std::uint64_t>(bits.begin(), bits.end())) << "0 is not > 0";
        EXPECT_LT(
            largest_difference(quantizer.decode(encoded.bytes, 1), number(*expected.find(key)) * (2.0 * bits - 1.0)),
            1e-12);
    }
    for (const auto& [name, key] : {std::pair{"rabitq", "scale_unb"}, {"rabitq:scale=mmse", "scale_mmse"}}) {
        const arma::mat decoded = through(row_quantizer(name, 8, 1, golden_flags), v);
        EXPECT_LT(largest_difference(decoded, number(*expected.find(key)) * (2.0 * bits - 1.0)), 1e-12) << name;
    }
}

TEST(QuantizerStability, OneRoundOfTheHadamardRotation) {
    // Our signs come from a stream: they are read from the rotation of the basis and replaced by the golden ones.
    const HadamardRotation rotation(stream::Stream(test_seed, "golden", stream::Role::rotation, 0), 8, 1);
    arma::mat basis(8, 8, arma::fill::eye);
    rotation.rotate(basis);
    const arma::rowvec ours = arma::sign(basis.col(0)).t();
    arma::mat row = one_to_eight % ours % row_of(*golden().find("rht_signs"));
    rotation.rotate(row);
    EXPECT_LT(largest_difference(row, row_of(*golden().find("rht_out"))), 1e-12);
}

TEST(QuantizerStability, KiviKeys) {
    // The input of these values: entry e, token after token, is (e^2 - 21 e) / 7; groups of 4 tokens, 2 bits.
    const Json& expected = *golden().find("kivi_key");
    arma::mat rows(8, 4);
    for (std::size_t e = 0; e < 32; ++e) {
        const double i = static_cast<double>(e);
        rows(e / 4, e % 4) = (i * i - 21.0 * i) / 7.0;
    }
    const RowQuantizer quantizer = row_quantizer("kivi:axis=key", 4, 2, {.norm = NumberFormat::fp64, .group = 4});
    const Encoded encoded = quantizer.encode(rows);
    BitReader reader(encoded.bytes);
    const arma::mat zeros = matrix_of(*expected.find("mn"));
    const arma::mat scales = matrix_of(*expected.find("scale"));
    const arma::mat codes = matrix_of(*expected.find("codes"));
    // Stored channel after channel: zeros, scales, codes.
    for (const arma::mat& stored : {zeros, scales})
        for (const double value : stored) EXPECT_NEAR(decode_number(reader.read(64), NumberFormat::fp64), value, 1e-12);
    for (const double code : codes) EXPECT_EQ(static_cast<double>(reader.read(2)), code);
    const arma::mat decoded = quantizer.decode(encoded.bytes, 8);
    for (std::size_t t = 0; t < 8; ++t)
        EXPECT_LT(largest_difference(decoded.row(t), codes.row(t) % scales.row(t / 4) + zeros.row(t / 4)), 1e-12);
    EXPECT_NEAR(relative_error(decoded, rows), number(*expected.find("relL2")), 1e-12);
}

// Files contain these bytes: with another rotation, sketch or order of fields they would be decoded wrongly. A change
// of them requires a new version of the container.
TEST(QuantizerStability, BytesOfCodedFilesDoNotChange) {
    struct Case {
        const char* name;
        std::size_t dimension;
        RotationKind rotation;
        const char* sum;
    };
    for (const auto& [name, dimension, rotation, sum] :
         {Case{"tq-mse", 12, RotationKind::haar, "9f7f32eef38c68df"},
          {"tq-mse", 16, RotationKind::rht1, "7e160674b74160ff"},
          {"tq-mse", 16, RotationKind::rht2, "57e01e3edec8e2f1"},
          {"tq-mse", 12, RotationKind::fht_kac, "2db84c78ef3a71e5"},
          {"tq-prod", 12, RotationKind::haar, "fe42ac9b2d5548fb"},
          {"tq-prod:projection=orthogonal", 12, RotationKind::haar, "502eeccce9879014"},
          {"eden", 12, RotationKind::haar, "345a7f06b231fc11"},
          {"qjl", 12, RotationKind::haar, "3e3510d8f046d98b"},
          {"qjl:projection=orthogonal", 12, RotationKind::haar, "b4446fdcd7a7bf71"},
          {"kivi:axis=key:group=4", 12, RotationKind::haar, "e4db1c2e9813d564"},
          {"kivi:axis=value:group=5:residual=2", 12, RotationKind::haar, "83d3653a704ba59b"},
          {"kivi-hf:group=5", 12, RotationKind::haar, "dff4dfc79850707c"},
          {"rht-uniform", 16, RotationKind::haar, "134f005bab545d28"},
          {"rabitq", 12, RotationKind::haar, "051384cac9b56d15"},
          {"tcq", 12, RotationKind::haar, "d605930f6fab3bdc"},
          {"ecsq", 12, RotationKind::haar, "75a800a8d7571b44"},
          {"polarquant", 16, RotationKind::haar, "bc36643bc700ea9a"}}) {
        const RowQuantizer quantizer = row_quantizer(name, dimension, 2, {.rotation = rotation, .seed = test_seed});
        const Encoded encoded = quantizer.encode(gaussian(5, dimension, 77));
        EXPECT_EQ(
            hex(sha256({reinterpret_cast<const char*>(encoded.bytes.data()), encoded.bytes.size()})).substr(0, 16), sum)
            << name;
    }
}

}  // namespace
}  // namespace spiked::estimators
