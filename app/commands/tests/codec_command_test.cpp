// The commands `kv encode`, `kv decode` and `kv golden`.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>

#include "app/tests/process.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/quantizers/row_quantizer.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/kv/kv_dump.hpp"
#include "sim/random/normal.hpp"

namespace spiked::app {
namespace {

namespace fs = std::filesystem;

std::vector<double> normals(std::size_t count, const std::string& name) {
    std::vector<double> values(count);
    stream::fill_normal(stream::Stream({}, name, stream::Role::noise, 0), values);
    return values;
}

/// A dump of 2 layers with 2 heads of dimension 16 and 20 tokens, so that the last 4 do not fill a block of 8. It also
/// has queries and a tensor outside the cache.
std::string small_dump(const std::string& name, const std::string& layout = "head,token,dim",
                       sim::DType dtype = sim::DType::f32) {
    const std::string path = scratch(name);
    const sim::TensorLayout axes = *sim::parse_layout(layout);
    std::vector<std::size_t> shape(axes.axes, 1);
    shape[axes.head] = 2;
    shape[axes.token] = 20;
    shape[axes.dim] = 16;
    std::vector<sim::TensorSource> tensors = {
        sim::tensor_of("readout.weights", sim::DType::f64, {3, 5}, normals(15, "weights"))};
    for (const char* tensor : {"layers.1.value", "layers.0.query", "layers.0.key", "layers.0.value", "layers.1.key"})
        tensors.push_back(sim::tensor_of(tensor, dtype, shape, normals(640, tensor)));
    sim::write_safetensors(path, {{"layout", layout}, {"model", "small"}, {"note", "\"quoted\"\n"}, {"tokens", "20"}},
                           tensors);
    return path;
}

Json encoded(const std::string& dump, const std::string& file, const std::string& options) {
    const Outcome found = spiked("kv encode '" + dump + "' -o '" + file + "' --json " + options);
    EXPECT_EQ(found.code, 0) << found.err;
    return found.json();
}

std::vector<double> values_of(const sim::SafetensorsFile& file, const std::string& name) {
    const auto& tensor = file.tensor(name);
    std::vector<double> values(tensor.elements());
    file.read(tensor, 0, values);
    return values;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
    double error = 0.0;
    double norm = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        error += (a[i] - b[i]) * (a[i] - b[i]);
        norm += a[i] * a[i];
    }
    return std::sqrt(error / norm);
}

void expect_size_is_the_ledger(const Json& json, const std::string& file, const std::string& what) {
    const auto bytes = fs::file_size(file);
    EXPECT_EQ(number(json, "bytes"), static_cast<double>(bytes)) << what;
    std::int64_t bits = 0;
    for (const auto& [item, count] : *json.find("ledger_bits")->members()) bits += *count.integer();
    EXPECT_EQ(bits + 8 * *json.find("uncoded")->find("bytes")->integer(), static_cast<std::int64_t>(8 * bytes)) << what;
    double sum = 0.0;
    for (const auto& [item, bits_per_entry] : *json.find("ledger")->members()) sum += number(bits_per_entry);
    EXPECT_NEAR(sum, number(json, "bits_per_entry"), 1e-12) << what;
    EXPECT_NEAR(sum * number(json, "entries"), static_cast<double>(bits), 1e-6) << what;
}

TEST(EncodeCommand, TheSizeOfTheFileIsTheLedgerForEveryMethod) {
    const std::string dump = small_dump("sizes.safetensors");
    std::vector<std::string> methods = {"svd:1+tq-mse", "eoptshrink:edgefit+eden", "svd:2+kivi:group=4",
                                        "tq-prod:projection=orthogonal"};
    const Json list = spiked("list quantizers --json").json();
    for (const auto& line : *list.find("quantizers")->items()) {
        const std::string& name = *line.find("name")->string();
        if (name != "ESTIMATOR+QUANTIZER") methods.push_back(name);
    }
    ASSERT_GT(methods.size(), 10U);
    const std::string file = scratch("sizes.spkv");
    const std::string back = scratch("sizes-back.safetensors");
    for (const auto& method : methods) {
        const auto& widths = estimators::parse_method(method).quantizer.entry().widths;
        const Json json = encoded(dump, file,
                                  fmt::format("--block 8 --bits {} --residual 0 --method {}",
                                              widths.size() < 8 ? widths.front() : 3, method));
        EXPECT_EQ(*json.find("schema")->string(), "spiked.encode/1");
        expect_size_is_the_ledger(json, file, method);
        EXPECT_EQ(number(json, "tensors"), 4.0);
        EXPECT_EQ(number(json, "blocks"), 16.0);
        EXPECT_EQ(number(json, "window_tokens"), 4.0 * 2 * 4);
        // 4 of 20 tokens at 16 bits.
        EXPECT_NEAR(number(*json.find("ledger"), "residual_window"), 3.2, 1e-12) << method;
        EXPECT_EQ(number(*json.find("uncoded"), "bytes"), 15.0 * 8 + 640 * 4);
        EXPECT_EQ(spiked("kv decode '" + file + "' -o '" + back + "'").code, 0) << method;
    }
}

TEST(EncodeCommand, StoresTheBitsThatItReports) {
    const std::string file = scratch("sample.spkv");
    const Json json = encoded(sample_dump, file, "--method tq-mse --bits 2");
    expect_size_is_the_ledger(json, file, "tq-mse");
    // 2.125 bits, a frame of 8 bytes for each block, and one header.
    EXPECT_NEAR(number(*json.find("ledger"), "indices"), 2.0, 1e-12);
    EXPECT_NEAR(number(*json.find("ledger"), "norms"), 0.125, 1e-12);
    EXPECT_LT(number(*json.find("ledger"), "header"), 0.1);
    EXPECT_EQ(number(json, "paper_bits"), 2.0);
}

TEST(CodecCommands, RestoreTheWholeDumpInAnotherProcessWithoutTheOriginal) {
    for (const char* layout : {"head,token,dim", "token,head,dim", "head,dim,token", "dim,token,head", "dim,head,token",
                               "token,dim,head", "batch,head,token,dim"}) {
        const std::string dump = small_dump("whole.safetensors", layout);
        const std::string copy = scratch("whole-copy.safetensors");
        fs::copy_file(dump, copy, fs::copy_options::overwrite_existing);
        const std::string file = scratch("whole.spkv");
        (void)encoded(dump, file, "--block 8 --bits 8 --method tq-mse");
        fs::remove(dump);
        const std::string folder = scratch("elsewhere");
        fs::create_directories(folder);
        fs::rename(file, folder + "/moved.spkv");
        const Outcome found = spiked("kv decode moved.spkv -o back.safetensors --json", "cd '" + folder + "' &&");
        ASSERT_EQ(found.code, 0) << found.err;
        EXPECT_EQ(*found.json().find("schema")->string(), "spiked.decode/1");

        const sim::SafetensorsFile original(copy);
        const sim::SafetensorsFile back(folder + "/back.safetensors");
        EXPECT_EQ(original.metadata(), back.metadata());
        ASSERT_EQ(original.tensors().size(), back.tensors().size());
        for (std::size_t i = 0; i < original.tensors().size(); ++i) {
            const auto& a = original.tensors()[i];
            const auto& b = back.tensors()[i];
            EXPECT_EQ(a.name, b.name);
            EXPECT_EQ(a.dtype, b.dtype);
            EXPECT_EQ(a.shape, b.shape);
            const auto before = values_of(original, a.name);
            const auto after = values_of(back, a.name);
            const bool coded = a.name.starts_with("layers") && !a.name.ends_with("query");
            if (coded)
                EXPECT_LT(distance(before, after), 0.01) << layout << " " << a.name;
            else
                EXPECT_EQ(before, after) << layout << " " << a.name;
        }
    }
}

TEST(CodecCommands, CodeWholeHeadsByACausalTransform) {
    const std::string file = scratch("causal.spkv");
    const Json json = encoded(sample_dump, file, "--method causal-klt --bits 2.5");
    expect_size_is_the_ledger(json, file, "causal-klt");
    EXPECT_EQ(number(json, "window_tokens"), 0.0);
    const std::string back = scratch("causal-back.safetensors");
    const Outcome decoded = spiked("kv decode '" + file + "' -o '" + back + "' --json");
    ASSERT_EQ(decoded.code, 0) << decoded.err;
    EXPECT_EQ(*decoded.json().find("method")->string(), "causal-klt");
    // The error that the encoder reports is that of the decoded dump, up to its rounding to half precision.
    const sim::KvDump original(sample_dump);
    const sim::KvDump again(back);
    std::map<sim::Side, std::vector<double>> errors;
    std::size_t heads = 0;
    for (const auto& tensor : original.tensors()) {
        if (tensor.side == sim::Side::query) continue;
        for (std::size_t head = 0; head < tensor.heads; ++head, ++heads) {
            const arma::mat rows = original.read_block(tensor, head, 0, tensor.tokens);
            const arma::mat found = again.read_block(*again.find(tensor.layer, tensor.side), head, 0, tensor.tokens);
            errors[tensor.side].push_back(arma::norm(found - rows, "fro") / arma::norm(rows, "fro"));
        }
    }
    EXPECT_EQ(number(json, "blocks"), static_cast<double>(heads));
    const Json& reported = *json.find("relative_l2");
    EXPECT_NEAR(number(reported, "key"), arma::mean(arma::vec(errors[sim::Side::key])), 1e-3);
    EXPECT_NEAR(number(reported, "value"), arma::mean(arma::vec(errors[sim::Side::value])), 1e-3);
    EXPECT_LT(number(reported, "value"), 0.5);

    EXPECT_EQ(spiked("kv encode '" + sample_dump + "' -o '" + file + "' --method causal-klt --block 64").code, 2);
    const std::string begun = "kv encode '" + sample_dump + "' -o '" + file + "' --method ";
    for (const auto& [words, said] :
         {std::pair("causal-klt --seed 7", "--seed has no effect on causal-klt (it draws no random numbers)"),
          std::pair("kivi --seed 7", "--seed has no effect on kivi (it draws no random numbers)"),
          std::pair("xkv --seed 7", "\"xkv\" joins heads and codes whole sequences"),
          std::pair("zzzzzzzz --norm fp16", ", causal-klt"), std::pair("causal-klr", "did you mean \"causal-klt\"?"),
          std::pair("zzzzzzzz", ", causal-klt")}) {
        const Outcome rejected = spiked(begun + words);
        EXPECT_EQ(rejected.code, 2);
        EXPECT_NE(rejected.err.find(said), std::string::npos) << rejected.err;
    }
    const std::string help = spiked("kv encode --help").out;
    EXPECT_NE(help.find("fractions with ecsq, causal-klt"), std::string::npos) << help;
}

/// A dump of 2 layers with 3 heads of dimension 8 and 40 tokens, in layout token,head,dim and with values first in one
/// layer. Keys and values of a token repeat numbers of their own head and of the other side.
std::string dump_of_three_heads(const std::string& name) {
    constexpr std::size_t tokens = 40, heads = 3, dim = 8;
    std::vector<sim::TensorSource> tensors = {
        sim::tensor_of("readout.weights", sim::DType::f64, {3, 5}, normals(15, "weights"))};
    for (const char* layer : {"layers.1.", "layers.0."}) {
        const std::vector<double> common = normals(tokens * heads * dim, layer);
        for (const std::string side : {"value", "key", "query"}) {
            std::vector<double> rows = normals(tokens * heads * dim, layer + side);
            for (std::size_t i = 0; i < rows.size(); ++i)
                rows[i] = common[i / (heads * dim) * heads * dim + i % (2 * dim)] + 0.2 * rows[i];
            tensors.push_back(sim::tensor_of(layer + side, sim::DType::f32, {tokens, heads, dim}, rows));
        }
    }
    std::swap(tensors[4], tensors[5]);
    sim::write_safetensors(scratch(name), {{"layout", "token,head,dim"}}, tensors);
    return scratch(name);
}

TEST(CodecCommands, CodeJoinedHeadsByACausalTransform) {
    const std::string dump = dump_of_three_heads("joined.safetensors");
    const std::string file = scratch("joined.spkv");
    const std::string back = scratch("joined-back.safetensors");
    struct Case {
        std::string method;
        double blocks;  ///< of two layers with two sides
    };
    for (const auto& [method, blocks] :
         {Case{"causal-klt-joint", 2}, {"causal-klt:heads=2", 8}, {"causal-klt:heads=0", 4}}) {
        const Json json = encoded(dump, file, "--bits 2.5 --method " + method);
        expect_size_is_the_ledger(json, file, method);
        EXPECT_EQ(number(json, "blocks"), blocks);
        EXPECT_EQ(number(json, "tensors"), 4.0);
        EXPECT_EQ(number(json, "entries"), 4.0 * 40 * 3 * 8);
        EXPECT_EQ(contents(file)[8], 4) << "the version of the format";
        // `kv run` measures the same code: a block of all tokens has the same error.
        const Json table = spiked("kv run '" + dump + "' --json --block 40 --bits 2.5 --method " + method).json();
        const Outcome decoded = spiked("kv decode '" + file + "' -o '" + back + "' --json");
        ASSERT_EQ(decoded.code, 0) << decoded.err;
        EXPECT_EQ(number(decoded.json(), "blocks"), blocks);
        const sim::KvDump original(dump);
        const sim::KvDump again(back);
        std::map<std::string, std::vector<double>> errors;
        for (const auto& tensor : original.tensors())
            for (std::size_t head = 0; head < tensor.heads; ++head) {
                const arma::mat rows = original.read_block(tensor, head, 0, tensor.tokens);
                const arma::mat found =
                    again.read_block(*again.find(tensor.layer, tensor.side), head, 0, tensor.tokens);
                errors[std::string(sim::side_name(tensor.side))].push_back(arma::norm(found - rows, "fro") /
                                                                           arma::norm(rows, "fro"));
            }
        EXPECT_EQ(errors["query"], std::vector<double>(6, 0.0)) << "queries are not coded";
        for (const auto& row : *table.find("rows")->items()) {
            const std::string& side = *row.find("side")->string();
            const double measured = number(row, "relative_l2");
            EXPECT_GT(measured, 0.01);
            EXPECT_NEAR(number(*json.find("relative_l2"), side.c_str()), measured, 1e-6) << method << side;
            EXPECT_NEAR(arma::mean(arma::vec(errors[side])), measured, 1e-6) << method << side;
        }
        std::string first = contents(file);
        (void)encoded(dump, file, "--bits 2.5 --threads 3 --method " + method);
        EXPECT_EQ(contents(file), first) << method << " on 3 threads";
    }
    const Json fine = encoded(dump, file, "--bits 8 --method causal-klt-joint");
    EXPECT_LT(number(*fine.find("relative_l2"), "key"), 0.02);
}

TEST(EncodeCommand, JoinsKeysWithValuesOnlyWhereTheyFit) {
    const auto rejected = [](const std::vector<sim::TensorSource>& tensors, const std::string& method) {
        sim::write_safetensors(scratch("apart.safetensors"), {{"layout", "head,token,dim"}}, tensors);
        const Outcome found =
            spiked("kv encode '" + scratch("apart.safetensors") + "' -o '" + scratch("apart.spkv") + "' " + method);
        EXPECT_FALSE(fs::exists(scratch("apart.spkv")));
        return fmt::format("{} {}", found.code, found.err);
    };
    const auto tensor = [](const char* name, std::vector<std::size_t> shape) {
        const std::size_t entries = shape[0] * shape[1] * shape[2];
        return sim::tensor_of(name, sim::DType::f16, std::move(shape), normals(entries, name));
    };
    const std::string joint = "--method causal-klt-joint";
    const std::string alone = rejected({tensor("layers.2.key", {2, 20, 8})}, joint);
    EXPECT_NE(alone.find("layer 2 has not one tensor of keys and one of values"), std::string::npos) << alone;
    const std::string unlike =
        rejected({tensor("layers.2.key", {2, 20, 8}), tensor("layers.2.value", {2, 20, 6})}, joint);
    EXPECT_NE(unlike.find("keys and values of layer 2 differ in heads, tokens or channels"), std::string::npos)
        << unlike;
    const std::string wide =
        rejected({tensor("layers.2.key", {17, 20, 64}), tensor("layers.2.value", {17, 20, 64})}, joint);
    EXPECT_EQ(wide[0], '2');
    EXPECT_NE(wide.find("joins 2176 channels, at most 2048"), std::string::npos) << wide;
    EXPECT_NE(rejected({tensor("layers.2.key", {2, 20, 8})}, "--method causal-klt-joint:heads=2").find("no option"),
              std::string::npos);
}

TEST(CodecCommands, KeepTheLastTokensInHalfPrecision) {
    const std::string dump = small_dump("tail.safetensors", "head,token,dim", sim::DType::f16);
    const std::string file = scratch("tail.spkv");
    const std::string back = scratch("tail-back.safetensors");
    (void)encoded(dump, file, "--block 8 --bits 1");
    ASSERT_EQ(spiked("kv decode '" + file + "' -o '" + back + "'").code, 0);
    const sim::KvDump before(dump);
    const sim::KvDump after(back);
    for (std::size_t i = 0; i < before.tensors().size(); ++i) {
        const arma::mat tail = before.read_block(before.tensors()[i], 1, 16, 4);
        EXPECT_TRUE(arma::approx_equal(tail, after.read_block(after.tensors()[i], 1, 16, 4), "absdiff", 0.0));
    }
    // No full block at all.
    const Json json = encoded(dump, file, "--block 64 --method eoptshrink+tq-mse");
    EXPECT_EQ(number(json, "blocks"), 0.0);
    EXPECT_TRUE(json.find("paper_bits")->is_null());
    EXPECT_EQ(number(*json.find("ledger"), "residual_window"), 16.0);
    expect_size_is_the_ledger(json, file, "no block");
    ASSERT_EQ(spiked("kv decode '" + file + "' -o '" + back + "'").code, 0);
    const sim::SafetensorsFile original(dump);
    const sim::SafetensorsFile copy(back);
    for (const auto& tensor : original.tensors())
        EXPECT_EQ(values_of(original, tensor.name), values_of(copy, tensor.name));
}

/// Mean over blocks of 128 tokens of ||X - X^|| / ||X||.
double mean_error(const std::string& dump, const std::string& back, sim::Side side) {
    const sim::KvDump before(dump);
    const sim::KvDump after(back);
    double sum = 0.0;
    int count = 0;
    for (std::size_t i = 0; i < before.tensors().size(); ++i) {
        const auto& tensor = before.tensors()[i];
        if (tensor.side != side) continue;
        for (std::size_t head = 0; head < tensor.heads; ++head)
            for (std::size_t first = 0; first + 128 <= tensor.tokens; first += 128, ++count) {
                const arma::mat x = before.read_block(tensor, head, first, 128);
                sum += arma::norm(x - after.read_block(after.tensors()[i], head, first, 128), "fro") /
                       arma::norm(x, "fro");
            }
    }
    return sum / count;
}

TEST(CodecCommands, DecodeToTheErrorThatKvRunMeasures) {
    const std::string file = scratch("error.spkv");
    const std::string back = scratch("error-back.safetensors");
    for (const char* method : {"tq-mse --seed 0x77", "kivi", "svd:1+eden --seed 0x77"}) {
        const std::string options = std::string(" --bits 3 --method ") + method;
        const Json coded = encoded(sample_dump, file, options);
        ASSERT_EQ(spiked("kv decode '" + file + "' -o '" + back + "'").code, 0);
        const Json table = spiked("kv run '" + sample_dump + "' --json" + options).json();
        for (const auto& row : *table.find("rows")->items()) {
            const std::string& side = *row.find("side")->string();
            const double measured = number(row, "relative_l2");
            EXPECT_NEAR(number(*coded.find("relative_l2"), side.c_str()), measured, 1e-12) << method << side;
            // Rounding to F16 adds about 2^-12 of each entry in quadrature.
            EXPECT_NEAR(mean_error(sample_dump, back, side == "key" ? sim::Side::key : sim::Side::value), measured,
                        1e-5)
                << method << side;
            // The file takes the bits that kv run reports and the frames.
            if (side == "key" && std::string(method) == "tq-mse") {
                EXPECT_NEAR(number(coded, "bits_per_entry") - number(*coded.find("ledger"), "header"),
                            number(row, "bits_per_entry"), 1e-12);
            }
        }
    }
}

TEST(CodecCommands, GiveTheSameBytesOnAnyNumberOfThreads) {
    const std::string dump = small_dump("threads.safetensors");
    for (const char* method : {"eoptshrink+tq-mse", "tq-prod"}) {
        std::vector<std::string> files;
        std::vector<std::string> dumps;
        for (const char* threads : {"1", "2", "5"}) {
            const std::string file = scratch("threads.spkv");
            const std::string back = scratch("threads-back.safetensors");
            (void)encoded(sample_dump, file, std::string("--bits 2 --method ") + method + " --threads " + threads);
            EXPECT_EQ(spiked("kv decode '" + file + "' -o '" + back + "' --threads " + threads).code, 0);
            files.push_back(contents(file));
            dumps.push_back(contents(back));
        }
        EXPECT_TRUE(files[0] == files[1] && files[0] == files[2]) << method;
        EXPECT_TRUE(dumps[0] == dumps[1] && dumps[0] == dumps[2]) << method;
    }
}

TEST(CodecCommands, RotationsDependOnTheHeadAndOnTheSeed) {
    const std::string dump = scratch("same.safetensors");
    const auto values = normals(8 * 16, "one head");
    std::vector<double> twice(values);
    twice.insert(twice.end(), values.begin(), values.end());
    sim::write_safetensors(dump, {{"layout", "head,token,dim"}},
                           {sim::tensor_of("layers.0.key", sim::DType::f32, {2, 8, 16}, twice)});
    const std::string file = scratch("same.spkv");
    const std::string back = scratch("same-back.safetensors");
    const auto decoded = [&](const std::string& options) {
        (void)encoded(dump, file, "--block 8 --bits 2 " + options);
        EXPECT_EQ(spiked("kv decode '" + file + "' -o '" + back + "'").code, 0);
        return values_of(sim::SafetensorsFile(back), "layers.0.key");
    };
    const auto first = decoded("");
    EXPECT_FALSE(std::equal(first.begin(), first.begin() + 128, first.begin() + 128));
    EXPECT_EQ(first, decoded(""));
    EXPECT_NE(first, decoded("--seed 0x1"));
}

TEST(CodecCommands, EveryOptionIsStoredInTheFile) {
    const std::string dump = small_dump("options.safetensors");
    const std::string file = scratch("options.spkv");
    const std::string back = scratch("options-back.safetensors");
    for (const char* options :
         {"--method tq-mse --rotation rht2", "--method tq-mse --rotation fht-kac --norm log8",
          "--method eden --rotation identity --codebook normal --norm bf16", "--method kivi --group 4 --norm fp32",
          "--method svd:1+tq-mse --factor-codebook lloyd --factor-bits 3",
          "--method svd:1+tq-mse --factor-codebook fp16", "--method svd:2+tq-mse --open-loop --norm fp64",
          "--method eoptshrinkq-prod --rotation rht1"}) {
        const Json json = encoded(dump, file, std::string("--block 8 --bits 4 ") + options);
        ASSERT_EQ(spiked("kv decode '" + file + "' -o '" + back + "'").code, 0) << options;
        const sim::KvDump before(dump);
        const sim::KvDump after(back);
        double sum = 0.0;
        int count = 0;
        for (std::size_t i = 0; i < before.tensors().size(); ++i) {
            const auto& tensor = before.tensors()[i];
            for (std::size_t b = 0; tensor.side == sim::Side::key && b < 4; ++b, ++count) {
                const arma::mat x = before.read_block(tensor, b / 2, 8 * (b % 2), 8);
                sum += arma::norm(x - after.read_block(after.tensors()[i], b / 2, 8 * (b % 2), 8), "fro") /
                       arma::norm(x, "fro");
            }
        }
        EXPECT_NEAR(sum / count, number(*json.find("relative_l2"), "key"), 1e-6) << options;
    }
}

void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

TEST(CodecCommands, ReadOtherNamesAndLayouts) {
    const std::string dump = scratch("names.safetensors");
    sim::write_safetensors(dump, {}, {sim::tensor_of("k_cache.3", sim::DType::bf16, {8, 2, 4}, normals(64, "k"))});
    const std::string file = scratch("names.spkv");
    const std::string back = scratch("names-back.safetensors");
    (void)encoded(dump, file, "--block 4 --tensor '{side}_cache.{layer}' --layout token,head,dim");
    ASSERT_EQ(spiked("kv decode '" + file + "' -o '" + back + "'").code, 0);
    const sim::SafetensorsFile found(back);
    EXPECT_EQ(found.tensors().front().name, "k_cache.3");
    EXPECT_EQ(found.tensors().front().dtype, sim::DType::bf16);
    EXPECT_TRUE(found.metadata().empty());
}

TEST(CodecCommands, ReadArraysInFortranOrder) {
    // Element (head, token, dim) is 100 head + token + dim / 10; the last axis is the slowest.
    std::string header = "{'descr': '>f4', 'fortran_order': True, 'shape': (2, 8, 4), }";
    header.resize(117, ' ');
    std::string bytes = "\x93NUMPY\x01" + std::string(1, '\0') + "\x76" + std::string(1, '\0') + header + "\n";
    const auto value = [](int head, int token, int dim) {
        return static_cast<float>(100.0 * head + token + 0.1 * dim);
    };
    for (int dim = 0; dim < 4; ++dim)
        for (int token = 0; token < 8; ++token)
            for (int head = 0; head < 2; ++head) {
                const auto bits = std::bit_cast<std::uint32_t>(value(head, token, dim));
                for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(bits >> shift);
            }
    const std::string dump = scratch("layers.0.key.npy");
    write(dump, bytes);
    const std::string file = scratch("fortran.spkv");
    const std::string back = scratch("fortran-back.safetensors");
    (void)encoded(dump, file, "--block 8 --bits 8 --layout head,token,dim");
    ASSERT_EQ(spiked("kv decode '" + file + "' -o '" + back + "'").code, 0);
    const auto found = values_of(sim::SafetensorsFile(back), "layers.0.key");
    ASSERT_EQ(found.size(), 64U);
    for (int i = 0; i < 64; ++i) EXPECT_NEAR(found[i], value(i / 32, i / 4 % 8, i % 4), 2.0) << i;
}

std::uint64_t number_at(const std::string& bytes, std::size_t at, int count) {
    std::uint64_t number = 0;
    for (int i = count; i-- > 0;) number = number << 8 | static_cast<std::uint8_t>(bytes[at + i]);
    return number;
}

void put_number(std::string& bytes, std::size_t at, std::uint64_t number, int count) {
    for (int i = 0; i < count; ++i) bytes[at + i] = static_cast<char>(number >> (8 * i));
}

struct Container {
    std::string bytes;
    std::size_t data;  ///< offset of the end of the header
};

/// The small dump in blocks of 8 tokens: tensors readout.weights, layers.1.value, layers.0.query, layers.0.key, ...
Container small_container() {
    const std::string dump = small_dump("damage.safetensors");
    const std::string file = scratch("damage.spkv");
    (void)encoded(dump, file, "--block 8 --bits 2 --method tq-mse");
    Container found{contents(file), 0};
    found.data = 24 + number_at(found.bytes, 16, 8);
    return found;
}

Outcome decoded(const std::string& bytes, const std::string& limits = "") {
    const std::string file = scratch("altered.spkv");
    const std::string back = scratch("altered-back.safetensors");
    write(file, bytes);
    const Outcome found = spiked("kv decode '" + file + "' -o '" + back + "'", limits);
    EXPECT_FALSE(fs::exists(back)) << "no output is left after a damaged file";
    EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), 1) << found.err;
    EXPECT_NE(found.err.find("altered.spkv"), std::string::npos) << found.err;
    return found;
}

