// Methods with `unrope`, which code keys after de-rotating them.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <fstream>

#include "app/tests/process.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/random/normal.hpp"

namespace spiked::app {
namespace {

constexpr std::size_t tokens = 24;
constexpr std::size_t dim = 16;

std::vector<double> standard_normals(std::size_t count, const std::string& name) {
    std::vector<double> values(count);
    stream::fill_normal(stream::Stream({}, name, stream::Role::noise, 0), values);
    return values;
}

/// A dump of one head. Its keys are a_t v, of rank one, with pair i of token t, as a complex number, rotated by the
/// angle (start + t) base^(-2i/d), and a little noise.
std::string rotated_dump(const std::string& name, bool interleaved, sim::Metadata metadata) {
    constexpr double base = 500.0;
    constexpr double start = 37.0;
    const auto sizes = standard_normals(tokens, "sizes");
    const auto direction = standard_normals(dim, "direction");
    auto keys = standard_normals(tokens * dim, "noise");
    for (std::size_t t = 0; t < tokens; ++t)
        for (std::size_t i = 0; i < dim / 2; ++i) {
            const std::size_t first = interleaved ? 2 * i : i;
            const std::size_t second = interleaved ? 2 * i + 1 : i + dim / 2;
            const double angle = (start + static_cast<double>(t)) * std::pow(base, -2.0 * static_cast<double>(i) / dim);
            const auto rotated =
                10.0 * sizes[t] * std::polar(1.0, angle) * std::complex(direction[first], direction[second]);
            keys[t * dim + first] = 0.01 * keys[t * dim + first] + rotated.real();
            keys[t * dim + second] = 0.01 * keys[t * dim + second] + rotated.imag();
        }
    const std::string path = scratch(name);
    metadata.emplace_back("layout", "head,token,dim");
    sim::write_safetensors(path, metadata,
                           {sim::tensor_of("layers.0.key", sim::DType::f32, {1, tokens, dim}, keys),
                            sim::tensor_of("layers.0.value", sim::DType::f32, {1, tokens, dim},
                                           standard_normals(tokens * dim, "values"))});
    return path;
}

sim::Metadata rotary(const std::string& style) {
    return {{"keys", "post-rope"}, {"rope_base", "500"}, {"rope_style", style}, {"position_start", "37"}};
}

double error_of(const Json& table, const std::string& side, const std::string& method) {
    for (const auto& row : *table.find("rows")->items())
        if (*row.find("side")->string() == side && *row.find("method")->string() == method)
            return number(row, "relative_l2");
    ADD_FAILURE() << "no row for " << side << " " << method;
    return std::nan("");
}

Json table_of(const std::string& dump, const std::string& words) {
    const Outcome found = spiked("kv run '" + dump + "' --json --block 8 " + words);
    EXPECT_EQ(found.code, 0) << found.err;
    return found.json();
}

/// The mean relative error over blocks of 8 tokens.
double error_between(const std::string& a, const std::string& b, const std::string& tensor) {
    const auto read = [&tensor](const std::string& path) {
        const sim::SafetensorsFile file(path);
        std::vector<double> values(tokens * dim);
        file.read(file.tensor(tensor), 0, values);
        return values;
    };
    const auto original = read(a);
    const auto decoded = read(b);
    double mean = 0.0;
    for (std::size_t first = 0; first < original.size(); first += 8 * dim) {
        double error = 0.0;
        double energy = 0.0;
        for (std::size_t i = first; i < first + 8 * dim; ++i) {
            error += std::pow(original[i] - decoded[i], 2);
            energy += original[i] * original[i];
        }
        mean += std::sqrt(error / energy) / 3.0;
    }
    return mean;
}

TEST(UnropeCommands, KeysOfRankOneBeforeTheEmbeddingAreRecoveredInBothStyles) {
    for (const std::string style : {"rotate-half", "interleaved"}) {
        const bool interleaved = style == "interleaved";
        const std::string dump = rotated_dump(style + ".safetensors", interleaved, rotary(style));
        const std::string plain = "svd:1+tq-mse";
        const std::string factors = " --factor-codebook fp16 ";
        const Json table = table_of(dump, factors + "--bits 4 --method " + plain + ",unrope+" + plain);
        EXPECT_LT(error_of(table, "key", "unrope+" + plain), 0.1) << style;
        EXPECT_LT(3.0 * error_of(table, "key", "unrope+" + plain), error_of(table, "key", plain)) << style;
        // Values have no rotary embedding.
        EXPECT_EQ(error_of(table, "value", "unrope+" + plain), error_of(table, "value", plain)) << style;

        // Another process decodes the file, without the dump, to the error in the table.
        const std::string file = scratch("unrope.spkv");
        const std::string back = scratch("unrope-back.safetensors");
        const Outcome coded = spiked("kv encode '" + dump + "' -o '" + file + "' --json --block 8 --bits 4" + factors +
                                     "--method unrope+" + plain);
        ASSERT_EQ(coded.code, 0) << coded.err;
        ASSERT_EQ(spiked("kv decode '" + file + "' -o '" + back + "'").code, 0);
        for (const std::string side : {"key", "value"}) {
            const double measured = error_of(table, side, "unrope+" + plain);
            EXPECT_NEAR(number(*coded.json().find("relative_l2"), side.c_str()), measured, 1e-9) << style << side;
            EXPECT_NEAR(error_between(dump, back, "layers.0." + side), measured, 1e-6) << style << side;
        }

        // Negative control: keys that are de-rotated in the other style are not of rank one.
        const std::string wrong =
            rotated_dump("wrong.safetensors", interleaved, rotary(interleaved ? "rotate-half" : "interleaved"));
        EXPECT_GT(error_of(table_of(wrong, factors + "--bits 4 --method unrope+" + plain), "key", "unrope+" + plain),
                  2.0 * error_of(table, "key", "unrope+" + plain))
            << style;
    }
}

TEST(UnropeCommands, RowQuantizersKeepTheirErrors) {
    // Rotations keep norms and distances. Rows in one direction all have the same error, others have the mean error.
    const Json table = table_of(rotated_dump("rows.safetensors", false, rotary("rotate-half")),
                                "--bits 4 --method tq-mse,unrope+tq-mse,unrope+kvquant");
    const double ratio = error_of(table, "key", "unrope+tq-mse") / error_of(table, "key", "tq-mse");
    EXPECT_GT(ratio, 0.5);
    EXPECT_LT(ratio, 2.0);
    // A method that codes along channels profits from keys of rank one.
    EXPECT_LT(error_of(table, "key", "unrope+kvquant"), 0.2);
}

TEST(UnropeCommands, AreInTheDefaultTableIfTheDumpAllowsIt) {
    const auto has_unrope = [](const std::string& dump, const std::string& words) {
        const Json table = table_of(dump, words);
        for (const auto& row : *table.find("rows")->items())
            if (row.find("method")->string()->starts_with("unrope+")) return true;
        return false;
    };
    const std::string rotated = rotated_dump("allowed.safetensors", false, rotary("rotate-half"));
    EXPECT_TRUE(has_unrope(rotated, "--bits 2"));
    EXPECT_FALSE(has_unrope(rotated, "--bits 2 --side value"));
    EXPECT_FALSE(has_unrope(rotated, "--bits 2 --method tq-mse"));
    EXPECT_FALSE(has_unrope(rotated_dump("before.safetensors", false, {{"keys", "pre-rope"}}), "--bits 2"));
    EXPECT_FALSE(has_unrope(rotated_dump("unknown.safetensors", false, {}), "--bits 2"));
}

TEST(UnropeCommands, AreRejectedInOneLineIfTheEmbeddingIsUnknown) {
    struct Case {
        sim::Metadata metadata;
        const char* says;
    };
    const std::vector<Case> cases = {
        {{}, "\"keys\" is missing"},
        {{{"keys", "pre-rope"}}, "pre-rope"},
        {{{"keys", "post-rope"}}, "rope_base"},
        {{{"keys", "post-rope"}, {"rope_base", "1"}, {"rope_style", "interleaved"}}, "rope_base is 1"},
        {{{"keys", "post-rope"}, {"rope_base", "500"}}, "rope_style"},
        {{{"keys", "post-rope"}, {"rope_base", "500"}, {"rope_style", "half"}}, "half"}};
    for (const auto& one : cases) {
        const std::string dump = rotated_dump("rejected.safetensors", false, one.metadata);
        for (const std::string& command : {"kv run '" + dump + "' --block 8",
                                           "kv encode '" + dump + "' --block 8 -o '" + scratch("no.spkv") + "'"}) {
            const Outcome found = spiked(command + " --bits 2 --method unrope+tq-mse");
            EXPECT_EQ(found.code, 4) << command << found.err;
            EXPECT_NE(found.err.find(one.says), std::string::npos) << found.err;
            EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), 1) << found.err;
        }
        // Values alone need no embedding.
        EXPECT_EQ(spiked("kv run '" + dump + "' --block 8 --side value --bits 2 --method unrope+tq-mse").code, 0);
    }
    const std::string dump = rotated_dump("usage.safetensors", false, rotary("rotate-half"));
    const std::string study = scratch("unrope.toml");
    std::ofstream(study)
        << "spiked = 1\n[study]\nname = \"no\"\n[model]\nkind = \"spiked\"\nn = 16\nd = 16\nnoise = { "
           "entries = \"gaussian\" }\n[[codec]]\nname = \"unrope+tq-mse\"\nbits = [2]\n[run]\nreps = 2\n";
    for (const std::string& words : {"quantize '" + dump + ":layers.0.key:0' --method unrope+tq-mse",
                                     "spectrum '" + dump + ":layers.0.key:0' --estimator unrope+eoptshrink",
                                     "kv run '" + dump + "' --block 8 --method whiten+unrope+gd-shrink+tq-mse",
                                     "run '" + study + "' -o '" + scratch("no.spiked") + "'"}) {
        const Outcome found = spiked(words);
        EXPECT_EQ(found.code, 2) << words << found.err;
        EXPECT_NE(found.err.find("unrope"), std::string::npos) << words << ": " << found.err;
    }
}

}  // namespace
}  // namespace spiked::app
