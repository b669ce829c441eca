#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "app/cli/command.hpp"
#include "app/commands/theory_models.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "reports/figures/theory_figure.hpp"
#include "reports/tables/text_table.hpp"
#include "reports/tables/theory_report.hpp"
#include "sim/spiked/covariance_kinds.hpp"
#include "sim/spiked/entry_law.hpp"
#include "sim/spiked/spectrum_spec.hpp"
#include "theory/laws/spike_clusters.hpp"
#include "theory/missing/missing_entries.hpp"

namespace spiked::app {
namespace {

struct Size {
    std::size_t rows;
    std::size_t columns;
};

std::optional<Size> read_size(const Arguments& arguments) {
    if (!arguments.has("--size")) return std::nullopt;
    const auto parts = split(arguments.text("--size"), 'x');
    const auto rows = to_integer(parts.front());
    const auto columns = to_integer(parts.back());
    if (parts.size() != 2 || !rows || !columns || *rows < 1 || *columns < 1)
        throw usage_error("--size \"{}\" is not rows x columns: write for example --size 128x256",
                          arguments.text("--size"));
    return Size{static_cast<std::size_t>(*rows), static_cast<std::size_t>(*columns)};
}

reports::TheoryAnswers::Bulk bulk_answers(const Arguments& arguments, const theory::SeparableLaw& law,
                                          const theory::BulkDistribution& bulk) {
    reports::TheoryAnswers::Bulk answers;
    if (arguments.has("--density")) answers.curve = bulk.curve(arguments.count("--density"));
    if (arguments.has("--quantile")) {
        for (const double probability : arguments.numbers("--quantile"))
            answers.quantiles.emplace_back(probability, bulk.quantile(probability));
    }
    if (arguments.has("--stieltjes")) {
        const auto parts = arguments.numbers("--stieltjes");
        if (parts.size() > 2)
            throw usage_error("--stieltjes \"{}\" is not a point (real part, imaginary part): write for example 2,0.1",
                              arguments.text("--stieltjes"));
        const double real = parts.front();
        const std::complex<double> z(real, parts.size() == 2 ? parts.back() : 0.0);
        answers.transforms = {z, z.imag() == 0.0
                                     ? theory::StieltjesPair{law.stieltjes_left({real}), law.stieltjes_right({real})}
                                     : bulk.stieltjes(z)};
    }
    return answers;
}

/// The theory of quantization for every width of --bits and blocks of the size --size.
std::optional<theory::QuantizationOverview> quantization_answers(const Arguments& arguments,
                                                                 const std::optional<Size>& size) {
    if (!arguments.has("--bits")) return std::nullopt;
    theory::CompressorSetting setting;
    if (size) {
        if (std::max(size->rows, size->columns) > 1000000)
            throw usage_error("--size {} is too large for --bits (rows of at most 1000000 entries): give a smaller one",
                              arguments.text("--size"));
        setting.rows = static_cast<int>(size->rows);
        setting.dimension = static_cast<int>(size->columns);
    }
    setting.residual_energy_fraction = arguments.number("--residual-energy");
    setting.rank = static_cast<int>(std::min<std::size_t>(arguments.count("--rank"), 1000000));
    std::vector<int> widths;
    for (const std::size_t bits : arguments.counts("--bits")) widths.push_back(static_cast<int>(bits));
    return theory::quantization_overview(setting, widths);
}

/// A side of the noise as a SPEC gives it.
theory::SeenSide read_side(const std::string& spec) {
    const sim::SpectrumSpec found = sim::spectrum_spec(spec);
    return {found.law(), found.diagonal()};
}

/// The error against the fraction of entries seen: tenths, and the one that was asked for.
std::vector<theory::LossAtShare> losses_by_share(const theory::SeenSide& row, const theory::SeenSide& column,
                                                 AspectRatio aspect, const std::vector<SignalStrength>& strengths,
                                                 double share, double signal_square) {
    std::set<double, std::greater<>> shares = {share};
    for (int tenths = 1; tenths <= 10; ++tenths) shares.insert(tenths / 10.0);
    return theory::loss_against_share(row, column, aspect, strengths, std::vector(shares.begin(), shares.end()),
                                      signal_square);
}

std::string losses_text(const std::vector<theory::LossAtShare>& losses, double share) {
    reports::TextTable table({"share seen", "detection threshold", "||S^ - S||_F^2 / ||S||_F^2"});
    for (const auto& loss : losses)
        table.add({fmt::format("{:g}", loss.share), fmt::format("{:.6g}", loss.detection_threshold.value),
                   fmt::format("{:.4f}", loss.relative_error)});
    return fmt::format(
        "\nmissing entries: a fraction of {:g} is seen, and these are divided by it; the numbers above are of that "
        "matrix. Errors are of first order: below .7 seen they are larger\n{}",
        share, table.text());
}

void add_losses(Json& document, const std::vector<theory::LossAtShare>& losses, double share) {
    Json list = Json::array();
    for (const auto& loss : losses)
        list.push(Json::object({{"share", loss.share},
                                {"detection_threshold", loss.detection_threshold.value},
                                {"relative_error", loss.relative_error}}));
    document.set("share_seen", share).set("losses", std::move(list));
}

/// Adds the corrections for finite size under the entry law of --entries, as far as they are known.
void add_finite_size(reports::TheoryAnswers& answers, const Arguments& arguments, const Size& size,
                     const std::vector<SignalStrength>& strengths) {
    const auto law = sim::EntryLaw::parse(arguments.text("--entries"));
    sim::EntryMoments moments = law.moments();
    moments.kurtosis = theory::seen_kurtosis(moments.kurtosis, arguments.number("--seen"));
    theory::NoiseEntries entries;
    if (arguments.has("--complex")) {
        if (!law.gaussian())
            throw usage_error(
                "--entries {} and --complex are given (at one size only Gaussian complex entries are known, but with "
                "--symmetric): leave one of them out",
                law.text());
        entries.field = theory::Field::complex;
    }
    answers.entries = law.text();
    if (!law.gaussian() || arguments.number("--seen") < 1.0) {
        const char* const gaussian = "the numbers for this size are those of Gaussian entries";
        if (!theory::is_white(answers.law))
            answers.entries_note = fmt::format("{} (the effect of others is known for white noise only)", gaussian);
        else if (!std::isfinite(moments.kurtosis))
            answers.entries_note =
                fmt::format("{} (the fourth moment is infinite); rare large entries add outliers", gaussian);
        else {
            entries.excess_kurtosis = moments.kurtosis - 3.0;
            answers.entries_note = fmt::format(
                "an excess kurtosis of {:.4g} is included to first order in its ratio to d, for Haar vectors",
                entries.excess_kurtosis);
            if (std::isfinite(moments.order))
                answers.entries_note += fmt::format(
                    "; moments exist below order {:g} only, and rare large entries add outliers and far larger "
                    "deviations",
                    moments.order);
        }
    }
    answers.finite = theory::finite_size(answers.law, size.rows, size.columns, strengths, 0.01, entries);
    const double shift = answers.finite->kurtosis_shift;
    const double deviation = answers.finite->top_noise_standard_deviation;
    if (shift > 0.5 * deviation && shift <= deviation)
        answers.entries_note +=
            "; the largest noise eigenvalue varies more than stated (laplace at 64 x 64: by .25 instead of .20)";
    if (std::abs(shift) > deviation)
        answers.entries_note += fmt::format(
            "; it moves the largest noise eigenvalue by {:.3g}, more than its standard deviation: first order is then "
            "too large (for sparse:0.05 at 64 x 160 by a third), and that deviation too small (there by half)",
            shift);
}

/// Strengths, largest first, so close that spikes of them in one block mix (theory::spike_clusters).
struct CloseStrengths {
    std::vector<double> values;
    bool detectable = true;  ///< all of them
};

std::vector<CloseStrengths> close_strengths(const theory::SeparableLaw& law, std::vector<SignalStrength> strengths,
                                            const Size& size) {
    std::sort(strengths.begin(), strengths.end(), [](auto a, auto b) { return a.value > b.value; });
    std::vector<CloseStrengths> close;
    for (const auto& cluster : theory::spike_clusters(law, strengths, size.rows, size.columns)) {
        if (cluster.count == 1) continue;
        close.push_back({{}, cluster.detectable});
        for (std::size_t i = 0; i < cluster.count; ++i)
            close.back().values.push_back(strengths[cluster.first + i].value);
    }
    return close;
}

std::string note_of(const CloseStrengths& close, const Size& size) {
    const std::string mixed = fmt::format(
        "the {} strengths from {:.6g} to {:.6g} are closer than {:g} standard deviations at {} x {}, so that the "
        "vectors of such spikes in one block mix",
        close.values.size(), close.values.front(), close.values.back(), theory::separation_of_spikes, size.rows,
        size.columns);
    return mixed + (close.detectable
                        ? ": together, overlaps hold for the subspace that they span and outliers for their mean, not "
                          "for each"
                        : ", and the weakest is not detectable: the predictions do not hold for them together");
}

/// Adds `clusters` to `finite_size`, and their notes, where strengths are close.
void add_close_strengths(Json& document, const std::vector<CloseStrengths>& close, const Size& size) {
    Json clusters = Json::array();
    Json notes = *document.find("notes");
    for (const auto& one : close) {
        clusters.push(Json::object({{"strengths", one.values}, {"detectable", one.detectable}}));
        notes.push(note_of(one, size));
    }
    Json finite = *document.find("finite_size");
    document.set("finite_size", finite.set("clusters", std::move(clusters)));
    document.set("notes", std::move(notes));
}

int run_theory(const Arguments& arguments) {
    const std::optional<Size> size = read_size(arguments);
    if (arguments.has("--symmetric"))
        return run_symmetric_theory(arguments, size ? size->rows : 0, size ? size->columns : 0);
    reject_negative_strengths(arguments);
    if (arguments.has("--population"))
        return run_covariance_theory(arguments, size ? size->rows : 0, size ? size->columns : 0);
    if (arguments.has("--variances"))
        return run_profile_theory(arguments, size ? size->rows : 0, size ? size->columns : 0);
    const AspectRatio aspect = read_aspect(arguments, size ? size->rows : 0, size ? size->columns : 0);
    std::vector<SignalStrength> strengths;
    for (const double strength : arguments.numbers("--strength")) strengths.push_back({strength});
    const theory::SeenSide row = read_side(arguments.text("--row-spectrum"));
    const theory::SeenSide column = read_side(arguments.text("--col-spectrum"));
    const double share = arguments.number("--seen");
    double signal_square = 0.0;  // matters for a size only
    for (const auto strength : strengths)
        if (size) signal_square += strength.value * strength.value / static_cast<double>(size->rows);
    const theory::SeenSpectra seen = theory::seen_spectra(row, column, share, signal_square);
    const theory::SeparableLaw law(seen.row, seen.column, aspect);
    const theory::BulkDistribution bulk(law);
    reports::TheoryAnswers answers{.row_spectrum = arguments.text("--row-spectrum"),
                                   .column_spectrum = arguments.text("--col-spectrum"),
                                   .law = law,
                                   .bulk = bulk};
    if (size) add_finite_size(answers, arguments, *size, strengths);
    answers.regularity = answers.finite ? answers.finite->regularity : law.edge_regularity();
    answers.of_bulk = bulk_answers(arguments, law, bulk);
    answers.quantization = quantization_answers(arguments, size);
    const theory::SupportGaps outside(law);
    answers.gaps = outside.gaps();
    for (const auto strength : strengths) {
        answers.spikes.push_back(law.spike(strength));
        answers.outliers.push_back(theory::all_outliers(answers.spikes.back(), outside));
    }
    if (arguments.has("--plot"))
        reports::write_picture(reports::phase_transition(law, strengths), arguments.text("--plot"));
    std::vector<theory::LossAtShare> losses;
    if (share < 1.0 && !strengths.empty())
        losses = losses_by_share(row, column, aspect, strengths, share, signal_square);
    const auto close = size ? close_strengths(law, strengths, *size) : std::vector<CloseStrengths>{};
    if (arguments.json()) {
        Json document = theory_json(answers);
        if (!close.empty()) add_close_strengths(document, close, *size);
        if (share < 1.0) add_losses(document, losses, share);
        print_json(document);
    } else {
        std::string text = theory_text(answers);
        for (const auto& one : close) text += "warning: " + note_of(one, *size) + "\n";
        if (!losses.empty()) text += losses_text(losses, share);
        print_text(text);
    }
    return 0;
}

std::string forms_of_spectra() {
    std::vector<std::string> forms;
    for (const auto& kind : sim::covariance_kinds()) forms.push_back(kind.spec_form());
    return fmt::format("{}", fmt::join(forms, ", "));
}

}  // namespace

AspectRatio read_aspect(const Arguments& arguments, std::size_t rows, std::size_t columns, std::string_view of,
                        std::string_view example) {
    if (arguments.has("--aspect")) {
        const AspectRatio aspect(arguments.number("--aspect"));
        const double of_size = rows > 0 ? AspectRatio::of(rows, columns).value() : aspect.value();
        if (std::abs(of_size - aspect.value()) > 1e-9 * aspect.value())
            throw usage_error(
                "--size {}x{} does not fit --aspect {:g} (its aspect ratio is {:g}): leave one of them out", rows,
                columns, aspect.value(), of_size);
        return aspect;
    }
    if (rows == 0) throw usage_error("--aspect is missing ({}): add for example {}", of, example);
    return AspectRatio::of(rows, columns);
}

Command theory_command() {
    std::vector<OptionSpec> options = {
        {"--aspect", number("BETA"), "rows over columns, n/d; this or --size has to be given"},
        {"--size", any_text("NxD"), "rows x columns: adds the corrections for finite size"},
        {.key = "--entries",
         .value = names_from({"entries"}, any_text("LAW")),
         .help = "with --size: law of the entries of X (spiked list entries)",
         .fallback = "gaussian",
         .needs = {{"--size"}, "limits are the same for all"}},
        {.key = "--complex",
         .help =
             "with --size: complex entries x, E |x|^2 = 1/d and E x^2 = 0, Gaussian ones; with --symmetric Hermitian "
             "matrices",
         .needs = {{"--size"}, "limits are the same for real and complex entries"},
         .excludes = {{"--seen"}, "its finite-size theory is that of real entries"}},
        {"--row-spectrum", any_text("SPEC"), "eigenvalues of the row covariance A", "identity"},
        {"--col-spectrum", any_text("SPEC"), "eigenvalues of the column covariance B: " + forms_of_spectra(),
         "identity"},
        {"--strength", several(number("D")), "signal strengths (singular values of the clean signal)", "", true},
        {"--seen", number("SHARE", {.above = 0.0, .most = 1.0}),
         "fraction of the entries that are seen, at random, the others missing: the law of the noise of spiked "
         "spectrum --missing uniform, and the error against this fraction",
         "1"},
        plot_option("the phase transition as a picture")};
    const std::vector<OptionSpec> of_profile = profile_options();
    const auto of_noise =
        in_group("The eigenvalues of the noise",
                 {{"--density", whole("POINTS", 2),
                   "density and distribution function of the noise eigenvalues at this many points from edge to edge"},
                  {"--quantile", several(number("P", {.least = 0.0, .most = 1.0})),
                   "quantiles of the noise eigenvalues at these probabilities", "", true},
                  {"--stieltjes", several(number("RE"), "RE[,IM]"),
                   "Stieltjes transforms at this point: Im z > 0, or real above the edge"}});
    const OtherOptions what_is_quantized{{"--bits"}, "it describes what is quantized"};
    const auto of_quantizers =
        in_group("Quantization errors",
                 {{"--bits", several(whole("B", 1, 8)),
                   "predict quantization errors at these bit widths, for rows as long as in --size, or 128", "", true},
                  {.key = "--residual-energy",
                   .value = number("SHARE", {.least = 0.0, .most = 1.0}),
                   .help = "with --bits: fraction of the energy that a low-rank part leaves in the residual",
                   .fallback = "1",
                   .needs = what_is_quantized},
                  {.key = "--rank",
                   .value = whole("R"),
                   .help = "with --bits: rank of that low-rank part",
                   .fallback = "0",
                   .needs = what_is_quantized}});
    options = joined({options, of_profile, covariance_options(), symmetric_theory_options(), of_noise, of_quantizers});
    exclude_others(options, "--variances", {"--aspect", "--size", "--strength", "--density", "--stieltjes"},
                   "it is not known for a variance profile");
    exclude_others(options, "--population", {"--aspect", "--size"},
                   "this model has independent samples and one noise variance");
    exclude_others(options, "--symmetric", {"--size", "--strength", "--entries", "--complex"},
                   "this model has one noise level and as many rows as columns");
    return {"theory",
            "edge, detection threshold, outliers, overlaps and shrinkers for given noise",
            {"spiked theory --aspect 1 --strength 1.5,2,4",
             "spiked theory --row-spectrum ar1:0.5 --col-spectrum uniform:1,10 --aspect 0.5 --strength 3 --json",
             "spiked theory --col-spectrum file:eigenvalues.csv --size 256x128 --strength 2,3",
             "spiked theory --aspect 1 --strength 1.5,2,4 --plot transition.svg",
             "spiked theory --aspect 1 --strength 3 --seen 0.4", "spiked theory --size 64x128 --complex --strength 2",
             "spiked theory --variances blocks:1,4/9,0.5 --size 64x128 --strength 3",
             "spiked theory --population 5,2,1.2 --size 400x200",
             "spiked theory --symmetric --strength=3,-1.5 --size 200x200",
             "spiked theory --size 128x128 --bits 2,3,4 --residual-energy 0.27 --rank 5"},
            {},
            0,
            0,
            options,
            run_theory};
}

}  // namespace spiked::app