TEST(DecodeCommand, NamesTheBlockThatWasAltered) {
    const Container good = small_container();
    // 4 frames of 8 tokens x 16 at 2 bits: 8 + 16 + 32 bytes each; then 2 of 4 x 16 in fp16: 8 + 128.
    const std::size_t value = good.data + 15 * 8 + 4;
    const std::size_t frame = 8 + 16 + 32;
    struct Case {
        std::size_t at;
        std::vector<const char*> says;
    };
    for (const auto& [at, says] :
         std::vector<Case>{{value + 8, {"layers.1.value", "head 0", "block 0", "tokens 0 to 7"}},
                           {value + frame + 20, {"layers.1.value", "head 1", "block 0"}},
                           {value + 2 * frame + 55, {"layers.1.value", "head 0", "block 1", "tokens 8 to 15"}},
                           {value + 3 * frame + 4, {"layers.1.value", "head 1", "block 1"}},  // a checksum
                           {value + 3 * frame + 3, {"layers.1.value", "head 1", "block 1"}},  // a length
                           {value + 4 * frame + 100, {"layers.1.value", "head 0", "block 2", "tokens 16 to 19"}},
                           {value + 4 * frame + 2 * 136, {"layers.1.value", "checksum"}},  // the tensor's checksum
                           {good.data + 7, {"readout.weights", "checksum"}},
                           {good.bytes.size() - 1, {"layers.1.key", "checksum"}},
                           {good.data - 40, {"header", "checksum"}},
                           {3, {"not a coded dump"}},
                           {8, {"version"}},
                           {12, {"header"}},
                           {16, {"header"}}}) {
        std::string bytes = good.bytes;
        bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
        const Outcome found = decoded(bytes);
        EXPECT_EQ(found.code, 4) << found.err;
        for (const char* part : says) EXPECT_NE(found.err.find(part), std::string::npos) << part << ": " << found.err;
    }
    // Two valid blocks exchanged.
    std::string swapped = good.bytes;
    std::swap_ranges(swapped.begin() + value, swapped.begin() + value + frame, swapped.begin() + value + frame);
    EXPECT_EQ(decoded(swapped).code, 4);
    EXPECT_EQ(decoded(good.bytes + "x").code, 4);
}

