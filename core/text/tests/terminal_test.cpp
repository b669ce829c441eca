#include "core/text/terminal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace spiked {
namespace {

TEST(TerminalColumns, AreThoseOfTheTerminalOrOfTheEnvironmentAndNoneForAFile) {
    const char* before = std::getenv("COLUMNS");
    const std::optional<std::string> kept = before == nullptr ? std::nullopt : std::optional<std::string>(before);
    unsetenv("COLUMNS");
    winsize size{};
    size.ws_col = 97;
    int controller = -1;
    int terminal = -1;
    if (openpty(&controller, &terminal, nullptr, nullptr, &size) != 0) GTEST_SKIP() << "there are no terminals here";
    EXPECT_EQ(terminal_columns(terminal), 97U);
    setenv("COLUMNS", "60", 1);
    EXPECT_EQ(terminal_columns(terminal), 60U);
    const int file = open("/dev/null", O_WRONLY);
    EXPECT_EQ(terminal_columns(file), 0U) << "a file stays in one piece, whatever the environment says";
    for (const char* text : {"", "0", "-1", "80x", "99999999999999999999999"}) {
        setenv("COLUMNS", text, 1);
        EXPECT_EQ(terminal_columns(terminal), 97U) << text;
    }
    close(file);
    close(terminal);
    close(controller);
    if (kept)
        setenv("COLUMNS", kept->c_str(), 1);
    else
        unsetenv("COLUMNS");
}

}  // namespace
}  // namespace spiked
