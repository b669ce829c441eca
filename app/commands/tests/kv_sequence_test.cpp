// Measurements of `kv run` over a whole sequence: attention, and the full-precision tail of KIVI.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "app/tests/process.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/kv/kv_dump.hpp"
#include "sim/random/normal.hpp"

namespace spiked::app {
namespace {

const Json& side_row(const Json& document, const std::string& side) {
    for (const Json& row : *document.find("rows")->items())
        if (*row.find("side")->string() == side) return row;
    throw std::runtime_error("no row of side " + side);
}

struct Sequence {
    arma::mat keys, values;
};

Sequence sequence_of(const std::string& dump, std::size_t layer, std::size_t head) {
    const sim::KvDump file(dump);
    const auto& keys = *file.find(layer, sim::Side::key);
    return {file.read_block(keys, head, 0, keys.tokens),
            file.read_block(*file.find(layer, sim::Side::value), head, 0, keys.tokens)};
}

arma::mat causal_output(const arma::mat& queries, const Sequence& cache) {
    arma::mat output(queries.n_rows, cache.values.n_cols);
    for (arma::uword t = 0; t < queries.n_rows; ++t) {
        const arma::vec logits =
            cache.keys.head_rows(t + 1) * queries.row(t).t() / std::sqrt(static_cast<double>(queries.n_cols));
        const arma::vec weights = arma::exp(logits - logits.max());
        output.row(t) = weights.t() * cache.values.head_rows(t + 1) / arma::accu(weights);
    }
    return output;
}

// In blocks of 32 tokens every token of a block is a query; the last 6 tokens of the sequence do not fill a block.
TEST(KvRunAttention, AgreesWithTheDecodedFileForTheQueryHeadsOfTheGroup) {
    constexpr std::size_t tokens = 70;
    std::vector<sim::TensorSource> tensors;
    for (const auto& [name, heads] : {std::pair{"layers.0.key", 2U}, {"layers.0.value", 2U}, {"layers.0.query", 4U}}) {
        std::vector<double> entries(heads * tokens * 16);
        stream::fill_normal(stream::Stream({}, name, stream::Role::noise, 7), entries);
        tensors.push_back(sim::tensor_of(name, sim::DType::f32, {heads, tokens, 16}, entries));
    }
    const std::string original = scratch("sequence.safetensors");
    sim::write_safetensors(original, {{"layout", "head,token,dim"}, {"attention", "causal"}}, tensors);
    const std::string coded = scratch("attention.spkv");
    const std::string back = scratch("attention.safetensors");
    const std::string words = " --method tq-mse --bits 2 --block 32";
    ASSERT_EQ(spiked("kv encode '" + original + "' -o '" + coded + "'" + words).code, 0);
    ASSERT_EQ(spiked("kv decode '" + coded + "' -o '" + back + "'").code, 0);
    const Outcome run = spiked("kv run '" + original + "'" + words + " --heads 1 --json");
    ASSERT_EQ(run.code, 0) << run.err;
    const Json document = run.json();
    const Sequence exact = sequence_of(original, 0, 1);
    const Sequence decoded = sequence_of(back, 0, 1);
    const sim::KvDump dump(original);
    // Errors with decoded keys, decoded values and both: means over two blocks.
    const auto errors_with = [&](std::initializer_list<std::size_t> heads) {
        std::array<double, 3> errors{};
        for (const std::size_t first : {0, 32}) {
            double energy = 0.0;
            std::array<double, 3> squares{};
            for (const std::size_t head : heads) {
                const arma::mat queries = dump.read_block(*dump.find(0, sim::Side::query), head, 0, tokens);
                const auto of_block = [&](const Sequence& cache) -> arma::mat {
                    return causal_output(queries, cache).rows(first, first + 31);
                };
                const arma::mat output = of_block(exact);
                energy += arma::accu(arma::square(output));
                const Sequence caches[] = {{decoded.keys, exact.values}, {exact.keys, decoded.values}, decoded};
                for (std::size_t c = 0; c < 3; ++c)
                    squares[c] += arma::accu(arma::square(of_block(caches[c]) - output));
            }
            for (std::size_t c = 0; c < 3; ++c) errors[c] += 0.5 * std::sqrt(squares[c] / energy);
        }
        return errors;
    };
    const auto expected = errors_with({2, 3});
    EXPECT_NEAR(number(side_row(document, "key"), "attention_output"), expected[0], 1e-6);
    EXPECT_NEAR(number(side_row(document, "value"), "attention_output"), expected[1], 1e-6);
    EXPECT_NEAR(number(side_row(document, "key"), "attention_output_both"), expected[2], 1e-6);
    // Inner products with the queries of the block of both query heads that share the key head.
    double bias = 0.0;
    for (const std::size_t first : {0, 32})
        for (const std::size_t head : {2, 3}) {
            const arma::mat queries =
                arma::normalise(dump.read_block(*dump.find(0, sim::Side::query), head, first, 32), 2, 1);
            const arma::mat rows = exact.keys.rows(first, first + 31);
            const arma::mat change = (decoded.keys.rows(first, first + 31) - rows).eval().each_col() /
                                     arma::sqrt(arma::sum(arma::square(rows), 1));
            bias += 0.25 * arma::mean(arma::vectorise(queries * change.t()));
        }
    EXPECT_NEAR(number(side_row(document, "key"), "ip_bias_plain_query"), bias, 1e-7);
    // Negative control: the queries of the other key head give another result.
    EXPECT_GT(std::abs(number(side_row(document, "key"), "attention_output") - errors_with({0, 1})[0]), 1e-3);
}

TEST(KvRunAttention, MetricsAreReportedOnlyForTheSidesTheyApplyTo) {
    const Json document = spiked("kv run '" + sample_dump + "' --method tq-mse --bits 2 --json").json();
    const Json& key = side_row(document, "key");
    const Json& value = side_row(document, "value");
    for (const char* name : {"attention_logits", "attention_output", "attention_output_both", "ip_bias_query"}) {
        EXPECT_NE(key.find(name)->real(), nullptr) << name;
        EXPECT_GT(number(key, (std::string("mcse_") + name).c_str()), 0.0) << name;
    }
    EXPECT_GT(number(value, "attention_output"), 0.0);
    for (const char* name : {"attention_logits", "attention_output_both", "ip_bias_query"})
        EXPECT_EQ(value.find(name)->real(), nullptr) << name;
    const Outcome without = spiked("kv run '" + sample_dump + "' --method tq-mse --bits 2 --attention none --json");
    EXPECT_EQ(side_row(without.json(), "key").find("attention_output")->real(), nullptr);
    EXPECT_EQ(number(side_row(without.json(), "key"), "relative_l2"), number(key, "relative_l2"));
    const std::string text = spiked("kv run '" + sample_dump + "' --method tq-mse --bits 2").out;
    EXPECT_NE(text.find("attention %"), std::string::npos);
}

std::string dump_with(const std::string& name, const sim::Metadata& metadata, std::size_t query_heads) {
    const auto normals = [](std::size_t count, const std::string& what) {
        std::vector<double> values(count);
        stream::fill_normal(stream::Stream({}, what, stream::Role::noise, 0), values);
        return values;
    };
    std::vector<sim::TensorSource> tensors;
    for (const char* tensor : {"layers.0.key", "layers.0.value"})
        tensors.push_back(sim::tensor_of(tensor, sim::DType::f32, {2, 16, 8}, normals(256, tensor)));
    if (query_heads > 0)
        tensors.push_back(sim::tensor_of("layers.0.query", sim::DType::f32, {query_heads, 16, 8},
                                         normals(128 * query_heads, "query")));
    const std::string path = scratch(name);
    sim::write_safetensors(path, metadata, tensors);
    return path;
}

TEST(KvRunAttention, MissingDataIsReportedWhenAttentionIsRequested) {
    const sim::Metadata plain = {{"layout", "head,token,dim"}};
    const sim::Metadata causal = {{"layout", "head,token,dim"}, {"attention", "causal"}};
    const std::string words = " --method tq-mse --bits 2 --block 8 --json";
    const auto fails = [&](const std::string& dump, const std::string& asked, int code, const std::string& part) {
        const Outcome found = spiked("kv run '" + dump + "'" + words + asked);
        EXPECT_EQ(found.code, code) << found.err;
        EXPECT_NE(found.err.find(part), std::string::npos) << found.err;
        EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), 1) << found.err;
    };
    const std::string without = dump_with("no-queries.safetensors", causal, 0);
    fails(without, " --attention causal", 4, "layer 0 has no queries");
    fails(dump_with("three.safetensors", causal, 3), " --attention causal", 4, "heads must be a multiple");
    fails(dump_with("causal.safetensors", causal, 2), " --attention bidirectional", 2, "say attention \"causal\"");
    fails(without, " --attention casual", 2, "causal");
    // Without --attention it is not measured here; with it, it is measured although the file states nothing.
    const std::string silent = dump_with("silent.safetensors", plain, 4);
    const std::string sliding =
        dump_with("sliding.safetensors", {{"layout", "head,token,dim"}, {"attention", "sliding"}}, 4);
    for (const auto& [dump, part] : {std::pair{without, ""},
                                     {silent, "do not say which keys a query sees"},
                                     {sliding, "say \"sliding\", which is neither"}}) {
        const Outcome found = spiked("kv run '" + dump + "'" + words);
        EXPECT_EQ(side_row(found.json(), "key").find("attention_output")->real(), nullptr);
        EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), *part == '\0' ? 0 : 1) << found.err;
        EXPECT_NE(found.err.find(part), std::string::npos) << found.err;
        EXPECT_EQ(found.err.find("say --attention causal, bidirectional or none") == std::string::npos, *part == '\0');
        EXPECT_EQ(spiked("kv run '" + dump + "'" + words + " --attention none").err, "");
        const Json inspected = spiked("kv inspect '" + dump + "' --json").json();
        const auto& missing = *inspected.find("missing")->items();
        EXPECT_EQ(
            std::any_of(missing.begin(), missing.end(), [](const Json& key) { return *key.string() == "attention"; }),
            *part != '\0');
    }
    const double seen = number(
        side_row(spiked("kv run '" + silent + "'" + words + " --attention causal").json(), "key"), "attention_output");
    const double all =
        number(side_row(spiked("kv run '" + silent + "'" + words + " --attention bidirectional").json(), "key"),
               "attention_output");
    EXPECT_GT(seen, 0.0);
    EXPECT_NE(seen, all);
}