TEST(DecodeCommand, NamesTheBlockWhereAFileEnds) {
    const Container good = small_container();
    const std::size_t value = good.data + 15 * 8 + 4;
    const std::size_t frame = 8 + 16 + 32;
    struct Case {
        std::size_t length;
        std::vector<const char*> says;
    };
    for (const auto& [length, says] : std::vector<Case>{{value + frame + 30, {"layers.1.value", "head 1, block 0"}},
                                                        {value + 2 * frame, {"layers.1.value", "head 0, block 1"}},
                                                        {value + 2 * frame + 5, {"layers.1.value", "head 0, block 1"}},
                                                        {good.bytes.size() - 10, {"layers.1.key", "head 1, block 2"}},
                                                        {good.bytes.size() - 2, {"layers.1.key"}},
                                                        {good.data + 50, {"readout.weights"}},
                                                        {good.data, {"readout.weights"}},
                                                        {good.data - 5, {"header"}},
                                                        {20, {"truncated"}},
                                                        {4, {"truncated"}},
                                                        {0, {"truncated"}}}) {
        const Outcome found = decoded(good.bytes.substr(0, length));
        EXPECT_EQ(found.code, 4) << length << found.err;
        for (const char* part : says) EXPECT_NE(found.err.find(part), std::string::npos) << part << ": " << found.err;
    }
}

