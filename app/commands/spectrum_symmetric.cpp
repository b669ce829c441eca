#include <fmt/format.h>

#include <algorithm>

#include "app/commands/spectrum_parts.hpp"
#include "app/options/matrix_options.hpp"
#include "core/runtime/error.hpp"
#include "estimators/symmetric/symmetric_components.hpp"
#include "reports/tables/text_table.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/table.hpp"

// spiked spectrum --symmetric: the spiked Wigner model.

namespace spiked::app {
namespace {

using estimators::SymmetricComponent;
using estimators::SymmetricComponents;

/// A symmetric matrix without its rows and columns of zeros, and what was found in it.
struct SymmetricData {
    std::string file;
    arma::mat matrix;  ///< as read
    arma::uvec kept;
    SymmetricComponents found;
    std::vector<std::string> notes;

    [[nodiscard]] bool complex() const { return found.field == theory::Field::complex; }
    /// A matrix of the rows kept in the place that they had.
    [[nodiscard]] arma::mat whole(const arma::mat& part) const {
        arma::mat full(arma::size(matrix), arma::fill::zeros);
        full.submat(kept, kept) = part;
        return full;
    }
};

estimators::SymmetricOptions read_options(const Arguments& arguments) {
    estimators::SymmetricOptions options;
    options.loss = enum_named<theory::Loss>(arguments.text("--loss"), "loss");
    options.rule = enum_named<estimators::VarianceRule>(arguments.text("--noise"), "--noise");
    options.level = arguments.number("--level");
    options.confidence = arguments.number("--confidence");
    if (!arguments.has("--sigma")) return options;
    options.entry_deviation = arguments.number("--sigma");
    return options;
}

SymmetricData analyse(const Arguments& arguments, const estimators::SymmetricOptions& options) {
    SymmetricData data;
    data.file = arguments.positionals.front();
    sim::MatrixReading reading = read_matrix_options(arguments);
    reading.copies = 4.0;
    reading.real_form = true;
    sim::NotedMatrix read = sim::read_noted_matrix(data.file, reading);
    data.notes = std::move(read.notes);
    data.matrix = std::move(read.matrix);
    const std::size_t rows = data.matrix.n_rows;
    data.kept = arguments.has("--keep-empty") || rows != data.matrix.n_cols
                    ? arma::regspace<arma::uvec>(0, rows - 1)
                    : arma::uvec(arma::find(arma::any(data.matrix != 0.0, 1)));
    if (data.kept.is_empty()) data.kept = arma::regspace<arma::uvec>(0, rows - 1);
    data.found = located([&] { return data.file; },
                         [&] {
                             const arma::mat part = data.kept.n_elem < rows
                                                        ? arma::mat(data.matrix.submat(data.kept, data.kept))
                                                        : data.matrix;
                             return read.complex || estimators::is_hermitian_form(part)
                                        ? estimators::hermitian_components(part, options)
                                        : estimators::symmetric_components(part, options);
                         });
    if (data.complex() && !read.complex)
        data.notes.push_back(
            "the matrix is the real form [[A, -B], [B, A]] of a Hermitian matrix A + iB, which is what is analysed");
    if (data.kept.n_elem < rows) {
        const std::size_t left_out = (rows - data.kept.n_elem) / (data.complex() ? 2 : 1);
        data.notes.push_back(fmt::format("{} and as many columns left out (--keep-empty keeps them)",
                                         reports::counted(left_out, "zero row")));
    }
    if (!data.found.note.empty()) data.notes.push_back(data.found.note);
    return data;
}

Json interval_of(const estimators::Interval& interval) {
    Json ends = Json::array();
    ends.push(interval.low);
    ends.push(interval.high);
    return ends;
}

Json symmetric_json(const SymmetricData& data, const estimators::SymmetricOptions& options) {
    const SymmetricComponents& found = data.found;
    Json list = Json::array();
    for (const SymmetricComponent& one : found.components)
        list.push(Json::object({{"eigenvalue", one.eigenvalue},
                                {"p_value", one.p_value},
                                {"strength", one.strength},
                                {"strength_interval", interval_of(one.strength_interval)},
                                {"overlap", one.overlap},
                                {"overlap_interval", interval_of(one.overlap_interval)},
                                {"shrunk", one.shrunk}}));
    const bool noise = found.entry_deviation > 0.0;
    return Json::object({{"schema", "spiked.symmetric/1"},
                         {"size", found.size},
                         {"complex", data.complex()},
                         {"entry_deviation", noise ? Json(found.entry_deviation) : Json()},
                         {"edge", noise ? Json(found.edge) : Json()},
                         {"level", options.level},
                         {"confidence", options.confidence},
                         {"loss", theory::name_of(options.loss)},
                         {"eigenvalues", found.eigenvalues},
                         {"components", std::move(list)},
                         {"next_component_p_value", found.next_p_value ? Json(*found.next_p_value) : Json()},
                         {"excess_kurtosis", noise ? Json(found.entries.excess_kurtosis) : Json()},
                         {"diagonal_variance", noise ? Json(found.entries.diagonal_variance.value_or(0.0)) : Json()},
                         {"notes", data.notes}});
}

std::string symmetric_text(const SymmetricData& data, const estimators::SymmetricOptions& options, bool known) {
    const SymmetricComponents& found = data.found;
    const auto& values = found.eigenvalues;
    std::string text = fmt::format("{}: {}, {} x {}\nlargest and smallest eigenvalues:", data.file,
                                   data.complex() ? "Hermitian" : "symmetric", found.size, found.size);
    const std::size_t shown = std::min<std::size_t>(4, values.size() / 2);
    for (std::size_t i = 0; i < shown; ++i) text += " " + reports::four_digits(values[i]);
    text += " ...";
    for (std::size_t i = values.size() - shown; i < values.size(); ++i) text += " " + reports::four_digits(values[i]);
    if (found.entry_deviation > 0.0)
        text += fmt::format(
            "\nnoise: entries off the diagonal have standard deviation {} ({}), its eigenvalues lie between -{} and {}",
            reports::four_digits(found.entry_deviation),
            known ? std::string("given") : fmt::format("from the {}", enum_name(options.rule)),
            reports::four_digits(found.edge), reports::four_digits(found.edge));
    text += fmt::format("\n{} at level {:g}", reports::counted(found.components.size(), "component"), options.level);
    if (found.next_p_value) text += fmt::format("; one more: p = {:.2g}", *found.next_p_value);
    text += "\n";
    if (found.components.empty()) return text;
    const auto range = [](const estimators::Interval& interval) {
        return fmt::format("{} to {}", reports::four_digits(interval.low), reports::four_digits(interval.high));
    };
    const std::string percent = reports::percentage(options.confidence) + " %";
    reports::TextTable table({"component", "eigenvalue", "p", "strength", percent, "squared overlap", percent,
                              fmt::format("shrunk, {}", theory::name_of(options.loss))});
    for (std::size_t i = 0; i < found.components.size(); ++i) {
        const SymmetricComponent& one = found.components[i];
        table.add({std::to_string(i + 1), reports::four_digits(one.eigenvalue), fmt::format("{:.2g}", one.p_value),
                   reports::four_digits(one.strength), range(one.strength_interval), reports::four_digits(one.overlap),
                   range(one.overlap_interval), reports::four_digits(one.shrunk)});
    }
    return text + table.text();
}

}  // namespace

std::vector<OptionSpec> symmetric_options() {
    const estimators::SymmetricOptions fallback;
    const OtherOptions alone{{"--symmetric"}, "estimators have options of their own"};
    return in_group(
        "Symmetric matrices",
        {{.key = "--symmetric",
          .help =
              "rows and columns are the same, and so is the noise (spiked Wigner model): eigenvalues of both signs, "
              "their p-values, strengths and overlaps; a Hermitian matrix A + iB is a .npy file of complex numbers "
              "or [[A, -B], [B, A]]"},
         {.key = "--level",
          .value = number("P", {.above = 0.0, .below = 1.0}),
          .help = "with --symmetric: probability that noise is taken for a component, of each test",
          .fallback = fmt::format("{}", fallback.level),
          .needs = alone},
         {.key = "--sigma",
          .value = number("S", {.above = 0.0}),
          .help = "with --symmetric: known standard deviation of the noise in an entry off the diagonal",
          .needs = alone,
          .excludes = {{"--noise"}, "a known level is not estimated"}},
         {.key = "--noise",
          .value = one_of<estimators::VarianceRule>(),
          .help =
              "with --symmetric: noise level from the mean square of the eigenvalues behind the components, or from "
              "the median of their moduli",
          .fallback = std::string(enum_name(fallback.rule)),
          .needs = alone}});
}

int run_symmetric_spectrum(const Arguments& arguments) {
    for (const char* output : {"--denoised", "--residual"}) {
        keep_apart(arguments.text(output), arguments.positionals.front());
        sim::require_matrix_name(arguments.text(output));
    }
    keep_apart(arguments.text("--denoised"), arguments.text("--residual"));
    const estimators::SymmetricOptions options = read_options(arguments);
    const SymmetricData data = analyse(arguments, options);
    const arma::mat signal = data.whole(data.found.signal);
    if (arguments.has("--denoised")) sim::write_matrix(arguments.text("--denoised"), signal);
    if (arguments.has("--residual")) sim::write_matrix(arguments.text("--residual"), arma::mat(data.matrix - signal));
    for (const auto& note : data.notes) print_note(arguments, note);
    if (arguments.json())
        print_json(symmetric_json(data, options));
    else
        print_text(symmetric_text(data, options, arguments.has("--sigma")));
    return 0;
}

}  // namespace spiked::app
