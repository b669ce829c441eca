#pragma once
#include <atomic>
#include <string>

namespace spiked::app {

/// From now on SIGINT, SIGTERM, SIGHUP and SIGUSR1 ask the run to stop instead of ending the process; a second one,
/// over a second later, ends it. `tell`: says so on standard error when the first comes.
void take_stop_requests(bool tell);
[[nodiscard]] const std::atomic<bool>& stop_requests();
/// From now on they end it at once, but for files that are not finished: those are removed.
void leave_stop_requests();

/// The words of this process, for the store.
void remember_command_line(int argc, char** argv);
[[nodiscard]] const std::string& command_line();

}  // namespace spiked::app
