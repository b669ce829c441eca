#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>

#include "app/cli/command.hpp"
#include "app/commands/spectrum_parts.hpp"
#include "app/options/dump_options.hpp"
#include "app/options/matrix_options.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/inference/spectrum_notes.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/svd/covariance_spectrum.hpp"
#include "estimators/svd/leading/leading_part.hpp"
#include "estimators/transforms/seen_noise.hpp"
#include "reports/figures/gnuplot.hpp"
#include "reports/figures/spectrum_figure.hpp"
#include "reports/tables/text_table.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/table.hpp"
#include "sim/preparation/preparation.hpp"

namespace spiked::app {
namespace {

struct Estimate {
    std::string name;
    estimators::Shape shape;  ///< by which the spectrum was judged
    estimators::Shrinkage shrinkage;
    Uncertainty uncertainty = {};
};

Json estimate_json(const Estimate& estimate, theory::Loss loss) {
    const auto& found = estimate.shrinkage;
    return Json::object(
        {{"name", estimate.name},
         {"loss", theory::name_of(loss)},
         {"rank", found.rank},
         {"bulk_edge", found.bulk_edge ? Json(found.bulk_edge->value) : Json()},
         {"strengths", found.strengths},
         {"overlap_left", found.overlap_left},
         {"overlap_right", found.overlap_right},
         {"shrunk", found.shrunk},
         {"expected_relative_error", found.expected_error ? Json(found.expected_error->relative) : Json()},
         {"intervals", intervals_json(estimate.uncertainty)},
         {"residual_kurtosis", estimate.uncertainty.tails ? Json(estimate.uncertainty.tails->excess_kurtosis) : Json()},
         {"residual_kurtosis_error", estimate.uncertainty.tails ? Json(estimate.uncertainty.tails->error) : Json()},
         {"next_component_p_value",
          estimate.uncertainty.next_p_value ? Json(*estimate.uncertainty.next_p_value) : Json()},
         {"next_component_note",
          estimate.uncertainty.next_p_value
              ? Json(fmt::format("under white noise (Tracy-Widom), conditional on the rank {} that the same data chose",
                                 found.rank))
              : Json()},
         {"note", found.note.empty() ? Json() : Json(found.note)}});
}

/// What is analysed: a matrix, or a covariance matrix without its samples.
struct Data {
    std::string file;
    std::optional<estimators::AnalysedBlock> block;  ///< none for covariances
    std::vector<double> singular_values;             ///< with --values: zeros behind those
    std::optional<estimators::LeadingPart> leading;  ///< with --values
    estimators::Shape whole;                         ///< as given
    estimators::Shape shape;                         ///< without zero rows and columns
    estimators::Shape independent;                   ///< without the dimensions that centring takes
    arma::uvec kept_columns;
    std::optional<std::size_t> covariance_of;  ///< the number of samples
    sim::Preparation preparation;
    sim::SeenEntries entries = {};
    estimators::Precision precision = estimators::Precision::float64;
    std::vector<std::string> notes;

