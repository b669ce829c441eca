#include "app/cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace spiked::app {

std::string duration_text(double seconds) {
    if (seconds < 10.0) return fmt::format("{:.1f} s", seconds);
    if (seconds < 120.0) return fmt::format("{:.0f} s", seconds);
    if (seconds < 7200.0) return fmt::format("{:.0f} min", seconds / 60.0);
    return seconds < 172800.0 ? fmt::format("{:.1f} h", seconds / 3600.0)
                              : fmt::format("{:.1f} days", seconds / 86400.0);
}

ProgressDisplay::ProgressDisplay(const Arguments& arguments, std::string label) : label_(std::move(label)) {
    const std::string asked = arguments.text("--progress");
    if (arguments.quiet() || asked == "none") return;
    const bool terminal = isatty(STDERR_FILENO) != 0;
    mode_ = asked == "bar" || (asked == "auto" && terminal) ? Mode::bar : Mode::lines;
}

ProgressDisplay::~ProgressDisplay() {
    if (drawn_) std::fputs("\r\033[K", stderr);
}

void ProgressDisplay::expect_from(double share) {
    const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
    if (share > 0.0) expect(elapsed * (1.0 - share) / share);
}

void ProgressDisplay::show(std::size_t done, std::size_t total) {
    if (mode_ == Mode::none || done <= kept_) return;
    const auto now = Clock::now();
    const auto since = now - last_;
    if (mode_ == Mode::bar ? (drawn_ && done < total && since < std::chrono::milliseconds(100))
                           : since < std::chrono::seconds(30))
        return;
    last_ = now;
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    const double fraction = static_cast<double>(done) / static_cast<double>(total);
    // The time of one or two parts is a poor estimate for the others.
    const double seconds =
        left_.value_or(elapsed * static_cast<double>(total - done) / static_cast<double>(done - kept_));
    const std::string left =
        elapsed < 5.0 && done - kept_ < 5 ? "" : fmt::format("{} left", duration_text(std::max(1.0, seconds)));
    if (mode_ == Mode::bar) {
        const std::size_t filled = static_cast<std::size_t>(20.0 * fraction);
        std::string bar;
        for (std::size_t i = 0; i < 20; ++i) bar += i < filled ? "█" : "░";
        std::fputs(fmt::format("\r\033[K{}  {}  {}/{}  {}", label_, bar, done, total, left).c_str(), stderr);
        std::fflush(stderr);
        drawn_ = true;
    } else {
        std::fputs(fmt::format("{}: {}/{}, {}\n", label_, done, total, left).c_str(), stderr);
    }
}

}  // namespace spiked::app
