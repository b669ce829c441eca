#include <fmt/format.h>

#include <optional>

#include "app/command.hpp"
#include "reports/text_table.hpp"
#include "sim/spectrum_spec.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"
#include "theory/finite_size.hpp"
#include "theory/separable_law.hpp"

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
                         {"overlap_left", spike.overlap_left.value},
                         {"overlap_right", spike.overlap_right.value},
                         {"shrunk", Json::object({{"frobenius", spike.shrunk(Loss::frobenius).value},
                                                  {"operator", spike.shrunk(Loss::operator_norm).value},
                                                  {"nuclear", spike.shrunk(Loss::nuclear).value}})},
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

Json finite_size_json(const theory::FiniteSize& finite) {
    Json rules = Json::array();
    for (const auto& rule : finite.rules)
        rules.push(Json::object({{"name", rule.name},
                                 {"cutoff", rule.cutoff.value},
                                 {"smallest_strength", rule.smallest_strength.value},
                                 {"false_alarm_probability", rule.false_alarm_probability},
                                 {"expected_false_alarms", rule.expected_false_alarms}}));
    return Json::object({{"rows", finite.rows},
                         {"cols", finite.columns},
                         {"top_noise_shift", finite.top_noise_shift},
                         {"edge_fluctuation", finite.top_noise_standard_deviation},
                         {"rank_rules", std::move(rules)}});
}

std::string finite_size_text(const theory::FiniteSize& finite, Eigenvalue edge) {
    reports::TextTable table(
        {"rank rule", "counts above", "smallest strength", "false alarm", "expected false alarms"});
    for (const auto& rule : finite.rules)
        table.add(
            {rule.name, fmt::format("{:.6g}", rule.cutoff.value), fmt::format("{:.6g}", rule.smallest_strength.value),
             fmt::format("{:.3g}", rule.false_alarm_probability), fmt::format("{:.3g}", rule.expected_false_alarms)});
    return fmt::format(
        "\nAt {} x {}: the largest noise eigenvalue is {:.6g} on average, standard deviation {:.3g} (first order).\n{}"
        "smallest strength: whose outlier the rule counts, were the edge known exactly.\n",
        finite.rows, finite.columns, edge.value + finite.top_noise_shift, finite.top_noise_standard_deviation,
        table.text());
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
    if (size) finite = theory::finite_size(law, size->rows, size->columns);
    const auto regularity = finite ? finite->regularity : law.edge_regularity();
    std::vector<SpikePrediction> spikes;
    for (const auto strength : strengths) spikes.push_back(law.spike(strength));

    if (arguments.json()) {
        Json list = Json::array();
        for (const auto& spike : spikes) list.push(spike_json(spike, law.detection_threshold()));
        Json document = Json::object({{"schema", "spiked.theory/1"},
                                      {"aspect", aspect.value()},
                                      {"bulk_edge", law.bulk_edge().value},
                                      {"detection_threshold", law.detection_threshold().value},
                                      {"tracy_widom_scale", law.tracy_widom_scale()},
                                      {"regular_edge", regularity.regular},
                                      {"spikes", std::move(list)}});
        if (finite) document.set("finite_size", finite_size_json(*finite));
        if (!regularity.regular) document.set("note", regularity.note);
        print_json(document);
        return 0;
    }
    std::string text = fmt::format(
        "rows {}, columns {}, aspect ratio n/d = {:.6g}, entries of X have variance 1/d\n\n"
        "bulk edge            {:.10g}   (eigenvalue of Z Z^T; singular value {:.10g})\n"
        "detection threshold  {:.10g}   (signal strength, singular-value scale)\n"
        "Tracy-Widom scale    {:.10g}   (this times d^(2/3) (largest eigenvalue - edge) -> TW1)\n",
        arguments.text("--row-spectrum"), arguments.text("--col-spectrum"), aspect.value(), law.bulk_edge().value,
        root(law.bulk_edge()).value, law.detection_threshold().value, law.tracy_widom_scale());
    if (!regularity.regular) text += "warning: " + regularity.note + "\n";
    if (!spikes.empty()) {
        reports::TextTable table(
            {"strength", "detectable", "outlier", "overlap left", "overlap right", "frobenius", "operator", "nuclear"},
            0);
        const auto cell = [](double value) { return fmt::format("{:.8g}", value); };
        for (const auto& spike : spikes)
            table.add({cell(spike.strength.value), spike.detectable ? "yes" : "no", cell(spike.outlier.value),
                       cell(spike.overlap_left.value), cell(spike.overlap_right.value),
                       cell(spike.shrunk(Loss::frobenius).value), cell(spike.shrunk(Loss::operator_norm).value),
                       cell(spike.shrunk(Loss::nuclear).value)});
        text += "\n" + table.text() +
                "not detectable (at or below the threshold): the outlier stays at the edge, overlaps and shrunk values "
                "are 0.\n"
                "outlier: eigenvalue; overlaps: squared; the last three: optimal shrunk value for each loss.\n";
    }
    if (finite) text += finite_size_text(*finite, law.bulk_edge());
    print_text(text);
    return 0;
}

}  // namespace

Command theory_command() {
    return {"theory",
            "edge, detection threshold, outliers, overlaps and shrinkers your noise implies",
            {"spiked theory --aspect 1 --strength 1.5,2,4",
             "spiked theory --row-spectrum ar1:0.5 --col-spectrum uniform:1,10 --aspect 0.5 --strength 3 --json",
             "spiked theory --col-spectrum file:eigenvalues.csv --size 256x128"},
            "",
            0,
            0,
            {{"--aspect", "BETA", "rows over columns, n/d", "", false},
             {"--size", "NxD", "rows x columns: adds what the limit leaves out at that size", "", false},
             {"--row-spectrum", "SPEC", "eigenvalues of the row covariance A", "identity", false},
             {"--col-spectrum", "SPEC",
              "of the column covariance B: identity, ar1:RHO[:N], toeplitz:RHO:N, two-atom:LO,HI,W,\n"
              "                                uniform:LO,HI[:N], exponential:C[:N], power:A[:N], wishart:ASPECT[:N],\n"
              "                                sample:FILE.npy, file:PATH (lines value,weight)",
              "identity", false},
             {"--strength", "D[,D...]", "signal strengths (singular values of the clean signal)", "", true}},
            run};
}

}  // namespace spiked::app