// Surplus bytes must not be accepted as padding, even if every checksum is right and the block decodes.
TEST(DecodeCommand, RejectsSurplusBytesAfterABlockWithRightChecksums) {
    const Container good = small_container();
    const std::size_t value = good.data + 15 * 8 + 4;
    const std::size_t payload = 16 + 32;
    const std::size_t tensor = 4 * (8 + payload) + 2 * (8 + 2 * 4 * 16);
    const auto with_surplus = [&](std::size_t surplus) {
        std::string bytes = good.bytes;
        bytes.insert(value + 8 + payload, surplus, '\0');
        std::string summed(12, '\0');
        put_number(summed, 0, 1, 4);
        summed += bytes.substr(value + 8, payload + surplus);
        const auto sum = [](const std::string& of) {
            return crc32(0, reinterpret_cast<const Bytef*>(of.data()), static_cast<uInt>(of.size()));
        };
        put_number(bytes, value, payload + surplus, 4);
        put_number(bytes, value + 4, sum(summed), 4);
        put_number(bytes, value + tensor + surplus, sum(bytes.substr(value, tensor + surplus)), 4);
        return bytes;
    };
    EXPECT_EQ(with_surplus(0), good.bytes);
    for (const std::size_t surplus : {1, 7, 64}) {
        const Outcome found = decoded(with_surplus(surplus));
        EXPECT_EQ(found.code, 4);
        EXPECT_NE(found.err.find("tensor \"layers.1.value\", head 0, block 0"), std::string::npos) << found.err;
        EXPECT_NE(found.err.find(std::to_string(payload + surplus) + " bytes"), std::string::npos) << found.err;
    }
}

