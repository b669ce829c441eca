#pragma once

namespace spiked::app {

/// The `spiked` command: finds the subcommand, parses its arguments, runs it, and reports an error in one line and an
/// exit code. Throws nothing.
int run_command_line(int argc, char** argv);

}  // namespace spiked::app
