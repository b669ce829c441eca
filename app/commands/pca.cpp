#include <fmt/format.h>

#include <cmath>

#include "app/cli/command.hpp"
#include "app/options/dump_options.hpp"
#include "app/options/matrix_options.hpp"
#include "core/runtime/error.hpp"
#include "estimators/pca/decomposed_samples.hpp"
#include "estimators/pca/sample_checks.hpp"
#include "estimators/pca/seen_components.hpp"
#include "estimators/pca/spiked_pca.hpp"
#include "estimators/svd/covariance_spectrum.hpp"
#include "reports/tables/text_table.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/preparation/preparation.hpp"
#include "theory/laws/spiked_covariance.hpp"

namespace spiked::app {
namespace {

/// Data as principal components need them: singular values, and how many independent samples they stand for.
struct SampleSpectrum {
    std::vector<double> singular_values;
    estimators::Shape shape;                      ///< degrees of freedom x features that are not constant
    std::size_t samples = 0;                      ///< as given
    std::size_t features = 0;                     ///< as given
    std::optional<sim::Preparation> preparation;  ///< none for covariances, as the block
    std::optional<estimators::AnalysedBlock> block = {};
    std::vector<std::string> notes;
    sim::SeenEntries entries = {};

    void add(const std::vector<std::string>& more) { notes.insert(notes.end(), more.begin(), more.end()); }
};

SampleSpectrum of_covariances(const sim::NotedMatrix& read, std::size_t samples) {
    const auto found = estimators::covariance_spectrum(read.matrix, samples);
    SampleSpectrum data{found.singular_values, found.shape, samples, read.matrix.n_cols, std::nullopt, {}, read.notes};
    data.add(found.notes);
    return data;
}

SampleSpectrum of_samples(sim::NotedMatrix read, const sim::Preparation& preparation) {
    SampleSpectrum data{{}, {}, read.matrix.n_rows, read.matrix.n_cols, preparation, {}, read.notes};
    sim::NoteContext context{read.of_text, std::nullopt};
    if (!preparation.empty()) data.add(sim::data_notes(read.matrix, context));
    sim::PreparedMatrix ready = sim::prepared(std::move(read.matrix), preparation);
    data.entries = std::move(ready.entries);
    data.add(ready.notes);
    const auto independent = preparation.independent_shape(estimators::Shape{data.samples, data.features});
    auto found = estimators::decomposed_samples(ready.matrix, independent.rows);
    data.singular_values = std::move(found.singular_values);
    data.shape = found.shape;
    data.block = std::move(found.block);
    if (preparation.empty() && !data.singular_values.empty()) {
        context.largest_value = data.singular_values.front();
        data.add(sim::data_notes(ready.matrix, context));
    } else if (preparation.centered() == sim::Lines::none && !data.singular_values.empty()) {
        if (auto note = sim::note_on_means(ready.matrix, data.singular_values.front()))
            data.notes.push_back(std::move(*note));
    }
    return data;
}

SampleSpectrum read_samples(const Arguments& arguments) {
    const std::string& file = arguments.positionals.front();
    const auto of_file = [&] { return file; };
    const bool covariances = arguments.has("--covariance");
    const sim::Preparation preparation = read_preparation(arguments);
    sim::NotedMatrix read = sim::read_noted_matrix(
        file, covariances ? read_matrix_options(arguments) : read_matrix_options(arguments, preparation));
    SampleSpectrum data = located(of_file, [&] {
        return covariances ? of_covariances(read, arguments.count("--covariance"))
                           : of_samples(std::move(read), preparation);
    });
    if (data.shape.columns < data.features)
        data.notes.push_back(
            fmt::format("{} left out", reports::counted(data.features - data.shape.columns, "constant feature")));
    return data;
}

estimators::PcaOptions read_pca_options(const Arguments& arguments) {
    estimators::PcaOptions options;
    options.shrinker = enum_named<estimators::EigenvalueShrinker>(arguments.text("--shrinker"), "--shrinker");
    if (arguments.has("--loss") && options.shrinker != estimators::EigenvalueShrinker::optimal)
        throw usage_error("--loss has no effect on --shrinker {}: leave one of them out", enum_name(options.shrinker));
    options.loss = &estimators::covariance_losses().named(arguments.text("--loss"));
    options.rule = enum_named<estimators::VarianceRule>(arguments.text("--noise"), "--noise");
    options.level = arguments.number("--level");
    if (!arguments.has("--noise-level")) return options;
    options.noise_level = arguments.number("--noise-level");
    return options;
}

std::optional<double> edge_of(const estimators::SpikedPca& found, estimators::Shape shape) {
    if (found.bulk_noise_level() == 0.0) return std::nullopt;
    return theory::SpikedCovariance(AspectRatio::of(shape.rows, shape.columns), found.bulk_noise_level())
        .upper_edge()
        .value;
}

Json pca_json(const SampleSpectrum& data, const estimators::SpikedPca& found, const estimators::PcaOptions& options) {
    const bool optimal = options.shrinker == estimators::EigenvalueShrinker::optimal;
    const auto edge = edge_of(found, data.shape);
    const auto prepared = [&](auto get) { return data.preparation ? Json(enum_name(get(*data.preparation))) : Json(); };
    return Json::object({{"schema", "spiked.pca/1"},
                         {"samples", data.samples},
                         {"features", data.features},
                         {"degrees_of_freedom", data.shape.rows},
                         {"stripped_features", data.features - data.shape.columns},
                         {"centered", prepared([](const auto& ready) { return ready.centered(); })},
                         {"standardized", prepared([](const auto& ready) { return ready.standardize; })},
                         {"missing", prepared([](const auto& ready) { return ready.missing; })},
                         {"missing_entries", data.entries.missing},
                         {"share_seen", data.entries.share},
                         {"noise_level", found.noise_level != 0.0 ? Json(found.noise_level) : Json()},
                         {"weighted_noise_level", edge ? Json(found.bulk_noise_level()) : Json()},
                         {"bulk_edge", edge ? Json(*edge) : Json()},
                         {"eigenvalues", found.eigenvalues},
                         {"components", found.components},
                         {"debiased", found.debiased},
                         {"debiased_errors", found.debiased_errors},
                         {"score_cumulants", data.preparation ? Json(found.score_cumulants) : Json()},
                         {"cosines", found.cosines},
                         {"cosine_errors", found.cosine_errors},
                         {"shrinker", enum_name(options.shrinker)},
                         {"loss", optimal ? Json(options.loss->entry.name) : Json()},
                         {"shrunk", found.shrunk},
                         {"notes", data.notes}});
}

std::string pca_text(const Arguments& arguments, const SampleSpectrum& data, const estimators::SpikedPca& found,
                     const estimators::PcaOptions& options) {
    std::string text =
        fmt::format("{}: {} samples of {} features", arguments.positionals.front(), data.samples, data.features);
    if (data.shape.rows < data.samples) text += fmt::format(", centred: {} degrees of freedom", data.shape.rows);
    text += "\n";
    if (const auto edge = edge_of(found, data.shape))
        text += fmt::format(
            "noise level {:.4g} ({}), eigenvalues of noise up to {:.4g}\n", found.noise_level,
            options.noise_level ? std::string("given") : fmt::format("variance, from the {}", enum_name(options.rule)),
            *edge);
    text += fmt::format("{} at level {:g}\n", reports::counted(found.components, "component"), options.level);
    if (found.components == 0) return text;
    const bool optimal = options.shrinker == estimators::EigenvalueShrinker::optimal;
    reports::TextTable table(
        {"component", "eigenvalue", "debiased", "cosine",
         optimal ? "shrunk, " + options.loss->entry.name : fmt::format("shrunk, {}", enum_name(options.shrinker))});
    for (std::size_t i = 0; i < found.components; ++i)
        table.add({std::to_string(i + 1), reports::four_digits(found.eigenvalues[i]),
                   reports::with_error(found.debiased[i], found.debiased_errors[i]),
                   reports::with_error(found.cosines[i], found.cosine_errors[i]),
                   reports::four_digits(found.shrunk[i])});
    return text + table.text();
}

int run_pca(const Arguments& arguments) {
    const estimators::PcaOptions options = read_pca_options(arguments);
    SampleSpectrum data = read_samples(arguments);
    const estimators::SpikedPca found =
        located([&] { return arguments.positionals.front(); },
                [&] {
                    const double share = data.entries.share;
                    auto components = data.block ? estimators::weighted_components(data.singular_values, *data.block,
                                                                                   data.shape, options, share)
                                                 : estimators::spiked_pca(data.singular_values, data.shape, options);
                    if (data.block)
                        estimators::check_samples(components, *data.block, data.shape);
                    else
                        estimators::note_unchecked(components);
                    estimators::correct_for_missing(components, data.shape, options, share);
                    return components;
                });
    if (!found.note.empty()) data.notes.push_back(found.note);
    for (const auto& note : data.notes) print_note(arguments, note);
    if (arguments.json())
        print_json(pca_json(data, found, options));
    else
        print_text(pca_text(arguments, data, found, options));
    return 0;
}

/// Centring as in spectrum, of columns alone, and by default.
std::vector<OptionSpec> pca_options() {
    using sim::Lines;
    const estimators::PcaOptions fallback;
    ValueSpec loss = one_of(estimators::covariance_losses().names(), estimators::covariance_losses().aliases());
    loss.shown = "NAME";
    std::vector<OptionSpec> options = {
        {"--shrinker", one_of<estimators::EigenvalueShrinker>(),
         "eigenvalues of the estimated covariance: optimal for the loss, the population's (debiased), or the sample's",
         std::string(enum_name(fallback.shrinker))},
        {"--loss", loss, "loss for which the shrinker is optimal; spiked list pca-losses shows all",
         estimators::covariance_losses()[0].entry.name},
        {"--noise", one_of<estimators::VarianceRule>(),
         "noise level from the variance that components do not explain: its mean, or its median, which many weak "
         "components or a few features of unusual variance move less, at twice the error",
         std::string(enum_name(fallback.rule))},
        {.key = "--noise-level",
         .value = number("S2", {.above = 0.0}),
         .help = "known variance of the noise",
         .excludes = {{"--noise"}, "a known level is not estimated"}},
        {"--level", number("P", {.above = 0.0, .below = 1.0}),
         "probability that noise is taken for a component, of each test", fmt::format("{}", fallback.level)},
    };
    std::vector<OptionSpec> before = {
        {.key = "--covariance",
         .value = whole("SAMPLES", 2),
         .help = "the file is a covariance or correlation matrix of so many samples, less one where they were centred",
         .excludes = {{"--center", "--standardize", "--missing"}, no_samples}},
        {"--center", one_of({Lines::none, Lines::columns}),
         "subtract the mean of every feature, which costs one sample; here this is the default",
         std::string(enum_name(Lines::columns))},
        {"--standardize", one_of({Lines::columns}),
         "and divide each by its standard deviation (n - 1 in its denominator)"},
        missing_option({sim::Missing::none, sim::Missing::uniform}),
    };
    return joined({options, in_group(before_the_analysis, std::move(before)), matrix_options()});
}

}  // namespace

Command pca_command() {
    return {
        "pca",
        "noise level, components, debiased eigenvalues and cosines of a sample covariance (spiked covariance model)",
        {"spiked pca data.csv", "spiked pca data.npy --loss stein --json", "spiked pca data.npy --center none",
         "spiked pca covariances.csv --covariance 249", "spiked pca data.npy --standardize columns --noise median",
         "spiked pca table.csv --missing uniform"},
        matrix_value(),
        1,
        1,
        pca_options(),
        run_pca};
}

}  // namespace spiked::app
