#include <fmt/format.h>

#include <optional>

#include "app/command.hpp"
#include "reports/text_table.hpp"
#include "reports/theory_figure.hpp"
#include "sim/covariance_kinds.hpp"
#include "sim/spectrum_spec.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"
#include "theory/bulk_distribution.hpp"
#include "theory/finite_size.hpp"
#include "theory/quantizer_errors.hpp"
#include "theory/rate_distortion.hpp"
#include "theory/separable_law.hpp"
#include "theory/tracy_widom.hpp"

namespace spiked::app {
namespace {

using theory::Loss;
using theory::SpikePrediction;

std::string spike_note(const SpikePrediction& spike, SignalStrength threshold) {
    return spike.detectable ? "" : fmt::format("not detectable: the threshold is {:.6g}", threshold.value);
}

Json spike_json(const SpikePrediction& spike, SignalStrength threshold) {
    const std::string note = spike_note(spike, threshold);
    return Json::object({{"strength", spike.strength.value},
                         {"detectable", spike.detectable},
                         {"outlier", spike.outlier.value},
                         {"stieltjes_left", spike.stieltjes_left},
                         {"stieltjes_right", spike.stieltjes_right},
                         {"d_transform", spike.d_transform},
                         {"d_transform_derivative", spike.detectable ? Json(spike.d_transform_derivative) : Json()},
                         {"overlap_left", spike.overlap_left.value},
                         {"overlap_right", spike.overlap_right.value},
                         {"shrunk", Json::object({{"frobenius", spike.shrunk(Loss::frobenius).value},
                                                  {"operator", spike.shrunk(Loss::operator_norm).value},
                                                  {"nuclear", spike.shrunk(Loss::nuclear).value}})},
                         {"residual", spike.residual.value},
                         {"note", note.empty() ? Json() : Json(note)}});
}

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

AspectRatio read_aspect(const Arguments& arguments, const std::optional<Size>& size) {
    if (arguments.has("--aspect")) return AspectRatio(arguments.number("--aspect"));
    if (!size)
        throw usage_error("--aspect is missing (rows over columns): add for example --aspect 0.5 or --size 64x128");
    return AspectRatio::of(size->rows, size->columns);
}

struct TopNoiseQuantile {
    double probability = 0.0;
    double tracy_widom = 0.0;
    double eigenvalue = 0.0;
};

/// Of the largest noise eigenvalue: Tracy-Widom quantiles in the scale of the law and the size.
std::vector<TopNoiseQuantile> top_noise_quantiles(const theory::FiniteSize& finite, Eigenvalue edge) {
    const double unit = finite.top_noise_standard_deviation / std::sqrt(theory::tracy_widom_variance);
    std::vector<TopNoiseQuantile> quantiles;
    for (const double probability : {0.01, 0.05, 0.5, 0.95, 0.99}) {
        const double standard = theory::tracy_widom_quantile(probability);
        quantiles.push_back({probability, standard, edge.value + unit * standard});
    }
    return quantiles;
}

Json finite_size_json(const theory::FiniteSize& finite, Eigenvalue edge) {
    Json rules = Json::array();
    for (const auto& rule : finite.rules) {
        Json estimated;
        if (rule.estimated)
            estimated = Json::object({{"cutoff", rule.estimated->cutoff.value},
                                      {"smallest_strength", rule.estimated->smallest_strength.value},
                                      {"expected_false_alarms", rule.estimated->expected_false_alarms}});
        rules.push(Json::object({{"name", rule.name},
                                 {"cutoff", rule.cutoff.value},
                                 {"smallest_strength", rule.smallest_strength.value},
                                 {"false_alarm_probability", rule.false_alarm_probability},
                                 {"expected_false_alarms", rule.expected_false_alarms},
                                 {"edge_estimated", std::move(estimated)}}));
    }
    Json spikes = Json::array();
    for (const auto& spike : finite.spikes)
        spikes.push(Json::object({{"strength", spike.strength.value},
                                  {"outlier_deviation", spike.outlier},
                                  {"overlap_left_deviation", spike.overlap_left},
                                  {"overlap_right_deviation", spike.overlap_right},
                                  {"reliable", spike.reliable}}));
    Json quantiles = Json::array();
    for (const auto& [probability, standard, eigenvalue] : top_noise_quantiles(finite, edge))
        quantiles.push(
            Json::object({{"probability", probability}, {"tracy_widom", standard}, {"eigenvalue", eigenvalue}}));
    return Json::object({{"rows", finite.rows},
                         {"cols", finite.columns},
                         {"top_noise_quantiles", std::move(quantiles)},
                         {"top_noise_shift", finite.top_noise_shift},
                         {"edge_fluctuation", finite.top_noise_standard_deviation},
                         {"edge_estimate", finite.edge_estimate ? Json(finite.edge_estimate->value) : Json()},
                         {"rank_rules", std::move(rules)},
                         {"spikes", std::move(spikes)}});
}

std::string finite_size_text(const theory::FiniteSize& finite, Eigenvalue edge) {
    const auto number = [](double value) { return fmt::format("{:.6g}", value); };
    const auto small = [](double value) { return fmt::format("{:.3g}", value); };
    std::string text = fmt::format(
        "\nAt {} x {}: the largest noise eigenvalue is {:.6g} on average, standard deviation {:.3g} (first order).\n",
        finite.rows, finite.columns, edge.value + finite.top_noise_shift, finite.top_noise_standard_deviation);
    text += "Its quantiles (Tracy-Widom, order 1):";
    for (const auto& quantile : top_noise_quantiles(finite, edge))
        text += fmt::format(" {:g} % {:.6g};", 100.0 * quantile.probability, quantile.eigenvalue);
    text.back() = '\n';
    if (finite.edge_estimate)
        text += fmt::format("eOptShrink's edge estimate for pure noise of this size is {:.6g} on average, {:+.1f} %.\n",
                            finite.edge_estimate->value, 100.0 * (finite.edge_estimate->value / edge.value - 1.0));
    reports::TextTable rules({"rank rule", "counts above", "smallest strength", "false alarms",
                              "| edge estimated:", "counts above", "smallest strength", "false alarms"});
    for (const auto& rule : finite.rules) {
        std::vector<std::string> line{rule.name, number(rule.cutoff.value), number(rule.smallest_strength.value),
                                      small(rule.expected_false_alarms), "|"};
        if (rule.estimated) {
            line.push_back(number(rule.estimated->cutoff.value));
            line.push_back(number(rule.estimated->smallest_strength.value));
            line.push_back(small(rule.estimated->expected_false_alarms));
        } else {
            line.insert(line.end(), 3, "-");
        }
        rules.add(std::move(line));
    }
    text += rules.text() +
            "smallest strength: whose outlier the rule counts; false alarms: eigenvalues of pure noise it counts, on "
            "average.\nThe right half has the rule estimate its edge from a block of this size.\n";
    if (!finite.spikes.empty()) {
        reports::TextTable spikes({"strength", "sd of outlier", "sd of overlap left", "sd of overlap right"}, 0);
        for (const auto& spike : finite.spikes)
            spikes.add({number(spike.strength.value) + (spike.reliable ? "" : " *"), small(spike.outlier),
                        small(spike.overlap_left), small(spike.overlap_right)});
        text += "\nFrom block to block, first order in 1/sqrt(d):\n" + spikes.text();
        for (const auto& spike : finite.spikes) {
            if (spike.reliable) continue;
            text += "* within d^(-1/3) of the threshold: these do not describe blocks of this size.\n";
            break;
        }
    }
    return text;
}

/// Density and cdf on a grid, quantiles, transforms at one point: asked for one by one.
struct BulkAnswers {
    std::vector<theory::BulkPoint> curve;
    std::vector<std::pair<double, Eigenvalue>> quantiles;
    std::optional<std::pair<std::complex<double>, theory::StieltjesPair>> transforms;
};

BulkAnswers ask(const Arguments& arguments, const theory::SeparableLaw& law, const theory::BulkDistribution& bulk) {
    BulkAnswers answers;
    if (arguments.has("--density")) answers.curve = bulk.curve(arguments.count("--density"));
    if (arguments.has("--quantile")) {
        for (const auto& text : arguments.list("--quantile")) {
            const auto probability = to_number(text);
            if (!probability) throw usage_error("--quantile \"{}\" is not a number: give shares between 0 and 1", text);
            answers.quantiles.emplace_back(*probability, bulk.quantile(*probability));
        }
    }
    if (arguments.has("--stieltjes")) {
        const auto parts = split(arguments.text("--stieltjes"), ',');
        const auto real = to_number(parts.front());
        const auto imaginary = parts.size() == 2 ? to_number(parts.back()) : std::optional(0.0);
        if (parts.size() > 2 || !real || !imaginary)
            throw usage_error("--stieltjes \"{}\" is not a point (real part, imaginary part): write for example 2,0.1",
                              arguments.text("--stieltjes"));
        const std::complex<double> z(*real, *imaginary);
        answers.transforms = {z, *imaginary == 0.0
                                     ? theory::StieltjesPair{law.stieltjes_left({*real}), law.stieltjes_right({*real})}
                                     : bulk.stieltjes(z)};
    }
    return answers;
}

void add_json(Json& document, const BulkAnswers& answers) {
    const auto complex = [](std::complex<double> z) {
        Json pair = Json::array();
        pair.push(z.real());
        pair.push(z.imag());
        return pair;
    };
    if (!answers.curve.empty()) {
        Json list = Json::array();
        for (const auto& point : answers.curve)
            list.push(Json::object({{"x", point.x.value}, {"density", point.density}, {"cdf", point.cdf}}));
        document.set("density", std::move(list));
    }
    if (!answers.quantiles.empty()) {
        Json list = Json::array();
        for (const auto& [probability, x] : answers.quantiles)
            list.push(Json::object({{"probability", probability}, {"eigenvalue", x.value}}));
        document.set("quantiles", std::move(list));
    }
    if (answers.transforms) {
        const auto& [z, pair] = *answers.transforms;
        document.set("stieltjes", Json::object({{"z", complex(z)},
                                                {"left", complex(pair.left)},
                                                {"right", complex(pair.right)},
                                                {"d_transform", complex(z * pair.left * pair.right)}}));
    }
}

std::string bulk_text(const BulkAnswers& answers) {
    std::string text;
    const auto cell = [](double value) { return fmt::format("{:.10g}", value); };
    if (answers.transforms) {
        const auto& [z, pair] = *answers.transforms;
        const auto complex = [](std::complex<double> c) {
            return fmt::format("{:.12g} {:+.12g}i", c.real(), c.imag());
        };
        text += fmt::format("\nStieltjes transforms at {}\n  left   {}   (of Z Z^T)\n  right  {}   (of Z^T Z)\n",
                            complex(z), complex(pair.left), complex(pair.right));
    }
    if (!answers.quantiles.empty()) {
        reports::TextTable table({"share", "eigenvalue"}, 0);
        for (const auto& [probability, x] : answers.quantiles) table.add({cell(probability), cell(x.value)});
        text += "\n" + table.text();
    }
    if (!answers.curve.empty()) {
        reports::TextTable table({"eigenvalue", "density", "cdf"}, 0);
        for (const auto& point : answers.curve) table.add({cell(point.x.value), cell(point.density), cell(point.cdf)});
        text += "\n" + table.text();
    }
    return text;
}

/// What quantization theory says about blocks of one size, for every bit width asked.
struct QuantizationAnswers {
    struct Row {
        theory::Codebook codebook;
        double normal_distortion = 0.0;
        double uniform_distortion = 0.0;
        double min_max_distortion = 0.0;
        double shannon_distortion = 0.0;
        double entropy_coded_distortion = 0.0;
        std::vector<std::pair<std::string_view, theory::CompressorPrediction>> quantizers;
    };
    theory::CompressorSetting setting;
    std::vector<Row> rows;