TEST(KvRun, HeadsOfDifferentModelsAreDifferentClusters) {
    const auto dump = [](const char* name, const char* model, const char* prompt) {
        return dump_with(name, {{"layout", "head,token,dim"}, {"model", model}, {"prompt_id", prompt}}, 0);
    };
    const std::string words = " --method tq-mse --bits 2 --block 8";
    const std::string first = "kv run '" + dump("m1.safetensors", "one", "a") + "' '";
    EXPECT_NE(spiked(first + dump("m2.safetensors", "one", "b") + "'" + words).out.find("(2 clusters)"),
              std::string::npos);
    EXPECT_NE(spiked(first + dump("m3.safetensors", "two", "b") + "'" + words).out.find("(4 clusters)"),
              std::string::npos);
}

std::string dump_of_tensors(const std::string& name, const std::vector<std::pair<const char*, arma::mat>>& heads) {
    std::vector<sim::TensorSource> tensors;
    for (const auto& [tensor, rows] : heads) {
        arma::mat by_token;
        if (!rows.is_empty())
            by_token = rows.t();  // Armadillo would form a reference to the first entry of an empty matrix
        tensors.push_back(sim::tensor_of(tensor, sim::DType::f32, {1, rows.n_rows, rows.n_cols},
                                         std::vector<double>(by_token.begin(), by_token.end())));
    }
    const std::string path = scratch(name);
    sim::write_safetensors(path, {{"layout", "head,token,dim"}, {"attention", "causal"}}, tensors);
    return path;
}

