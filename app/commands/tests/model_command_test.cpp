#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <utility>

#include "app/tests/process.hpp"

namespace spiked::app {
namespace {

/// A random model with 3 layers, 2 key-value heads of dimension 8 and a vocabulary of 50, and the loss that NumPy
/// computes on a text of 40 tokens.
struct Model {
    std::string folder = scratch("model");
    double nats = 0.0;  ///< mean over the tokens after the first 17

    Model() {
        std::filesystem::create_directories(folder);
        const std::string line = "/usr/bin/python3 '" SPIKED_SOURCE_DIR "/sim/llama/tests/llama_in_numpy.py' '" +
                                 folder + "' untied 40 > '" + folder + "/out'";
        EXPECT_EQ(std::system(line.c_str()), 0);
        std::ifstream file(folder + "/out");
        double token = 0.0;
        double value = 0.0;
        for (int t = 0; file >> token >> value; ++t)
            if (t > 16) nats += value / 23.0;
    }
    [[nodiscard]] std::string words(const std::string& tokens) const {
        return " --model '" + folder + "' --tokens '" + folder + "/" + tokens + "' ";
    }
};

const Model& model() {
    static const Model made;
    return made;
}

/// A number of every row.
std::vector<double> of_rows(const char* key, const std::string& options) {
    const Outcome found = spiked("kv perplexity" + model().words("documents.npy") + "--block 16 --json " + options);
    EXPECT_EQ(found.code, 0) << found.err;
    std::vector<double> values;
    const Json document = found.json();
    for (const auto& row : *document.find("rows")->items()) values.push_back(number(row, key));
    return values;
}

std::vector<double> added(const std::string& options) { return of_rows("added_nats", options); }

TEST(PerplexityCommand, FullPrecisionIsNumpysAndCompressionCosts) {
    const Outcome found = spiked("kv perplexity" + model().words("tokens.npy") +
                                 "--block 16 --method tq-mse,unrope+tq-mse --bits 1,8 --json");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json document = found.json();
    EXPECT_EQ(*document.find("schema")->string(), "spiked.perplexity/1");
    EXPECT_NEAR(number(document, "nats"), model().nats, 1e-5);
    EXPECT_EQ(*document.find("tokens")->integer(), 23);
    EXPECT_EQ(*document.find("blocks_of")->integer(), 16);
    EXPECT_TRUE(document.find("mcse_nats")->is_null());  // one document has no standard error
    const auto& rows = *document.find("rows")->items();
    ASSERT_EQ(rows.size(), 4);
    for (const auto& row : rows) {
        const bool coarse = number(row, "bits") == 1.0;
        EXPECT_DOUBLE_EQ(number(row, "bits_per_entry"), coarse ? 3.0 : 10.0);  // a norm of 16 bits for 8 entries
        EXPECT_LT(std::abs(number(row, "added_nats")), coarse ? 2.0 : 0.02);
        EXPECT_GT(std::abs(number(row, "added_nats")), coarse ? 0.02 : 0.0);
    }
    EXPECT_NE(number(rows[0], "added_nats"), number(rows[2], "added_nats"));
}

TEST(PerplexityCommand, SaysHowMuchMemoryItTakes) {
    const std::string words =
        "kv perplexity" + model().words("tokens.npy") + "--block 16 --method tq-mse --bits 2 --threads 2";
    // 39 tokens of keys and values in 3 layers of 2 heads of 8, 4 bytes each; blocks of 16 rows of 4 * 24 + 2 * 40; a
    // rotation of 8 x 8 in double and float for each layer, side and head.
    const Outcome found = spiked(words);
    EXPECT_EQ(found.code, 0);
    EXPECT_NE(
        found.err.find(" and 9 kB of rotations, and for each of at most 2 threads 15 kB of cache (39 tokens), 11 kB of "
                       "arrays and 9 kB of the state of codecs"),
        std::string::npos)
        << found.err;
    EXPECT_EQ(spiked(words + " --quiet").err.find("memory"), std::string::npos);
}

TEST(PerplexityCommand, OnlyTheNamedSidesAreCompressed) {
    const auto all = added("--method tq-mse --bits 2");
    const auto keys = added("--method tq-mse --bits 2 --only 0:key,1:key,2:key");
    const auto everything = added("--method tq-mse --bits 2 --only 0:key,1:key,2:key,0:value,1:value,2:value");
    EXPECT_NE(all, keys);
    EXPECT_EQ(all, everything);
    // Only keys have a rotary embedding.
    EXPECT_EQ(added("--method unrope+tq-mse --bits 2 --only 0:value,2:value"),
              added("--method tq-mse --bits 2 --only 0:value,2:value"));
    EXPECT_EQ(all, added("--method tq-mse --bits 2 --threads 1"));
}

TEST(PerplexityCommand, PartsOfTheCacheTakeExtraBits) {
    const auto all = [](int bits) {
        const std::string more = "=" + std::to_string(bits);
        std::string words;
        for (const char* layer : {"0", "1", "2"})
            for (const char* side : {":key", ":value"}) words += (words.empty() ? "" : ",") + (layer + (side + more));
        return words;
    };
    // A bit more everywhere is the next width, and bits of one part change its error only.
    EXPECT_EQ(added("--method tq-mse --bits 2 --extra-bits " + all(1)), added("--method tq-mse --bits 3"));
    EXPECT_EQ(added("--method tq-mse --bits 3 --only 1:key --extra-bits 1:key=-1"),
              added("--method tq-mse --bits 2 --only 1:key"));
    EXPECT_NE(added("--method tq-mse --bits 2 --extra-bits 1:key=1"), added("--method tq-mse --bits 2"));
    // One of six parts has 3 more bits an entry.
    const double more = of_rows("bits_per_entry", "--method tq-mse --bits 2 --extra-bits 1:key=3").at(0);
    EXPECT_NEAR(more - of_rows("bits_per_entry", "--method tq-mse --bits 2").at(0), 0.5, 1e-9);
}

TEST(PerplexityCommand, FirstTokensStayExactAndAreCounted) {
    const double bits =
        of_rows("bits_per_entry", "--method tq-mse --bits 2").at(0);  // 2 and a norm of fp16 for 8 entries
    EXPECT_EQ(bits, 4.0);
    // Of 32 coded tokens, two take 16 bits an entry.
    EXPECT_NEAR(of_rows("bits_per_entry", "--method tq-mse --bits 2 --sinks 2").at(0), (30 * bits + 2 * 16) / 32, 1e-9);
    EXPECT_EQ(added("--method tq-mse --bits 2 --sinks 0"), added("--method tq-mse --bits 2"));
    EXPECT_NE(added("--method tq-mse --bits 2 --sinks 2"), added("--method tq-mse --bits 2"));
}

TEST(PerplexityCommand, PrintsMethodsBitsAndTokens) {
    const Outcome found =
        spiked("kv perplexity" + model().words("documents.npy") + "--block 16 --method tq-mse --bits 2");
    ASSERT_EQ(found.code, 0) << found.err;
    for (const char* part : {"full precision: ", "tq-mse", "4.000", "69 tokens of 3 documents", "block of 16"})
        EXPECT_NE(found.out.find(part), std::string::npos) << part << found.out;
}

TEST(PerplexityCommand, RejectsInvalidOptionsAndData) {
    const auto rejected = [](const std::string& words, int code, const std::string& part) {
        const Outcome found = spiked("kv perplexity " + words);
        EXPECT_EQ(found.code, code) << words << found.err;
        EXPECT_NE(found.err.find(part), std::string::npos) << found.err;
    };
    const std::string good = model().words("tokens.npy");
    rejected("--tokens x.npy", 2, "--model is missing");
    rejected("--model '" + model().folder + "'", 2, "--tokens is missing");
    rejected(good + "--block 39", 4, "documents of 40 tokens (expected 41 or more for blocks of 39");
    rejected(good + "--block 0", 2, "--block 0");
    rejected(good + "--only 3:key --block 16", 2,
             "--only 3:key is not possible (the model has layers 0 to 2): name one of these");
    rejected(good + "--only key", 2, "is not LAYER:key or LAYER:value");
    const std::string extra = good + "--block 16 --method tq-mse --bits 2 --extra-bits ";
    rejected(extra + "3:key=1", 2, "--extra-bits 3:key is not possible (the model has layers 0 to 2)");
    rejected(extra + "1:key", 2, "--extra-bits \"1:key\" is not LAYER:SIDE=N");
    rejected(extra + "1:key=1,1:key=2", 2, "--extra-bits names 1:key twice");
    rejected(extra + "1:key=9", 2, "--extra-bits 1:key=9: ");
    rejected(extra + "1:key=1 --only 0:key", 2, "--extra-bits 1:key has no effect (--only leaves this part exact)");
    rejected(good + "--block 16 --method snapkv --budget 0.5 --extra-bits 1:key=1", 2,
             "--extra-bits with \"snapkv\" is not possible");
    rejected(good + "--block 16 --method tq-mse --bits 2 --sinks 16", 2,
             "--sinks 16 is not possible with blocks of 16");
    rejected(good + "--block 16 --method snapkv --budget 0.5 --sinks 1", 2, "by a rule of its own");
    rejected(good + "--method tq-mes --block 16", 2, "did you mean \"tq-mse\"");
    rejected(good + "--method palu --block 16", 2, "palu");
    rejected(good + "--method snapkw --block 16", 2, "did you mean \"snapkv\"");
    rejected(good + "--method a-method --block 16", 2, "pyramidkv");
    rejected(good + "--method snapkv+h2o+tq-mse --block 16", 2, "h2o is an eviction and is not first");
    rejected(good + "--method tq-mse+snapkv --block 16", 2, "write snapkv or snapkv+tq-mse");
    rejected(good + "--method svd:9+tq-mse --block 16", 2, "layer 0, key of head 0, 16 tokens from 0 to 15");
    rejected(model().words("keys.npy") + "--block 16", 4, "token 0 of document 0 is");
    rejected(good + "--block 16 --method snapkv --budget 0", 2, "--budget 0 is not possible");
    rejected(good + "--block 16 --method snapkv --budget 1e-7", 2, "--budget 1e-07 has no room for one of 16 tokens");
    rejected(good + "--block 16 --method snapkv --budget 1.5", 2, "--budget 1.5 is not possible");
    rejected(good + "--block 16 --method snapkv --budget half", 2, "--budget \"half\" is not a number");
    rejected(good + "--block 16 --method snapkv", 2, "\"snapkv\" evicts and no budget is given");
    rejected(good + "--block 16 --method snapkv --budget 0.5 --only 0:key", 2, "name both or neither");
    rejected("--model /no/such --tokens x.npy", 4, "/no/such/config.json");
    const Outcome elsewhere = spiked("kv run x.safetensors --method snapkv+tq-mse");
    EXPECT_EQ(elsewhere.code, 2);
    EXPECT_NE(elsewhere.err.find("use spiked kv perplexity, kv retrieve or kv frontier --model"), std::string::npos);
}

TEST(PerplexityCommand, ProgressCountsPassesNotDocuments) {
    const Outcome ran = spiked("kv perplexity" + model().words("documents.npy") +
                               "--block 16 --method tq-mse --bits 2 --documents 2 --progress bar");
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.err.find("passes"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find(" 4/4 "), std::string::npos) << ran.err;  // 2 documents, in full precision and coded
    EXPECT_EQ(ran.err.find("documents  "), std::string::npos) << ran.err;
}

TEST(PerplexityCommand, UsesTheFirstDocuments) {
    const std::string words = "kv perplexity" + model().words("documents.npy") + "--block 16 --method tq-mse --bits 2 ";
    const Outcome two = spiked(words + "--json --documents 2");
    ASSERT_EQ(two.code, 0) << two.err;
    EXPECT_EQ(*two.json().find("documents")->integer(), 2);
    const Json all = spiked(words + "--json").json();
    EXPECT_EQ(spiked(words + "--json --documents 3").json().text(), all.text());
    EXPECT_NE(number(two.json(), "nats"), number(all, "nats"));
    const Outcome more = spiked(words + "--documents 4");
    EXPECT_EQ(more.code, 2);
    EXPECT_NE(more.err.find("--documents 4 is not possible"), std::string::npos) << more.err;
    EXPECT_EQ(spiked(words + "--documents 0").code, 2);
    EXPECT_EQ(spiked("kv frontier " + sample_dump + " --documents 2").code, 2);
}

TEST(PerplexityCommand, KeepsDocumentsInAStoreAndResumes) {
    const std::string store = scratch("perplexity.spiked");
    const std::string words = model().words("documents.npy") + "--block 16 --method tq-mse --bits 1,3 ";
    const Outcome kept = spiked("kv perplexity" + words + "--json -o '" + store + "'");
    ASSERT_EQ(kept.code, 0) << kept.err;
    const Json kept_json = kept.json();
    const Json plain_json = spiked("kv perplexity" + words + "--json").json();
    const auto& rows = *kept_json.find("rows")->items();
    const auto& plain = *plain_json.find("rows")->items();
    ASSERT_EQ(rows.size(), 2);
    ASSERT_EQ(plain.size(), 2);
    for (std::size_t i = 0; i < 2; ++i)
        for (const char* key : {"bits_per_entry", "added_nats", "mcse_added_nats"})
            EXPECT_NEAR(number(rows[i], key), number(plain[i], key), 1e-12) << key;
    const Outcome again = spiked("kv perplexity" + words + "-o '" + store + "'");
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_NE(again.err.find("3 batches are kept"), std::string::npos) << again.err;
    EXPECT_NE(again.out.find("cache, 3 documents"), std::string::npos) << again.out;
}

// Every option that changes numbers makes another study, and the message names it with both values.
TEST(PerplexityCommand, AStoreOfOtherOptionsIsNotResumed) {
    const std::string store = scratch("options.spiked");
    const auto run = [&](const std::string& tokens, const std::string& options) {
        return spiked("kv perplexity" + model().words(tokens) + options + " -o '" + store + "'");
    };
    const std::string block = "--block 16 ";
    const std::string coded = block + "--method tq-mse --bits 2 ";
    ASSERT_EQ(run("documents.npy", coded + "--only 0:key,1:value").code, 0);
    EXPECT_EQ(run("documents.npy", coded + "--only 1:value,0:key --threads 1").code, 0);
    const std::string kept = "--only 0:key,1:value";
    const std::pair<std::string, std::string> others[] = {
        {coded, R"((settings.only: ["0:key","1:value"], now absent))"},
        {coded + "--only 0:key,2:value", R"((settings.only[2]: "1:value", now "2:value"))"},
        {"--block 24 --method tq-mse --bits 2 " + kept, "(block: 16, now 24)"},
        {block + "--method tq-mse --bits 3 " + kept, "(method 2: tq-mse B=2, now method 2: tq-mse B=3)"},
        {coded + kept + " --seed 7", "now 0x00000000000000000000000000000007)"},
        {coded + kept + " --rotation rht2", R"((quantizer.rotation: "haar", now "rht2"))"},
        {coded + kept + " --documents 2", "(cells: 3 items, now 2 items)"}};
    for (const auto& [options, part] : others) {
        const Outcome other = run("documents.npy", options);
        EXPECT_EQ(other.code, 2) << options;
        EXPECT_NE(other.err.find("the store holds another study " + (part.front() == '(' ? part : std::string())),
                  std::string::npos)
            << other.err;
        EXPECT_NE(other.err.find(part + ": choose another name"), std::string::npos) << other.err;
    }
    EXPECT_NE(run("tokens.npy", coded + kept).err.find("(inputs[1]: "), std::string::npos);

    const std::string evictions = scratch("evictions.spiked");
    const auto evicted = [&](const std::string& budget) {
        return spiked("kv perplexity" + model().words("documents.npy") + block + "--method snapkv --budget " + budget +
                      " -o '" + evictions + "'");
    };
    ASSERT_EQ(evicted("0.5").code, 0);
    EXPECT_NE(evicted("0.6").err.find("(method 2: snapkv at 0.5, now method 2: snapkv at 0.6)"), std::string::npos);
}

TEST(PerplexityCommand, EvictsToABudget) {
    const auto nats = added("--method snapkv,h2o,dmc,streaming,pyramidkv --budget 1");
    EXPECT_EQ(nats, std::vector<double>(5, 0.0));
    const Outcome found = spiked("kv perplexity" + model().words("documents.npy") +
                                 "--block 16 --json --budget 0.7,0.4 --bits 1 --method snapkv,snapkv+tq-mse,tq-mse");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json document = found.json();
    const auto& rows = *document.find("rows")->items();
    ASSERT_EQ(rows.size(), 5);
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(number(rows[i], "budget"), i % 2 == 0 ? 0.7 : 0.4);
        EXPECT_LE(number(rows[i], "bits_per_entry"), 16.0 * number(rows[i], "budget"));
        EXPECT_EQ(number(rows[i], "bits"), i < 2 ? 16.0 : 1.0);
        EXPECT_GT(std::abs(number(rows[i], "added_nats")), 0.0);
    }
    // All tokens at 3 bits fit either budget.
    EXPECT_EQ(number(rows[2], "added_nats"), number(rows[3], "added_nats"));
    EXPECT_EQ(number(rows[2], "bits_per_entry"), 3.0);
    EXPECT_TRUE(rows[4].find("budget")->is_null());
    EXPECT_EQ(number(rows[4], "added_nats"), number(rows[2], "added_nats"));
    // The bits include the data that later evictions need.
    const Json held = spiked("kv perplexity" + model().words("documents.npy") +
                             "--block 16 --json --budget 0.5 --bits 2 --method h2o,snapkv,snapkv+svd:1+tq-mse,tq-mse")
                          .json();
    std::vector<std::pair<bool, bool>> found_held;
    for (const Json& row : *held.find("rows")->items()) {
        const Json& ledger = *row.find("ledger");
        double sum = 0.0;
        for (const char* part : {"rows", "positions", "scores", "exact_rows"}) sum += number(ledger, part);
        EXPECT_NEAR(sum, number(row, "bits_per_entry"), 1e-12);
        found_held.emplace_back(number(ledger, "scores") > 0.0, number(ledger, "exact_rows") > 0.0);
    }
    EXPECT_EQ(found_held,
              (std::vector<std::pair<bool, bool>>{{true, false}, {false, false}, {false, true}, {false, false}}));
    const Outcome said = spiked("kv perplexity" + model().words("documents.npy") + "--block 16 --budget 0.4 --bits 2");
    EXPECT_NE(said.out.find("snapkv at 0.4"), std::string::npos) << said.out << said.err;
    EXPECT_NE(said.out.find("scores (h2o)"), std::string::npos) << said.out;
    EXPECT_NE(said.out.find("tq-mse"), std::string::npos);
}

TEST(FrontierOfAModel, AgreesWithPerplexity) {
    const std::string words = model().words("documents.npy") + "--block 16 --method tq-mse,snapkv --bits 1,3,6 ";
    const std::string store = scratch("model.spiked");
    const std::string picture = scratch("model.svg");
    const Outcome found = spiked("kv frontier" + words + "--budget 0.3,0.6 --json -o '" + store + "' --report '" +
                                 scratch("model.html") + "' --plot '" + picture + "'");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json expected = spiked("kv perplexity" + words + "--budget 0.3,0.6 --json").json();
    const Json document = found.json();
    EXPECT_EQ(*document.find("metric")->string(), "added_nats");
    EXPECT_EQ(*document.find("cluster")->string(), "document");
    const auto& rows = *document.find("rows")->items();
    const auto& plain = *expected.find("rows")->items();
    ASSERT_EQ(rows.size(), 5);
    std::size_t on_hull = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(*rows[i].find("side")->string(), "cache");
        EXPECT_EQ(*rows[i].find("method")->string(), *plain[i].find("method")->string());
        for (const char* key : {"bits", "bits_per_entry"})
            EXPECT_NEAR(number(rows[i], key), number(plain[i], key), 1e-12);
        EXPECT_EQ(rows[i].find("budget")->text(), plain[i].find("budget")->text());
        EXPECT_EQ(number(rows[i], "df"), 2) << "three documents";
        for (const char* key : {"added_nats", "mcse_added_nats", "df"})
            EXPECT_NEAR(number(rows[i], key), number(plain[i], key), 1e-12);
        EXPECT_TRUE(rows[i].find("relative_l2")->is_null());
        on_hull += *rows[i].find("on_hull")->boolean() ? 1 : 0;
    }
    EXPECT_GE(on_hull, 1);
    for (const char* part : {">tq-mse<", ">added nats a token<"})
        EXPECT_NE(contents(picture).find(part), std::string::npos) << part;
    // The page names budgets and shows means over documents with their errors, not an entry for each document.
    const std::string page = contents(scratch("model.html"));
    for (const char* part :
         {">snapkv at 0.3 B=16<", ">snapkv at 0.6 B=16<", "caches, 3 documents or prompts", "added nats</th>"})
        EXPECT_NE(page.find(part), std::string::npos) << part;
    // The same command reads the results from the store without computing them again, here as a table.
    const Outcome again = spiked("kv frontier" + words + "--budget 0.3,0.6 -o '" + store + "'");
    EXPECT_EQ(again.code, 0) << again.err;
    for (const char* part :
         {"cache, 3 documents", "added nats", "snapkv at 0.3", "snapkv at 0.6", "clustered by document (3 clusters)",
          "2 degrees of freedom", "Random in these errors: documents"})
        EXPECT_NE(again.out.find(part), std::string::npos) << part << again.out;
    EXPECT_NE(spiked("kv frontier" + words + "--budget 0.3 -o '" + store + "'").code, 0);
    // `show` prints the same table.
    EXPECT_EQ(spiked("show '" + store + "'").out, again.out);
    EXPECT_NE(page.find("3 documents \u00b7 "), std::string::npos);
    const Outcome one = spiked("kv frontier --model '" + model().folder + "' --tokens '" + model().folder +
                               "/tokens.npy' --block 16 --method tq-mse --bits 2");
    EXPECT_NE(one.out.find("cache, 1 document\n"), std::string::npos) << one.out << one.err;