/// The container with a part of its header replaced and its checksum corrected, as a forger would do.
std::string forged(const Container& good, const std::string& old_text, const std::string& new_text) {
    std::string header = good.bytes.substr(24, good.data - 24);
    const std::size_t at = header.find(old_text);
    EXPECT_NE(at, std::string::npos) << old_text;
    header.replace(at, old_text.size(), new_text);
    std::string bytes = good.bytes.substr(0, 24) + header + good.bytes.substr(good.data);
    put_number(bytes, 16, header.size(), 8);
    put_number(bytes, 12, crc32(0, reinterpret_cast<const Bytef*>(header.data()), static_cast<uInt>(header.size())), 4);
    return bytes;
}

TEST(DecodeCommand, ReadsTheKiviHfOfVersionOneAsGroupsAlongTokens) {
    const std::string dump = small_dump("kivi-hf.safetensors");
    const std::string file = scratch("kivi-hf.spkv");
    const std::string back = scratch("kivi-hf-back.safetensors");
    const auto decode = [&](const std::string& bytes) {
        write(file, bytes);
        const Outcome found = spiked("kv decode '" + file + "' -o '" + back + "'");
        EXPECT_EQ(found.code, 0) << found.err;
        const sim::SafetensorsFile decoded_dump(back);
        return std::pair{values_of(decoded_dump, "layers.0.key"), values_of(decoded_dump, "layers.1.value")};
    };
    (void)encoded(dump, file, "--block 8 --bits 2 --group 4 --residual 0 --method kivi:axis=key");
    Container made{contents(file), 0};
    made.data = 24 + number_at(made.bytes, 16, 8);
    const auto expected = decode(made.bytes);
    Container renamed{forged(made, "kivi:axis=key", "kivi-hf:residual=0"), 0};
    renamed.data = 24 + number_at(renamed.bytes, 16, 8);
    std::string old = forged(renamed, "\"version\":2", "\"version\":1");
    put_number(old, 8, 1, 4);
    EXPECT_EQ(decode(old), expected);
    // The number in front is part of what the header states: alone, it is damage.
    std::string damaged = made.bytes;
    put_number(damaged, 8, 1, 4);
    write(file, damaged);
    EXPECT_EQ(spiked("kv decode '" + file + "' -o '" + back + "'").code, 4);
    // In version 2 the name means groups along channels.
    const auto now = decode(forged(made, "kivi:axis=key", "kivi-hf"));
    EXPECT_NE(now.first, expected.first);
    EXPECT_NE(now.second, expected.second);
}

TEST(DecodeCommand, RejectsForgedHeadersWithoutAllocatingMuchMemory) {
    const std::string limits = sanitized ? "" : "ulimit -v 600000;";
    const Container good = small_container();
    for (const auto& [old_text, new_text] : std::vector<std::pair<std::string, std::string>>{
             {"[2,20,16]", "[2,2000000000000,16]"},
             {"[2,20,16]", "[2,20,1600000]"},
             {"[2,20,16]", "[4611686018427387904,20,16]"},
             {"[2,20,16]", "[-2,20,16]"},
             {"[2,20,16]", "[2,20,0]"},
             {"[2,20,16]", "[2,20,16,1]"},
             {"[2,20,16]", "[3,20,16]"},
             {"[3,5]", "[3000000000,5]"},
             {"[3,5]", "[3,4]"},
             {"\"block\":8", "\"block\":0"},
             {"\"block\":8", "\"block\":9223372036854775807"},
             {"\"block\":8", "\"block\":7"},
             {"\"block\":8", "\"block\":\"8\""},
             {"\"bits\":2", "\"bits\":9"},
             {"\"bits\":2", "\"bits\":-1"},
             {"\"bits\":2", "\"bits\":8"},
             {"\"method\":\"tq-mse\"", "\"method\":\"tq-mes\""},
             {"\"method\":\"tq-mse\"", "\"method\":\"svd:1+tq-mse\""},
             {"\"method\":\"tq-mse\"", "\"method\":\"kivi:group=4\""},
             {"\"rotation\":\"haar\"", "\"rotation\":\"har\""},
             {"\"norm\":\"fp16\"", "\"norm\":\"fp64\""},
             {"\"seed\":\"0x", "\"seed\":\"0y"},
             {"\"F32\"", "\"F33\""},
             {"\"F32\"", "\"I32\""},
             {"\"side\":\"value\"", "\"side\":\"query\""},
             {"\"layout\":\"head,token,dim\",\"metadata\"", "\"layout\":\"dim\",\"metadata\""},
             {"\"layers.0.key\"", "\"layers.1.value\""},
             {"\"layers.0.key\"", "\"__metadata__\""},
             {"\"tensors\":[", "\"tensors\":[7,"},
             {"{\"format\"", "[[[[[[[[[[{\"format\""}}) {
        const Outcome found = decoded(forged(good, old_text, new_text), limits);
        EXPECT_EQ(found.code, 4) << new_text << ": " << found.err;
    }
    std::string long_header = good.bytes;
    put_number(long_header, 16, 0xFFFFFFFFFFFFFFFFU, 8);
    EXPECT_EQ(decoded(long_header, limits).code, 4);
}