arma::mat gaussian_tokens(std::size_t tokens, std::size_t dim) {
    arma::mat rows(tokens, dim);
    stream::fill_normal(stream::Stream({}, "sequence", stream::Role::noise, 0), {rows.memptr(), rows.n_elem});
    return rows;
}

void expect_rejected(const std::string& words, int code, const std::vector<std::string>& says) {
    const Outcome found = spiked(words);
    EXPECT_EQ(found.code, code) << words << ": " << found.err;
    EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), 1) << found.err;
    for (const auto& part : says) EXPECT_NE(found.err.find(part), std::string::npos) << part << ": " << found.err;
}

// The last tokens are stored as fp16 for any format of the norms. They must not be decoded as infinity or zeros, and
// the advice of the message must help.
TEST(KvLastTokens, BeyondFp16AreRejectedWithAdvice) {
    for (const double size : {1e6, 1e-10}) {
        arma::mat keys = gaussian_tokens(20, 8);
        keys.tail_rows(4) *= size;
        const std::string dump = dump_of_tensors("last.safetensors", {{"layers.0.key", keys},
                                                                      {"layers.0.value", gaussian_tokens(20, 8)},
                                                                      {"layers.0.query", gaussian_tokens(20, 8)}});
        const std::string words = "'" + dump + "' --block 8 --bits 2 --norm fp32";
        for (const std::string& command : {"kv encode -o '" + scratch("last.spkv") + "' ", std::string("kv run ")}) {
            expect_rejected(command + words, 4, {"layers.0.key", "head 0", "tokens 16 to 19", "fp16", "--block"});
            EXPECT_EQ(spiked(command + words).err.find("--norm"), std::string::npos);
        }
        EXPECT_FALSE(std::filesystem::exists(scratch("last.spkv")));
        EXPECT_EQ(spiked("kv run " + words + " --attention none").code, 0);
        // The full-precision window of KIVI lies in full blocks.
        const std::string whole =
            dump_of_tensors("window.safetensors", {{"layers.0.value", size * gaussian_tokens(16, 8)}});
        expect_rejected("kv run '" + whole + "' --block 8 --bits 2 --norm fp32 --method kivi", 4,
                        {"layers.0.value", "tokens 0 to 7", "residual 0"});
    }
}

