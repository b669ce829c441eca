#include "app/studies/dry_run.hpp"

#include <fmt/format.h>

#include "app/cli/progress.hpp"
#include "app/studies/study_run.hpp"
#include "core/runtime/parallel.hpp"
#include "core/text/printable.hpp"
#include "reports/tables/text_table.hpp"
#include "validation/engine/dry_run.hpp"

namespace spiked::app {
namespace {

/// The size with few digits, because a forecast is not exact to the byte.
std::string rough_size(std::uint64_t bytes) {
    const double size = static_cast<double>(bytes);
    return size < 1e6   ? fmt::format("{:.0f} kB", size / 1e3)
           : size < 1e9 ? fmt::format("{:.1f} MB", size / 1e6)
                        : fmt::format("{:.1f} GB", size / 1e9);
}

std::string forecast_text(const validation::CheckForecast& check) {
    std::string text =
        fmt::format("{}: {} of {} questions can be decided", one_line(check.check), check.reachable, check.questions);
    if (check.without_power > 0)
        text += fmt::format("; {} never (the planted defect lies inside the margin: use a smaller margin)",
                            check.without_power);
    if (check.untried > 0) text += fmt::format("; {} not tried", check.untried);
    if (check.needed > 0)
        text += fmt::format(
            "; the hardest, {}: interval +- {:.3g} must be below {:.3g}, from about {} replicates on (of values "
            "without skewness, others need more)",
            one_line(check.cell), check.half_width, check.room, check.needed);
    return text;
}

}  // namespace

std::string plan_line(const validation::Experiment& experiment, std::size_t threads) {
    return fmt::format(
        "plan: {}, {}, {}, {}; seed {} ({}); {}; nominal false-alarm rate for the whole run {:g}",
        reports::counted(experiment.cells.size(), "cell"), reports::counted(experiment.replicates(), "replicate"),
        reports::counted(experiment.methods.size() - 1, "method"), reports::counted(experiment.checks.size(), "check"),
        experiment.seed.text(), experiment.seed_source,
        threads == 0 ? "all threads" : reports::counted(threads, "thread"), experiment.false_alarm);
}

int dry_run_study(const Arguments& arguments, const validation::Study& study) {
    constexpr double seconds_of_dry_run = 10.0;
    const auto& plan = study.experiment;
    const std::size_t threads = thread_count(study.threads);
    validation::reject_beyond_memory(plan, threads);
    const validation::Forecast forecast = validation::dry_run(plan, threads, seconds_of_dry_run);
    if (arguments.json()) {
        Json checks = Json::array();
        for (const auto& check : forecast.checks)
            checks.push(Json::object({{"name", check.check},
                                      {"questions", check.questions},
                                      {"reachable", check.reachable},
                                      {"blind", check.without_power},
                                      {"untried", check.untried},
                                      {"hardest_cell", check.cell},
                                      {"half_width", check.half_width},
                                      {"room", check.room},
                                      {"needed_replicates", check.needed}}));
        print_json(Json::object({{"schema", "spiked.plan/1"},
                                 {"name", plan.name},
                                 {"cells", plan.cells.size()},
                                 {"replicates", plan.replicates()},
                                 {"least_replicates", plan.least_replicates()},
                                 {"methods", plan.methods.size() - 1},
                                 {"checks", plan.checks.size()},
                                 {"seed", plan.seed.text()},
                                 {"science_hash", plan.science_hash()},
                                 {"store", study.store_path},
                                 {"threads", threads},
                                 {"seconds", forecast.most_seconds},
                                 {"least_seconds", forecast.least_seconds},
                                 {"memory_bytes", forecast.memory_bytes},
                                 {"largest_cell", Json::object({{"rows", forecast.largest.rows},
                                                                {"cols", forecast.largest.columns},
                                                                {"bytes", forecast.largest.bytes},
                                                                {"at_once", forecast.largest.at_once}})},
                                 {"store_bytes", forecast.store_bytes},
                                 {"cells_tried", forecast.cells_tried},
                                 {"replicates_tried", forecast.replicates_tried},
                                 {"reach", std::move(checks)}}));
        return 0;
    }
    std::string text = plan_line(plan, study.threads) + "\n";
    text += fmt::format("time     about {} on {}", duration_text(forecast.least_seconds),
                        reports::counted(threads, "thread"));
    if (forecast.most_seconds > forecast.least_seconds)
        text += fmt::format(", at most {} where until asks for more", duration_text(forecast.most_seconds));
    text += fmt::format("\nmemory   about {}, of which {} for blocks of {} x {} on {}\nstore    {}, at most about {}\n",
                        rough_size(forecast.memory_bytes),
                        rough_size(forecast.largest.at_once * forecast.largest.bytes), forecast.largest.rows,
                        forecast.largest.columns, reports::counted(forecast.largest.at_once, "thread"),
                        one_line(study.store_path), rough_size(forecast.store_bytes));
    for (const auto& check : forecast.checks) text += "check    " + forecast_text(check) + "\n";
    text += fmt::format("tried    {} in {} of {}; nothing was kept\n",
                        reports::counted(forecast.replicates_tried, "replicate"), forecast.cells_tried,
                        reports::counted(plan.cells.size(), "cell"));
    print_text(text);
    return 0;
}

}  // namespace spiked::app
