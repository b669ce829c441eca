#include "reports/tables/theory_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/tables/text_table.hpp"
#include "reports/tables/theory_parts.hpp"

namespace spiked::reports {
namespace {

using theory::Loss;
using theory::PlacedOutlier;
using theory::SpikePrediction;
using theory::SupportGap;

std::string outlier_place(const SupportGap& gap) {
    if (gap.lower.value == 0.0) return fmt::format("below the bulk, under {:.6g}", gap.upper.value);
    return fmt::format("in the gap {:.6g} to {:.6g}", gap.lower.value, gap.upper.value);
}

std::string outlier_place(const PlacedOutlier& outlier, const std::vector<SupportGap>& gaps) {
    return outlier.gap ? outlier_place(gaps[*outlier.gap]) : "above the bulk";
}

std::string spike_note(const SpikePrediction& spike, const std::vector<PlacedOutlier>& outliers,
                       const std::vector<SupportGap>& gaps, SignalStrength threshold) {
    if (spike.detectable) return "";
    if (outliers.empty()) return fmt::format("not detectable: the threshold is {:.6g}", threshold.value);
    return fmt::format("below the threshold {:.6g} of the top edge, but its outlier lies {}", threshold.value,
                       outlier_place(outliers.front(), gaps));
}

Json shrunk_json(const SpikePrediction& spike) {
    return Json::object({{"frobenius", spike.shrunk(Loss::frobenius).value},
                         {"operator", spike.shrunk(Loss::operator_norm).value},
                         {"nuclear", spike.shrunk(Loss::nuclear).value}});
}

Json spike_json(const SpikePrediction& spike, const std::vector<PlacedOutlier>& outliers,
                const std::vector<SupportGap>& gaps, SignalStrength threshold) {
    const std::string note = spike_note(spike, outliers, gaps, threshold);
    Json list = Json::array();
    for (const auto& [gap, found] : outliers)
        list.push(Json::object({{"gap", gap ? Json(*gap) : Json()},
                                {"outlier", found.outlier.value},
                                {"stieltjes_left", found.stieltjes_left},
                                {"stieltjes_right", found.stieltjes_right},
                                {"overlap_left", found.overlap_left.value},
                                {"overlap_right", found.overlap_right.value},
                                {"shrunk", shrunk_json(found)}}));
    return Json::object({{"strength", spike.strength.value},
                         {"detectable", spike.detectable},
                         {"outlier", spike.outlier.value},
                         {"stieltjes_left", spike.stieltjes_left},
                         {"stieltjes_right", spike.stieltjes_right},
                         {"d_transform", spike.d_transform},
                         {"d_transform_derivative", spike.detectable ? Json(spike.d_transform_derivative) : Json()},
                         {"overlap_left", spike.overlap_left.value},
                         {"overlap_right", spike.overlap_right.value},
                         {"shrunk", shrunk_json(spike)},
                         {"residual", spike.residual.value},
                         {"outliers", std::move(list)},
                         {"note", note.empty() ? Json() : Json(note)}});
}

Json gap_json(const SupportGap& gap) {
    const auto finite = [](SignalStrength strength) {
        return std::isfinite(strength.value) ? Json(strength.value) : Json();
    };
    return Json::object({{"lower", gap.lower.value},
                         {"upper", gap.upper.value},
                         {"mass_above", gap.mass_above},
                         {"weakest_strength", finite(gap.weakest)},
                         {"strongest_strength", finite(gap.strongest)}});
}

/// The strengths that have an outlier in a gap, in words.
std::string strengths_of(const SupportGap& gap) {
    if (!std::isfinite(gap.weakest.value)) return "no strength has an outlier in it";
    if (!std::isfinite(gap.strongest.value))
        return fmt::format("strengths above {:.6g} have an outlier in it", gap.weakest.value);
    return fmt::format("strengths from {:.6g} to {:.6g} have an outlier in it", gap.weakest.value, gap.strongest.value);
}

/// The gaps between components, and the one below the bulk where a spike can be seen in it.
std::string gaps_text(const std::vector<SupportGap>& gaps) {
    std::string text;
    for (const SupportGap& gap : gaps)
        if (gap.lower.value > 0.0 || std::isfinite(gap.weakest.value))
            text += fmt::format("{:20} {:.10g} to {:.10g}   (fraction of eigenvalues above it: {:.6g}; {})\n",
                                gap.lower.value > 0.0 ? "gap in the bulk" : "below the bulk", gap.lower.value,
                                gap.upper.value, gap.mass_above, strengths_of(gap));
    return text;
}

/// What a reader of the predictions has to know about the gaps; empty if no strength has an outlier in one.
std::string gap_note(const std::vector<SupportGap>& gaps, SignalStrength threshold) {
    const auto first = std::min_element(gaps.begin(), gaps.end(),
                                        [](const auto& a, const auto& b) { return a.weakest.value < b.weakest.value; });
    if (first == gaps.end() || !std::isfinite(first->weakest.value)) return "";
    const std::string seen = fmt::format("a spike can have an outlier {}", outlier_place(*first));
    if (!(first->weakest.value < threshold.value)) return seen + ", beside the one above the top edge";
    const std::string smallest = first->weakest.value > 0.0
                                     ? fmt::format("the smallest strength with an outlier is {:.6g}, not {:.6g}",
                                                   first->weakest.value, threshold.value)
                                     : "every strength, however small, has one";
    return fmt::format("{}, although it is below the threshold of the top edge: {}", seen, smallest);
}

std::string spikes_text(const std::vector<SpikePrediction>& spikes,
                        const std::vector<std::vector<PlacedOutlier>>& outliers, const std::vector<SupportGap>& gaps) {
    if (spikes.empty()) return "";
    TextTable table({"strength", "outlier", "eigenvalue", "overlap left", "overlap right", "frobenius", "operator",
                     "nuclear", "residual"},
                    0);
    table.align_left(1);
    const auto cell = [](double value) { return fmt::format("{:.8g}", value); };
    const auto add = [&](const std::string& where, const SpikePrediction& spike) {
        table.add({cell(spike.strength.value), where, cell(spike.outlier.value), cell(spike.overlap_left.value),
                   cell(spike.overlap_right.value), cell(spike.shrunk(Loss::frobenius).value),
                   cell(spike.shrunk(Loss::operator_norm).value), cell(spike.shrunk(Loss::nuclear).value),
                   cell(spike.residual.value)});
    };
    for (std::size_t i = 0; i < spikes.size(); ++i) {
        if (outliers[i].empty()) add("none", spikes[i]);
        for (const PlacedOutlier& outlier : outliers[i]) add(outlier_place(outlier, gaps), outlier.prediction);
    }
    return "\n" + table.text() +
           "none (not detectable): the largest eigenvalue stays at the edge, overlaps and shrunk values are 0.\n"
           "overlaps: squared; then the optimal shrunk value for each loss; residual: observed singular value minus "
           "the\nFrobenius one.\n";
}

using Transforms = std::optional<std::pair<std::complex<double>, theory::StieltjesPair>>;

void add_json(Json& document, const Transforms& transforms) {
    if (!transforms) return;
    const auto complex = [](std::complex<double> z) {
        Json pair = Json::array();
        pair.push(z.real());
        pair.push(z.imag());
        return pair;
    };
    const auto& [z, pair] = *transforms;
    document.set("stieltjes", Json::object({{"z", complex(z)},
                                            {"left", complex(pair.left)},
                                            {"right", complex(pair.right)},
                                            {"d_transform", complex(z * pair.left * pair.right)}}));
}

void add_json(Json& document, const TheoryAnswers::Bulk& answers) {
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
    add_json(document, answers.transforms);
}

std::string transforms_text(const Transforms& transforms) {
    if (!transforms) return "";
    const auto& [z, pair] = *transforms;
    const auto complex = [](std::complex<double> c) { return fmt::format("{:.12g} {:+.12g}i", c.real(), c.imag()); };
    return fmt::format("\nStieltjes transforms at {}\n  left   {}   (of Z Z^T)\n  right  {}   (of Z^T Z)\n", complex(z),
                       complex(pair.left), complex(pair.right));
}

std::string bulk_text(const TheoryAnswers::Bulk& answers) {
    std::string text = transforms_text(answers.transforms);
    const auto cell = [](double value) { return fmt::format("{:.10g}", value); };
    if (!answers.quantiles.empty()) {
        TextTable table({"fraction", "eigenvalue"}, 0);
        for (const auto& [probability, x] : answers.quantiles) table.add({cell(probability), cell(x.value)});
        text += "\n" + table.text();
    }
    if (!answers.curve.empty()) {
        TextTable table({"eigenvalue", "density", "cdf"}, 0);
        for (const auto& point : answers.curve) table.add({cell(point.x.value), cell(point.density), cell(point.cdf)});
        text += "\n" + table.text();
    }
    return text;
}

std::vector<std::string> notes_of(const ProfileAnswers& answers) {
    std::vector<std::string> notes;
    for (const std::string& note : {answers.note, gap_note(answers.gaps, answers.threshold)})
        if (!note.empty()) notes.push_back(note);
    return notes;
}

}  // namespace

Json theory_json(const TheoryAnswers& answers) {
    const auto& [row_spectrum, column_spectrum, law, bulk, spikes, gaps, outliers, regularity, of_bulk, finite, entries,
                 entries_note, quantization] = answers;
    Json list = Json::array();
    for (std::size_t i = 0; i < spikes.size(); ++i)
        list.push(spike_json(spikes[i], outliers[i], gaps, law.detection_threshold()));
    Json listed_gaps = Json::array();
    for (const auto& gap : gaps) listed_gaps.push(gap_json(gap));
    Json notes = Json::array();
    if (!regularity.regular) notes.push(regularity.note);
    if (const std::string note = gap_note(gaps, law.detection_threshold()); !note.empty()) notes.push(note);
    Json document = Json::object({{"schema", "spiked.theory/1"},
                                  {"aspect", law.aspect().value()},
                                  {"bulk_edge", law.bulk_edge().value},
                                  {"lower_edge", bulk.lower_edge().value},
                                  {"mass_at_zero", bulk.mass_at_zero()},
                                  {"mean", bulk.mean()},
                                  {"median", bulk.median().value},
                                  {"detection_threshold", law.detection_threshold().value},
                                  {"tracy_widom_scale", law.tracy_widom_scale()},
                                  {"regular_edge", regularity.regular},
                                  {"gaps", std::move(listed_gaps)},
                                  {"spikes", std::move(list)},
                                  {"notes", std::move(notes)}});
    add_json(document, of_bulk);
    if (finite) {
        Json of_size = finite_size_json(*finite, law.bulk_edge());
        if (finite->field == theory::Field::complex) of_size.set("field", "complex");
        of_size.set("entries", entries);
        of_size.set("entries_note", entries_note.empty() ? Json() : Json(entries_note));
        document.set("finite_size", std::move(of_size));
    }
    if (quantization) document.set("quantization", quantization_json(*quantization));
    if (!regularity.regular) document.set("note", regularity.note);
    return document;
}

std::string theory_text(const TheoryAnswers& answers) {
    const auto& law = answers.law;
    const auto& bulk = answers.bulk;
    std::string text = fmt::format(
        "rows {}, columns {}, aspect ratio n/d = {:.6g}, entries of X have variance 1/d\n\n"
        "bulk edge            {:.10g}   (eigenvalue of Z Z^T; singular value {:.10g})\n"
        "lower edge           {:.10g}   (fraction of eigenvalues that are zero: {:.6g})\n",
        answers.row_spectrum, answers.column_spectrum, law.aspect().value(), law.bulk_edge().value,
        root(law.bulk_edge()).value, bulk.lower_edge().value, bulk.mass_at_zero());
    text += gaps_text(answers.gaps);
    text += fmt::format(
        "mean, median         {:.10g}, {:.10g}\n"
        "detection threshold  {:.10g}   (of the top edge; signal strength, singular-value scale)\n"
        "Tracy-Widom scale    {:.10g}   (this times d^(2/3) (largest eigenvalue - edge) -> TW{})\n",
        bulk.mean(), bulk.median().value, law.detection_threshold().value, law.tracy_widom_scale(),
        answers.finite && answers.finite->field == theory::Field::complex ? 2 : 1);
    if (!answers.regularity.regular) text += "warning: " + answers.regularity.note + "\n";
    if (const std::string note = gap_note(answers.gaps, law.detection_threshold()); !note.empty())
        text += "note: " + note + "\n";
    text += spikes_text(answers.spikes, answers.outliers, answers.gaps);
    text += bulk_text(answers.of_bulk);
    if (answers.finite) text += finite_size_text(*answers.finite, law.bulk_edge());
    if (!answers.entries_note.empty()) text += fmt::format("{} entries: {}\n", answers.entries, answers.entries_note);
    if (answers.quantization) text += quantization_text(*answers.quantization);
    return text;
}

Json theory_json(const ProfileAnswers& answers) {
    const theory::ProfileLaw& law = answers.law;
    Json list = Json::array();
    for (std::size_t i = 0; i < answers.spikes.size(); ++i)
        list.push(spike_json(answers.spikes[i], answers.outliers[i], answers.gaps, answers.threshold));
    Json gaps = Json::array();
    for (const auto& gap : answers.gaps) gaps.push(gap_json(gap));
    Json notes = Json::array();
    for (const std::string& note : notes_of(answers)) notes.push(note);
    Json document = Json::object({{"schema", "spiked.theory/1"},
                                  {"aspect", answers.aspect.value()},
                                  {"variances", answers.variances},
                                  {"bulk_edge", law.bulk_edge().value},
                                  {"mean", answers.mean},
                                  {"detection_threshold", answers.threshold.value},
                                  {"tracy_widom_scale", law.tracy_widom_scale()},
                                  {"gaps", std::move(gaps)},
                                  {"spikes", std::move(list)},
                                  {"notes", std::move(notes)}});
    if (!answers.curve.empty()) {
        Json curve = Json::array();
        for (const auto& point : answers.curve)
            curve.push(Json::object({{"x", point.x.value}, {"density", point.density}}));
        document.set("density", std::move(curve));
    }
    add_json(document, answers.transforms);
    if (const auto& finite = answers.finite)
        document.set("finite_size", Json::object({{"rows", finite->rows},
                                                  {"cols", finite->columns},
                                                  {"top_noise_quantiles", quantiles_json(*finite, law.bulk_edge())},
                                                  {"top_noise_shift", finite->top_noise_shift},
                                                  {"edge_fluctuation", finite->top_noise_standard_deviation}}));
    return document;
}

std::string theory_text(const ProfileAnswers& answers) {
    const theory::ProfileLaw& law = answers.law;
    std::string text = fmt::format(
        "variances {}, aspect ratio n/d = {:.6g}, entry (i, j) of Z has variance S_ij / d\n\n"
        "bulk edge            {:.10g}   (eigenvalue of Z Z^T; singular value {:.10g})\n"
        "{}mean                 {:.10g}\n"
        "detection threshold  {:.10g}   (of the top edge, for a spike {}; singular-value scale)\n"
        "Tracy-Widom scale    {:.10g}   (this times d^(2/3) (largest eigenvalue - edge) -> TW1)\n",
        answers.variances, answers.aspect.value(), law.bulk_edge().value, root(law.bulk_edge()).value,
        gaps_text(answers.gaps), answers.mean, answers.threshold.value,
        answers.even ? "that is spread evenly" : "with the vectors that were given", law.tracy_widom_scale());
    for (const std::string& note : notes_of(answers)) text += fmt::format("note: {}\n", note);
    text += spikes_text(answers.spikes, answers.outliers, answers.gaps);
    text += transforms_text(answers.transforms);
    if (!answers.curve.empty()) {
        TextTable table({"eigenvalue", "density"}, 0);
        for (const auto& point : answers.curve)
            table.add({fmt::format("{:.10g}", point.x.value), fmt::format("{:.10g}", point.density)});
        text += "\n" + table.text();
    }
    if (answers.finite) text += top_noise_text(*answers.finite, law.bulk_edge());
    return text;
}

}  // namespace spiked::reports
