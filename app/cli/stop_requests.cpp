#include "app/cli/stop_requests.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <ctime>
#include <string_view>

#include "core/files/temporary.hpp"
#include "core/text/names.hpp"

namespace spiked::app {
namespace {

std::atomic<bool> stop_asked{false};
std::atomic<std::int64_t> first_asked_ms{0};
std::atomic<bool> prints_message{false};

std::int64_t now_ms() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

void end_now(int signal) {
    remove_temporary_names();
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

void ask_to_stop(int signal) {
    if (!stop_asked.exchange(true)) {
        first_asked_ms = now_ms();
        constexpr std::string_view asked =
            "\nspiked: stopping after the current work (a second signal ends it at once; stored results are kept)\n";
        constexpr std::string_view timed =
            "\nspiked: the time is over, stopping after the current work (stored results are kept)\n";
        const std::string_view message = signal == SIGALRM ? timed : asked;
        if (prints_message && write(STDERR_FILENO, message.data(), message.size()) < 0) prints_message = false;
        return;
    }
    // A second request ends the process at once; the store is valid at any moment. `timeout` and job schedulers signal
    // a process and then its group, so a signal within a second still belongs to the first request.
    if (signal != SIGALRM && now_ms() - first_asked_ms > 1000) end_now(signal);
}

/// Handles the other signals that would end the process and leave its files in TMPDIR, except those that a library, a
/// profiler or the parent process has changed.
void clean_up_at_other_signals() {
    const auto take = [](int signal) {
        struct sigaction now {};
        if (sigaction(signal, nullptr, &now) != 0) return;
        if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) std::signal(signal, end_now);
    };
    for (const int signal : {SIGUSR2, SIGPROF, SIGVTALRM, SIGIO, SIGPWR, SIGSTKFLT}) take(signal);
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) take(signal);
}

void on_stop_signals(void (*handler)(int)) {
    // SIGHUP (the terminal is closed) is a request, too, but stays ignored under nohup. A background job of a script
    // that can only be ended (not stopped and resumed) keeps ignoring the script's ^C.
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGHUP, SIGXCPU})
        if (std::signal(signal, handler) == SIG_IGN && (signal == SIGHUP || handler == end_now))
            std::signal(signal, SIG_IGN);
    std::signal(SIGQUIT, end_now);  // SIGQUIT always ends the process at once
    clean_up_at_other_signals();
}

std::string& stored_command_line() {
    static std::string line;
    return line;
}

}  // namespace

void take_stop_requests(bool print_message) {
    prints_message = print_message;
    on_stop_signals(ask_to_stop);
}

const std::atomic<bool>& stop_requests() { return stop_asked; }

void leave_stop_requests() { on_stop_signals(end_now); }

void remember_command_line(int argc, char** argv) {
    std::string& line = stored_command_line();
    line = "spiked";
    for (int i = 1; i < argc; ++i) line += " " + shell_word(argv[i]);
}

const std::string& command_line() { return stored_command_line(); }

}  // namespace spiked::app
