#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/text/utf8.hpp"

namespace spiked {
namespace {

TEST(Utf8, DecodesTheCharactersOfTheStandard) {
    const auto codes = [](std::string_view text) {
        std::vector<std::int64_t> found;  // -1: no character
        for (; !text.empty(); text.remove_prefix(first_character(text).bytes))
            found.push_back(first_character(text).valid ? static_cast<std::int64_t>(first_character(text).code) : -1);
        return found;
    };
    using Codes = std::vector<std::int64_t>;
    EXPECT_EQ(codes("a\u00e9\u20ac\U0001F600"), (Codes{0x61, 0xE9, 0x20AC, 0x1F600}));
    EXPECT_EQ(codes("\u0080\u07ff\u0800\ufffd\U00010000\U0010FFFF"),
              (Codes{0x80, 0x7FF, 0x800, 0xFFFD, 0x10000, 0x10FFFF}));
    // Lone and missing continuation bytes, overlong forms, surrogates, codes beyond the last one, U+FFFE.
    for (const std::string bytes :
         {"\x80", "\xbf", "\xc3", "\xe2\x82", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf",
          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xef\xbf\xbe"})
        EXPECT_EQ(codes(bytes), Codes(bytes.size(), -1)) << testing::PrintToString(bytes);
    EXPECT_EQ(codes("\xe2\x82z"), (Codes{-1, -1, 0x7A})) << "the text after a broken character is decoded";
}

}  // namespace
}  // namespace spiked