TEST(KvRun, NamesTheInvalidTensorAndTheFileOnce) {
    arma::mat bad = gaussian_tokens(16, 8);
    bad(9, 3) = std::nan("");
    const std::string dump =
        dump_of_tensors("bad-query.safetensors", {{"layers.0.key", gaussian_tokens(16, 8)}, {"layers.0.query", bad}});
    expect_rejected("kv run '" + dump + "' --block 8", 4, {"layers.0.query", "token 9", "dim 3"});
    const std::string text = spiked("kv run '" + dump + "' --block 8").err;
    EXPECT_EQ(text.find(dump), text.rfind(dump)) << text;
    // Rows of one entry have no codebook of 2 bits.
    const std::string narrow = dump_of_tensors(
        "narrow.safetensors", {{"layers.0.key", gaussian_tokens(16, 1)}, {"layers.3.key", gaussian_tokens(16, 4)}});
    for (const std::string& command : {std::string("kv run"), "kv encode -o '" + scratch("narrow.spkv") + "'"})
        expect_rejected(command + " '" + narrow + "' --block 8 --bits 2 --method tq-mse", 2,
                        {narrow, "layers.0.key", "dimension 1"});
    expect_rejected("kv run '" + dump_of_tensors("empty.safetensors", {{"layers.0.key", arma::mat(16, 0)}}) + "'", 4,
                    {"empty", "channel"});
}

// 256 tokens in blocks of 128 at 2 bits with groups of 64: coded entries take 2.5 bits, those of the tail 16.
TEST(KiviResidual, IsTheTailOfTheSequenceAndIsCounted) {
    const auto bits = [](const std::string& options, const char* side) {
        const Outcome run = spiked("kv run '" + sample_dump + "' --bits 2 --attention none --json " + options);
        EXPECT_EQ(run.code, 0) << run.err;
        const Json document = run.json();
        const Json& row = side_row(document, side);
        return std::pair{number(row, "bits_per_entry"), number(*row.find("ledger"), "residual_window")};
    };
    using Pair = std::pair<double, double>;
    EXPECT_EQ(bits("--method kivi", "value"), Pair(9.25, 8.0));
    EXPECT_EQ(bits("--method kivi", "key"), Pair(2.5, 0.0));
    EXPECT_EQ(bits("--method kivi --residual 0", "value"), Pair(2.5, 0.0));
    EXPECT_EQ(bits("--method kivi --residual 192", "key"), Pair(5.875, 4.0));
    EXPECT_EQ(bits("--method kivi:residual=64", "value"), Pair(5.875, 4.0));
    EXPECT_EQ(bits("--method kivi-hf", "value"), Pair(2.5, 0.0));
    EXPECT_EQ(bits("--method kivi-hf", "key"), Pair(2.5, 0.0));
    EXPECT_EQ(bits("--method kivi --residual 1000", "value"), Pair(16.0, 16.0));
    EXPECT_EQ(bits("--method tq-mse", "value"), Pair(2.125, 0.0));
}

TEST(KiviResidual, IsRestoredExactlyFromACodedFileForAnyBlockSize) {
    for (const std::string block : {"128", "96"}) {
        const std::string coded = scratch("kivi.spkv");
        const std::string back = scratch("kivi.safetensors");
        ASSERT_EQ(spiked("kv encode '" + sample_dump + "' -o '" + coded + "' --method kivi --bits 2 --residual 150 " +
                         "--block " + block)
                      .code,
                  0);
        ASSERT_EQ(spiked("kv decode '" + coded + "' -o '" + back + "'").code, 0);
        const Sequence exact = sequence_of(sample_dump, 3, 0);
        const Sequence decoded = sequence_of(back, 3, 0);
        // The last 150 values; of keys 256 mod 150 = 106.
        EXPECT_TRUE(arma::approx_equal(decoded.values.tail_rows(150), exact.values.tail_rows(150), "absdiff", 0.0));
        EXPECT_TRUE(arma::approx_equal(decoded.keys.tail_rows(106), exact.keys.tail_rows(106), "absdiff", 0.0));
        EXPECT_GT(arma::norm(decoded.values.row(105) - exact.values.row(105)), 0.0);
        EXPECT_GT(arma::norm(decoded.keys.row(149) - exact.keys.row(149)), 0.0);
    }
}

}  // namespace
}  // namespace spiked::app
