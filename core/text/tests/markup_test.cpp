#include "core/text/markup.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace spiked {
namespace {

TEST(Escape, EscapesMarkupAndReplacesControlCharacters) {
    EXPECT_EQ(escape("a<b>&\"'c"), "a&lt;b&gt;&amp;&quot;&#39;c");
    EXPECT_EQ(escape("\xC3\xA9\x1B[31m\xFF\xC0\x80"), "\xC3\xA9\xEF\xBF\xBD[31m\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    EXPECT_EQ(escape("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Base64, KnownAnswers) {
    const auto encoded = [](std::string_view text) {
        return base64(std::vector<std::uint8_t>(text.begin(), text.end()));
    };
    EXPECT_EQ(encoded(""), "");
    EXPECT_EQ(encoded("f"), "Zg==");
    EXPECT_EQ(encoded("fo"), "Zm8=");
    EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace spiked
