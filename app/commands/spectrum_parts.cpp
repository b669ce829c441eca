#include "app/commands/spectrum_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/inference/spike_intervals.hpp"
#include "reports/tables/text_table.hpp"

namespace spiked::app {
namespace {

/// Rejects estimators that need the samples themselves, which covariances have lost.
void reject_without_samples(const std::vector<estimators::SpectralMethod>& chosen) {
    for (const auto& method : chosen)
        if (method.needs_block())
            throw usage_error(
                "{} needs the samples (--covariance gives their covariances alone): choose one that needs singular "
                "values only, such as eoptshrink",
                method.name);
}

/// Rejects options that mean something only for all singular values, or for an estimator.
void reject_beside_values(const Arguments& arguments) {
    if (arguments.has("--estimator")) return;
    for (const char* option :
         {"--loss", "--intervals", "--confidence", "--row-spectrum", "--col-spectrum", "--denoised", "--residual"})
        if (arguments.has(option))
            throw usage_error(
                "{} needs an estimator (--values alone only prints the values): add --estimator, such as svd:{}",
                option, arguments.count("--values"));
}

/// Rejects an estimator that learns the noise, or its rank, from what --values leaves out.
void reject_beyond_values(const Arguments& arguments, const estimators::SpectralMethod& method) {
    const bool known = method.transforms.empty() && method.takes_noise_law() &&
                       (arguments.has("--row-spectrum") || arguments.has("--col-spectrum"));
    if (method.needs_block() || (method.estimator.needs_all_values && !known)) {
        const char* const why = !method.transforms.empty() ? "it decomposes another matrix than the given one"
                                : method.needs_block()     ? "its rank comes from the whole matrix"
                                                           : "it learns from those behind the signal";
        throw usage_error(
            "{} needs all singular values ({}): leave --values out, or name svd:R or an estimator that is given the "
            "noise level, such as gd-shrink:sigma=S",
            method.name, why);
    }
    const std::size_t count = arguments.count("--values");
    if (method.estimator.least_side > count)
        throw usage_error("{} needs {} singular values (--values asks for {}): ask for as many", method.name,
                          method.estimator.least_side, count);
}

Json interval_json(const std::optional<estimators::Interval>& interval) {
    if (!interval) return {};
    Json ends = Json::array();
    ends.push(interval->low);
    ends.push(interval->high);
    return ends;
}

}  // namespace

std::vector<estimators::SpectralMethod> chosen_methods(const Arguments& arguments, theory::Loss loss) {
    std::vector<estimators::SpectralMethod> chosen;
    if (arguments.has("--values")) reject_beside_values(arguments);
    if (arguments.has("--values") && !arguments.has("--estimator")) return chosen;
    for (const auto& name : arguments.list("--estimator")) chosen.push_back(estimators::parse_estimator(name, loss));
    if (loss != theory::Loss::frobenius &&
        std::all_of(chosen.begin(), chosen.end(), [](const auto& method) { return method.estimator.keeps_values; }))
        throw usage_error("--loss has no effect on {} (it keeps values as they are): leave it out",
                          fmt::join(arguments.list("--estimator"), ", "));
    for (const char* side : {"--row-spectrum", "--col-spectrum"})
        if (arguments.has(side) &&
            std::none_of(chosen.begin(), chosen.end(), [](const auto& method) { return method.takes_noise_law(); }))
            throw usage_error(
                "{} is used by no estimator named (only {} use it): name one of them, for example --estimator "
                "whiten+gd-shrink, or leave it out",
                side, estimators::users_of_noise_law());
    if ((arguments.has("--denoised") || arguments.has("--residual")) && chosen.size() != 1)
        throw usage_error("--denoised and --residual need exactly one --estimator ({} given): name the one to apply",
                          chosen.size());
    if (arguments.has("--covariance")) reject_without_samples(chosen);
    if (arguments.has("--values"))
        for (const auto& method : chosen) reject_beyond_values(arguments, method);
    if (arguments.has("--confidence") && arguments.text("--intervals") == enum_name(estimators::IntervalMethod::none))
        throw usage_error("--confidence has no effect with --intervals none: leave one out");
    return chosen;
}

std::vector<OptionSpec> computing_options() {
    return in_group(
        "How it is decomposed",
        {
            {.key = "--values",
             .value = whole("K", 1),
             .help =
                 "only the K largest singular values, each with a bound on its error, without decomposing the whole "
                 "of a large matrix; with --estimator svd:R, or one that is given the noise level "
                 "(gd-shrink:sigma=S)",
             .fallback = "all",
             .excludes = {{"--plot"}, "the picture shows all singular values"}},
            {.key = "--precision",
             .value = one_of<estimators::Precision>(),
             .help = "numbers of the decomposition: float takes about half the time and memory, and loses values that "
                     "are a millionth of the largest; estimators with transforms in front decompose in double",
             .fallback = std::string(enum_name(estimators::Precision::float64)),
             .excludes = {{"--covariance", "--values"}, "those compute in double"}},
            threads_option(),
        });
}

estimators::Precision chosen_precision(const Arguments& arguments) {
    return enum_named<estimators::Precision>(arguments.text("--precision"), "--precision");
}

double rounding_of(estimators::Precision precision, estimators::Shape shape) {
    if (precision == estimators::Precision::float64) return reports::rounding_level;
    return 1e-6 + 4e-9 * static_cast<double>(std::max(shape.rows, shape.columns));
}

void reject_rank_without_end(const estimators::SpectralMethod& method, std::size_t rank,
                             const estimators::LeadingPart& leading, estimators::Shape shape) {
    const std::size_t count = leading.values.size();
    if (method.estimator.least_side > 0 || rank < count || count >= shape.short_side()) return;
    throw usage_error("{} counts all {} values as components (there may be more): raise --values", method.name, count);
}

std::string leading_text(const estimators::LeadingPart& leading, std::size_t short_side) {
    std::string text = fmt::format("the {} largest of {} singular values, with bounds on their errors:\n",
                                   leading.values.size(), short_side);
    reports::TextTable table({"value", "singular value", "bound"});
    for (std::size_t i = 0; i < leading.values.size(); ++i)
        table.add({std::to_string(i + 1), fmt::format("{:.10g}", leading.values[i]),
                   fmt::format("{:.1e}", leading.bounds[i])});
    return text + table.text();
}

std::string note_on_iteration(const estimators::LeadingPart& leading) {
    return fmt::format(
        "the values come from an iteration with a random start (block Krylov, {} dimensions): a bound says that a "
        "singular value is so near, not that no larger one was missed, which is improbable",
        leading.dimension);
}

Json intervals_json(const Uncertainty& of) {
    if (!of.components) return {};
    Json strength = Json::array(), left = Json::array(), right = Json::array(), reasons = Json::array();
    for (const estimators::SpikeIntervals& component : *of.components) {
        strength.push(interval_json(component.strength));
        left.push(interval_json(component.overlap_left));
        right.push(interval_json(component.overlap_right));
        reasons.push(component.reason.empty() ? Json() : Json(component.reason));
    }
    return Json::object({{"method", enum_name(of.method)},
                         {"confidence", of.confidence},
                         {"strength", std::move(strength)},
                         {"overlap_left", std::move(left)},
                         {"overlap_right", std::move(right)},
                         {"reasons", std::move(reasons)}});
}

std::string intervals_text(const Uncertainty& of) {
    if (!of.components || of.components->empty()) return "";
    const estimators::SpikeIntervals& first = of.components->front();
    const bool none = std::all_of(of.components->begin(), of.components->end(), [&](const auto& component) {
        return !component.strength && component.reason == first.reason;
    });
    if (none) return fmt::format("  no intervals: {}\n", first.reason);
    std::string text = fmt::format("  {} % intervals of strength and overlaps ({}):\n",
                                   reports::percentage(of.confidence), enum_name(of.method));
    for (std::size_t i = 0; i < of.components->size(); ++i) {
        const estimators::SpikeIntervals& component = (*of.components)[i];
        std::vector<std::string> parts;
        const auto add = [&](const char* what, const std::optional<estimators::Interval>& interval) {
            if (interval)
                parts.push_back(fmt::format("{} {} to {}", what, reports::four_digits(interval->low),
                                            reports::four_digits(interval->high)));
        };
        add("strength", component.strength);
        add("left", component.overlap_left);
        add("right", component.overlap_right);
        if (!component.reason.empty()) parts.push_back(parts.empty() ? "none: " + component.reason : component.reason);
        text += fmt::format("  {}: {}\n", i + 1, fmt::join(parts, "; "));
    }
    return text;
}

}  // namespace spiked::app