    const auto rejected = [](const std::string& all, int code, const std::string& part) {
        const Outcome outcome = spiked("kv frontier " + all);
        EXPECT_EQ(outcome.code, code) << all << outcome.err;
        EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    };
    rejected("", 2, "neither dumps nor --model");
    rejected(sample_dump + words, 2, "DUMP and --model exclude each other");
    rejected(words + "--metric relative_l2 --budget 0.5", 2, "--metric relative_l2 is of dumps");
    rejected(sample_dump + " --metric added_nats", 2, "--metric added_nats is of a model");
    rejected(sample_dump + " --budget 0.5", 2, "--budget has no effect without --model (it is of a model)");
    rejected(sample_dump + " --prompts 3", 2, "--prompts has no effect without --model (prompts are for a model)");
    rejected(words + "--layers 0 --budget 0.5", 2, "--layers and --model exclude each other (either dumps");
    rejected(words + "--needles 4 --budget 0.5", 2, "--tokens and --needles exclude each other");
    rejected(words + "--metric retrieval --budget 0.5", 2, "--metric retrieval asks for needles");
    rejected("--model '" + model().folder + "' --metric added_nats", 2, "needs --tokens");
    rejected("--model '" + model().folder + "' --filler '" + model().folder +
                 "/documents.npy' --needles 12 --prompts 2 --vocabulary bos=0,ask=1,keys=10:29,values=30:49",
             4, "the model answers");
}

