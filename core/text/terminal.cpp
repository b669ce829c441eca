#include "core/text/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace spiked {
namespace {

std::size_t columns_of_tables = 0;

}  // namespace

std::size_t terminal_columns(int descriptor) {
    if (isatty(descriptor) == 0) return 0;
    if (const char* set = std::getenv("COLUMNS"); set != nullptr) {
        const std::string_view text = set;
        std::size_t columns = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
        if (error == std::errc() && end == text.data() + text.size() && columns > 0) return columns;
    }
    winsize size{};
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void set_table_columns(std::size_t columns) { columns_of_tables = columns; }
std::size_t table_columns() { return columns_of_tables; }

}  // namespace spiked
