#include "validation/engine/dry_run.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "core/runtime/error.hpp"
#include "core/runtime/memory.hpp"
#include "core/runtime/parallel.hpp"
#include "validation/engine/engine.hpp"
#include "validation/engine/time_left.hpp"
#include "validation/statistics/statistics.hpp"

namespace spiked::validation {
namespace {

constexpr std::uint64_t dry_run_replicates = 8;

// Bytes per row, measured on stores of 10^3 .. 10^6 rows; they hardly depend on the study.
constexpr double bytes_of_value = 22.0;
constexpr double bytes_of_moment = 66.0;
constexpr double bytes_of_batch = 120.0;

std::uint64_t peak_memory() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

double operations_of(const ExperimentCell& cell) { return operations(cell.rows, cell.columns); }

/// Timings of a cell that was tried.
struct Tried {
    double first = 0.0;  ///< seconds of its first replicate, including preparation
    double each = 0.0;   ///< seconds per further replicate
    std::uint64_t replicates = 0;
};

/// Runs the cells in order of size: first one replicate of each, then the other replicates of each. No cell is started
/// whose expected time, extrapolated from the cell before it, exceeds the time that is left.
std::vector<Tried> try_cells(const Experiment& experiment, Store& store, std::size_t threads, double seconds) {
    const auto start = std::chrono::steady_clock::now();
    const auto left = [&] {
        return seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    std::vector<std::size_t> order(experiment.cells.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return operations_of(experiment.cells[a]) < operations_of(experiment.cells[b]);
    });
    std::vector<Tried> tried(experiment.cells.size());
    std::mutex guard;
    double rate = 0.0;  // seconds an operation
    const auto run = [&](std::size_t c, std::uint64_t first, std::uint64_t count) {
        {
            const std::lock_guard lock(guard);
            const double expected = rate * operations_of(experiment.cells[c]) * static_cast<double>(count);
            const bool nothing_yet = rate == 0.0;
            if (!nothing_yet && (left() <= 0.0 || expected > left())) return;
        }
        const Batch batch = *run_batch(experiment, {c, static_cast<std::size_t>(first == 0 ? 0 : 1), first, count});
        const std::lock_guard lock(guard);
        store.commit(batch);
        const double each = batch.seconds / static_cast<double>(count);
        (first == 0 ? tried[c].first : tried[c].each) = each;
        tried[c].replicates += count;
        // The rate of the latest cell is used, because small blocks have an overhead beyond their operations.
        rate = each / operations_of(experiment.cells[c]);
    };
    for_each_parallel(order.size(), threads, [&](std::size_t i) { run(order[i], 0, 1); });
    for_each_parallel(order.size(), threads, [&](std::size_t i) {
        const std::size_t c = order[i];
        const std::uint64_t more = std::min<std::uint64_t>(experiment.cells[c].replicates, dry_run_replicates);
        if (tried[c].replicates == 1 && more > 1) run(c, 1, more - 1);
    });
    return tried;
}

void forecast_time(Forecast& forecast, const Experiment& experiment, const std::vector<Tried>& tried,
                   std::size_t threads) {
    const Tried* largest = nullptr;
    double operations_of_largest = 0.0;
    for (std::size_t c = 0; c < tried.size(); ++c) {
        if (tried[c].replicates == 0) continue;
        ++forecast.cells_tried;
        forecast.replicates_tried += tried[c].replicates;
        if (operations_of(experiment.cells[c]) >= operations_of_largest) {
            largest = &tried[c];
            operations_of_largest = operations_of(experiment.cells[c]);
        }
    }
    if (largest == nullptr) return;
    for (std::size_t c = 0; c < tried.size(); ++c) {
        const auto& cell = experiment.cells[c];
        const bool seen = tried[c].replicates > 0;
        const Tried& like = seen ? tried[c] : *largest;
        const double scale = seen ? 1.0 : operations_of(cell) / operations_of_largest;
        const double each = like.replicates > 1 ? like.each : like.first;
        const auto seconds = [&](std::size_t replicates) {
            return scale * (like.first + each * static_cast<double>(replicates - 1)) / static_cast<double>(threads);
        };
        forecast.least_seconds += seconds(cell.least());
        forecast.most_seconds += seconds(cell.replicates);
    }
}

/// Memory of a worker in units of its blocks: a lower bound for any study; bounds where spiked blocks are decomposed,
/// of which 6.3 (noise alone) to 7.8 were measured at sides of 1100 and 2100; with codecs up to 15.5.
constexpr double least_copies = 4.0;
constexpr double least_copies_of_spiked = 6.0;
constexpr double most_copies = 12.0;
constexpr double most_copies_of_codecs = 16.0;

/// The blocks that a worker of a spiked study holds at once (trials/prepared_blocks.hpp).
double blocks_of_worker(const Experiment& experiment, const ExperimentCell& cell, double block) {
    const std::size_t most = std::min<std::size_t>({most_blocks_of_group, experiment.batch, cell.replicates});
    return std::clamp(std::floor(static_cast<double>(most_bytes_of_group) / block), 1.0,
                      std::max(1.0, static_cast<double>(most)));
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

/// Half the width of the interval of an exponent after all replicates, if the values have no skewness; NaN where a size
/// was not tried, or the interval has no ends.
double forecast_exponent(Database& store, std::int64_t question, const Experiment& experiment, double alpha) {
    Statement member(store,
                     "SELECT o.size, s.mean, s.sd, o.cell_id FROM question_cell o JOIN question q USING(question_id) "
                     "LEFT JOIN v_summary s ON s.cell_id = o.cell_id AND (s.method_id, s.metric_id, s.k) = "
                     "(q.method_id, q.metric_id, q.k) WHERE question_id = ?");
    member.bind(1, question);
    std::vector<SizeMoments> sweep;
    while (member.step()) {
        const double n =
            static_cast<double>(experiment.cells[static_cast<std::size_t>(member.integer(3)) - 1].replicates);
        const double deviation = member.real(2);
        Moments moments;
        if (std::isfinite(deviation)) {
            moments.count = static_cast<std::uint64_t>(n);
            moments.mean = member.real(1);
            moments.m2 = deviation * deviation * (n - 1.0);
        }
        sweep.push_back({member.real(0), moments});
    }
    const double half = [&] {
        const Interval interval = exponent_interval(sweep, alpha);
        return std::max(interval.high - interval.estimate, interval.estimate - interval.low);
    }();
    return std::isfinite(half) ? half : std::numeric_limits<double>::quiet_NaN();
}

void forecast_checks(Forecast& forecast, const Experiment& experiment, Database& store) {
    const double alpha = experiment.false_alarm /
                         static_cast<double>(std::max<std::int64_t>(1, store.integer("SELECT count(*) FROM question")));
    std::vector<double> worst;
    Statement question(
        store,
        "SELECT check_name, q.cell_id, allowed_lo, allowed_hi, s.n, s.sd, question_id, exponent_of IS NOT NULL, "
        "control_expected FROM question q LEFT JOIN v_summary s USING(cell_id, method_id, metric_id, k) ORDER BY "
        "question_id");
    while (question.step()) {
        if (forecast.checks.empty() || forecast.checks.back().check != question.text(0)) {
            forecast.checks.push_back({.check = question.text(0)});
            worst.push_back(-1.0);
        }
        CheckForecast& check = forecast.checks.back();
        ++check.questions;
        const auto& cell = experiment.cells[static_cast<std::size_t>(question.integer(1)) - 1];
        const double control = question.real(8);
        const double to_control = std::max(question.real(2) - control, control - question.real(3));
        // A region with one end has no middle that the estimate could be in.
        const double room = std::min(0.5 * (question.real(3) - question.real(2)), to_control);
        const auto keep_hardest = [&](double half, double allowed, std::uint64_t needed) {
            if (half / allowed <= worst.back()) return;
            worst.back() = half / allowed;
            check.cell = cell.label;
            check.half_width = half;
            check.room = allowed;
            check.needed = needed;
        };
        if (room <= 0.0) {
            ++check.without_power;
            continue;
        }
        if (question.integer(7) != 0) {
            const double half = forecast_exponent(store, question.integer(6), experiment, alpha);
            if (std::isnan(half)) {
                ++check.untried;
            } else {
                if (half < room) ++check.reachable;
                keep_hardest(half, room, 0);
            }
            continue;
        }
        const double deviation = question.real(5);
        if (question.integer(4) < 2 || std::isnan(deviation) || cell.replicates < 2) {
            ++check.untried;
            continue;
        }
        const double half = mean_half_width(deviation, static_cast<double>(cell.replicates), alpha);
        if (half < room) ++check.reachable;
        keep_hardest(half, room, count_for_half_width(room, deviation, alpha));
    }
}

void reject(std::size_t rows, std::size_t columns, std::uint64_t bytes_of_one, std::size_t at_once) {
    const double of_one = static_cast<double>(bytes_of_one);
    const double needed = of_one * static_cast<double>(at_once);
    const double allowed = static_cast<double>(allowed_memory());
    if (needed <= allowed) return;
    throw Error(
        ErrorKind::memory,
        fmt::format("out of memory (blocks of {} x {} need {:.1f} GB on {}, {:.1f} GB are allowed): make n or d "
                    "smaller{}",
                    rows, columns, needed / 1e9, at_once == 1 ? "1 thread" : fmt::format("{} threads", at_once),
                    allowed / 1e9, of_one <= allowed ? ", or give fewer --threads" : ""));
}

}  // namespace

Forecast dry_run(const Experiment& experiment, std::size_t threads, double seconds) {
    Experiment plan = experiment;
    plan.until.clear();
    plan.raw_per_cell = 0;
    Store store(":memory:", plan, "", threads, Json::object());
    const std::uint64_t memory_before = peak_memory();
    const std::vector<Tried> tried = try_cells(plan, store, threads, seconds);
    Forecast forecast;
    forecast_time(forecast, experiment, tried, threads);
    forecast_store(forecast, experiment, store.database());
    forecast_checks(forecast, experiment, store.database());
    forecast.largest = largest_cell(experiment, threads);
    // The blocks that were tried may have been smaller, and fewer at once.
    forecast.memory_bytes = std::max(peak_memory(), memory_before + forecast.largest.at_once * forecast.largest.bytes);
    return forecast;
}

LargestCell largest_cell(const Experiment& experiment, std::size_t threads) {
    const auto& cells = experiment.cells;
    if (cells.empty()) return {.at_once = 0};
    const auto block_bytes = [](const ExperimentCell& cell) {
        return 8.0 * static_cast<double>(cell.rows) * static_cast<double>(cell.columns);
    };
    const auto& largest = *std::max_element(
        cells.begin(), cells.end(), [&](const auto& a, const auto& b) { return block_bytes(a) < block_bytes(b); });
    const auto any_of_kind = [&](const char* kind) {
        return std::any_of(experiment.methods.begin(), experiment.methods.end(),
                           [&](const auto& method) { return method.kind == kind; });
    };
    const bool codecs = any_of_kind("codec");
    const bool decomposed = experiment.kind == "spiked" && (codecs || any_of_kind("estimator"));
    const double blocks =
        block_bytes(largest) * (decomposed ? blocks_of_worker(experiment, largest, block_bytes(largest)) : 1.0);
    return {.rows = largest.rows,
            .columns = largest.columns,
            .at_once = static_cast<std::size_t>(std::min<std::uint64_t>(threads, experiment.replicates())),
            .bytes = static_cast<std::uint64_t>((codecs ? most_copies_of_codecs : most_copies) * blocks),
            .least_bytes = static_cast<std::uint64_t>((decomposed ? least_copies_of_spiked : least_copies) * blocks)};
}

void reject_beyond_memory(const Experiment& experiment, std::size_t threads) {
    const LargestCell largest = largest_cell(experiment, threads);
    reject(largest.rows, largest.columns, largest.least_bytes, largest.at_once);
}

void reject_beyond_memory(std::size_t rows, std::size_t columns, std::size_t threads) {
    const double bytes = least_copies * 8.0 * static_cast<double>(rows) * static_cast<double>(columns);
    reject(rows, columns, static_cast<std::uint64_t>(bytes), threads);
}

}  // namespace spiked::validation
