#include "core/text/wrapping.hpp"

#include <gtest/gtest.h>

#include <string>

namespace spiked {
namespace {

TEST(WrappedText, BreaksBetweenWordsAndContinuesBelowThem) {
    EXPECT_EQ(wrapped_text("", "", 10, 2), "");
    EXPECT_EQ(wrapped_text("  --a  ", "one two three", 15, 7), "  --a  one two\n       three");
    EXPECT_EQ(wrapped_text("", "one two", 7, 0), "one two");
    EXPECT_EQ(wrapped_text("", "one two", 6, 0), "one\ntwo");
}

TEST(WrappedText, BreaksALongWordAfterItsCommasAndBarsOnly) {
    EXPECT_EQ(wrapped_text("", "[ab,cd|ef,gh]", 6, 2), "[ab,\n  cd|\n  ef,\n  gh]");
    EXPECT_EQ(wrapped_text("", "a,b c,d", 5, 0), "a,b\nc,d");
    EXPECT_EQ(wrapped_text("", "x abcdefghij y", 5, 1), "x\n abcdefghij\n y");
}

TEST(WrappedLines, AreWrappedForATerminalAlone) {
    const std::string text = "short\n  name    a summary of words\n\nthe end of the text";
    EXPECT_EQ(wrapped_lines(text, 0), text);
    EXPECT_EQ(wrapped_lines(text, 80), text);
    EXPECT_EQ(wrapped_lines(text, 22), "short\n  name    a summary of\n          words\n\nthe end of the text");
    EXPECT_EQ(wrapped_lines("", 20), "");
}

TEST(WrappedLines, CommandsToCopyStayWhole) {
    for (const std::string command : {"  spiked run study.toml --resume", "next: spiked show a.spiked"})
        EXPECT_EQ(wrapped_lines(command + "\n", 12), command + "\n");
    EXPECT_EQ(wrapped_lines("the spiked model\n", 12), "the spiked\nmodel\n");
}

}  // namespace
}  // namespace spiked
