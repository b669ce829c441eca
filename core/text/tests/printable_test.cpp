#include "core/text/printable.hpp"

#include <gtest/gtest.h>

namespace spiked::sim {
namespace {

TEST(Printable, ReplacesControlCharactersAndKeepsLetters) {
    EXPECT_EQ(without_control_characters("a\x1b[31mb\tc\nd\x7f"), "a?[31mb?c\nd?");
    EXPECT_EQ(without_control_characters("\u0085 \u009b2J \u009f"), "? ?2J ?");
    EXPECT_EQ(without_control_characters("\u061c\u200e\u200f\u202a\u202e\u2066\u2069"), "???????");
    const std::string letters = "äöü €  ξ² \u00a0 \u200b \u2029 \u2030 \u2065 \u206a 数";
    EXPECT_EQ(without_control_characters(letters), letters);
    EXPECT_EQ(one_line("a\nb\u202ec"), "a b?c");
    EXPECT_EQ(printable("a\u202eb\n"), "a\\xe2\\x80\\xaeb\\x0a");
    EXPECT_EQ(in_quotes("x\u009b"), "\"x\\xc2\\x9b\"");
    // A terminal that reads single bytes takes some invalid UTF-8 as control characters: 0x9B begins a sequence.
    EXPECT_EQ(without_control_characters("a\x9b"
                                         "31m"),
              "a?31m");
    for (const std::string bytes : {"\xe2\x80", "\xc2", "\xd8", "\xff\xfe", "\xed\xa0\x80", "\xc0\xaf", "\uffff"})
        EXPECT_EQ(without_control_characters(bytes), std::string(bytes.size(), '?'));
    EXPECT_EQ(printable("x\x9b"), "x\\x9b");
}

}  // namespace
}  // namespace spiked::sim
