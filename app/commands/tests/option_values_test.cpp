// Every option of every command and of every name rejects what its description rules out, before anything runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "app/tests/process.hpp"

namespace spiked::app {
namespace {

/// Values that an option with this description (option_schema) does not accept: numbers just outside its limits, and a
/// word in the place of a number.
std::vector<std::string> values_not_accepted(const Json& option) {
    const std::string type = text_of(option, option.find("other_type") != nullptr ? "other_type" : "type");
    std::vector<std::string> texts;
    if (type == "choice") return {"no-such-choice"};
    if (type != "integer" && type != "number") return texts;
    const double step = type == "integer" ? 1.0 : 0.01;
    const auto beyond = [&](const char* limit, double by) {
        if (option.find(limit) != nullptr) texts.push_back(fmt::format("{}", number(option, limit) + by));
    };
    beyond("minimum", -step);
    beyond("exclusive_minimum", 0.0);
    beyond("maximum", step);
    beyond("exclusive_maximum", 0.0);
    texts.emplace_back("many");
    return texts;
}

TEST(OptionValues, OfCommandsAreCheckedBeforeAnythingRuns) {
    const Json json = spiked("help --json").json();
    std::size_t tried = 0;
    for (const auto& command : *json.find("commands")->items()) {
        std::string words = text_of(command, "name");
        for (int i = 0; i < static_cast<int>(number(command, "least_arguments")); ++i) words += " x";
        for (const auto& option : *command.find("options")->items())
            for (const auto& value : values_not_accepted(option)) {
                const std::string key = text_of(option, "key");
                const std::string name = key.substr(key.find(',') + 1);
                const Outcome found = spiked(fmt::format("{} {} {}", words, name, value));
                EXPECT_EQ(found.code, 2) << words << " " << name << " " << value << found.out;
                EXPECT_EQ(found.err.find(fmt::format("spiked: {}: {} ", text_of(command, "name"), name)), 0U)
                    << found.err;
                ++tried;
            }
    }
    EXPECT_GT(tried, 100U);
}

std::string study_text(const std::string& more) {
    return "spiked = 1\n[study]\nname = \"x\"\nseed = \"0x1\"\n[model]\nkind = \"spiked\"\nn = 24\nd = 16\n"
           "[run]\nreps = { min = 2 }\n" +
           more;
}

Outcome dry_run(const std::string& more) {
    return spiked("run study.toml --dry-run", in(folder_with_study("option-values", study_text(more))));
}

TEST(OptionValues, OfNamesInAStudyAreCheckedByADryRun) {
    ASSERT_EQ(dry_run("[[codec]]\nname = \"kivi:group=8\"\nbits = [4]\n").code, 0);
    const Json json = spiked("list --json").json();
    std::size_t tried = 0;
    for (const auto& [topic, table] :
         {std::pair("quantizers", "[[codec]]\nbits = [4]\n"), std::pair("estimators", "[[estimator]]\n")})
        for (const auto& entry : *json.find(topic)->items())
            for (const auto& option : *entry.find("option_schema")->items()) {
                if (text_of(option, "where") != "key") continue;
                for (const auto& value : values_not_accepted(option)) {
                    // A transform has its options in front of the method behind it.
                    const std::string method = text_of(entry, "name");
                    const std::size_t plus = method.find("+NAME");
                    const std::string name = fmt::format("{}:{}={}{}", method.substr(0, plus), text_of(option, "key"),
                                                         value, plus == std::string::npos ? "" : "+svd:1");
                    const Outcome found = dry_run(fmt::format("{}name = \"{}\"\n", table, name));
                    EXPECT_EQ(found.code, 2) << name << found.out;
                    EXPECT_NE(found.err.find(text_of(option, "key")), std::string::npos) << found.err;
                    ++tried;
                }
            }
    EXPECT_GT(tried, 40U);
}

TEST(OptionValues, OfFiguresInAStudyAreCheckedByADryRun) {
    const std::string estimator = "[[estimator]]\nname = \"svd:1\"\n";
    const std::string rate = estimator + "[[figure]]\nkind = \"rate\"\n";
    for (const auto& [keys, says] : {std::pair("slope = \"abc\"\n", "slope \"abc\" is not a number"),
                                     std::pair("of = \"foo\"\n", "of \"foo\" is not possible")}) {
        const Outcome found = dry_run(rate + keys);
        EXPECT_EQ(found.code, 2) << keys << found.out;
        EXPECT_NE(found.err.find(says), std::string::npos) << found.err;
    }
    EXPECT_EQ(dry_run("[[codec]]\nname = \"gear:outliers=0.9\"\nbits = [4]\n").code, 2);
    EXPECT_EQ(dry_run("[[codec]]\nname = \"kivi:group=0\"\nbits = [4]\n").code, 2);
}

}  // namespace
}  // namespace spiked::app