TEST(DecodeCommand, RejectsForgedContainersOfJoinedHeads) {
    const std::string limits = sanitized ? "" : "ulimit -v 600000;";
    const std::string file = scratch("forged-joint.spkv");
    (void)encoded(dump_of_three_heads("forged-joint.safetensors"), file, "--bits 2 --method causal-klt-joint");
    Container good{contents(file), 0};
    good.data = 24 + number_at(good.bytes, 16, 8);
    struct Case {
        const char *old_text, *new_text, *says;
    };
    for (const auto& [old_text, new_text, says] : std::vector<Case>{
             {"\"layer\":1,\"side\":\"value\"", "\"layer\":2,\"side\":\"value\"", "layer 1 has not one tensor of keys"},
             {"\"layer\":1,\"side\":\"value\"", "\"layer\":1,\"side\":\"key\"", "layer 1 has not one tensor of keys"},
             {"\"layer\":1,\"side\":\"value\"", "\"layer\":0,\"side\":\"value\"", "layer 0 has not one tensor of keys"},
             {"[40,3,8]", "[39,3,8]", "differ in heads, tokens or channels"},
             {"[40,3,8]", "[40,3,9]", "differ in heads, tokens or channels"},
             {"[40,3,8]", "[40,2,8]", "has 2 heads and 3 rotations"},
             {"\"block\":40", "\"block\":39", "the method codes whole sequences"},
             {"causal-klt-joint", "causal-klt", "layers.1.value"},
             {"causal-klt-joint", "causal-klt:heads=2", "layers.1.value"},
             {"causal-klt-joint", "causal-klt-joint:update=12", "multiple of 8"},
             {"causal-klt-joint", "kvtc", "kvtc"},
             {"\"derotated\":false", "\"derotated\":0", "derotated"},
             {"\"version\":4", "\"version\":3", "checksum"}}) {
        const Outcome found = decoded(forged(good, old_text, new_text), limits);
        EXPECT_EQ(found.code, 4) << new_text << ": " << found.err;
        EXPECT_NE(found.err.find(says), std::string::npos) << says << ": " << found.err;
    }
    // All tensors so wide that a layer takes a basis of 6144 channels.
    std::string wide = forged(good, "[40,3,8]", "[40,3,1024]");
    for (int others = 0; others < 5; ++others) {
        Container next{wide, 0};
        next.data = 24 + number_at(next.bytes, 16, 8);
        wide = forged(next, "[40,3,8]", "[40,3,1024]");
    }
    const Outcome found = decoded(wide, limits);
    EXPECT_EQ(found.code, 4);
    EXPECT_NE(found.err.find("joins 6144 channels, at most 2048"), std::string::npos) << found.err;
    // An altered byte of the frame, and a file that ends within it.
    std::string altered = good.bytes;
    const std::size_t frame = good.data + 15 * 8 + 4;
    altered[frame + 100] = static_cast<char>(altered[frame + 100] ^ 1);
    const std::string place = "tensors \"layers.1.key\" and \"layers.1.value\", heads 0 to 2, block 0 (tokens 0 to 39)";
    EXPECT_NE(decoded(altered).err.find(place), std::string::npos);
    EXPECT_NE(decoded(good.bytes.substr(0, frame + 100)).err.find(place), std::string::npos);
    EXPECT_EQ(decoded(good.bytes + "x").code, 4);
}

TEST(DecodeCommand, NamesTheOptionOfAForgedHeaderAndIgnoresUnknownOnes) {
    const Container good = small_container();
    const auto expect = [&](const char* old_text, const char* new_text, const std::string& problem) {
        const Outcome found = decoded(forged(good, old_text, new_text));
        EXPECT_EQ(found.code, 4) << new_text;
        EXPECT_NE(found.err.find(": options of the header " + problem +
                                 ": the file is damaged, forged or written by a newer program"),
                  std::string::npos)
            << found.err;
    };
    expect("\"rotation\":\"haar\"", "\"rotation\":\"har\"",
           "is not usable (unknown rotation \"har\"; did you mean \"haar\"?)");
    expect("\"group\":64", "\"group\":0", "has a \"group\" that is not a whole number from 1 to 9223372036854775807");
    expect("\"factor_bits\":4", "\"factor_bits\":9", "has a \"factor_bits\" that is not a whole number from 1 to 8");
    expect("\"open_loop\":false", "\"open_loop\":1", "has a \"open_loop\" that is neither true nor false");
    const std::string file = scratch("more-options.spkv");
    write(file, forged(good, "\"open_loop\":false", "\"open_loop\":false,\"temperature\":1"));
    const Outcome found = spiked("kv decode '" + file + "' -o '" + scratch("more-options.safetensors") + "'");
    EXPECT_EQ(found.code, 0) << found.err;
}

// These limits bound the work of a decoder before it begins.
TEST(DecodeCommand, RejectsSizesThatNoCodedDumpCanHave) {
    const Container good = small_container();
    const auto twice = [&](const std::pair<const char*, const char*>& first,
                           const std::pair<const char*, const char*>& second) {
        Container once{forged(good, first.first, first.second), 0};
        once.data = 24 + number_at(once.bytes, 16, 8);
        return forged(once, second.first, second.second);
    };
    const auto expect = [](const std::string& bytes, const char* part) {
        const Outcome found = decoded(bytes);
        EXPECT_EQ(found.code, 4) << found.err;
        EXPECT_NE(found.err.find(part), std::string::npos) << part << ": " << found.err;
    };
    // 50 blocks of 48 bytes; with rows of 1024 entries these are less than an eighth of a bit per entry.
    const std::string dump = scratch("long.safetensors");
    sim::write_safetensors(
        dump, {{"layout", "head,token,dim"}},
        {sim::tensor_of("layers.0.key", sim::DType::f32, {2, 200, 16}, std::vector<double>(6400, 1.0))});
    (void)encoded(dump, scratch("long.spkv"), "--block 8 --bits 2 --method tq-mse");
    Container all_blocks{contents(scratch("long.spkv")), 0};
    all_blocks.data = 24 + number_at(all_blocks.bytes, 16, 8);
    expect(forged(all_blocks, "[2,200,16]", "[2,200,1024]"), "the header is forged");
    expect(forged(good, "[2,20,16]", "[2,20,1025]"), "at most 1024");
    expect(twice({"\"block\":8", "\"block\":9000000000"}, {"[2,20,16]", "[2,2000000000,16]"}), "entries at once");
    // A frame of 8 x 16 entries holds at most 32 bytes an entry and 64 KiB.
    std::string long_frame = good.bytes + std::string(100000, '\0');
    put_number(long_frame, good.data + 15 * 8 + 4, 32 * 128 + 65536 + 1, 4);
    expect(long_frame, "at most 69632 are possible");
}

