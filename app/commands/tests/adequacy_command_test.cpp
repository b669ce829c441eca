#include <gtest/gtest.h>

#include <armadillo>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <optional>

#include "app/tests/process.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/random/normal.hpp"

namespace spiked::app {
namespace {

const std::string quick = " --level 0.05 --json";

std::optional<std::int64_t> whole(const Json& json) {
    return json.is_null() ? std::nullopt : std::optional(*json.integer());
}
std::string text_or_none(const Json& json) { return json.is_null() ? "" : *json.string(); }

arma::mat power_law_block(std::uint64_t replicate) {
    arma::mat noise(64, 48), left, right;
    arma::vec values;
    stream::fill_normal(stream::Stream({}, "power law", stream::Role::noise, replicate),
                        {noise.memptr(), noise.n_elem});
    arma::svd_econ(left, values, right, noise);
    for (arma::uword j = 0; j < values.n_elem; ++j) values(j) = std::pow(static_cast<double>(j + 1), -0.6);
    return left * arma::diagmat(values) * right.t();
}

/// Writes a dump of one tensor of values, heads x tokens x dim in C order, and returns its path.
std::string dump_of(const std::string& name, const std::vector<arma::mat>& heads) {
    std::vector<double> numbers;
    for (const auto& head : heads)
        for (arma::uword t = 0; t < head.n_rows; ++t)
            for (arma::uword j = 0; j < head.n_cols; ++j) numbers.push_back(head(t, j));
    const std::string path = scratch(name);
    sim::write_safetensors(
        path, {{"layout", "head,token,dim"}},
        {sim::tensor_of("layers.0.value", sim::DType::f32, {heads.size(), heads[0].n_rows, heads[0].n_cols}, numbers)});
    return path;
}

TEST(KvAdequacyCommandReference, EveryEntryIsTheMeanOverItsHeads) {
    const Outcome found = spiked("kv adequacy '" + sample_dump + "' --block 64 --level 0.2 --json");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json json = found.json();
    EXPECT_EQ(*json.find("schema")->string(), "spiked.adequacy/1");
    EXPECT_EQ(*json.find("cluster")->string(), "head");
    EXPECT_EQ(number(json, "draws"), 9);
    EXPECT_EQ(json.find("tests")->items()->size(), 11U);
    const auto& rows = *json.find("rows")->items();
    ASSERT_EQ(rows.size(), 1U + 2U * (1U + 2U * (1U + 2U))) << "all; a side; its layers 0 and 3; their heads 0 and 1";
    for (const auto& row : rows) {
        std::vector<const Json*> heads;
        double blocks = 0.0;
        for (const auto& head : rows) {
            if (head.find("head")->is_null()) continue;
            const bool belongs =
                (row.find("side")->is_null() || text_or_none(*row.find("side")) == text_or_none(*head.find("side"))) &&
                (row.find("layer")->is_null() || whole(*row.find("layer")) == whole(*head.find("layer"))) &&
                (row.find("head")->is_null() || whole(*row.find("head")) == whole(*head.find("head")));
            if (!belongs) continue;
            heads.push_back(&head);
            blocks += number(head, "blocks");
        }
        EXPECT_EQ(number(row, "blocks"), blocks);
        const auto fraction_of = [](const Json& of) {
            return number(*of.find("rejected")->find("edge.shape"), "share");
        };
        double rejected = 0.0;
        for (const auto* head : heads) rejected += fraction_of(*head) * number(*head, "blocks");
        EXPECT_NEAR(fraction_of(row), rejected / blocks, 1e-12);
        const Json& error = *row.find("rejected")->find("edge.shape")->find("mcse");
        if (heads.size() == 1) {
            EXPECT_TRUE(error.is_null()) << "one cluster has no error bar";
            EXPECT_TRUE(row.find("df")->is_null());
        } else if (!row.find("side")->is_null()) {
            // The heads of one side are clusters of equal size, so the error is the usual one of the mean of their
            // means.
            double squares = 0.0;
            for (const auto* head : heads) squares += std::pow(fraction_of(*head) - rejected / blocks, 2);
            const double count = static_cast<double>(heads.size());
            EXPECT_NEAR(number(error), std::sqrt(squares / (count * (count - 1.0))), 1e-12);
            EXPECT_EQ(number(row, "df"), count - 1.0);
        }
    }
    EXPECT_EQ(found.out, spiked("kv adequacy '" + sample_dump + "' --block 64 --threads 1 --level 0.2 --json").out);
}

TEST(KvAdequacyCommandControl, APlantedPowerLawIsDetected) {
    std::vector<arma::mat> heads(2);
    for (std::uint64_t b = 0; b < 8; ++b) heads[b / 4] = arma::join_cols(heads[b / 4], power_law_block(b));
    const std::string path = dump_of("power.safetensors", heads);
    const Json json = spiked("kv adequacy " + path + " --block 64" + quick).json();
    const Json& all = json.find("rows")->items()->front();
    EXPECT_EQ(number(*all.find("rejected")->find("edge.shape"), "share"), 1.0);
    EXPECT_EQ(number(*all.find("power_law_better"), "mean"), 1.0);
    EXPECT_NEAR(number(*all.find("exponent"), "mean"), 1.2, 1e-3);
    const Outcome text = spiked("kv adequacy " + path + " --block 64 --level 0.05");
    EXPECT_NE(text.out.find("values: a power law"), std::string::npos) << text.out;
    EXPECT_NE(text.out.find("they look like a power law"), std::string::npos) << text.out;
}

TEST(KvAdequacyCommandLaw, GeneratedSpikedBlocksAreRejectedAtTheDeclaredRate) {
    const std::string path = scratch("spiked.safetensors");
    ASSERT_EQ(spiked("kv generate -o " + path +
                     " --no-rotary --no-sink --context-rank 1 --query-heads 0 --head-dim 64 --tokens 512 --layers 3 "
                     "--heads 4")
                  .code,
              0);
    const Json json = spiked("kv adequacy " + path + " --side value --block 64" + quick).json();
    const Json& all = json.find("rows")->items()->front();
    const double blocks = number(all, "blocks");
    EXPECT_EQ(blocks, 96.0);
    // The probability of a false alarm of the seven tests together is below 1e-6.
    const boost::math::binomial counts(blocks, 0.05);
    const double most = boost::math::quantile(boost::math::complement(counts, 1e-7));
    for (const auto& test : *json.find("tests")->items()) {
        if (!*test.find("of_model")->boolean()) continue;
        const std::string& name = *test.find("name")->string();
        EXPECT_LE(number(*all.find("rejected")->find(name), "share") * blocks, most + 1e-9) << name;
    }
}

TEST(KvAdequacyCommand, RejectsInvalidInputAndReportsBlocksItCannotTest) {
    const std::string two = "kv adequacy '" + sample_dump + "'";
    const auto rejected = [](const std::string& words, int code, const std::string& text) {
        const Outcome found = spiked(words);
        EXPECT_EQ(found.code, code) << words;
        EXPECT_EQ(found.out, "");
        EXPECT_NE(found.err.find(text), std::string::npos) << found.err;
    };
    rejected("kv adequacy", 2, "usage is spiked kv adequacy DUMP");
    rejected(two + " --level 0", 2, "--level 0 is not possible");
    rejected(two + " --level 0.7", 2, "choose a number from 0.0001 to 0.5");
    rejected(two + " --block 0", 2, "--block 0 is not possible");
    rejected(two + " --block 8", 2, "choose 16 or more");
    rejected(two + " --block 256", 4, "choose a smaller --block");
    rejected(two + " --layers 7", 4, "see spiked kv inspect");
    rejected(two + " '" + sample_dump + "'", 2, "name each dump once");
    rejected("kv adequacy nothing.safetensors", 4, "nothing.safetensors");
    rejected(
        "kv adequacy " + dump_of("narrow.safetensors", std::vector{arma::mat(64, 8, arma::fill::ones)}) + " --block 16",
        4, "8 channels");
    arma::mat broken(64, 32, arma::fill::ones);
    broken(40, 3) = std::nan("");
    rejected("kv adequacy " + dump_of("broken.safetensors", std::vector{broken}) + " --block 32", 4, "layers.0.value");
    const Outcome flat = spiked(
        "kv adequacy " + dump_of("flat.safetensors", std::vector{arma::mat(64, 32, arma::fill::ones)}) + " --block 32");
    EXPECT_EQ(flat.code, 0) << flat.err;
    EXPECT_NE(flat.out.find("2 blocks are not judged"), std::string::npos) << flat.out;
    // With one layer of one side, the layer, its side and the total are one entry of the table.
    EXPECT_NE(flat.out.find("\nvalues, layer 0 "), std::string::npos) << flat.out;
    EXPECT_EQ(flat.out.find("\nall "), std::string::npos) << flat.out;
    EXPECT_EQ(flat.out.find("\nvalues  "), std::string::npos) << flat.out;
}

}  // namespace
}  // namespace spiked::app
