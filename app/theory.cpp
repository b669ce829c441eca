#include <fmt/format.h>

#include "app/command.hpp"
#include "reports/text_table.hpp"
#include "sim/spectrum_spec.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"
#include "theory/separable_law.hpp"

namespace spiked::app {
namespace {

using theory::Loss;
using theory::SpikePrediction;

Json spike_json(const SpikePrediction& spike) {
    return Json::object(
        {{"strength", spike.strength.value}, {"detectable", spike.detectable}, {"outlier", spike.outlier.value},
         {"stieltjes_left", spike.stieltjes_left}, {"stieltjes_right", spike.stieltjes_right},
         {"overlap_left", spike.overlap_left.value}, {"overlap_right", spike.overlap_right.value},
         {"shrunk", Json::object({{"frobenius", spike.shrunk(Loss::frobenius).value},
                                  {"operator", spike.shrunk(Loss::operator_norm).value},
                                  {"nuclear", spike.shrunk(Loss::nuclear).value}})}});
}

int run(const Arguments& arguments) {
    if (!arguments.has("--aspect")) throw usage_error("--aspect is missing (rows over columns): add for example --aspect 0.5");
    const AspectRatio aspect(arguments.number("--aspect"));
    std::vector<SignalStrength> strengths;
    for (const auto& text : arguments.list("--strength")) {
        const auto value = to_number(text);
        if (!value || *value < 0.0)
            throw usage_error("--strength \"{}\" is not a number of at least 0 (singular-value scale)", text);
        strengths.push_back({*value});
    }
    const theory::SeparableLaw law(sim::parse_spectrum(arguments.text("--row-spectrum")),
                                   sim::parse_spectrum(arguments.text("--col-spectrum")), aspect);
    const auto regularity = law.edge_regularity();
    std::vector<SpikePrediction> spikes;
    for (const auto strength : strengths) spikes.push_back(law.spike(strength));

    if (arguments.json()) {
        Json list = Json::array();
        for (const auto& spike : spikes) list.push(spike_json(spike));
        Json document = Json::object({{"schema", "spiked.theory/1"}, {"aspect", aspect.value()},
                                      {"bulk_edge", law.bulk_edge().value},
                                      {"detection_threshold", law.detection_threshold().value},
                                      {"tracy_widom_scale", law.tracy_widom_scale()},
                                      {"regular_edge", regularity.regular}, {"spikes", std::move(list)}});
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
        reports::TextTable table({"strength", "detectable", "outlier", "overlap left", "overlap right", "frobenius",
                                  "operator", "nuclear"}, 0);
        const auto cell = [](double value) { return fmt::format("{:.8g}", value); };
        for (const auto& spike : spikes)
            table.add({cell(spike.strength.value), spike.detectable ? "yes" : "no", cell(spike.outlier.value),
                       cell(spike.overlap_left.value), cell(spike.overlap_right.value),
                       cell(spike.shrunk(Loss::frobenius).value), cell(spike.shrunk(Loss::operator_norm).value),
                       cell(spike.shrunk(Loss::nuclear).value)});
        text += "\n" + table.text() +
                "outlier: eigenvalue; overlaps: squared; the last three: optimal shrunk value for each loss.\n";
    }
    print_text(text);
    return 0;
}

}  // namespace

Command theory_command() {
    return {"theory",
            "edge, detection threshold, outliers, overlaps and shrinkers your noise implies",
            {"spiked theory --aspect 1 --strength 1.5,2,4",
             "spiked theory --row-spectrum ar1:0.5 --col-spectrum uniform:1,10 --aspect 0.5 --strength 3 --json",
             "spiked theory --col-spectrum file:eigenvalues.csv --aspect 2"},
            "", 0, 0,
            {{"--row-spectrum", "SPEC", "eigenvalues of the row covariance A", "identity", false},
             {"--col-spectrum", "SPEC",
              "of the column covariance B: identity, ar1:RHO[:N], toeplitz:RHO:N, two-atom:LO,HI,W,\n"
              "                                uniform:LO,HI[:N], exponential:C[:N], power:A[:N], wishart:ASPECT[:N],\n"
              "                                sample:FILE.npy, file:PATH (lines value,weight)",
              "identity", false},
             {"--aspect", "BETA", "rows over columns, n/d", "", false},
             {"--strength", "D[,D...]", "signal strengths (singular values of the clean signal)", "", true}},
            run};
}

}  // namespace spiked::app