TEST(FrontierOfAModel, ShowsTheLossOfRetrieval) {
    const char* models = std::getenv("SPIKED_EXTRA_MODELS");
    if (models == nullptr) GTEST_SKIP() << "SPIKED_EXTRA_MODELS names no folder";
    if (!std::filesystem::exists(std::string(models) + "/needle")) GTEST_SKIP() << "no needle in " << models;
    const std::string words =
        " --model '" + std::string(models) + "/needle' --prompts 3 --method tq-mse --bits 1,2 --json";
    const std::string page = scratch("needles.html");
    const Outcome found = spiked("kv frontier" + words + " --report '" + page + "'");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json document = found.json();
    EXPECT_EQ(*document.find("metric")->string(), "retrieval");
    const Json plain = spiked("kv retrieve" + words).json();
    const auto& exact = *plain.find("rows")->items();
    const auto& rows = *document.find("rows")->items();
    for (std::size_t i = 0; i < 2; ++i)
        EXPECT_NEAR(number(rows[i], "retrieval"),
                    number(exact[0], "log_probability") - number(exact[i + 1], "log_probability"), 1e-9);
    for (std::size_t i = 0; i < 2; ++i)
        EXPECT_NEAR(number(rows[i], "wrong_answers"), 1.0 - number(exact[i + 1], "right"), 1e-9);
    // A method without measurable loss is named, not dropped.
    const Outcome lossless = spiked("kv frontier --model '" + std::string(models) +
                                    "/needle' --prompts 2 --method snapkv --budget 1 --report '" + page + ".2.html'");
    ASSERT_EQ(lossless.code, 0) << lossless.err;
    EXPECT_NE(contents(page + ".2.html").find("no measurable loss"), std::string::npos);
    for (const char* part : {"attention of 16 questions on their needles", ">full precision<", ">tq-mse, 1.12 bits<",
                             ">nats lost of the answers' log-probability<"})
        EXPECT_NE(contents(page).find(part), std::string::npos) << part;
}