TEST(EncodeCommand, RejectsRowsThatNoDecoderAccepts) {
    sim::write_safetensors(
        scratch("wide.safetensors"), {{"layout", "head,token,dim"}},
        {sim::tensor_of("layers.0.key", sim::DType::f16, {1, 2, 1025}, std::vector<double>(2050, 1.0))});
    const Outcome found =
        spiked("kv encode " + scratch("wide.safetensors") + " -o " + scratch("wide.spkv") + " --block 2");
    EXPECT_EQ(found.code, 2);
    EXPECT_NE(found.err.find("at most 1024"), std::string::npos) << found.err;
}

TEST(DecodeCommand, LargeValuesStayInTheRangeOfTheDtype) {
    for (const auto& [dtype, largest] : {std::pair{sim::DType::f16, 65504.0},
                                         {sim::DType::bf16, 0x1.FEp127},
                                         {sim::DType::f32, 0x1.FFFFFEp127},
                                         {sim::DType::f64, 0x1.FFFFFFFFFFFFFp1022}}) {
        const std::string dump = scratch("large.safetensors");
        std::vector<double> values(64 * 16, 1.0);
        for (std::size_t token = 0; token < 64; ++token)
            values[token * 16 + token % 16] = token % 2 ? -largest : largest;
        sim::write_safetensors(dump, {{"layout", "head,token,dim"}},
                               {sim::tensor_of("layers.0.value", dtype, {1, 64, 16}, values)});
        const std::string file = scratch("large.spkv");
        const std::string back = scratch("large-back.safetensors");
        (void)encoded(dump, file, "--block 8 --bits 6 --norm fp64 --method tq-mse");
        ASSERT_EQ(spiked("kv decode '" + file + "' -o '" + back + "'").code, 0);
        std::size_t saturated = 0;
        for (const double value : values_of(sim::SafetensorsFile(back), "layers.0.value")) {
            EXPECT_TRUE(std::isfinite(value));
            saturated += std::abs(value) == largest ? 1 : 0;
        }
        // About half of them are decoded to values beyond the largest number, which are clipped; of f64 the largest
        // value here is half the largest double, so that nothing is clipped.
        EXPECT_EQ(saturated > 8, dtype != sim::DType::f64) << largest;
    }
}

TEST(CodecCommands, ReportErrorsInPlainMessages) {
    const std::string dump = small_dump("errors.safetensors");
    struct Case {
        std::string words;
        int code;
        const char* says;
    };
    for (const auto& [words, code, says] :
         std::vector<Case>{{"kv encode '" + dump + "'", 2, "-o"},
                           {"kv encode '" + dump + "' -o '" + dump + "'", 2, "FILE.spkv is expected"},
                           {"kv encode '" + dump + "' -o x.spkv --bits 2,3", 2, "one number"},
                           {"kv encode '" + dump + "' -o x.spkv --block 0", 2, "--block 0 is not possible"},
                           {"kv encode '" + dump + "' -o x.spkv --method tq-mes", 2, "did you mean"},
                           {"kv encode '" + dump + "' -o /nowhere/x.spkv --block 8", 6, "/nowhere/x.spkv"},
                           {"kv encode /nowhere/x.safetensors -o x.spkv", 4, "/nowhere/x.safetensors"},
                           {"kv decode '" + dump + "' -o back.safetensors", 4, "FILE.spkv is expected"},
                           {"kv decode x.spkv", 2, "-o"},
                           {"kv decode x.spkv -o back.npz", 2, "safetensors"},
                           {"kv golden", 2, "--write FILE or --verify FILE"}}) {
        const Outcome found = spiked(words);
        EXPECT_EQ(found.code, code) << words << ": " << found.err;
        EXPECT_NE(found.err.find(says), std::string::npos) << found.err;
    }
    std::vector<double> values(8 * 16, 1.0);
    values[100] = std::nan("");
    sim::write_safetensors(scratch("nan.safetensors"), {{"layout", "head,token,dim"}},
                           {sim::tensor_of("layers.4.value", sim::DType::f32, {1, 8, 16}, values)});
    const Outcome found = spiked("kv encode " + scratch("nan.safetensors") + " -o " + scratch("nan.spkv"));
    EXPECT_EQ(found.code, 4);
    EXPECT_NE(found.err.find("layers.4.value"), std::string::npos) << found.err;
    EXPECT_FALSE(fs::exists(scratch("nan.spkv")));
    for (const char* command : {"kv encode", "kv decode", "kv golden"})
        EXPECT_NE(spiked(std::string(command) + " --help").out.find("\n\nExamples\n  spiked " + std::string(command)),
                  std::string::npos);
}

TEST(GoldenCommand, VerifiesItsOwnVectorsAndRejectsAlteredOnes) {
    const std::string path = scratch("golden.json");
    ASSERT_EQ(spiked("kv golden --write '" + path + "'").code, 0);
    const Outcome good = spiked("kv golden --verify '" + path + "' --json");
    EXPECT_EQ(good.code, 0) << good.out;
    EXPECT_GT(number(good.json(), "vectors"), 300.0);

    const std::string text = contents(path);
    const Json document = Json::parse(text, path);
    EXPECT_EQ(*document.find("schema")->string(), "spiked.golden/1");
    // Every quantizer has a vector.
    const Json list = spiked("list quantizers --json").json();
    for (const auto& line : *list.find("quantizers")->items()) {
        const std::string& name = *line.find("name")->string();
        if (name.find('+') != std::string::npos || name.starts_with("eoptshrinkq")) continue;  // compositions
        EXPECT_NE(text.find("\"method\":\"" + name + "\""), std::string::npos) << name;
    }

    struct Case {
        std::string old_text, new_text;
        int code;
        const char* says;
    };
    const std::string& encoded_text = *(*document.find("vectors")->items())[3].find("encoded")->string();
    std::string other = encoded_text;
    other[0] = other[0] == '0' ? '1' : '0';
    const std::string name = *(*document.find("vectors")->items())[3].find("name")->string();
    for (const auto& [old_text, new_text, code, says] :
         std::vector<Case>{{"\"encoded\":\"" + encoded_text + "\"", "\"encoded\":\"" + other + "\"", 1, "encoded"},
                           {"[0.75,0.75", "[0.75,0.7500001", 1, "constant-2x8"},
                           {"\"bits\":3", "\"bits\":2", 1, "bits"},
                           {"\"rotation\":\"haar\"", "\"rotation\":\"rht2\"", 1, "options"},
                           {"\"name\":\"" + name + "\"", "\"name\":\"another\"", 1, "missing"},
                           {"\"haar:8\":[", "\"haar:9\":[", 1, "haar:8"},
                           {"spiked.golden/1", "spiked.golden/2", 4, "schema"},
                           {"\"decoded\":[", "\"decoded\":[[1],", 4, "decoded"},
                           {"\"encoded\":\"", "\"encoded\":\"zz", 4, "hexadecimal"},
                           {"\"vectors\":[", "\"vectors\":{", 4, "altered.json"}}) {
        std::string altered = text;
        const std::size_t at = altered.find(old_text);
        ASSERT_NE(at, std::string::npos) << old_text;
        altered.replace(at, old_text.size(), new_text);
        write(scratch("altered.json"), altered);
        const Outcome found = spiked("kv golden --verify '" + scratch("altered.json") + "'");
        EXPECT_EQ(found.code, code) << new_text << ": " << found.out << found.err;
        EXPECT_NE((found.out + found.err).find(says), std::string::npos) << found.out << found.err;
    }
    write(scratch("altered.json"), "no JSON");
    EXPECT_EQ(spiked("kv golden --verify '" + scratch("altered.json") + "'").code, 4);
    EXPECT_EQ(spiked("kv golden --verify /nowhere/golden.json").code, 4);
}

