#include "validation/rehearsal.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <chrono>
#include <cmath>
#include <limits>

#include "validation/engine.hpp"

namespace spiked::validation {
namespace {

constexpr std::size_t rehearsed_replicates = 8;
constexpr std::size_t rehearsed_batch = 4;  // the first makes the cell ready, the second shows what a replicate costs

// Measured on stores of 10^3 .. 10^6 rows; what SQLite takes for a row of these tables hardly depends on the study.
constexpr double bytes_of_value = 22.0;
constexpr double bytes_of_moment = 66.0;
constexpr double bytes_of_batch = 120.0;

std::uint64_t peak_memory() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

Experiment shortened(Experiment experiment) {
    experiment.batch = rehearsed_batch;
    experiment.until.clear();
    experiment.raw_per_cell = 0;
    experiment.failure_budget = 1.0;
    for (auto& cell : experiment.cells) {
        cell.replicates = std::min(cell.replicates, rehearsed_replicates);
        cell.least_replicates = 0;
    }
    return experiment;
}

/// Of a mean over `count` values with that standard deviation.
double half_width(double deviation, double count, double alpha) {
    return boost::math::quantile(boost::math::complement(boost::math::students_t(count - 1.0), alpha / 2.0)) *
           deviation / std::sqrt(count);
}

/// The least count whose interval is narrower than `room`.
std::uint64_t replicates_for(double room, double deviation, double alpha) {
    double low = 2.0;
    double high = 2.0;
    while (half_width(deviation, high, alpha) >= room) {
        low = high;
        high *= 2.0;
        if (high > 1e15) return 0;
    }
    while (high - low > 0.5) {
        const double middle = std::floor(0.5 * (low + high));
        if (middle == low) break;
        (half_width(deviation, middle, alpha) < room ? high : low) = middle;
    }
    return static_cast<std::uint64_t>(high);
}

void forecast_time(Forecast& forecast, const Experiment& experiment, Database& store, std::size_t threads) {
    Statement cost(store,
                   "SELECT cell_id, sum(reps), sum(CASE batch WHEN 0 THEN wall_s END), sum(CASE batch WHEN 0 THEN reps "
                   "END), sum(CASE WHEN batch > 0 THEN wall_s END), sum(CASE WHEN batch > 0 THEN reps END) FROM batch "
                   "GROUP BY cell_id");
    while (cost.step()) {
        const auto& cell = experiment.cells[static_cast<std::size_t>(cost.integer(0)) - 1];
        ++forecast.cells_tried;
        forecast.replicates_tried += static_cast<std::uint64_t>(cost.integer(1));
        const double first = std::isnan(cost.real(2)) ? 0.0 : cost.real(2);
        const double first_count = std::isnan(cost.real(3)) ? 0.0 : cost.real(3);
        const double each = cost.is_null(5) ? first / first_count : cost.real(4) / cost.real(5);
        const auto seconds = [&](std::size_t replicates) {
            const double all = static_cast<double>(replicates);
            return std::min(first, first / first_count * all) + each * std::max(0.0, all - first_count);
        };
        forecast.least_seconds += seconds(cell.least());
        forecast.most_seconds += seconds(cell.replicates);
    }
    if (forecast.cells_tried == 0) return;
    const double scale = static_cast<double>(experiment.cells.size()) / static_cast<double>(forecast.cells_tried) /
                         static_cast<double>(threads);
    forecast.least_seconds *= scale;
    forecast.most_seconds *= scale;
}

void forecast_store(Forecast& forecast, const Experiment& experiment, Database& store) {
    const double held = static_cast<double>(store.integer("PRAGMA page_count") * store.integer("PRAGMA page_size"));
    Statement rows(store, "SELECT count(*) FROM (SELECT DISTINCT cell_id, method_id, metric_id, k FROM moment)");
    (void)rows.step();
    const double quantities = forecast.cells_tried == 0
                                  ? 0.0
                                  : static_cast<double>(rows.integer(0)) / static_cast<double>(forecast.cells_tried);
    double bytes = held;
    for (const auto& cell : experiment.cells) {
        const double batches = std::ceil(static_cast<double>(cell.replicates) / static_cast<double>(experiment.batch));
        const double raw = static_cast<double>(std::min(cell.replicates, experiment.raw_per_cell));
        bytes += quantities * (raw * bytes_of_value + batches * bytes_of_moment) + batches * bytes_of_batch;
    }
    forecast.store_bytes = static_cast<std::uint64_t>(bytes);
}

void forecast_checks(Forecast& forecast, const Experiment& experiment, Database& store) {
    const double alpha = experiment.false_alarm /
                         static_cast<double>(std::max<std::int64_t>(1, store.integer("SELECT count(*) FROM question")));
    std::vector<double> worst;
    Statement question(
        store,
        "SELECT check_name, q.cell_id, margin, abs(control_expected - expected), s.n, s.sd FROM question "
        "q LEFT JOIN v_summary s USING(cell_id, method_id, metric_id, k) ORDER BY question_id");
    while (question.step()) {
        if (forecast.checks.empty() || forecast.checks.back().check != question.text(0)) {
            forecast.checks.push_back({.check = question.text(0)});
            worst.push_back(-1.0);
        }
        CheckForecast& check = forecast.checks.back();
        ++check.questions;
        const auto& cell = experiment.cells[static_cast<std::size_t>(question.integer(1)) - 1];
        const double margin = question.real(2);
        const double room = std::min(margin, question.real(3) - margin);
        if (room <= 0.0) {
            ++check.blind;
            continue;
        }
        const double deviation = question.real(5);
        if (question.integer(4) < 2 || std::isnan(deviation) || cell.replicates < 2) {
            ++check.untried;
            continue;
        }
        const double half = half_width(deviation, static_cast<double>(cell.replicates), alpha);
        if (half < room) ++check.reachable;
        if (half / room > worst.back()) {
            worst.back() = half / room;
            check.cell = cell.label;
            check.half_width = half;
            check.room = room;
            check.needed = replicates_for(room, deviation, alpha);
        }
    }
}

}  // namespace

Forecast rehearse(const Experiment& experiment, std::size_t threads, double seconds) {
    const Experiment plan = shortened(experiment);
    Store store(":memory:", plan, "", threads, Json::object());
    const auto start = std::chrono::steady_clock::now();
    std::atomic<bool> stop{false};
    const auto watch = [&](std::size_t, std::size_t) {
        if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds) stop = true;
    };
    (void)run_experiment(plan, store, {.threads = threads, .stop = &stop, .progress = watch});

    Forecast forecast;
    Database& found = store.database();
    forecast_time(forecast, experiment, found, threads);
    forecast_store(forecast, experiment, found);
    forecast_checks(forecast, experiment, found);
    forecast.memory_bytes = peak_memory();
    return forecast;
}

}  // namespace spiked::validation
