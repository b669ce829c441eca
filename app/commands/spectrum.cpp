#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "app/cli/command.hpp"
#include "app/commands/dump_options.hpp"
#include "core/runtime/error.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/ranks/bulk_gap.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "reports/figures/gnuplot.hpp"
#include "reports/figures/spectrum_figure.hpp"
#include "reports/tables/text_table.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/npy.hpp"
#include "sim/spiked/covariance_spec.hpp"

namespace spiked::app {
namespace {

struct Estimate {
    std::string name;
    estimators::Shrinkage shrinkage;
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
         {"note", found.note.empty() ? Json() : Json(found.note)}});
}

/// The size of the matrix, what was left out of it, and its largest singular values.
std::string head_text(const std::string& path, const arma::mat& matrix, estimators::Shape shape,
                      const std::vector<double>& singular_values) {
    std::string text = fmt::format("{}: {} x {}, aspect ratio {:.6g}\n", path, matrix.n_rows, matrix.n_cols,
                                   AspectRatio::of(matrix.n_rows, matrix.n_cols).value());
    const std::size_t stripped_rows = matrix.n_rows - shape.rows;
    const std::size_t stripped_columns = matrix.n_cols - shape.columns;
    if (stripped_rows + stripped_columns > 0)
        text += fmt::format("left out: {}, {} (--keep-empty keeps them)\n", reports::counted(stripped_rows, "zero row"),
                            reports::counted(stripped_columns, "zero column"));
    text += "largest singular values:";
    for (std::size_t i = 0; i < std::min<std::size_t>(8, singular_values.size()); ++i)
        text += fmt::format(" {:.6g}", singular_values[i]);
    text += singular_values.size() > 8 ? " ...\n" : "\n";
    return text;
}

std::string estimate_text(const Estimate& estimate, const std::vector<double>& singular_values, theory::Loss loss) {
    const auto& found = estimate.shrinkage;
    std::string text = fmt::format("\n{} ({} loss): rank {}", estimate.name, theory::name_of(loss), found.rank);
    if (found.bulk_edge)
        text += fmt::format(", bulk edge at singular value {:.6g} (eigenvalue {:.6g})", root(*found.bulk_edge).value,
                            found.bulk_edge->value);
    text += "\n";
    if (found.expected_error)
        text += fmt::format("  by its own estimate ||S^ - S||_F^2 is {:.6g}, {:.4g} % of ||S||_F^2\n",
                            found.expected_error->squared, 100.0 * found.expected_error->relative);
    if (!found.note.empty()) text += "  " + found.note + "\n";
    if (found.rank == 0) return text;
    reports::TextTable table({"component", "observed", "strength", "overlap left", "overlap right", "shrunk"});
    const auto cell = [](double value) { return reports::with_error(value, 0.0, 6); };
    for (std::size_t i = 0; i < found.rank; ++i)
        table.add({std::to_string(i + 1), cell(singular_values[i]), cell(found.strengths[i]),
                   cell(found.overlap_left[i]), cell(found.overlap_right[i]), cell(found.shrunk[i])});
    return text + table.text();
}

/// The known noise covariance of one side, restricted to the rows or columns that were kept.
std::optional<estimators::NoiseCovariance> known_covariance(const std::string& spec, std::size_t size,
                                                            const arma::uvec& kept) {
    if (spec.empty()) return std::nullopt;
    const arma::mat covariance = sim::covariance_matrix(spec, size);
    const auto whole = covariance.n_cols == 1 ? estimators::NoiseCovariance::diagonal(covariance)
                                              : estimators::NoiseCovariance::full(covariance);
    return whole.restricted(kept);
}

