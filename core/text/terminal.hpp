#pragma once
#include <cstddef>

namespace spiked {

/// The columns of the terminal on a file descriptor: the environment variable COLUMNS, otherwise what the terminal
/// says; 0 where it says nothing, or where there is no terminal.
[[nodiscard]] std::size_t terminal_columns(int descriptor);

/// The columns that printed tables have room for; 0, until it is set, for any number. A program sets it once, before it
/// starts threads, so that a library writes the same tables on every terminal.
void set_table_columns(std::size_t columns);
[[nodiscard]] std::size_t table_columns();

}  // namespace spiked