TEST(FrontierOfAModel, TokensMayBeInAFileWithoutASuffix) {
    std::filesystem::copy_file(model().folder + "/documents.npy", scratch("pages"),
                               std::filesystem::copy_options::overwrite_existing);
    const Outcome found = spiked("kv frontier --model '" + model().folder + "' --tokens '" + scratch("pages") +
                                 "' --block 16 --method tq-mse --bits 1,2");
    EXPECT_EQ(found.code, 0) << found.err;
}

TEST(DumpStudyOfAModel, AgreesWithTheStudyOfItsDumps) {
    const auto study = [](const std::string& name, const std::string& source) {
        std::ofstream(scratch(name)) << "spiked = 1\n[study]\nname = \"m\"\nseed = \"0x5eed\"\n[model]\nkind = "
                                        "\"kv_dump\"\nblock = { tokens = 16, tail = \"skip\" }\n"
                                     << source << "\n[[codec]]\nname = \"tq-mse\"\nbits = [2]\n";
        return "run '" + scratch(name) + "' --no-report -o '" + scratch(name + ".spiked") + "'";
    };
    const std::string folder = model().folder;
    const std::string of_model = study(
        "model.toml", "model = \"" + folder + "\"\ntokens = \"" + folder + "/documents.npy\"\ndocuments = [1, 2]");
    const std::string temporary = "TMPDIR='" + scratch("tmp") + "'";
    std::filesystem::create_directory(scratch("tmp"));
    const Outcome ran = spiked(of_model, temporary);
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_TRUE(std::filesystem::is_empty(scratch("tmp")));
    std::string sources;
    for (const char* document : {"1", "2"}) {
        const std::string dump = scratch(std::string("model-document-") + document + ".safetensors");
        ASSERT_EQ(
            spiked("kv dump" + model().words("documents.npy") + "--document " + document + " -o '" + dump + "'").code,
            0);
        sources += (sources.empty() ? "\"" : ", \"") + dump + "\"";
    }
    const std::string of_dumps = study("dumps.toml", "source = [" + sources + "]");
    ASSERT_EQ(spiked(of_dumps).code, 0);
    const auto table = [](const std::string& name) {
        return spiked("export '" + scratch(name + ".spiked") + "' --table summary --format csv").out;
    };
    EXPECT_EQ(table("model.toml"), table("dumps.toml"));
    // The store names the documents and the model, not the temporary folder of the dumps.
    const std::string store = contents(scratch("model.toml.spiked"));
    EXPECT_EQ(store.find("spiked-dumps-"), std::string::npos);
    EXPECT_NE(store.find("document 2 of " + folder + "/documents.npy, read by " + folder), std::string::npos);
    EXPECT_NE(table("model.toml").find("relative_l2"), std::string::npos);
    const Outcome resumed = spiked(of_model, temporary);
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_NE(resumed.err.find("resuming"), std::string::npos) << resumed.err;

    const auto rejected = [&](const std::string& source, const std::string& part) {
        const Outcome outcome = spiked(study("bad.toml", source));
        EXPECT_EQ(outcome.code, 2) << source << outcome.err;
        EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    };
    const std::string both = "model = \"" + folder + "\"\ntokens = \"" + folder + "/documents.npy\"\n";
    rejected("model = \"" + folder + "\"", "tokens = \"pages.npy\"");
    rejected(both + "documents = [3]", "document 3 does not exist");
    rejected(both + "documents = [0.5]", "document 0.5 is not a row");
    rejected(both + "source = [\"x.safetensors\"]", "both given");
    rejected("model = \"/no/such\"\ntokens = \"x.npy\"", "/no/such/config.json");
}

