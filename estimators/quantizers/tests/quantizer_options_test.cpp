#include "estimators/quantizers/quantizer_options.hpp"

#include <gtest/gtest.h>

#include "estimators/compressors/compressor.hpp"
#include "estimators/tests/quantizer_samples.hpp"

namespace spiked::estimators {
namespace {

using OptionList = std::span<const std::string_view>;

QuantizerOptions written_and_read(const QuantizerOptions& options, OptionList list) {
    const Json json = Json::parse(quantizer_json(options, list).text(), "options");
    QuantizerOptions read = parse_quantizer_json(JsonFields(json, "options"), list);
    read.seed = options.seed;
    return read;
}

/// Some values that an option accepts.
std::vector<Json> values_of(const OptionSpec& spec) {
    if (spec.value.kind == ValueSpec::Kind::none) return {true, false};
    if (spec.value.kind == ValueSpec::Kind::whole) return {1, 3, 7};
    return {spec.value.choices.begin(), spec.value.choices.end()};
}

std::string rejected_options(const std::string& text) {
    return message_of(
        [&] {
            const Json json = Json::parse(text, "options");
            (void)parse_quantizer_json(JsonFields(json, "options"), options_in_containers);
        },
        ErrorKind::input);
}

// Files of earlier versions are compared and read by these bytes.
TEST(QuantizerOptions, AreWrittenInTheOrderOfEachFormat) {
    EXPECT_EQ(quantizer_json({}, options_in_stores).text(),
              R"({"rotation":"haar","codebook":"sphere","norm":"fp16","factor_bits":4,"factor_codebook":"normal",)"
              R"("open_loop":false,"group":64,"residual":0})");
    EXPECT_EQ(quantizer_json({}, options_in_containers).text(),
              R"({"rotation":"haar","codebook":"sphere","norm":"fp16","group":64,"residual":0,"factor_bits":4,)"
              R"("factor_codebook":"normal","open_loop":false})");
    EXPECT_EQ(quantizer_json({}, options_in_golden_vectors).text(),
              R"({"rotation":"haar","codebook":"sphere","norm":"fp16","group":64,"axis":"value","residual":0,)"
              R"("factor_bits":4,"factor_codebook":"normal"})");
}

TEST(QuantizerOptions, HaveTheDefaultsOfTheirSpecs) {
    for (const auto& spec : quantizer_option_specs()) {
        if (spec.value.kind == ValueSpec::Kind::none) continue;
        QuantizerOptions options;
        set_option(options, spec.key,
                   spec.value.kind == ValueSpec::Kind::whole ? Json(std::stoi(spec.fallback)) : Json(spec.fallback));
        const std::string_view list[] = {spec.key};
        EXPECT_EQ(quantizer_json(options, list).text(), quantizer_json({}, list).text()) << spec.key;
    }
}

TEST(QuantizerOptions, ReadBackAsTheyWereWritten) {
    for (const OptionList list :
         {OptionList(options_in_stores), OptionList(options_in_containers), OptionList(options_in_golden_vectors)})
        for (const auto key : list)
            for (const auto& value : values_of(quantizer_option(key))) {
                QuantizerOptions options;
                set_option(options, key, value);
                const Json json = quantizer_json(options, list);
                EXPECT_EQ(json.find(json_key(quantizer_option(key)))->text(), value.text()) << key;
                EXPECT_EQ(quantizer_json(written_and_read(options, list), list).text(), json.text()) << key;
            }
}

TEST(QuantizerOptions, OfEveryQuantizerReadBackToTheSameCode) {
    const arma::mat rows = gaussian(8, 16, 0);
    for (const auto& entry : row_quantizers())
        for (const auto& own : entry.options) {
            const std::string key = own.also_option.empty() ? own.key : own.also_option;
            if (!key.starts_with("--")) continue;
            for (const auto& value : values_of(own)) {
                QuantizerOptions options{.seed = test_seed};
                set_option(options, key, value);
                const auto code = [&](const QuantizerOptions& given) {
                    return row_quantizer(entry.name, rows.n_cols, entry.widths.front(), given).encode(rows).bytes;
                };
                EXPECT_EQ(code(written_and_read(options, options_in_golden_vectors)), code(options))
                    << entry.name << " " << key << " " << value.text();
            }
        }
    const MethodSpec composition = parse_method("svd:1+tq-mse");
    for (const char* key : {"--factor-bits", "--factor-codebook", "--open-loop"})
        for (const auto& value : values_of(quantizer_option(key))) {
            QuantizerOptions options{.seed = test_seed};
            set_option(options, key, value);
            const auto code = [&](const QuantizerOptions& given) {
                AnalysedBlock block(rows);
                return Compressor(composition, rows.n_cols, 2, given).encode(block).encoded.bytes;
            };
            EXPECT_EQ(code(written_and_read(options, options_in_containers)), code(options))
                << key << " " << value.text();
        }
}

// The axis of groups is that of each tensor, so an axis in the options of a command has no effect on a file or store.
TEST(QuantizerOptions, WithoutEffectStayOutOfADocument) {
    const QuantizerOptions options{.axis = GroupAxis::key, .seed = test_seed, .rotation_index = 7};
    for (const OptionList list : {OptionList(options_in_stores), OptionList(options_in_containers)})
        EXPECT_EQ(quantizer_json(options, list).text(), quantizer_json({}, list).text());
    EXPECT_EQ(quantizer_json({.open_loop = true}, options_in_golden_vectors).text(),
              quantizer_json({}, options_in_golden_vectors).text());
}

TEST(QuantizerOptions, OfADamagedFileAreRejectedByName) {
    const std::string good = quantizer_json({}, options_in_containers).text();
    const auto changed = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        EXPECT_NE(text.find(from), std::string::npos) << from;
        return rejected_options(text.replace(text.find(from), from.size(), to));
    };
    const std::string end = ": the file is damaged, forged or written by a newer program";
    EXPECT_EQ(changed("\"haar\"", "\"har\""),
              "options is not usable (unknown rotation \"har\"; did you mean \"haar\"?)" + end);
    EXPECT_EQ(changed("\"group\":64", "\"group\":0"),
              "options has a \"group\" that is not a whole number from 1 to 9223372036854775807" + end);
    EXPECT_EQ(changed("\"factor_bits\":4", "\"factor_bits\":9"),
              "options has a \"factor_bits\" that is not a whole number from 1 to 8" + end);
    EXPECT_EQ(changed("\"open_loop\":false", "\"open_loop\":0"),
              "options has a \"open_loop\" that is neither true nor false" + end);
    EXPECT_EQ(changed("\"residual\":0,", ""), "options has no \"residual\"" + end);
}

TEST(QuantizerOptions, IgnoreUnknownKeysOfAFile) {
    Json json = quantizer_json({.group = 5}, options_in_containers);
    json.set("temperature", 7);
    EXPECT_EQ(parse_quantizer_json(JsonFields(json, "options"), options_in_containers).group, 5U);
}

TEST(QuantizerOptions, AreSetByKeyAndType) {
    QuantizerOptions options;
    EXPECT_EQ(message_of([&] { set_option(options, "--norm", "fp61"); }, ErrorKind::usage).find("unknown norm format"),
              0U);
    (void)message_of([&] { set_option(options, "--norm", 16); }, ErrorKind::internal);
    (void)message_of([&] { set_option(options, "--group", "16"); }, ErrorKind::internal);
    (void)message_of([&] { set_option(options, "--seed", "16"); }, ErrorKind::internal);
}

}  // namespace
}  // namespace spiked::estimators
