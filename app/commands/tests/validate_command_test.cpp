#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "app/tests/process.hpp"
#include "core/files/tests/scratch.hpp"

namespace spiked::app {
namespace {

// The tier that CI runs: no claim fails or stays open, and every control that is meant to fail does.
TEST(ValidateCommand, TheQuickTierDecidesEveryClaim) {
    const Outcome found = spiked("validate --json --strict --progress none");
    ASSERT_EQ(found.code, 0) << found.err << found.out.substr(0, 2000);
    const Json document = found.json();
    EXPECT_EQ(*document.find("schema")->string(), "spiked.validate/1");
    EXPECT_EQ(*document.find("tier")->string(), "quick");
    const auto& claims = *document.find("claims")->items();
    EXPECT_GE(claims.size(), 35U);
    for (const auto& claim : claims) {
        const std::string& id = *claim.find("id")->string();
        const std::string& printed = *claim.find("printed")->string();
        const std::string& corrected = *claim.find("corrected")->string();
        EXPECT_TRUE(printed == "holds" || printed == "refuted" || printed == "vacuous") << id << " " << printed;
        EXPECT_TRUE(corrected == "holds" || corrected == "none") << id << " " << corrected;
        EXPECT_TRUE(std::isfinite(number(*claim.find("estimate")))) << id;
        EXPECT_GT(number(*claim.find("detectable")), 0.0) << id;
        bool passes = false;
        for (const auto& control : *claim.find("controls")->items())
            passes = passes || !*control.find("fails")->boolean();
        EXPECT_EQ(passes, printed == "vacuous") << id;
        const std::string& kind = *claim.find("kind")->string();
        EXPECT_EQ(kind == "holds", printed == "holds") << id << " " << kind;
        EXPECT_EQ(kind == "vacuous", printed == "vacuous") << id << " " << kind;
        // The deviation of a control that fails exceeds the detectable size, so that it does not fail by chance.
        for (const auto& criterion : *claim.find("criteria")->items())
            for (const auto& control : *criterion.find("controls")->items()) {
                if (!*control.find("fails")->boolean()) continue;
                for (const auto& finding : *criterion.find("findings")->items()) {
                    if (finding.find("size")->text() != control.find("size")->text()) continue;
                    EXPECT_GE(number(*control.find("deviation")), number(*finding.find("detectable")))
                        << id << " " << *criterion.find("name")->string() << " " << *control.find("name")->string();
                }
            }
    }
}

TEST(ValidateCommand, WritesChosenClaimsAsTextPageAndJunit) {
    const std::string folder = scratch("validate");
    std::filesystem::create_directories(folder);
    const Outcome found = spiked("validate --claim bits.formula,qjl.mean -v --progress none -o " + folder +
                                 "/CLAIMS.md --junit " + folder + "/claims.xml");
    ASSERT_EQ(found.code, 0) << found.err;
    EXPECT_NE(found.out.find("bits.formula  refuted  holds"), std::string::npos) << found.out;
    EXPECT_NE(found.out.find("control norms-not-counted"), std::string::npos) << found.out;
    EXPECT_NE(found.out.find("2 claims, quick tier: 0 failed, 0 open."), std::string::npos) << found.out;
    const std::string page = contents(folder + "/CLAIMS.md");
    EXPECT_NE(page.find("| `qjl.mean` | misprint | refuted | holds |"), std::string::npos) << page;
    EXPECT_LT(page.find("| `qjl.mean` |"), page.find("## bits.formula")) << "statements come first";
    ASSERT_EQ(spiked("validate --claim qjl.mean --progress none -o " + folder + "/claims.html").code, 0);
    const std::string html = contents(folder + "/claims.html");
    EXPECT_NE(html.find("<a href=\"#claim-1\">qjl.mean</a>"), std::string::npos);
    EXPECT_NE(html.find("<td>control constant: "), std::string::npos);
    const std::string junit = contents(folder + "/claims.xml");
    EXPECT_NE(junit.find("tests=\"2\" failures=\"0\" skipped=\"0\""), std::string::npos) << junit;
    EXPECT_NE(junit.find("<system-out>printed: "), std::string::npos) << junit;
    EXPECT_NE(junit.find("control constant, "), std::string::npos) << junit;
    // The same seed gives the same numbers, another seed gives others.
    const auto estimate = [](const std::string& words) {
        return number(
            *(*spiked("validate --claim qjl.mean --json --progress none" + words).json().find("claims")->items())[0]
                 .find("estimate"));
    };
    EXPECT_EQ(estimate(""), estimate(" --threads 1"));
    EXPECT_NE(estimate(""), estimate(" --seed 0x2"));
}

TEST(ValidateCommand, JudgesDumpsInAdditionToSimulations) {
    const std::string words = "validate --claim bits.formula,adaptive-rank --layers 0 --heads 0 --side value ";
    const Outcome found = spiked(words + "--json --progress none '" + sample_dump + "'");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json document = found.json();
    const auto& claims = *document.find("claims")->items();
    ASSERT_EQ(claims.size(), 3U);
    EXPECT_EQ(claims[1].find("on")->string(), nullptr);
    EXPECT_EQ(*claims[2].find("id")->string(), "adaptive-rank");
    EXPECT_EQ(*claims[2].find("on")->string(), "rope-lm-cut.safetensors");
    EXPECT_EQ(*claims[2].find("corrected")->string(), "holds");
    EXPECT_EQ(found.err, "");
    // Claims that cannot be tested on the dump are reported.
    const Outcome values = spiked("validate --claim rope.cost --layers 0 --heads 0 --side value '" + sample_dump + "'");
    EXPECT_EQ(values.code, 0) << values.err;
    EXPECT_NE(values.err.find("rope.cost is not tested on " + sample_dump + ": it has no keys"), std::string::npos)
        << values.err;
}

TEST(ValidateCommand, ASideThatIsZeroIsNotTested) {
    const std::string path = scratch("zero-values") + ".safetensors";
    std::string data(2 * 256 * 32 * 2, '\0');
    for (std::size_t at = 0; at < 256 * 32; ++at) {
        // fp16 of either sign, 1 to 2.
        data[2 * at] = static_cast<char>(at * at * 40503U >> 8);
        data[2 * at + 1] = static_cast<char>((at * 2654435761U >> 13) % 2 == 0 ? 0x3c : 0xbc);
    }
    std::ofstream(path, std::ios::binary) << sim::safetensors_bytes(
        R"({"__metadata__":{"layout":"head,token,dim"},)"
        R"("layers.0.key":{"dtype":"F16","shape":[1,256,32],"data_offsets":[0,16384]},)"
        R"("layers.0.value":{"dtype":"F16","shape":[1,256,32],"data_offsets":[16384,32768]}})",
        data);
    const Outcome both = spiked("validate --claim adaptive-rank --json --progress none " + path);
    ASSERT_EQ(both.code, 0) << both.err;
    const Json document = both.json();
    const auto& claims = *document.find("claims")->items();
    ASSERT_EQ(claims.size(), 2U);
    for (const auto& criterion : *claims[1].find("criteria")->items())
        EXPECT_NE(criterion.find("name")->string()->find("key"), std::string::npos);
    const Outcome zero = spiked("validate --claim adaptive-rank --side value --progress none " + path);
    EXPECT_EQ(zero.code, 0) << zero.err;
    EXPECT_NE(zero.err.find("adaptive-rank is not tested on " + path + ": it has no blocks, or all of them are zero"),
              std::string::npos)
        << zero.err;
    const Outcome none = spiked("validate --claim bits.formula --progress none " + path);
    EXPECT_EQ(none.code, 0) << none.err;
    EXPECT_NE(none.err.find("dumps are left out: no chosen claim is about their blocks (one-bit-saved, "),
              std::string::npos)
        << none.err;
}

// Every claim has one line, and what was found on dumps a page of its own.
TEST(ValidateCommand, WritesASummaryAndAPageOfDumps) {
    const std::string folder = scratch("validate-summary");
    std::filesystem::create_directories(folder);
    const std::string words =
        "validate --claim bits.formula,qjl.mean,adaptive-rank --layers 0 --heads 0 --side value --progress none "
        "--summary " +
        folder;
    const Outcome found = spiked(words + "/summary.md -o " + folder + "/claims.md '" + sample_dump + "'");
    ASSERT_EQ(found.code, 0) << found.err;
    const auto count = [](const std::string& text, const std::string& part) {
        std::size_t times = 0;
        for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
        return times;
    };
    const std::string summary = contents(folder + "/summary.md");
    EXPECT_NE(summary.find("Tier quick: 4 claims"), std::string::npos) << summary;
    for (const std::string title : {"bits.formula", "qjl.mean", "adaptive-rank", "adaptive-rank on dumps"})
        EXPECT_EQ(count(summary, "| `" + title + "` |"), 1U) << title;
    EXPECT_LT(summary.find("## Misprints"), summary.find("## Holds within the margin"));
    EXPECT_NE(summary.find("What one loses in practice"), std::string::npos);
    const std::string page = contents(folder + "/claims.md");
    EXPECT_NE(page.find("What was found on dumps is in claims-dumps.md."), std::string::npos);
    EXPECT_EQ(page.find("rope-lm-cut.safetensors`"), std::string::npos);
    EXPECT_NE(contents(folder + "/claims-dumps.md").find("## adaptive-rank on rope-lm-cut.safetensors"),
              std::string::npos);
    const Outcome html = spiked("validate --claim qjl.mean --json --progress none --summary " + folder + "/s.html");
    ASSERT_EQ(html.code, 0) << html.err;
    EXPECT_EQ(*(*html.json().find("claims")->items())[0].find("kind")->string(), "misprint");
    EXPECT_EQ(count(contents(folder + "/s.html"), "<code>qjl.mean</code>"), 1U);
    const Outcome same = spiked("validate --claim qjl.mean -o " + folder + "/x.md --summary " + folder + "/x.md");
    EXPECT_EQ(same.code, 2);
    EXPECT_EQ(spiked("validate --claim qjl.mean --summary no/such/file.md").code, 6);
}

// The verdicts of a store are those that are drawn in memory, for any kills, and need no draws once they are made.
TEST(ValidateCommand, AStoreResumesAfterKillsAndKeepsTheVerdicts) {
    const std::string folder = scratch("validate-store");
    std::filesystem::create_directories(folder);
    const std::string claims = "validate --claim qjl.mean,bits.formula,prop.norm --json --progress none";
    const std::string words = claims + " --threads 1 -o claims.spiked";
    const std::string expected = spiked(claims).out;
    int kills = 0;
    Outcome last{.code = 137};
    for (int attempt = 0; attempt < 100 && last.code == 137; ++attempt) {
        // Killed later each time, so that some run makes progress.
        last = spiked(words, in(folder) + "timeout -s KILL " + std::to_string(0.2 + 0.1 * attempt));
        kills += last.code == 137 ? 1 : 0;
    }
    EXPECT_GE(kills, 4) << "a thread needs more than .2 + .3 + .4 + .5 seconds for these claims";
    ASSERT_EQ(last.code, 0) << last.err;
    EXPECT_NE(last.err.find("resuming claims.spiked: "), std::string::npos) << last.err;
    EXPECT_EQ(last.err.find("resuming claims.spiked: 0 batches"), std::string::npos) << "what kills left was kept";
    EXPECT_EQ(last.out, expected);
    const auto batches = [&] { return spiked("export claims.spiked --table values --format csv", in(folder)).out; };
    const std::string drawn = batches();
    const Outcome again = spiked(words + " --junit claims.xml", in(folder));
    EXPECT_EQ(again.out, expected);
    EXPECT_EQ(batches(), drawn);
    EXPECT_NE(contents(folder + "/claims.xml").find("tests=\"3\" failures=\"0\""), std::string::npos);

    EXPECT_EQ(spiked("show claims.spiked --json", in(folder)).out, expected);
    EXPECT_NE(spiked("show claims.spiked", in(folder)).out.find("qjl.mean"), std::string::npos);
    const auto width = [&](const std::string& rate) {
        const Outcome found = spiked("show claims.spiked --json --false-alarm " + rate, in(folder));
        const Json document = found.json();
        const Json& finding =
            (*(*(*document.find("claims")->items())[0].find("criteria")->items())[0].find("findings")->items())[0];
        return number(*finding.find("high")) - number(*finding.find("low"));
    };
    EXPECT_GT(width("1e-9"), width("1e-3"));
    EXPECT_EQ(spiked("show claims.spiked --false-alarm 2", in(folder)).code, 2);
    const auto table = [&](const std::string& rate) {
        return spiked("export claims.spiked --table checks" + rate, in(folder)).out;
    };
    EXPECT_NE(table(" --false-alarm 1e-9"), table(""));
    ASSERT_EQ(spiked("report claims.spiked -o strict.md --false-alarm 1e-9", in(folder)).code, 0);
    EXPECT_NE(contents(folder + "/strict.md").find("Judged again at a false-alarm rate of 1e-09, which is 0.001 in"),
              std::string::npos);
    const std::string checks = spiked("export claims.spiked --table checks", in(folder)).out;
    EXPECT_NE(checks.find("qjl.mean,corrected,corrected,constant,32,0.67788814"), std::string::npos) << checks;
    ASSERT_EQ(spiked("report claims.spiked", in(folder)).code, 0);
    EXPECT_NE(contents(folder + "/claims.html").find("<h2>qjl.mean</h2>"), std::string::npos);
    const Outcome replay = spiked("replay claims.spiked --cell 'qjl.mean corrected 32' --rep 7", in(folder));
    EXPECT_EQ(replay.code, 0) << replay.err;
    EXPECT_NE(replay.out.find("0 of 4 stored values differ"), std::string::npos) << replay.out;
    const Outcome emulated =
        spiked("replay claims.spiked --cell 'qjl.mean corrected 32' --rep 7 --device emulated", in(folder));
    EXPECT_NE(emulated.err.find("all is computed on the CPU, because claims have no kernels"), std::string::npos)
        << emulated.err;
    const Outcome other = spiked("validate --claim qjl.mean -o claims.spiked", in(folder));
    EXPECT_EQ(other.code, 2);
    EXPECT_NE(other.err.find("the store holds another study (claims"), std::string::npos) << other.err;
    EXPECT_EQ(spiked("validate --claim qjl.mean --shard 1/2").code, 2) << "the part would be lost";
}

// Two seeds agree; a store whose numbers are wrong, as those of a program with a defect, does not.
TEST(ValidateCommand, TwoStoresAreComparedClaimByClaim) {
    const std::string folder = scratch("validate-compare");
    std::filesystem::create_directories(folder);
    for (const std::string words : {"-o a.spiked", "--seed 0x2 -o b.spiked"})
        ASSERT_EQ(spiked("validate --claim qjl.mean,bits.formula --progress none " + words, in(folder)).code, 0);
    const Outcome seeds = spiked("compare a.spiked b.spiked", in(folder));
    EXPECT_EQ(seeds.code, 0) << seeds.err;
    EXPECT_NE(seeds.out.find("2 claims in both stores, 0 with other verdicts"), std::string::npos) << seeds.out;
    EXPECT_NE(seeds.out.find("refuted, corrected holds  the same"), std::string::npos) << seeds.out;
    EXPECT_NE(seeds.out.find("seeds differ ("), std::string::npos) << seeds.out;
    std::filesystem::copy_file(folder + "/a.spiked", folder + "/c.spiked");
    const std::string wrong =
        "UPDATE value SET v = v + 1 WHERE cell_id IN (SELECT cell_id FROM cell WHERE label LIKE 'qjl.mean corr%'); "
        "UPDATE moment SET mean = mean + 1 WHERE cell_id IN (SELECT cell_id FROM cell WHERE label LIKE 'qjl.mean "
        "corr%')";
    ASSERT_EQ(std::system((in(folder) + " sqlite3 c.spiked \"" + wrong + "\"").c_str()), 0);
    const Outcome defect = spiked("compare a.spiked c.spiked", in(folder));
    EXPECT_EQ(defect.code, 0) << defect.err;
    EXPECT_NE(defect.out.find("FAILED: refuted, corrected refuted"), std::string::npos) << defect.out;
    EXPECT_NE(defect.out.find("2 claims in both stores, 1 with other verdicts"), std::string::npos) << defect.out;
    const Json document = spiked("compare a.spiked c.spiked --json", in(folder)).json();
    const Json& claims = *document.find("claims");
    EXPECT_EQ(number(claims, "other_verdicts"), 1.0);
    for (const Json& row : *claims.find("rows")->items()) {
        const bool changed = *row.find("id")->string() == "qjl.mean";
        EXPECT_EQ(*row.find("same_verdicts")->boolean(), !changed);
        EXPECT_EQ(number(row, "beyond") > 0.0, changed);
        const double difference = number(*row.find("b"), "estimate") - number(*row.find("a"), "estimate");
        EXPECT_NEAR(difference, changed ? 1.0 : 0.0, 1e-9);
    }
    // At another rate both are judged again, here at one at which no interval of so few trials decides.
    const Json strict = spiked("compare a.spiked c.spiked --json --false-alarm 1e-250", in(folder)).json();
    EXPECT_EQ(number(strict, "false_alarm"), 1e-250);
    EXPECT_LT(number(strict, "alpha"), 1e-250);
    EXPECT_GT(number(document, "alpha"), 1e-6);
    for (const Json& row : *strict.find("claims")->find("rows")->items())
        if (*row.find("id")->string() == "qjl.mean") {
            EXPECT_EQ(*row.find("a")->find("corrected")->string(), "inconclusive");
        }
    EXPECT_EQ(spiked("compare a.spiked c.spiked --false-alarm 1", in(folder)).code, 2);
    // A part that another tier and other claims make is said to be that.
    ASSERT_EQ(
        spiked("validate --claim bits.formula --tier full --progress none --shard 1/2 -o part.spiked", in(folder)).code,
        0);
    const Outcome part = spiked("compare a.spiked part.spiked", in(folder));
    EXPECT_EQ(part.code, 0) << part.err;
    EXPECT_NE(part.out.find("tiers differ (quick, full)"), std::string::npos) << part.out;
    EXPECT_NE(part.out.find("judged only in a.spiked: "), std::string::npos) << part.out;
    EXPECT_NE(part.out.find("cells that its verdicts ask for are not in it"), std::string::npos) << part.out;
}

TEST(ValidateCommand, AFreshSeedIsDrawnOnceForAStore) {
    const std::string folder = scratch("validate-fresh");
    std::filesystem::create_directories(folder);
    const std::string words = "validate --claim qjl.mean --seed fresh --json --progress none -o fresh.spiked";
    const Outcome first = spiked(words, in(folder));
    ASSERT_EQ(first.code, 0) << first.err;
    const std::string seed = *first.json().find("seed")->string();
    const Outcome again = spiked(words, in(folder));
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(again.out, first.out);
    EXPECT_NE(again.err.find("seed " + seed + ", that of fresh.spiked"), std::string::npos) << again.err;
    EXPECT_EQ(spiked("validate --claim qjl.mean --seed 0x1 -o fresh.spiked", in(folder)).code, 2);
    // Without --seed the store goes on under its own one, which is not that of the help text.
    const Outcome without = spiked("validate --claim qjl.mean --json --progress none -o fresh.spiked", in(folder));
    EXPECT_EQ(without.out, first.out);
    EXPECT_NE(without.err.find("seed " + seed + ", that of fresh.spiked"), std::string::npos) << without.err;
    const std::string usual = "validate --claim qjl.mean --progress none -o usual.spiked";
    for (int time = 0; time < 2; ++time) EXPECT_EQ(spiked(usual, in(folder)).err.find("seed 0x"), std::string::npos);
    EXPECT_NE(*spiked("validate --claim qjl.mean --seed fresh --json").json().find("seed")->string(), seed);
}

// An earlier file does not stay as if it were the result.
TEST(ValidateCommand, ARunThatEndsEarlyWritesUndecidedClaimsAsSkipped) {
    const std::string folder = scratch("validate-early");
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/claims.xml") << "earlier";
    const Outcome found =
        spiked("validate --tier full --max-time 1s --progress none --junit claims.xml --summary s.md -o early.spiked",
               in(folder));
    ASSERT_EQ(found.code, 75) << found.err;
    EXPECT_NE(found.err.find("the time is over, stopping after the current work"), std::string::npos) << found.err;
    EXPECT_EQ(found.err.find("signal"), std::string::npos) << found.err;
    EXPECT_NE(found.err.find("s.md is not written: the run ended before its verdicts"), std::string::npos) << found.err;
    EXPECT_FALSE(std::filesystem::exists(folder + "/s.md"));
    const std::string junit = contents(folder + "/claims.xml");
    EXPECT_NE(junit.find("name=\"one-bit-saved\"><skipped message=\"the run ended before its trials were drawn\"/>"),
              std::string::npos)
        << junit;
    EXPECT_EQ(junit.find("earlier"), std::string::npos);
    for (const std::string option : {"--junit part.xml", "--summary part.md"}) {
        const Outcome part = spiked("validate --claim qjl.mean --shard 1/2 -o part.spiked " + option, in(folder));
        EXPECT_EQ(part.code, 2) << part.err;
        EXPECT_NE(part.err.find("has no place here (a part gives no verdicts)"), std::string::npos) << part.err;
        EXPECT_FALSE(std::filesystem::exists(folder + "/part.spiked"));
    }
}

TEST(ValidateCommand, MergeJudgesTheClaimsOfItsParts) {
    const std::string folder = scratch("validate-merge");
    std::filesystem::create_directories(folder);
    for (const std::string part : {"1", "2"})
        ASSERT_EQ(spiked("validate --claim qjl.mean --progress none --shard " + part + "/2 -o part" + part + ".spiked",
                         in(folder))
                      .code,
                  0);
    const Outcome merged = spiked("merge part1.spiked part2.spiked -o whole.spiked", in(folder));
    EXPECT_EQ(merged.code, 0) << merged.err;
    EXPECT_NE(merged.out.find(" replicates, complete; claims: 1 passed, 0 failed, 0 inconclusive"), std::string::npos)
        << merged.out;
    // Numbers of the corrected form that are wrong, as of a program with a defect.
    const std::string wrong = "UPDATE value SET v = v + 1 WHERE cell_id IN (SELECT cell_id FROM cell)";
    for (const std::string part : {"1", "2"})
        ASSERT_EQ(std::system((in(folder) + " sqlite3 part" + part + ".spiked \"" + wrong + "\"").c_str()), 0);
    const Outcome failed = spiked("merge part1.spiked part2.spiked -o failed.spiked --json", in(folder));
    EXPECT_EQ(failed.code, 1) << failed.out << failed.err;
    EXPECT_EQ(number(failed.json().find("checks")->find("failed")[0]), 1.0);
}

// A claim that stays open after its first analysis has others that no part holds.
TEST(ValidateCommand, AMergedStoreSaysWhichAnalysesItLacks) {
    const std::string folder = scratch("validate-lacking");
    std::filesystem::create_directories(folder);
    const std::string words =
        "validate --claim adaptive-rank --layers 0 --heads 0 --side value '" + sample_dump + "' --progress none";
    for (const std::string part : {"1", "2"})
        ASSERT_EQ(spiked(words + " --shard " + part + "/2 -o part" + part + ".spiked", in(folder)).code, 0);
    const Outcome merged = spiked("merge part1.spiked part2.spiked -o whole.spiked", in(folder));
    EXPECT_EQ(merged.code, 0) << merged.err;
    EXPECT_NE(merged.err.find("without --shard and with -o whole.spiked, goes on with them"), std::string::npos)
        << merged.err;
    EXPECT_NE(merged.out.find(" replicates, complete except for 1 cell; claims: "), std::string::npos) << merged.out;
    const Outcome document = spiked("merge part1.spiked part2.spiked -o again.spiked --json", in(folder));
    EXPECT_EQ(number(document.json(), "lacking"), 1.0);
    ASSERT_EQ(spiked("report whole.spiked -o before.md", in(folder)).code, 0);
    EXPECT_NE(contents(folder + "/before.md")
                  .find("1 cell that these verdicts ask for, such as second analyses "
                        "of undecided claims, is not in the store: the same command"),
              std::string::npos);
    ASSERT_EQ(spiked(words + " -o whole.spiked", in(folder)).code, 0);
    ASSERT_EQ(spiked("report whole.spiked -o after.md", in(folder)).code, 0);
    EXPECT_EQ(contents(folder + "/after.md").find("not in the store"), std::string::npos);
}

// One function makes the page of `validate -o FILE.md` and that of a store.
TEST(ValidateCommand, AStoreGivesThePagesThatTheRunWrites) {
    const std::string folder = scratch("validate-pages");
    std::filesystem::create_directories(folder);
    const std::string words = "validate --claim bits.formula,adaptive-rank --layers 0 --heads 0 --side value '" +
                              sample_dump + "' --progress none -o ";
    ASSERT_EQ(spiked(words + "run.md", in(folder)).code, 0);
    ASSERT_EQ(spiked(words + "claims.spiked", in(folder)).code, 0);
    const Outcome report = spiked("report claims.spiked -o store.md", in(folder));
    ASSERT_EQ(report.code, 0) << report.err;
    EXPECT_EQ(report.err, "");
    EXPECT_NE(report.out.find("report   store-dumps.md"), std::string::npos) << report.out;
    // The name of the second page is in the first one, and the day may have changed.
    const auto page = [&](const std::string& name) {
        std::string text = contents(folder + "/" + name);
        const std::string stem = name.substr(0, name.find_first_of("-."));
        for (auto at = text.find(stem + "-dumps"); at != std::string::npos; at = text.find(stem + "-dumps"))
            text.replace(at, stem.size(), "PAGE");
        const auto date = text.find(" on 20");
        return date == std::string::npos ? text : text.erase(date, 14);
    };
    const std::string expected = page("run.md");
    EXPECT_NE(expected.find("Made by `spiked validate rope-lm-cut.safetensors --claim adaptive-rank,bits.formula "
                            "--tier quick --seed 0x5eed000000000000000000000000c1a1`, spiked "),
              std::string::npos)
        << expected.substr(0, 400);
    EXPECT_EQ(page("store.md"), expected);
    EXPECT_EQ(page("store-dumps.md"), page("run-dumps.md"));
    EXPECT_NE(page("run-dumps.md").find("## adaptive-rank on rope-lm-cut.safetensors"), std::string::npos);
    // What the dump is needed for is left out without it, and the page says so.
    const std::string gone = "UPDATE input SET meta = json_set(meta, '$.absolute_path', '/nowhere/a.safetensors')";
    ASSERT_EQ(std::system((in(folder) + " sqlite3 claims.spiked \"" + gone + "\"").c_str()), 0);
    const Outcome without = spiked("report claims.spiked -o without.md --json", in(folder));
    EXPECT_EQ(without.code, 0);
    EXPECT_NE(without.err.find("/nowhere/a.safetensors: no such file"), std::string::npos) << without.err;
    EXPECT_EQ(without.json().find("pages")->items()->size(), 1U);
    EXPECT_NE(contents(folder + "/without.md").find("1 of 3 claims are left out"), std::string::npos);
    // Other stores have no such page.
    std::ofstream(folder + "/study.toml") << "spiked = 1\n[study]\nname = \"s\"\nseed = \"0x1\"\n[model]\nkind = "
                                             "\"spiked\"\nn = 8\nd = 8\n[[codec]]\nname = \"tq-mse\"\nbits = [2]\n"
                                             "[run]\nreps = { min = 2 }\n";
    ASSERT_EQ(spiked("run study.toml --no-report -o study.spiked", in(folder)).code, 0);
    for (const std::string stores : {"study.spiked", "claims.spiked study.spiked"}) {
        const Outcome other = spiked("report " + stores + " -o other.md", in(folder));
        EXPECT_EQ(other.code, 2);
        EXPECT_NE(other.err.find("other.md: only one store of claims (spiked validate -o) makes a page in Markdown"),
                  std::string::npos)
            << other.err;
        EXPECT_FALSE(std::filesystem::exists(folder + "/other.md"));
    }
    EXPECT_EQ(spiked("report claims.spiked -o other.md --figures figures", in(folder)).code, 2);
    EXPECT_EQ(spiked("report claims.spiked -o no/such/page.md", in(folder)).code, 6);
}

// The store says where the dump was, which is read again where it still has the content that was judged.
TEST(ValidateCommand, ClaimsOnADumpAreJudgedAndReplayedFromTheStore) {
    const std::string folder = scratch("validate-dump-store");
    std::filesystem::create_directories(folder + "/elsewhere");
    std::filesystem::copy_file(sample_dump, folder + "/dump.safetensors");
    const Outcome made = spiked(
        "validate --claim adaptive-rank --layers 0 --heads 0 --side value --block 64 dump.safetensors -o claims.spiked "
        "--json --progress none",
        in(folder));
    ASSERT_EQ(made.code, 0) << made.err;
    const std::string from = in(folder + "/elsewhere");  // the path that is kept does not depend on the folder
    const Outcome shown = spiked("show ../claims.spiked --json", from);
    EXPECT_EQ(shown.out, made.out);
    EXPECT_EQ(shown.err, "");
    const Outcome strict = spiked("show ../claims.spiked --json --false-alarm 1e-9", from);
    const auto width = [](const Outcome& outcome) {
        const Json document = outcome.json();
        for (const auto& claim : *document.find("claims")->items())
            if (claim.find("on")->string() != nullptr && *claim.find("id")->string() == "adaptive-rank") {
                const Json& criterion = (*claim.find("criteria")->items())[0];
                const Json& finding = (*criterion.find("findings")->items())[0];
                return number(*finding.find("high")) - number(*finding.find("low"));
            }
        return 0.0;
    };
    EXPECT_GT(width(shown), 0.0);
    EXPECT_GT(width(strict), width(shown));
    const std::string checks = spiked("export ../claims.spiked --table checks", from).out;
    EXPECT_NE(checks.find("adaptive-rank on dump.safetensors"), std::string::npos) << checks;
    const std::string words =
        "replay ../claims.spiked --rep 3 --cell 'adaptive-rank values-at-2-bits 128 on dump.safetensors'";
    const Outcome replay = spiked(words, from);
    EXPECT_EQ(replay.code, 0) << replay.err;
    EXPECT_NE(replay.out.find(" stored values differ"), std::string::npos);
    EXPECT_NE(replay.out.find("0 of "), std::string::npos) << replay.out;
    EXPECT_EQ(spiked(words + " --block block.npy", from).code, 2);
    // A claim about a dump is named with the dump.
    std::filesystem::copy_file(sample_dump, folder + "/other.safetensors");
    const Outcome other = spiked(
        "validate --claim adaptive-rank --layers 0 --heads 0 --side value --block 64 other.safetensors -o "
        "claims.spiked",
        in(folder));
    EXPECT_EQ(other.code, 2);
    EXPECT_NE(other.err.find("\"adaptive-rank on dump.safetensors\", now \"adaptive-rank on other.safetensors\""),
              std::string::npos)
        << other.err;
    // Another content of the same size, then a file of another size: nothing is judged on them.
    const std::string path = folder + "/dump.safetensors";
    std::string bytes = contents(path);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    std::ofstream(path, std::ios::binary) << bytes;
    const Outcome changed = spiked("show ../claims.spiked", from);
    EXPECT_EQ(changed.code, 0);
    EXPECT_NE(changed.err.find("(its content differs)"), std::string::npos) << changed.err;
    EXPECT_NE(changed.out.find("1 more claim of this store is not shown"), std::string::npos) << changed.out;
    std::ofstream(path, std::ios::binary) << bytes << "x";
    EXPECT_NE(spiked("show ../claims.spiked", from).err.find("(its size differs)"), std::string::npos);
    const Outcome lost = spiked(words, from);
    EXPECT_EQ(lost.code, 4);
    EXPECT_NE(lost.err.find("it is about a dump that is not where it was"), std::string::npos) << lost.err;
    EXPECT_EQ(spiked("replay ../claims.spiked --rep 0 --cell 'adaptive-rank explained-keys 128'", from).code, 0)
        << "claims on simulated blocks need no dump";
}

TEST(ValidateCommand, RejectsInvalidOptions) {
    const Outcome claim = spiked("validate --claim outlier.locaton");
    EXPECT_EQ(claim.code, 2);
    EXPECT_NE(claim.err.find("unknown claim \"outlier.locaton\"; did you mean \"outlier.location\"?"),
              std::string::npos)
        << claim.err;
    const Outcome tier = spiked("validate --tier quik");
    EXPECT_EQ(tier.code, 2);
    EXPECT_NE(tier.err.find("validate: --tier \"quik\" is not possible; did you mean \"quick\"?"), std::string::npos)
        << tier.err;
    EXPECT_EQ(spiked("validate --seed 0xnone --claim qjl.mean").code, 2);
    const Outcome nowhere = spiked("validate --claim rope.cost --layers 0");
    EXPECT_EQ(nowhere.code, 2);
    EXPECT_NE(nowhere.err.find("--layers has no effect without DUMP (it is about dumps)"), std::string::npos)
        << nowhere.err;
    EXPECT_EQ(spiked("validate --claim rope.cost no-such.safetensors").code, 4);
    // Reported before any work: not even a seed is drawn.
    for (const std::string option : {"-o no/such/file.md", "--junit no/such/file.xml"}) {
        const Outcome lost = spiked("validate --seed fresh --claim qjl.mean " + option);
        EXPECT_EQ(lost.code, 6) << lost.err;
        EXPECT_NE(lost.err.find(": cannot be written"), std::string::npos) << lost.err;
        EXPECT_EQ(lost.err.find("seed 0x"), std::string::npos) << lost.err;
    }
    const Outcome kind = spiked("validate --claim qjl.mean -o claims.page");
    EXPECT_EQ(kind.code, 2);
    EXPECT_NE(kind.err.find("-o claims.page: the format of the page is unclear"), std::string::npos) << kind.err;
    EXPECT_EQ(spiked("selftest --seed hello").code, 2);
}

TEST(SelftestCommand, DetectsEveryPlantedDefect) {
    const Outcome found = spiked("selftest --json --progress none");
    ASSERT_EQ(found.code, 0) << found.err << found.out.substr(0, 3000);
    const Json document = found.json();
    EXPECT_EQ(*document.find("schema")->string(), "spiked.selftest/1");
    EXPECT_GE(*document.find("defects")->integer(), 20);
    EXPECT_EQ(*document.find("defects")->integer(), *document.find("caught")->integer());
    for (const auto& one : *document.find("calibrations")->items()) {
        EXPECT_TRUE(*one.find("passed")->boolean()) << *one.find("name")->string();
        EXPECT_TRUE(*one.find("control_refused")->boolean()) << *one.find("name")->string();
    }
}

}  // namespace
}  // namespace spiked::app