TEST(DumpCommand, WritesTheKeysOfTheModel) {
    const std::string dump = scratch("model.safetensors");
    const Outcome made =
        spiked("kv dump" + model().words("documents.npy") + "--dtype f32 --name tiny -o '" + dump + "' --json");
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(*made.json().find("tokens")->integer(), 40);
    EXPECT_EQ(*made.json().find("query_heads")->integer(), 6);
    EXPECT_NE(made.err.find("15 kB of cache (40 tokens), 28 kB of arrays and 38 kB of rows to write"),
              std::string::npos)
        << made.err;
    // Compares the keys of head 1 of layer 1 with NumPy's, with an independent reader of the file.
    std::ofstream(scratch("read.py")) << R"(import json, struct, sys
import numpy as np
with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    data = file.read()
first, last = header["layers.1.key"]["data_offsets"]
keys = np.frombuffer(data[first:last], np.float32).reshape(header["layers.1.key"]["shape"])
assert header["layers.2.query"]["shape"] == [6, 40, 8], header["layers.2.query"]
said = header["__metadata__"]
assert said["keys"] == "post-rope" and said["rope_base"] == "500" and said["attention"] == "causal", said
print(np.abs(keys[1] - np.load(sys.argv[2])).max())
)";
    const std::string line = "/usr/bin/python3 '" + scratch("read.py") + "' '" + dump + "' '" + model().folder +
                             "/keys.npy' > '" + scratch("difference") + "'";
    ASSERT_EQ(std::system(line.c_str()), 0);
    EXPECT_LT(std::stod(contents(scratch("difference"))), 1e-5);
    const Outcome run = spiked("kv run '" + dump + "' --block 16 --method unrope+tq-mse --bits 3 --json");
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(spiked("kv dump" + model().words("documents.npy") + "--document 3 -o '" + dump + "'").code, 2);
    EXPECT_EQ(spiked("kv dump" + model().words("documents.npy") + "-o '" + scratch("y.st") + "'").code, 2);
    EXPECT_FALSE(std::filesystem::exists(scratch("y.st")));
    EXPECT_EQ(spiked("kv dump" + model().words("documents.npy") + "--dtype f8 -o '" + dump + "'").code, 2);
    EXPECT_EQ(spiked("kv dump" + model().words("documents.npy") + "-o no/such/folder/x.safetensors").code, 6);
}

