// Error messages for names of caches, evictions or quantizers where another kind of name is required.
#include "estimators/caches/method_name.hpp"

#include <gtest/gtest.h>

#include "estimators/caches/cache_method.hpp"
#include "estimators/caches/eviction.hpp"
#include "estimators/tests/quantizer_samples.hpp"

namespace spiked::estimators {
namespace {

TEST(MethodName, CachesAndEvictionsAreNamedInTheMessage) {
    const auto said = [](const std::string& name) {
        return message_of([&] { (void)method_named(name); }, ErrorKind::usage);
    };
    for (const char* name : {"palu", "unrope+xkv:rank=4", "kvtc:layers=2"})
        EXPECT_NE(said(name).find("joins heads and codes whole sequences"), std::string::npos) << said(name);
    EXPECT_NE(said("unrope+palu:rank=4+tq-mse").find("palu:rank=4 codes whole sequences without a quantizer after it"),
              std::string::npos);
    for (const char* name : {"snapkv", "unrope+h2o+tq-mse"})
        EXPECT_NE(said(name).find("evicts tokens"), std::string::npos) << said(name);
    for (const char* name : {"palu+", "palu:rank=4+", "unrope+"})
        EXPECT_NE(said(name).find("names no quantizer"), std::string::npos) << said(name);
    EXPECT_NE(said("causal-klt").find("\"causal-klt\" codes whole sequences (not a block)"), std::string::npos);
    const std::string joint = said("causal-klt-joint");
    EXPECT_NE(joint.find("joins heads and"), std::string::npos);
    EXPECT_NE(joint.find("kv run, and for whole caches kv encode, kv perplexity"), std::string::npos) << joint;
    EXPECT_EQ(said("xkv:layers=1").find("kv encode"), std::string::npos);
    EXPECT_EQ(and_causal_caches({"x"}), (std::vector<std::string>{"x", "causal-klt", "causal-klt-joint"}));
    for (const char* name : {"causal-klt", "causal-klt-joint"}) {
        const std::string listed = message_of([&] { (void)method_named("zzzzzzzz", and_caches()); }, ErrorKind::usage);
        EXPECT_NE(listed.find(name), std::string::npos) << listed;
    }
    EXPECT_NE(
        message_of([] { (void)parse_kept_and_coded("snapkv+causal-klt"); }, ErrorKind::usage)
            .find("causal-klt codes all tokens in their order (an eviction leaves some out): write causal-klt alone"),
        std::string::npos);
    EXPECT_EQ(method_named("unrope+svd:1+tq-mse").quantizer.text, "tq-mse");
    EXPECT_NE(message_of([&] { (void)method_named("snapvk", std::vector<std::string>{"snapkv"}); }, ErrorKind::usage)
                  .find("did you mean \"snapkv\""),
              std::string::npos);
}

TEST(MethodName, AQuantizerIsRejectedAsAnEstimator) {
    const auto said = [](const std::string& name) {
        return message_of([&] { (void)parse_estimator(name); }, ErrorKind::usage);
    };
    EXPECT_NE(said("tq-mse").find("\"tq-mse\" quantizes (an estimator is expected)"), std::string::npos);
    EXPECT_NE(said("whiten+svd:1+kivi:group=8").find("also quantizes (an estimator does not): write whiten+svd:1"),
              std::string::npos);
    std::string chain;
    for (int i = 0; i < 17; ++i) chain += "whiten+";
    EXPECT_NE(said(chain + "tq-mse").find("17 transforms"), std::string::npos);
    EXPECT_NE(message_of([] { (void)parse_method("tq-mse+tq-prod"); }, ErrorKind::usage).find("\"tq-mse\" quantizes"),
              std::string::npos);
    EXPECT_EQ(parse_estimator("whiten+gd-shrink").transforms.size(), 1U);
}

}  // namespace
}  // namespace spiked::estimators
