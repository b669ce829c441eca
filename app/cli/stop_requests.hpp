#pragma once
#include <atomic>
#include <string>

namespace spiked::app {

/// From now on SIGINT, SIGTERM, SIGHUP and SIGUSR1 ask the run to stop instead of ending the process; a second signal,
/// more than a second later, ends it. With `print_message` the first signal prints a message on standard error.
void take_stop_requests(bool print_message);
[[nodiscard]] const std::atomic<bool>& stop_requests();
/// From now on these signals end the process at once, after its unfinished files are removed.
void leave_stop_requests();

/// Keeps the command line of this process, which is stored with the results.
void remember_command_line(int argc, char** argv);
[[nodiscard]] const std::string& command_line();

}  // namespace spiked::app