/// A note on a gap in the bulk of the spectrum; nothing where there is none.
std::optional<std::string> gap_note(const std::vector<double>& singular_values) {
    const auto gap = estimators::bulk_gap(singular_values);
    if (!gap) return std::nullopt;
    return fmt::format(
        "a gap in the bulk: singular values {} and {} are {:.6g} and {:.6g}, {:.3g} times the spacing beside them "
        "(noise "
        "with one bulk leaves such a gap in {:g} % of matrices, nominal). The noise may have several components, or "
        "the "
        "signal {} components of similar strengths. eoptshrink, optshrink, svd, screenot, gd-hard, gd-shrink and "
        "tw-test assume one bulk: they look for signals above its top edge, and may be wrong about those in the gap or "
        "below it, which they take for noise",
        gap->above, gap->above + 1, gap->upper, gap->lower, gap->spacings, 100.0 * estimators::bulk_gap_level,
        gap->above);
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

int run(const Arguments& arguments) {
    const theory::Loss loss = enum_named<theory::Loss>(arguments.text("--loss"), "loss");
    // Parsed before the file is read, so that errors in the names are reported first.
    std::vector<estimators::SpectralMethod> chosen;
    for (const auto& name : arguments.list("--estimator")) chosen.push_back(estimators::parse_estimator(name, loss));
    if (loss != theory::Loss::frobenius &&
        std::all_of(chosen.begin(), chosen.end(), [](const auto& method) { return method.estimator.keeps_values; }))
        throw usage_error("--loss has no effect on {} (it keeps values as they are): leave it out",
                          fmt::join(arguments.list("--estimator"), ", "));
    for (const char* side : {"--row-spectrum", "--col-spectrum"})
        if (arguments.has(side) &&
            std::none_of(chosen.begin(), chosen.end(), [](const auto& method) { return method.takes_noise_law(); }))
            throw usage_error(
                "{} is used by no estimator named (only {} use it): name one of them, "
                "for example --estimator whiten+gd-shrink, or leave it out",
                side, estimators::users_of_noise_law());
    const bool writes = arguments.has("--denoised") || arguments.has("--residual");
    if (writes && chosen.size() != 1)
        throw usage_error("--denoised and --residual need exactly one --estimator ({} given): name the one to apply",
                          chosen.size());

    for (const char* output : {"--denoised", "--residual", "--plot"})
        keep_apart(arguments.text(output), arguments.positionals.front());
    if (arguments.has("--plot")) (void)reports::picture_format(arguments.text("--plot"));
    keep_apart(arguments.text("--denoised"), arguments.text("--residual"));
    const arma::mat matrix = sim::read_matrix(arguments.positionals.front());
    using EmptyLines = estimators::AnalysedBlock::EmptyLines;
    estimators::AnalysedBlock block(matrix, arguments.has("--keep-empty") ? EmptyLines::keep : EmptyLines::strip);
    const auto& singular_values = block.singular_values();
    const estimators::KnownNoise known{
        known_covariance(arguments.text("--row-spectrum"), matrix.n_rows, block.kept_rows()),
        known_covariance(arguments.text("--col-spectrum"), matrix.n_cols, block.kept_columns())};
    for (auto& method : chosen) {
        method = method.knowing(known);
        method.check_room(block.shape().rows, block.shape().columns);
    }
    std::vector<Estimate> estimates;
    for (const auto& method : chosen)
        estimates.push_back({method.name, located([&] { return arguments.positionals.front(); },
                                                  [&] { return method.estimate(block); })});
    if (writes) {
        const arma::mat denoised = chosen.front().apply(block).signal;
        if (arguments.has("--denoised")) sim::write_npy(arguments.text("--denoised"), denoised);
        if (arguments.has("--residual")) sim::write_npy(arguments.text("--residual"), matrix - denoised);
    }

    std::string picture;
    if (arguments.has("--plot"))
        picture = plot(arguments, estimates, singular_values, std::max(block.shape().rows, block.shape().columns));

    const auto shape = block.shape();
    Json notes = Json::array();
    if (const auto note = gap_note(singular_values)) {
        notes.push(*note);
        print_note(arguments, *note);
    }
    if (arguments.json()) {
        Json found = Json::array();
        for (const auto& estimate : estimates) found.push(estimate_json(estimate, loss));
        print_json(Json::object({{"schema", "spiked.spectrum/1"},
                                 {"rows", static_cast<std::size_t>(matrix.n_rows)},
                                 {"cols", static_cast<std::size_t>(matrix.n_cols)},
                                 {"stripped_rows", static_cast<std::size_t>(matrix.n_rows - shape.rows)},
                                 {"stripped_cols", static_cast<std::size_t>(matrix.n_cols - shape.columns)},
                                 {"singular_values", singular_values},
                                 {"estimators", std::move(found)},
                                 {"notes", std::move(notes)}}));
        return 0;
    }
    std::string text = head_text(arguments.positionals.front(), matrix, shape, singular_values);
    for (const auto& estimate : estimates) text += estimate_text(estimate, singular_values, loss);
    if (!picture.empty()) text += fmt::format("{}: {}\n", arguments.text("--plot"), picture);
    print_text(text);
    return 0;
}

}  // namespace

Command spectrum_command() {
    return {
        "spectrum",
        "rank, bulk edge and shrunk singular values of one matrix",
        {"spiked spectrum data.npy", "spiked spectrum data.npy --plot spectrum.svg",
         "spiked spectrum data.csv --estimator eoptshrink --estimator svd:2 --json",
         "spiked spectrum data.npz:x --denoised clean.npy --residual noise.npy",
         "spiked spectrum data.npy --estimator whiten+gd-shrink --row-spectrum ar1:0.5 --col-spectrum variances.npy"},
        matrix_value(),
        1,
        1,
        {{"--estimator", names_from({"estimators"}, any_text("NAME")),
          "spectral estimator; spiked list estimators shows all", "eoptshrink", true},
         {"--loss", one_of<theory::Loss>(), "loss for which the shrinkage is optimal",
          std::string(theory::name_of(theory::Loss::frobenius)), false},
         {"--denoised", file_with({".npy"}), "write the estimated signal", "", false},
         {"--residual", file_with({".npy"}), "write the matrix minus the estimated signal", "", false},
         {"--row-spectrum", any_text("SPEC|FILE.npy"),
          "known row covariance of the noise, for whiten and tw-test (SPEC: spiked list covariances)", "", false},
         {"--col-spectrum", any_text("SPEC|FILE.npy"),
          "known column covariance B of the noise A^(1/2) X B^(1/2), where entries of X have variance 1/d", "", false},
         {"--plot", any_text("FILE"), "singular values, bulk edge and fitted noise as a picture: .svg, .png or .pdf",
          "", false},
         {"--keep-empty", {}, "do not leave out rows and columns of zeros", "", false}},
        run};
}

}  // namespace spiked::app
