#pragma once
#include <chrono>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>

#include "app/cli/command.hpp"

namespace spiked::app {

/// A duration in few digits: "12 s", "3 min", "4.5 h".
[[nodiscard]] std::string duration_text(double seconds);

/// Progress on standard error: a bar on a terminal, otherwise a line every 30 s.
class ProgressDisplay {
public:
    ProgressDisplay(const Arguments& arguments, std::string label);
    ~ProgressDisplay();
    ProgressDisplay(const ProgressDisplay&) = delete;
    ProgressDisplay& operator=(const ProgressDisplay&) = delete;

    /// Sets how much was done before the start; it does not enter the estimate of the time left.
    void begin(std::size_t kept) { kept_ = kept; }
    /// Sets the time that is left. Without it, parts take as long as those that are done.
    void expect(double seconds) {
        if (std::isfinite(seconds)) left_ = seconds;
    }
    /// The same from the fraction of the work that is done since the beginning, where parts are of different sizes.
    void expect_from(double share);
    /// Not thread-safe: the caller must hold a lock.
    void show(std::size_t done, std::size_t total);

private:
    using Clock = std::chrono::steady_clock;
    enum class Mode { none, bar, lines } mode_ = Mode::none;
    std::string label_;
    Clock::time_point start_ = Clock::now();
    Clock::time_point last_ = start_;
    bool drawn_ = false;
    std::size_t kept_ = 0;
    std::optional<double> left_ = {};
};

}  // namespace spiked::app