    /// A singular value, or a number of that unit; `0` where it is a rounding error beside the largest singular value.
    [[nodiscard]] std::string value_cell(double value) const {
        const double scale = singular_values.empty() ? 0.0 : singular_values.front();
        return std::abs(value) < rounding_of(precision, shape) * scale ? "0" : reports::four_digits(value);
    }
};

/// The singular values that noise of this shape has.
std::span<const double> judged_values(const Data& data, estimators::Shape shape) {
    return std::span(data.singular_values).first(shape.short_side());
}

/// Adds notes on rows and columns that are left out.
void note_stripped(Data& data) {
    std::vector<std::string> parts;
    const auto add = [&](std::size_t count, const char* what) {
        if (count > 0) parts.push_back(reports::counted(count, what));
    };
    add(data.whole.rows - data.shape.rows, "zero row");
    add(data.whole.columns - data.shape.columns, "zero column");
    if (!parts.empty())
        data.notes.push_back(fmt::format("{} left out (--keep-empty keeps them)", fmt::join(parts, " and ")));
}

/// All singular values, or with --values the largest of them with their vectors.
void decompose(const Arguments& arguments, Data& data) {
    if (!arguments.has("--values")) {
        data.singular_values = data.block->singular_values();
        return;
    }
    data.leading =
        estimators::leading_part(*data.block, arguments.count("--values"), thread_count(arguments.count("--threads")));
    data.singular_values = data.leading->values;
    data.singular_values.resize(data.block->shape().short_side());
    if (data.leading->dimension > 0) data.notes.push_back(note_on_iteration(*data.leading));
}

Data read_data(const Arguments& arguments) {
    Data data;
    data.file = arguments.positionals.front();
    data.precision = chosen_precision(arguments);
    data.preparation = read_preparation(arguments);
    const bool keep_empty = arguments.has("--keep-empty");
    const bool covariances = arguments.has("--covariance");
    sim::MatrixReading reading =
        covariances ? read_matrix_options(arguments) : read_matrix_options(arguments, data.preparation);
    reading.copies = 2.0;  // one more for the reduction, at least
    sim::NotedMatrix read = sim::read_noted_matrix(data.file, reading);
    const auto add = [&](const std::vector<std::string>& notes) {
        data.notes.insert(data.notes.end(), notes.begin(), notes.end());
    };
    add(read.notes);
    const auto of_file = [&] { return data.file; };
    if (covariances) {
        using estimators::EmptyFeatures;
        data.covariance_of = arguments.count("--covariance");
        const auto found = located(of_file, [&] {
            return estimators::covariance_spectrum(read.matrix, *data.covariance_of,
                                                   keep_empty ? EmptyFeatures::keep : EmptyFeatures::strip);
        });
        data.singular_values = found.singular_values;
        data.whole = {*data.covariance_of, read.matrix.n_cols};
        data.shape = data.independent = found.shape;
        data.kept_columns = found.kept;
        add(found.notes);
        note_stripped(data);
        return data;
    }
    sim::NoteContext context{read.of_text, std::nullopt};
    if (!data.preparation.empty()) add(sim::data_notes(read.matrix, context));
    sim::PreparedMatrix ready =
        located(of_file, [&] { return sim::prepared(std::move(read.matrix), data.preparation); });
    data.entries = std::move(ready.entries);
    using EmptyLines = estimators::AnalysedBlock::EmptyLines;
    data.block.emplace(std::move(ready.matrix), keep_empty ? EmptyLines::keep : EmptyLines::strip, data.precision,
                       thread_count(arguments.count("--threads")));
    decompose(arguments, data);
    data.whole = {data.block->block().n_rows, data.block->block().n_cols};
    data.shape = data.block->shape();
    data.independent = data.preparation.independent_shape(data.shape);
    data.kept_columns = data.block->kept_columns();
    if (data.preparation.empty()) {
        if (!data.singular_values.empty()) context.largest_value = data.singular_values.front();
        add(sim::data_notes(data.block->block(), context));
    } else if (data.preparation.centered() == sim::Lines::none && !data.singular_values.empty()) {
        if (auto note = sim::note_on_means(data.block->block(), data.singular_values.front()))
            data.notes.push_back(std::move(*note));
    }
    add(ready.notes);
    if (auto note = sim::note_on_symmetry(data.block->block())) data.notes.push_back(std::move(*note));
    note_stripped(data);
    if (data.precision == estimators::Precision::float32)
        data.notes.push_back(fmt::format("decomposed in float: singular values are within {:.1g} of the largest",
                                         rounding_of(data.precision, data.shape)));
    return data;
}

/// The size of the matrix and its largest singular values.
std::string head_text(const Data& data) {
    std::string text =
        fmt::format("{}: {}{} x {}, aspect ratio {:.4g}", data.file, data.covariance_of ? "covariances of data " : "",
                    data.whole.rows, data.whole.columns, AspectRatio::of(data.whole.rows, data.whole.columns).value());
    if (data.independent.rows < data.shape.rows || data.independent.columns < data.shape.columns)
        text += fmt::format(", centred: {} x {} degrees of freedom", data.independent.rows, data.independent.columns);
    text += "\n";
    if (data.leading) return text + leading_text(*data.leading, data.shape.short_side());
    text += "largest singular values:";
    for (std::size_t i = 0; i < std::min<std::size_t>(8, data.singular_values.size()); ++i)
        text += " " + data.value_cell(data.singular_values[i]);
    text += data.singular_values.size() > 8 ? " ...\n" : "\n";
    return text;
}

std::string estimate_text(const Estimate& estimate, const Data& data, theory::Loss loss) {
    const auto& found = estimate.shrinkage;
    std::string text = fmt::format("\n{} ({} loss): rank {}", estimate.name, theory::name_of(loss), found.rank);
    if (found.bulk_edge)
        text += fmt::format(", bulk edge at singular value {} (eigenvalue {})",
                            reports::four_digits(root(*found.bulk_edge).value),
                            reports::four_digits(found.bulk_edge->value));
    text += "\n";
    if (found.expected_error)
        text += fmt::format("  by its own estimate ||S^ - S||_F^2 is {:.4g}, {:.4g} % of ||S||_F^2\n",
                            found.expected_error->squared, 100.0 * found.expected_error->relative);
    if (!found.note.empty()) text += "  " + found.note + "\n";
    if (estimate.uncertainty.next_p_value)
        text += fmt::format(
            "  one more component: p = {:.2g} under white noise (Tracy-Widom), conditional on the rank {} that the "
            "same data chose\n",
            *estimate.uncertainty.next_p_value, found.rank);
    if (found.rank == 0) return text;
    reports::TextTable table({"component", "observed", "strength", "overlap left", "overlap right", "shrunk"});
    const auto cell = [&](double value) { return data.value_cell(value); };
    for (std::size_t i = 0; i < found.rank; ++i)
        table.add({std::to_string(i + 1), cell(data.singular_values[i]), cell(found.strengths[i]),
                   reports::four_digits(found.overlap_left[i]), reports::four_digits(found.overlap_right[i]),
                   cell(found.shrunk[i])});
    return text + table.text() + intervals_text(estimate.uncertainty);
}

/// Plots the spectrum with the bulk edge and the fitted law of the first estimator that has them. Returns a description
/// of the picture.
std::string plot(const Arguments& arguments, const std::vector<Estimate>& estimates,
                 const std::vector<double>& singular_values, std::size_t long_side) {
    const auto found = std::find_if(estimates.begin(), estimates.end(),
                                    [](const Estimate& estimate) { return estimate.shrinkage.bulk_edge.has_value(); });
    const std::string name = std::filesystem::path(arguments.positionals.front()).filename().string();
    const bool edge = found != estimates.end();
    const auto figure = reports::spectrum_figure(
        edge ? fmt::format("{}: spectrum, {}", name, found->name) : name + ": spectrum",
        validation::fit_spectrum(singular_values, edge ? found->shrinkage.bulk_edge : std::nullopt,
                                 edge ? found->shrinkage.noise_eigenvalues : std::vector<double>(), long_side));
    if (figure.script.empty())
        throw input_error("{}: nothing to plot ({}): leave --plot out", arguments.positionals.front(), figure.problem);
    reports::write_picture(figure, arguments.text("--plot"));
    return figure.description;
}

std::vector<Estimate> estimate_all(const Arguments& arguments, std::vector<estimators::SpectralMethod>& chosen,
                                   Data& data) {
    estimators::KnownCovariances whole{known_covariance(arguments.text("--row-spectrum"), data.whole.rows),
                                       known_covariance(arguments.text("--col-spectrum"), data.whole.columns)};
    const estimators::KnownNoise known = estimators::restricted(
        noise_of_seen(std::move(whole), data.entries.row_weights, data.entries.column_weights.t()),
        data.block ? data.block->kept_rows() : arma::uvec(), data.kept_columns);
    for (auto& method : chosen) {
        if (data.entries.missing > 0) {
            estimators::reject_whole_counts(method, data.entries.share);
            if (auto note = estimators::note_on_known_level(method, data.entries.share); !note.empty())
                data.notes.push_back(std::move(note));
        }
        method = method.knowing(known);
        method.check_room(data.independent.rows, data.independent.columns);
    }
    std::vector<Estimate> estimates;
    for (const auto& method : chosen) {
        // Methods that need the matrix itself see all its rows.
        const bool needs_block = method.needs_block();
        const estimators::Shape shape = needs_block ? data.shape : data.independent;
        const auto estimate = [&] {
            return needs_block ? method.estimate(*data.block)
                               : method.estimator.estimate(judged_values(data, shape), shape);
        };
        estimates.push_back({method.name, shape, located([&] { return data.file; }, estimate)});
        if (data.leading) reject_rank_without_end(method, estimates.back().shrinkage.rank, *data.leading, shape);
    }
    return estimates;
}

/// What the entries behind the components of an estimate say; nothing for an estimate in other coordinates.
std::optional<estimators::NoiseTails> tails_of(const estimators::SpectralMethod& method, std::size_t rank, Data& data) {
    if (!data.block || !method.transforms.empty()) return std::nullopt;
    const std::span<const double> values = std::span(data.singular_values).first(rank);
    if (data.leading) return estimators::noise_tails(data.block->block(), values, data.leading->vectors);
    return estimators::noise_tails(data.block->block(), values, data.block->vectors(rank));
}

/// Adds the intervals of every estimate, the p-value of one more component, and a note on heavy tails.
void add_intervals(const Arguments& arguments, const std::vector<estimators::SpectralMethod>& chosen,
                   std::vector<Estimate>& estimates, Data& data) {
    const auto method = enum_named<estimators::IntervalMethod>(arguments.text("--intervals"), "intervals");
    const double confidence = arguments.number("--confidence");
    for (std::size_t i = 0; i < estimates.size(); ++i) {
        Estimate& estimate = estimates[i];
        const auto values = judged_values(data, estimate.shape);
        std::optional<estimators::NoiseTails> tails;
        if (method != estimators::IntervalMethod::none) tails = tails_of(chosen[i], estimate.shrinkage.rank, data);
        estimate.uncertainty = {
            method, confidence,
            estimators::spike_intervals(estimate.shrinkage, values, estimate.shape, method, confidence, tails),
            estimators::next_component_p_value(estimate.shrinkage, values, estimate.shape), tails};
        if (tails && data.entries.missing == 0) estimators::add_note_on_tails(estimate.shrinkage, *tails);
    }
}

/// Writes the estimated signal and the rest.
void write_parts(const Arguments& arguments, const estimators::SpectralMethod& method, const Estimate& estimate,
                 Data& data) {
    const auto& shrunk = estimate.shrinkage.shrunk;
    arma::mat denoised =
        data.leading
            ? estimators::shrunk_block(data.block->block(), data.leading->values, data.leading->vectors, shrunk)
            : (method.transforms.empty() ? data.block->denoised(shrunk) : method.apply(*data.block).signal);
    if (arguments.has("--denoised")) sim::write_matrix(arguments.text("--denoised"), denoised);
    if (arguments.has("--residual")) {
        if (data.entries.missing > 0)
            denoised = data.entries.unweighted(data.block->block()) - denoised;
        else
            denoised = data.block->block() - denoised;  // in place
        sim::write_matrix(arguments.text("--residual"), denoised);
    }
    const bool changed = data.preparation.centered() != sim::Lines::none;
    if (data.entries.missing > 0)
        data.notes.push_back(
            fmt::format("the estimated signal has all entries; the residual has NaN where they are "
                        "missing{}",
                        changed ? ", and is that of the centred matrix" : ""));
    else if (changed)
        data.notes.push_back(
            fmt::format("the written matrices are those of the {} matrix, not of the numbers in the file",
                        data.preparation.standardize != sim::Lines::none ? "standardized" : "centred"));
}

Json spectrum_json(const Data& data, const std::vector<Estimate>& estimates, theory::Loss loss) {
    Json found = Json::array();
    for (const auto& estimate : estimates) found.push(estimate_json(estimate, loss));
    return Json::object(
        {{"schema", "spiked.spectrum/1"},
         {"rows", data.whole.rows},
         {"cols", data.whole.columns},
         {"centered", enum_name(data.preparation.centered())},
         {"standardized", enum_name(data.preparation.standardize)},
         {"missing", enum_name(data.preparation.missing)},
         {"missing_entries", data.entries.missing},
         {"share_seen", data.entries.share},
         {"independent_rows", data.independent.rows},
         {"independent_cols", data.independent.columns},
         {"precision", enum_name(data.precision)},
         {"covariance_of", data.covariance_of ? Json(*data.covariance_of) : Json()},
         {"stripped_rows", data.whole.rows - data.shape.rows},
         {"stripped_cols", data.whole.columns - data.shape.columns},
         {"singular_values", data.leading ? data.leading->values : data.singular_values},
         {"value_bounds", data.leading ? Json(data.leading->bounds) : Json()},
         {"krylov_dimension", data.leading && data.leading->dimension > 0 ? Json(data.leading->dimension) : Json()},
         {"estimators", std::move(found)},
         {"notes", data.notes}});
}

int run_spectrum(const Arguments& arguments) {
    if (arguments.has("--symmetric")) return run_symmetric_spectrum(arguments);
    const theory::Loss loss = enum_named<theory::Loss>(arguments.text("--loss"), "loss");
    std::vector<estimators::SpectralMethod> chosen = chosen_methods(arguments, loss);
    for (const char* output : {"--denoised", "--residual", "--plot"})
        keep_apart(arguments.text(output), arguments.positionals.front());
    keep_apart(arguments.text("--denoised"), arguments.text("--residual"));
    for (const char* output : {"--denoised", "--residual"}) sim::require_matrix_name(arguments.text(output));

    Data data = read_data(arguments);
    std::vector<Estimate> estimates = estimate_all(arguments, chosen, data);
    add_intervals(arguments, chosen, estimates, data);
    if (arguments.has("--denoised") || arguments.has("--residual"))
        write_parts(arguments, chosen.front(), estimates.front(), data);
    std::string picture;
    if (arguments.has("--plot"))
        picture = plot(arguments, estimates, data.singular_values, std::max(data.shape.rows, data.shape.columns));

    const std::span<const double> whole_spectrum = data.leading ? std::span<const double>() : data.singular_values;
    for (auto& note : estimators::spectrum_notes(whole_spectrum, data.entries.share))
        data.notes.push_back(std::move(note));
    for (const auto& note : data.notes) print_note(arguments, note);
    if (arguments.json()) {
        print_json(spectrum_json(data, estimates, loss));
        return 0;
    }
    std::string text = head_text(data);
    for (const auto& estimate : estimates) text += estimate_text(estimate, data, loss);
    if (!picture.empty()) text += fmt::format("{}: {}\n", arguments.text("--plot"), picture);
    print_text(text);
    return 0;
}

}  // namespace

Command spectrum_command() {
    std::vector<OptionSpec> options = {
        {"--estimator", names_from({"estimators"}, any_text("NAME")),
         "spectral estimator; spiked list estimators shows all", "eoptshrink", true},
        {"--loss", one_of<theory::Loss>(), "loss for which the shrinkage is optimal",
         std::string(theory::name_of(theory::Loss::frobenius))},
        {"--intervals", one_of<estimators::IntervalMethod>(),
         "how intervals of strengths and overlaps are made: by the theory of fluctuations or by a parametric bootstrap",
         std::string(enum_name(estimators::IntervalMethod::theory))},
        {"--confidence", number("P", {.above = 0.0, .below = 1.0}), "confidence of the intervals", "0.95"},
        {"--denoised", file_with({".npy", ".csv"}, "FILE.npy|FILE.csv"), "write the estimated signal"},
        {"--residual", file_with({".npy", ".csv"}, "FILE.npy|FILE.csv"), "write the matrix minus the estimated signal"},
        plot_option("singular values, bulk edge and fitted noise as a picture"),
    };
    std::vector<OptionSpec> before = {
        {.key = "--covariance",
         .value = whole("SAMPLES", 2),
         .help = "the file is a covariance or correlation matrix of so many samples, less one where they were centred; "
                 "there are no left vectors and no estimated signal then",
         .excludes = {{"--center", "--standardize", "--missing", "--row-spectrum", "--denoised", "--residual",
                       "--values"},
                      no_samples}},
        {"--keep-empty", {}, "do not leave out rows and columns of zeros"},
    };
    using sim::Missing;
    before = in_group(
        before_the_analysis,
        joined({before,
                preparation_options(),
                {missing_option({Missing::none, Missing::uniform, Missing::rows, Missing::columns, Missing::both})}}));
    const auto noise =
        in_group("Noise with a known covariance",
                 {
                     {"--row-spectrum", any_text("SPEC|FILE.npy"),
                      "known row covariance of the noise, for whiten and tw-test (SPEC: spiked list covariances)"},
                     {"--col-spectrum", any_text("SPEC|FILE.npy"),
                      "known column covariance B of the noise A^(1/2) X B^(1/2), where entries of X have variance 1/d"},
                 });
    options = joined({options, before, symmetric_options(), noise, computing_options()});
    exclude_others(options, "--symmetric", {"--loss", "--confidence", "--denoised", "--residual", "--keep-empty"},
                   "it has a model of its own");
    options = joined({options, matrix_options()});
    return {
        "spectrum",
        "which components of a matrix are signal: how many, how strong, how sure",
        {"spiked spectrum data.csv", "spiked spectrum data.csv --center columns --denoised clean.csv",
         "spiked spectrum data.npy --plot spectrum.svg",
         "spiked spectrum data.csv --estimator eoptshrink --estimator svd:2 --json",
         "spiked spectrum table.csv --missing uniform", "spiked spectrum correlations.csv --covariance 250",
         "spiked spectrum network.mtx --symmetric --denoised clean.npy",
         "spiked spectrum data.npz:x --denoised clean.npy --residual noise.npy",
         "spiked spectrum data.npy --estimator whiten+gd-shrink --row-spectrum ar1:0.5 --col-spectrum variances.npy"},
        matrix_value(),
        1,
        1,
        options,
        run_spectrum};
}

}  // namespace spiked::app
