#include "app/commands/theory_models.hpp"

#include <fmt/format.h>

#include <cmath>
#include <complex>

#include "core/runtime/error.hpp"
#include "reports/tables/theory_report.hpp"
#include "sim/spiked/variance_profile.hpp"
#include "theory/laws/tracy_widom.hpp"
#include "theory/profiles/profile_gaps.hpp"

namespace spiked::app {
namespace {

/// The mean of n eigenvalues of Z Z^T, the mean of S over all entries.
double mean_variance(const theory::VarianceProfile& profile) {
    const auto weight = [](const std::vector<double>& weights, std::size_t classes, std::size_t at) {
        return weights.empty() ? 1.0 / static_cast<double>(classes) : weights[at];
    };
    double sum = 0.0;
    for (std::size_t a = 0; a < profile.rows; ++a)
        for (std::size_t b = 0; b < profile.columns; ++b)
            sum += weight(profile.row_weights, profile.rows, a) * weight(profile.column_weights, profile.columns, b) *
                   profile.variances[a * profile.columns + b];
    return sum;
}

/// Evenly spaced points from near zero up to the edge, where it is 0.
std::vector<reports::ProfileAnswers::DensityPoint> density_curve(const theory::ProfileLaw& law, std::size_t points) {
    std::vector<reports::ProfileAnswers::DensityPoint> curve;
    for (std::size_t j = 1; j <= points; ++j) {
        const Eigenvalue x{law.bulk_edge().value * static_cast<double>(j) / static_cast<double>(points)};
        curve.push_back({x, law.density(x)});
    }
    return curve;
}

/// The gaps, and the outliers of every spike in them and above the top edge.
void add_outliers(reports::ProfileAnswers& answers, std::size_t pairs_of_classes,
                  const theory::SpikeDirection& direction) {
    constexpr std::size_t most_pairs = 400;  // a few seconds
    if (pairs_of_classes > most_pairs) {
        answers.note = fmt::format(
            "gaps of the bulk are looked for under at most {} pairs of a class of rows and one of columns, of which "
            "this profile has {}; --density shows gaps",
            most_pairs, pairs_of_classes);
        for (const auto& spike : answers.spikes)
            answers.outliers.push_back(spike.detectable ? std::vector{theory::PlacedOutlier{std::nullopt, spike}}
                                                        : std::vector<theory::PlacedOutlier>{});
        return;
    }
    const theory::ProfileGaps outside(answers.law, direction);
    answers.gaps = outside.gaps();
    for (const auto& spike : answers.spikes) answers.outliers.push_back(theory::all_outliers(spike, outside));
}

}  // namespace

std::vector<OptionSpec> profile_options() {
    const OtherOptions of_classes{{"--variances"}, "its classes are meant"};
    const auto squares = several(number("W", {.least = 0.0}));
    return in_group(
        "Noise with a variance profile",
        {{.key = "--variances",
          .value = any_text("PROFILE"),
          .help = "independent entries of variance S/d in place of covariances: "
                  "blocks:S11,S12/S21,S22[:rows=W,W][:columns=W,W] for classes of rows and columns with these "
                  "fractions, or file:PATH, a matrix with S of every entry"},
         {.key = "--left-squares",
          .value = squares,
          .help = "where spikes lie: the sum of the squares of the left vector over each class of rows; by default "
                  "spread evenly",
          .repeatable = true,
          .needs = of_classes},
         {.key = "--right-squares",
          .value = squares,
          .help = "the same of the right vector over each class of columns",
          .repeatable = true,
          .needs = of_classes}});
}

int run_profile_theory(const Arguments& arguments, std::size_t rows, std::size_t columns) {
    const sim::ProfileSpec spec = sim::parse_profile(arguments.text("--variances"));
    const bool sized = rows > 0;
    if (!sized && !spec.path.empty() && !arguments.has("--aspect")) {
        rows = spec.classes.rows;
        columns = spec.classes.columns;
    }
    const AspectRatio aspect = read_aspect(arguments, rows, columns);
    const theory::VarianceProfile profile = sized ? sim::profile_of_size(spec, rows, columns) : spec.classes;
    const theory::ProfileLaw law(profile, aspect);
    const theory::SpikeDirection direction{arguments.numbers("--left-squares"), arguments.numbers("--right-squares")};
    reports::ProfileAnswers answers{.variances = spec.text,
                                    .aspect = aspect,
                                    .law = law,
                                    .mean = mean_variance(profile),
                                    .even = direction.left.empty() && direction.right.empty(),
                                    .threshold = law.detection_threshold(direction)};
    for (const double strength : arguments.numbers("--strength"))
        answers.spikes.push_back(law.spike({strength}, direction));
    add_outliers(answers, profile.rows * profile.columns, direction);
    if (arguments.has("--density")) answers.curve = density_curve(law, arguments.count("--density"));
    if (sized) {
        const double unit = 1.0 / (law.tracy_widom_scale() * std::pow(static_cast<double>(columns), 2.0 / 3.0));
        answers.finite = {.rows = rows,
                          .columns = columns,
                          .top_noise_shift = unit * theory::tracy_widom_mean,
                          .top_noise_standard_deviation = unit * std::sqrt(theory::tracy_widom_variance)};
    }
    if (arguments.has("--stieltjes")) {
        const auto parts = arguments.numbers("--stieltjes");
        if (parts.size() != 2)
            throw usage_error("--stieltjes \"{}\" is not a point above the real axis: write for example 2,0.1",
                              arguments.text("--stieltjes"));
        const std::complex<double> z(parts[0], parts[1]);
        answers.transforms = {z, law.stieltjes(z)};
    }
    if (arguments.json())
        print_json(theory_json(answers));
    else
        print_text(theory_text(answers));
    return 0;
}

}  // namespace spiked::app
