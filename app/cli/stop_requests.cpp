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
std::atomic<bool> tells{false};

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
        constexpr std::string_view words =
            "\nspiked: stopping when what is under way is done (once more: at once; what is stored stays)\n";
        if (tells && write(STDERR_FILENO, words.data(), words.size()) < 0) tells = false;
        return;
    }
    // A second request is obeyed at once; the store is valid at any moment. `timeout` and job schedulers signal a
    // process and then its group: what follows within a second is still the first request.
    if (signal != SIGALRM && now_ms() - first_asked_ms > 1000) end_now(signal);
}

/// Signals that would end the process, and leave what lies in TMPDIR; not those that a library, a profiler or who
/// started the process has taken.
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
    // A terminal that goes away asks, too, but not whom nohup keeps; a script's background job that can only be ended
    // is kept from the script's own ^C.
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGHUP, SIGXCPU})
        if (std::signal(signal, handler) == SIG_IGN && (signal == SIGHUP || handler == end_now))
            std::signal(signal, SIG_IGN);
    std::signal(SIGQUIT, end_now);  // who asks so wants the end now
    clean_up_at_other_signals();
}

std::string& words_of_process() {
    static std::string words;
    return words;
}

}  // namespace

void take_stop_requests(bool tell) {
    tells = tell;
    on_stop_signals(ask_to_stop);
}

const std::atomic<bool>& stop_requests() { return stop_asked; }

void leave_stop_requests() { on_stop_signals(end_now); }

void remember_command_line(int argc, char** argv) {
    std::string& words = words_of_process();
    words = "spiked";
    for (int i = 1; i < argc; ++i) words += " " + shell_word(argv[i]);
}

const std::string& command_line() { return words_of_process(); }

}  // namespace spiked::app
