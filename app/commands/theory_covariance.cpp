#include "app/commands/theory_models.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/runtime/error.hpp"
#include "reports/tables/text_table.hpp"
#include "theory/laws/spiked_covariance.hpp"

namespace spiked::app {
namespace {

/// The predictions for samples of one covariance.
struct CovarianceAnswers {
    AspectRatio aspect;
    double noise_variance;
    std::size_t samples;  ///< 0 without --size
    theory::SpikedCovariance model;
    std::vector<Eigenvalue> population;

    [[nodiscard]] double root_samples() const { return std::sqrt(static_cast<double>(samples)); }
};

std::string covariance_text(const CovarianceAnswers& answers) {
    const auto& model = answers.model;
    std::string text = fmt::format(
        "samples of a covariance matrix, samples/features = {:.6g}: the eigenvalues of the sample covariance lie "
        "between {} and {} but for spikes\n"
        "population eigenvalues above {} are detectable\n",
        answers.aspect.value(), reports::four_digits(model.lower_edge().value),
        reports::four_digits(model.upper_edge().value), reports::four_digits(model.detection_threshold().value));
    std::vector<std::string> heads = {"population eigenvalue", "sample eigenvalue", "squared cosine"};
    if (answers.samples > 0)
        for (const char* what : {"s.d. of eigenvalue", "s.d. of debiased eigenvalue", "s.d. of cosine^2"})
            heads.emplace_back(what);
    reports::TextTable table(heads);
    for (const Eigenvalue one : answers.population) {
        std::vector<std::string> cells = {fmt::format("{:g}", one.value),
                                          reports::four_digits(model.sample_eigenvalue(one).value),
                                          reports::four_digits(model.squared_cosine(one).value)};
        if (answers.samples > 0) {
            const auto spread = model.spread(one);
            for (const auto part : {&theory::SpikedCovariance::Spread::sample_eigenvalue,
                                    &theory::SpikedCovariance::Spread::population_eigenvalue,
                                    &theory::SpikedCovariance::Spread::squared_cosine})
                cells.push_back(spread ? reports::four_digits((*spread).*part / answers.root_samples()) : "-");
        }
        table.add(cells);
    }
    text +=
        "\n" + table.text() +
        "\nsquared cosine: between the eigenvectors of sample and population; 0 where the sample eigenvalue stays at "
        "an edge\n";
    if (answers.samples > 0)
        text +=
            "standard deviations (s.d.) over samples, of first order, for Gaussian data or eigenvectors spread over "
            "many features, and for a spike alone: the eigenvectors of close ones turn towards each other; debiased: "
            "the population eigenvalue as computed from that of the sample\n";
    return text;
}

Json covariance_json(const CovarianceAnswers& answers) {
    const auto& model = answers.model;
    Json list = Json::array();
    for (const Eigenvalue one : answers.population) {
        const auto spread = answers.samples > 0 ? model.spread(one) : std::nullopt;
        const auto over_samples = [&](double limit) { return Json(limit / answers.root_samples()); };
        list.push(Json::object(
            {{"eigenvalue", one.value},
             {"detectable", model.detectable(one)},
             {"sample_eigenvalue", model.sample_eigenvalue(one).value},
             {"squared_cosine", model.squared_cosine(one).value},
             {"sample_eigenvalue_deviation", spread ? over_samples(spread->sample_eigenvalue) : Json()},
             {"debiased_eigenvalue_deviation", spread ? over_samples(spread->population_eigenvalue) : Json()},
             {"squared_cosine_deviation", spread ? over_samples(spread->squared_cosine) : Json()}}));
    }
    return Json::object({{"schema", "spiked.theory/1"},
                         {"aspect", answers.aspect.value()},
                         {"covariance", Json::object({{"noise_variance", answers.noise_variance},
                                                      {"lower_edge", model.lower_edge().value},
                                                      {"upper_edge", model.upper_edge().value},
                                                      {"detection_threshold", model.detection_threshold().value},
                                                      {"population", std::move(list)}})}});
}

}  // namespace

std::vector<OptionSpec> covariance_options() {
    return in_group(
        "Samples of a spiked covariance (principal components)",
        {{.key = "--population",
          .value = several(number("L", {.least = 0.0})),
          .help =
              "eigenvalues of the population's covariance: what those of a sample covariance and their eigenvectors "
              "show; rows are samples and columns features, with --size also how much this varies",
          .repeatable = true},
         {.key = "--noise-variance",
          .value = number("S2", {.above = 0.0}),
          .help = "the other eigenvalues of the population",
          .fallback = "1",
          .needs = {{"--population"}, "it is the population's"}}});
}

int run_covariance_theory(const Arguments& arguments, std::size_t samples, std::size_t features) {
    const AspectRatio aspect =
        read_aspect(arguments, samples, features, "samples over features", "--aspect 2 or --size 200x100");
    const double variance = arguments.number("--noise-variance");
    CovarianceAnswers answers{aspect, variance, samples, theory::SpikedCovariance(aspect, variance), {}};
    for (const double eigenvalue : arguments.numbers("--population")) answers.population.push_back({eigenvalue});
    if (arguments.json())
        print_json(covariance_json(answers));
    else
        print_text(covariance_text(answers));
    return 0;
}

}  // namespace spiked::app