TEST(RetrieveCommand, RejectsAModelThatDoesNotAnswer) {
    const auto rejected = [](const std::string& words, int code, const std::string& part) {
        const Outcome found = spiked("kv retrieve " + words);
        EXPECT_EQ(found.code, code) << words << found.err;
        EXPECT_NE(found.err.find(part), std::string::npos) << found.err;
    };
    const std::string good = "--model '" + model().folder + "' --filler '" + model().folder + "/documents.npy' ";
    const std::string words = "--vocabulary bos=0,ask=1,keys=10:29,values=30:49 ";
    rejected(good, 4, "token 512 of the needles lies outside the model's vocabulary of 50");
    rejected(good + words + "--needles 4 --asked 12 --prompts 2 --context 49", 4,
             "a stream of the filler has 40 tokens");
    rejected(good + words + "--needles 12 --prompts 2", 4, "the model answers");
    rejected(good + words + "--needles 12 --prompts 0", 2, "--prompts 0");
    rejected(good + words + "--needles 12 --context 0", 2, "--context 0");
    rejected(good + words + "--needles 12 --context 70000", 2, "--context 70000 is not possible (the model reads ");
    rejected(good + "--vocabulary key=3", 2, "--vocabulary \"key=3\" is not");
    rejected(good + "--layers first", 2, "--layers \"first\" is not possible");
    rejected("--model '" + model().folder + "'", 4, "give --filler FILE.npy");
    rejected("--prompts 2", 2, "neither dumps nor --model");
    rejected("--model /no/such", 4, "/no/such/config.json");
}