    /// QJL with one sketch row an entry, the query across the row.
    [[nodiscard]] theory::SketchError sketch(theory::SketchRows kind) const {
        return theory::qjl_error(kind, setting.dimension, setting.dimension, 0.0);
    }
};
constexpr int min_max_group = 64;

QuantizationAnswers ask_quantization(const Arguments& arguments, const std::optional<Size>& size) {
    using Kind = theory::RowQuantizerKind;
    QuantizationAnswers answers;
    if (size) {
        if (std::max(size->rows, size->columns) > 1000000)
            throw usage_error("--size {} is too large for --bits (rows of at most 1000000 entries): give a smaller one",
                              arguments.text("--size"));
        answers.setting.rows = static_cast<int>(size->rows);
        answers.setting.dimension = static_cast<int>(size->columns);
    }
    answers.setting.residual_energy_share = arguments.number("--residual-energy");
    answers.setting.rank = static_cast<int>(std::min<std::size_t>(arguments.count("--rank"), 1000000));
    for (const std::size_t bits : arguments.counts("--bits")) {
        answers.setting.bits = static_cast<int>(std::min<std::size_t>(bits, 99));
        QuantizationAnswers::Row row;
        row.codebook = theory::lloyd_max_sphere(answers.setting.dimension, answers.setting.bits);
        row.normal_distortion = theory::lloyd_max_normal(answers.setting.bits).distortion;
        row.uniform_distortion = theory::uniform_quantizer_normal(answers.setting.bits).codebook.distortion;
        row.min_max_distortion = theory::min_max_relative_mse(min_max_group, answers.setting.bits);
        const double rate = answers.setting.bits;
        row.shannon_distortion = theory::shannon_distortion(rate);
        row.entropy_coded_distortion = theory::entropy_coded_normal_at_rate(rate).distortion;
        for (const Kind kind : {Kind::tq_mse, Kind::tq_prod, Kind::eden, Kind::eden_mmse, Kind::eden_norm}) {
            answers.setting.quantizer = kind;
            row.quantizers.emplace_back(theory::name_of(kind), theory::predict_compressor(answers.setting));
        }
        answers.rows.push_back(std::move(row));
    }
    return answers;
}

Json quantization_json(const QuantizationAnswers& answers) {
    Json rows = Json::array();
    for (const auto& row : answers.rows) {
        Json quantizers = Json::array();
        const auto on_law = theory::codebook_on_sphere(row.codebook, answers.setting.dimension);
        for (const auto& [name, prediction] : row.quantizers) {
            const auto reconstruction =
                theory::row_reconstruction(on_law, answers.setting.dimension, *theory::row_quantizer_kind_from(name));
            quantizers.push(Json::object({{"name", std::string(name)},
                                          {"scale", reconstruction.scale},
                                          {"gain", reconstruction.gain},
                                          {"bits_per_entry", prediction.bits_per_entry},
                                          {"relative_l2", prediction.relative_l2},
                                          {"ip_std_random_query", prediction.random_query.standard_deviation},
                                          {"ip_bias_along_row", prediction.along_row.bias},
                                          {"ip_std_along_row", prediction.along_row.standard_deviation}}));
        }
        rows.push(Json::object({{"bits", row.codebook.bits},
                                {"distortion", row.codebook.distortion},
                                {"linear_gain", row.codebook.linear_gain},
                                {"entropy_bits", row.codebook.entropy_bits},
                                {"distortion_normal", row.normal_distortion},
                                {"distortion_uniform", row.uniform_distortion},
                                {"distortion_min_max", row.min_max_distortion},
                                {"distortion_entropy_coded", row.entropy_coded_distortion},
                                {"distortion_shannon", row.shannon_distortion},
                                {"quantizers", std::move(quantizers)}}));
    }
    const auto sketch = [&](theory::SketchRows kind) {
        const auto error = answers.sketch(kind);
        return Json::object({{"mean_factor", error.mean_factor}, {"variance", error.variance}});
    };
    return Json::object({{"rows", answers.setting.rows},
                         {"cols", answers.setting.dimension},
                         {"qjl", Json::object({{"gaussian", sketch(theory::SketchRows::gaussian)},
                                               {"orthogonal", sketch(theory::SketchRows::orthogonal)},
                                               {"sign_correlation", theory::sign_correlation}})},
                         {"residual_energy", answers.setting.residual_energy_share},
                         {"rank", answers.setting.rank},
                         {"min_max_group", min_max_group},
                         {"by_bits", std::move(rows)}});
}

std::string quantization_text(const QuantizationAnswers& answers) {
    const auto cell = [](double value) { return fmt::format("{:.6g}", value); };
    const auto percent = [](double value) { return fmt::format("{:.3f} %", 100.0 * value); };
    reports::TextTable codebooks({"bits", "Lloyd-Max", "gain kappa", "entropy", "normal", "uniform",
                                  fmt::format("min-max g{}", min_max_group), "entropy-coded", "Shannon"},
                                 0);
    reports::TextTable quantizers(
        {"bits", "quantizer", "bits per entry", "relative L2", "sd random query", "bias along row", "sd along row"}, 2);
    for (const auto& row : answers.rows) {
        const std::string bits = fmt::format("{}", row.codebook.bits);
        codebooks.add({bits, cell(row.codebook.distortion), cell(row.codebook.linear_gain),
                       cell(row.codebook.entropy_bits), cell(row.normal_distortion), cell(row.uniform_distortion),
                       cell(row.min_max_distortion), cell(row.entropy_coded_distortion), cell(row.shannon_distortion)});
        for (const auto& [name, prediction] : row.quantizers)
            quantizers.add({bits, std::string(name), fmt::format("{:.4f}", prediction.bits_per_entry),
                            percent(prediction.relative_l2), cell(prediction.random_query.standard_deviation),
                            cell(prediction.along_row.bias), cell(prediction.along_row.standard_deviation)});
    }
    const auto orthogonal = answers.sketch(theory::SketchRows::orthogonal);
    return fmt::format(
        "\nQuantization of rows of {} entries. Squared error per unit of energy (Lloyd-Max: on the sphere of that\n"
        "dimension; normal: the same for independent normal entries; entropy-coded and Shannon: at that rate):\n{}\n"
        "Predicted for blocks of {} x {}, residual energy share {:.6g}, rank {} (factors of 4 bits, 16-bit norms):\n{}"
        "inner products relative to |query| |row|; the query along the row is a token looking for itself.\n"
        "QJL with one sketch row an entry, query across the row: variance {:.6g} (Gaussian rows), {:.6g} (orthogonal; "
        "mean "
        "factor {:.6g}).\n",
        answers.setting.dimension, codebooks.text(), answers.setting.rows, answers.setting.dimension,
        answers.setting.residual_energy_share, answers.setting.rank, quantizers.text(),
        answers.sketch(theory::SketchRows::gaussian).variance, orthogonal.variance, orthogonal.mean_factor);
}

int run(const Arguments& arguments) {
    const std::optional<Size> size = read_size(arguments);
    const AspectRatio aspect = read_aspect(arguments, size);
    std::vector<SignalStrength> strengths;
    for (const auto& text : arguments.list("--strength")) {
        const auto value = to_number(text);
        if (!value || *value < 0.0)
            throw usage_error("--strength \"{}\" is not a number of at least 0 (singular-value scale)", text);
        strengths.push_back({*value});
    }
    const theory::SeparableLaw law(sim::parse_spectrum(arguments.text("--row-spectrum")),
                                   sim::parse_spectrum(arguments.text("--col-spectrum")), aspect);
    std::optional<theory::FiniteSize> finite;
    if (size) finite = theory::finite_size(law, size->rows, size->columns, strengths);
    const auto regularity = finite ? finite->regularity : law.edge_regularity();
    const theory::BulkDistribution bulk(law);
    const BulkAnswers answers = ask(arguments, law, bulk);
    std::optional<QuantizationAnswers> quantization;
    if (arguments.has("--bits")) quantization = ask_quantization(arguments, size);
    for (const char* option : {"--residual-energy", "--rank"})
        if (arguments.has(option) && !quantization)
            throw usage_error("{} says nothing by itself (it describes what is quantized): add for example --bits 2",
                              option);
    std::vector<SpikePrediction> spikes;
    for (const auto strength : strengths) spikes.push_back(law.spike(strength));
    if (arguments.has("--plot"))
        reports::write_picture(reports::phase_transition(law, strengths), arguments.text("--plot"));

    if (arguments.json()) {
        Json list = Json::array();
        for (const auto& spike : spikes) list.push(spike_json(spike, law.detection_threshold()));
        Json document = Json::object({{"schema", "spiked.theory/1"},
                                      {"aspect", aspect.value()},
                                      {"bulk_edge", law.bulk_edge().value},
                                      {"lower_edge", bulk.lower_edge().value},
                                      {"mass_at_zero", bulk.mass_at_zero()},
                                      {"mean", bulk.mean()},
                                      {"median", bulk.median().value},
                                      {"detection_threshold", law.detection_threshold().value},
                                      {"tracy_widom_scale", law.tracy_widom_scale()},
                                      {"regular_edge", regularity.regular},
                                      {"spikes", std::move(list)}});
        add_json(document, answers);
        if (finite) document.set("finite_size", finite_size_json(*finite, law.bulk_edge()));
        if (quantization) document.set("quantization", quantization_json(*quantization));
        if (!regularity.regular) document.set("note", regularity.note);
        print_json(document);
        return 0;
    }
    std::string text = fmt::format(
        "rows {}, columns {}, aspect ratio n/d = {:.6g}, entries of X have variance 1/d\n\n"
        "bulk edge            {:.10g}   (eigenvalue of Z Z^T; singular value {:.10g})\n"
        "lower edge           {:.10g}   (share of eigenvalues that are zero: {:.6g})\n"
        "mean, median         {:.10g}, {:.10g}\n"
        "detection threshold  {:.10g}   (signal strength, singular-value scale)\n"
        "Tracy-Widom scale    {:.10g}   (this times d^(2/3) (largest eigenvalue - edge) -> TW1)\n",
        arguments.text("--row-spectrum"), arguments.text("--col-spectrum"), aspect.value(), law.bulk_edge().value,
        root(law.bulk_edge()).value, bulk.lower_edge().value, bulk.mass_at_zero(), bulk.mean(), bulk.median().value,
        law.detection_threshold().value, law.tracy_widom_scale());
    if (!regularity.regular) text += "warning: " + regularity.note + "\n";
    if (!spikes.empty()) {
        reports::TextTable table({"strength", "detectable", "outlier", "overlap left", "overlap right", "frobenius",
                                  "operator", "nuclear", "residual"},
                                 0);
        const auto cell = [](double value) { return fmt::format("{:.8g}", value); };
        for (const auto& spike : spikes)
            table.add({cell(spike.strength.value), spike.detectable ? "yes" : "no", cell(spike.outlier.value),
                       cell(spike.overlap_left.value), cell(spike.overlap_right.value),
                       cell(spike.shrunk(Loss::frobenius).value), cell(spike.shrunk(Loss::operator_norm).value),
                       cell(spike.shrunk(Loss::nuclear).value), cell(spike.residual.value)});
        text +=
            "\n" + table.text() +
            "not detectable (at or below the threshold): the outlier stays at the edge, overlaps and shrunk values "
            "are 0.\n"
            "outlier: eigenvalue; overlaps: squared; then the optimal shrunk value for each loss; residual: observed "
            "singular\nvalue minus the Frobenius one.\n";
    }
    text += bulk_text(answers);
    if (finite) text += finite_size_text(*finite, law.bulk_edge());
    if (quantization) text += quantization_text(*quantization);
    print_text(text);
    return 0;
}

std::string words_of_spectra() {
    std::string text;
    std::size_t line = 30;  // the option's own words
    for (const auto& kind : sim::covariance_kinds()) {
        const std::string words = kind.words() + (&kind == &sim::covariance_kinds().back() ? "" : ", ");
        if (line + words.size() > 80) {
            text.back() = '\n';
            text += std::string(32, ' ');
            line = 0;
        }
        text += words;
        line += words.size();
    }
    return text;
}

}  // namespace

Command theory_command() {
    return {"theory",
            "edge, detection threshold, outliers, overlaps and shrinkers your noise implies",
            {"spiked theory --aspect 1 --strength 1.5,2,4",
             "spiked theory --row-spectrum ar1:0.5 --col-spectrum uniform:1,10 --aspect 0.5 --strength 3 --json",
             "spiked theory --col-spectrum file:eigenvalues.csv --size 256x128 --strength 2,3",
             "spiked theory --aspect 1 --strength 1.5,2,4 --plot transition.svg",
             "spiked theory --size 128x128 --bits 2,3,4 --residual-energy 0.27 --rank 5"},
            "",
            0,
            0,
            {{"--aspect", "BETA", "rows over columns, n/d", "", false},
             {"--size", "NxD", "rows x columns: adds what the limit leaves out at that size", "", false},
             {"--row-spectrum", "SPEC", "eigenvalues of the row covariance A", "identity", false},
             {"--col-spectrum", "SPEC", "of the column covariance B: " + words_of_spectra(), "identity", false},
             {"--strength", "D[,D...]", "signal strengths (singular values of the clean signal)", "", true},
             {"--density", "POINTS", "density and cdf of the noise eigenvalues, from edge to edge", "", false},
             {"--quantile", "P[,P...]", "noise eigenvalues below which these shares lie", "", true},
             {"--stieltjes", "RE[,IM]", "Stieltjes transforms there: Im z > 0, or real above the edge", "", false},
             {"--bits", "B[,B...]", "what quantization theory says at these widths (rows as long as --size, or 128)",
              "", true},
             {"--residual-energy", "SHARE", "with --bits: energy left after a low-rank part", "1", false},
             {"--rank", "R", "with --bits: rank of that part", "0", false},
             {"--plot", "FILE", "the phase transition as a picture: .svg, .png or .pdf", "", false}},
            run};
}

}  // namespace spiked::app
