#pragma once

namespace spiked::app {

/// The `spiked` command: finds the subcommand, parses its words, runs it, turns what went wrong into one line and an
/// exit code. Throws nothing.
int run_command_line(int argc, char** argv);

}  // namespace spiked::app