/// The expected values are those of a prototype in NumPy: added nats and their errors over the same 16 documents.
TEST(PerplexityCommand, AgreesWithAPrototype) {
    const char* models = std::getenv("SPIKED_EXTRA_MODELS");
    if (models == nullptr) GTEST_SKIP() << "SPIKED_EXTRA_MODELS names no folder";
    const std::string folder = std::string(models) + "/rope-lm";
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no rope-lm in " << models;
    struct Row {
        const char* method;
        std::array<double, 3> added, error;  ///< at 1, 2, 3 bits
    };
    const std::vector<Row> expected = {
        {"tq-mse", {0.1348, 0.0257, 0.0071}, {0.0181, 0.0046, 0.0012}},
        {"svd:1+tq-mse", {0.1171, 0.0218, 0.0056}, {0.0169, 0.0043, 0.0016}},
        {"eoptshrink+tq-mse", {0.0752, 0.0148, 0.0028}, {0.0123, 0.0031, 0.0009}},
        {"unrope+svd:1+tq-mse", {0.1032, 0.0214, 0.0052}, {0.0166, 0.0044, 0.0016}},
        {"unrope+eoptshrink+tq-mse", {0.0601, 0.0140, 0.0031}, {0.0113, 0.0031, 0.0009}}};
    std::string methods;
    for (const auto& row : expected) methods += (methods.empty() ? "" : ",") + std::string(row.method);
    const Outcome found = spiked("kv perplexity --model '" + folder + "' --tokens '" + folder +
                                 "/eval-tokens.npy' --method " + methods + " --bits 1,2,3 --json");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json document = found.json();
    EXPECT_NEAR(number(document, "nats"), 1.5589, 1e-4);
    const auto& rows = *document.find("rows")->items();
    ASSERT_EQ(rows.size(), 3 * expected.size());
    // The documents are the same and only the rotations differ, so the difference is smaller than the errors suggest.
    constexpr double errors = 2.0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Row& row = expected[i / 3];
        EXPECT_EQ(*rows[i].find("method")->string(), row.method);
        EXPECT_NEAR(number(rows[i], "added_nats"), row.added[i % 3], errors * row.error[i % 3]) << row.method << i % 3;
        EXPECT_LT(number(rows[i], "mcse_added_nats"), 1.6 * row.error[i % 3]) << row.method << i % 3;
    }
    // Negative control: the added nats at one bit with eOptShrink differ from those without it and from those at two
    // bits.
    for (const std::size_t i : {0UL, 1UL})
        for (const auto& [value, error] : {std::pair{expected[2].added[i], expected[2].error[i]},
                                           std::pair{expected[0].added[i + 1], expected[0].error[i + 1]}})
            EXPECT_GT(std::abs(number(rows[i], "added_nats") - value), errors * error) << i;
}