/// Decodes the vectors without the code of this program: TurboQuant as its authors state it.
TEST(GoldenCommand, VectorsCanBeDecodedWithoutThisProgram) {
    const std::string path = scratch("golden-read.json");
    ASSERT_EQ(spiked("kv golden --write '" + path + "'").code, 0);
    const Json document = Json::parse(contents(path), path);
    int checked = 0;
    for (const auto& vector : *document.find("vectors")->items()) {
        if (*vector.find("method")->string() != "tq-mse" || number(vector, "bits") != 1.0) continue;
        const bool rotated = !vector.find("matrices")->items()->empty();
        const bool bare = vector.find("name")->string()->find("identity normal fp64") != std::string::npos;
        if (!rotated && !bare) continue;
        const auto rows = static_cast<std::size_t>(number(vector, "rows"));
        const auto columns = static_cast<std::size_t>(number(vector, "columns"));
        const auto& decoded_rows = *vector.find("decoded")->items();
        const auto& input_rows = *vector.find("input")->items();
        for (std::size_t t = 0; t < rows; ++t) {
            // One bit stores the sign of each rotated coordinate; all decoded coordinates of a row have one magnitude.
            double norm = 0.0;
            std::vector<double> x(columns), back(columns);
            for (std::size_t j = 0; j < columns; ++j) {
                x[j] = number((*input_rows[t].items())[j]);
                back[j] = number((*decoded_rows[t].items())[j]);
                norm += x[j] * x[j];
            }
            std::vector<double> y(columns), z(columns);
            for (std::size_t i = 0; i < columns; ++i)
                for (std::size_t j = 0; j < columns; ++j) {
                    double entry = i == j ? 1.0 : 0.0;
                    if (rotated) {
                        const std::string& matrix = *(*vector.find("matrices")->items())[0].string();
                        entry = number((*(*document.find("matrices")->find(matrix)->items())[i].items())[j]);
                    }
                    y[i] += entry * x[j];
                    z[i] += entry * back[j];
                }
            for (std::size_t i = 0; i < columns; ++i) {
                EXPECT_NEAR(std::abs(z[i]), std::abs(z[0]), 1e-9);
                if (std::abs(y[i]) > 1e-6 && norm > 0.0) {
                    EXPECT_GT(y[i] * z[i], 0.0) << *vector.find("name")->string();
                }
                ++checked;
            }
        }
    }
    EXPECT_GT(checked, 100);
}

// An encoding that is killed at any moment leaves no file, the old file or the complete new one.
TEST(EncodeCommand, KillsLeaveOneWholeFileOrNone) {
    const int wanted = kills_wanted();
    const fs::path folder = scratch("kills");
    fs::create_directories(folder);
    const std::string file = (folder / "a.spkv").string();
    const std::string words = "kv encode '" + sample_dump + "' -q --method tcq -o '" + file + "' --bits ";
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(spiked(words + "2").code, 0);
    const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
    const std::string old_bytes = contents(file);
    ASSERT_EQ(spiked(words + "3").code, 0);
    const std::string new_bytes = contents(file);
    ASSERT_NE(old_bytes, new_bytes);

    std::mt19937 random(15);
    std::uniform_real_distribution<double> moment(0.001, whole.count());
    int kills = 0;
    // A process that ended before its time limit does not count as killed.
    for (int attempt = 0; kills < wanted && attempt < 4 * wanted; ++attempt) {
        fs::remove(file);
        if (attempt % 2 == 1) std::ofstream(file, std::ios::binary) << old_bytes;
        const double seconds = moment(random);
        const int code = spiked(words + "3", fmt::format("timeout -s KILL {:.4f}", seconds)).code;
        ASSERT_TRUE(code == 0 || code == 137) << code;
        kills += code == 137 ? 1 : 0;
        for (const auto& entry : fs::directory_iterator(folder)) EXPECT_EQ(entry.path().string(), file);
        if (!fs::exists(file)) {
            EXPECT_EQ(attempt % 2, 0) << "the old file is gone";
            EXPECT_EQ(code, 137);
        } else {
            const std::string found = contents(file);
            EXPECT_TRUE(found == new_bytes || (code == 137 && attempt % 2 == 1 && found == old_bytes)) << seconds;
        }
    }
    EXPECT_EQ(kills, wanted);
}

TEST(CodecCommands, RestoreEveryExtraDump) {
    const char* folder = std::getenv("SPIKED_EXTRA_DUMPS");
    if (folder == nullptr) GTEST_SKIP() << "SPIKED_EXTRA_DUMPS names no folder";
    const std::string file = scratch("extra.spkv");
    const std::string back = scratch("extra-back.safetensors");
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().extension() != ".safetensors") continue;
        const Json json = encoded(entry.path().string(), file, "--method eoptshrink+tq-mse --bits 4");
        expect_size_is_the_ledger(json, file, entry.path().string());
        ASSERT_EQ(spiked("kv decode '" + file + "' -o '" + back + "'").code, 0);
        const sim::SafetensorsFile a(entry.path().string());
        const sim::SafetensorsFile b(back);
        EXPECT_EQ(a.metadata(), b.metadata());
        for (const auto& tensor : a.tensors())
            EXPECT_LT(distance(values_of(a, tensor.name), values_of(b, tensor.name)), 0.12) << tensor.name;
    }
}

/// A decoder rejects a file that is too small for its header as forged, so the encoder must not write such a file.
TEST(EncodeCommand, AFileThatADecoderWouldRejectAsForgedIsNotWritten) {
    const std::string dump = scratch("constant.safetensors");
    std::vector<double> values(8192 * 1024, 0.0);
    for (std::size_t i = 0; i < values.size(); i += 1024) values[i] = 1.0;
    sim::write_safetensors(dump, {{"layout", "head,token,dim"}},
                           {sim::tensor_of("layers.0.key", sim::DType::f16, {1, 8192, 1024}, values)});
    const std::string coded = "' --rotation identity --block 8192 -o '" + scratch("constant.spkv") + "'";
    const Outcome rejected = spiked("kv encode '" + dump + coded + " --method ecsq --bits 0.25");
    EXPECT_EQ(rejected.code, 4) << rejected.err;
    EXPECT_NE(rejected.err.find("forged"), std::string::npos) << rejected.err;
    EXPECT_FALSE(fs::exists(scratch("constant.spkv")));
    // Following the advice of the message works.
    EXPECT_EQ(spiked("kv encode '" + dump + coded + " --method tq-mse --bits 1").code, 0);
    EXPECT_EQ(spiked("kv decode '" + scratch("constant.spkv") + "' -o '" + scratch("back.safetensors") + "'").code, 0);
}

}  // namespace
}  // namespace spiked::app