/// The method codes blocks of 128 tokens, and the text of the small random model is shorter.
TEST(SameTokenCommands, PerplexityKnowsTheIdsOfTheText) {
    const char* models = std::getenv("SPIKED_EXTRA_MODELS");
    if (models == nullptr) GTEST_SKIP() << "SPIKED_EXTRA_MODELS names no folder";
    const std::string folder = std::string(models) + "/rope-lm";
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no rope-lm in " << models;
    const Json found = spiked("kv perplexity --model '" + folder + "' --tokens '" + folder +
                              "/eval-tokens.npy' --documents 1 --bits 2 --json "
                              "--method causal-klt:freeze=never,causal-klt:freeze=never:same=on")
                           .json();
    const Json::Array& rows = *found.find("rows")->items();
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_NE(number(rows[0], "added_nats"), number(rows[1], "added_nats"));
    for (const Json& row : rows) {
        EXPECT_NEAR(number(row, "bits_per_entry"), 2.0, 0.02);
        EXPECT_LT(std::abs(number(row, "added_nats")), 0.02);
    }
}

TEST(SameTokenCommands, NeedTokenIdsAndTheLiveMode) {
    const std::string same = " --method causal-klt:freeze=never:same=on --bits 3 ";
    const std::string dump = scratch("ids.safetensors");
    ASSERT_EQ(spiked("kv dump" + model().words("tokens.npy") + "-o '" + dump + "'").code, 0);
    const Outcome run = spiked("kv run '" + dump + "' --block 16 --json" + same);
    EXPECT_EQ(run.code, 0) << run.err;
    // Containers store no ids, and decoded dumps keep them.
    const Outcome encode = spiked("kv encode '" + dump + "' -o '" + scratch("ids.spkv") + "'" + same);
    EXPECT_EQ(encode.code, 2) << encode.err;
    EXPECT_NE(encode.err.find("leave same=on out"), std::string::npos) << encode.err;
    const Outcome frozen = spiked("kv run '" + dump + "' --block 16 --method causal-klt:same=on --bits 3");
    EXPECT_EQ(frozen.code, 2);
    EXPECT_NE(frozen.err.find("freeze=never:same=on"), std::string::npos) << frozen.err;
    // A dump without ids.
    const std::string other = scratch("no-ids.safetensors");
    ASSERT_EQ(spiked("kv generate -o '" + other + "'").code, 0);
    const Outcome missing = spiked("kv run '" + other + "'" + same);
    EXPECT_EQ(missing.code, 4) << missing.err;
    EXPECT_NE(missing.err.find("no tensor token_ids"), std::string::npos) << missing.err;
}

}  // namespace
}  // namespace spiked::app
