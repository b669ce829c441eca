#include "reports/tables/theory_parts.hpp"

#include <fmt/format.h>

#include "reports/tables/text_table.hpp"

namespace spiked::reports {

Json quantiles_json(const theory::FiniteSize& finite, Eigenvalue edge) {
    Json list = Json::array();
    for (const auto& quantile : top_noise_quantiles(finite, edge))
        list.push(Json::object({{"probability", quantile.probability},
                                {"tracy_widom", quantile.tracy_widom},
                                {"eigenvalue", quantile.eigenvalue.value}}));
    return list;
}

std::string top_noise_text(const theory::FiniteSize& finite, Eigenvalue edge) {
    const bool complex = finite.field == theory::Field::complex;
    std::string text = fmt::format(
        "\nAt {} x {}{}: the largest noise eigenvalue is {:.6g} on average, standard deviation {:.3g} (first order).\n",
        finite.rows, finite.columns, complex ? ", complex entries" : "", edge.value + finite.top_noise_shift,
        finite.top_noise_standard_deviation);
    text += fmt::format("Its quantiles (Tracy-Widom, order {}):", complex ? 2 : 1);
    for (const auto& quantile : top_noise_quantiles(finite, edge))
        text += fmt::format(" {:g} % {:.6g};", 100.0 * quantile.probability, quantile.eigenvalue.value);
    text.back() = '\n';
    return text;
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
        spikes.push(Json::object(
            {{"strength", spike.strength.value},
             {"outlier_deviation", spike.outlier},
             {"overlap_left_deviation", spike.overlap_left},
             {"overlap_right_deviation", spike.overlap_right},
             {"entries_relative_shift", Json::object({{"outlier", spike.of_entries.outlier_shift},
                                                      {"overlap_left", spike.of_entries.overlap_left_shift},
                                                      {"overlap_right", spike.of_entries.overlap_right_shift}})},
             {"reliable", spike.reliable},
             {"reliable_overlaps", spike.reliable_overlaps}}));
    return Json::object({{"rows", finite.rows},
                         {"cols", finite.columns},
                         {"top_noise_quantiles", quantiles_json(finite, edge)},
                         {"top_noise_shift", finite.top_noise_shift},
                         {"entries_shift", finite.kurtosis_shift},
                         {"edge_fluctuation", finite.top_noise_standard_deviation},
                         {"edge_estimate", finite.edge_estimate ? Json(finite.edge_estimate->value) : Json()},
                         {"rank_rules", std::move(rules)},
                         {"spikes", std::move(spikes)}});
}

std::string finite_size_text(const theory::FiniteSize& finite, Eigenvalue edge) {
    const auto number = [](double value) { return fmt::format("{:.6g}", value); };
    const auto small = [](double value) { return fmt::format("{:.3g}", value); };
    std::string text = top_noise_text(finite, edge);
    if (finite.edge_estimate)
        text += fmt::format("eOptShrink's edge estimate for pure noise of this size is {:.6g} on average, {:+.1f} %.\n",
                            finite.edge_estimate->value, 100.0 * (finite.edge_estimate->value / edge.value - 1.0));
    const std::vector<std::string> header = {"rank rule", "counts above", "smallest strength", "false alarms"};
    TextTable rules(header);
    TextTable estimated(header);
    const auto add = [&](TextTable& table, const std::string& name, const auto& rule) {
        table.add(
            {name, number(rule.cutoff.value), number(rule.smallest_strength.value), small(rule.expected_false_alarms)});
    };
    bool estimates = false;
    for (const auto& rule : finite.rules) {
        add(rules, rule.name, rule);
        if (!rule.estimated) continue;
        add(estimated, rule.name, *rule.estimated);
        estimates = true;
    }
    text += "\nRank rules that know the bulk edge:\n" + rules.text();
    if (estimates) text += "\nThe same where the edge is estimated from a block of this size:\n" + estimated.text();
    text +=
        "\nsmallest strength: the smallest whose outlier the rule counts; false alarms: mean number of eigenvalues of "
        "pure noise it counts.\n"
        "The other rules of `spiked list ranks` compare several values at once and have no such cutoff.\n";
    if (!finite.spikes.empty()) {
        TextTable spikes({"strength", "sd of outlier", "sd of overlap left", "sd of overlap right"}, 0);
        const auto marked = [&](double value, bool reliable) { return small(value) + (reliable ? "" : " *"); };
        for (const auto& spike : finite.spikes)
            spikes.add({number(spike.strength.value), marked(spike.outlier, spike.reliable),
                        marked(spike.overlap_left, spike.reliable_overlaps),
                        marked(spike.overlap_right, spike.reliable_overlaps)});
        text += "\nStandard deviations between blocks, first order in 1/sqrt(d):\n" + spikes.text();
        for (const auto& spike : finite.spikes) {
            if (spike.reliable && spike.reliable_overlaps) continue;
            text +=
                "* first order does not describe blocks of this size: within d^(-1/3) of the threshold (outlier) or "
                "3.5 d^(-1/3)\n(overlaps), relative, or entries that double the variance.\n";
            break;
        }
    }
    return text;
}

Json quantization_json(const theory::QuantizationOverview& answers) {
    Json rows = Json::array();
    for (const auto& row : answers.widths) {
        Json quantizers = Json::array();
        for (const auto& [kind, reconstruction, prediction] : row.quantizers) {
            quantizers.push(Json::object({{"name", theory::name_of(kind)},
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
    const auto sketch = [](const theory::SketchError& error) {
        return Json::object({{"mean_factor", error.mean_factor}, {"variance", error.variance}});
    };
    return Json::object({{"rows", answers.setting.rows},
                         {"cols", answers.setting.dimension},
                         {"qjl", Json::object({{"gaussian", sketch(answers.gaussian_sketch)},
                                               {"orthogonal", sketch(answers.orthogonal_sketch)},
                                               {"sign_correlation", theory::sign_correlation}})},
                         {"residual_energy", answers.setting.residual_energy_fraction},
                         {"rank", answers.setting.rank},
                         {"min_max_group", answers.min_max_group},
                         {"by_bits", std::move(rows)}});
}

std::string quantization_text(const theory::QuantizationOverview& answers) {
    const auto cell = [](double value) { return fmt::format("{:.6g}", value); };
    const auto percent = [](double value) { return fmt::format("{:.3f} %", 100.0 * value); };
    TextTable codebooks({"bits", "Lloyd-Max", "gain kappa", "entropy", "normal", "uniform",
                         fmt::format("min-max g{}", answers.min_max_group), "entropy-coded", "Shannon"},
                        0);
    TextTable quantizers(
        {"bits", "quantizer", "bits per entry", "relative L2", "sd random query", "bias along row", "sd along row"}, 2);
    for (const auto& row : answers.widths) {
        const std::string bits = fmt::format("{}", row.codebook.bits);
        codebooks.add({bits, cell(row.codebook.distortion), cell(row.codebook.linear_gain),
                       cell(row.codebook.entropy_bits), cell(row.normal_distortion), cell(row.uniform_distortion),
                       cell(row.min_max_distortion), cell(row.entropy_coded_distortion), cell(row.shannon_distortion)});
        for (const auto& [kind, reconstruction, prediction] : row.quantizers)
            quantizers.add({bits, std::string(theory::name_of(kind)), fmt::format("{:.4f}", prediction.bits_per_entry),
                            percent(prediction.relative_l2), cell(prediction.random_query.standard_deviation),
                            cell(prediction.along_row.bias), cell(prediction.along_row.standard_deviation)});
    }
    const auto& orthogonal = answers.orthogonal_sketch;
    return fmt::format(
        "\nQuantization of rows of {} entries. Squared error per unit of energy (Lloyd-Max: on the sphere of that "
        "dimension; normal: the same for independent normal entries; entropy-coded and Shannon: at that rate):\n{}\n"
        "Predicted for blocks of {} x {}, residual energy fraction {:.6g}, rank {} (factors of 4 bits, 16-bit "
        "norms):\n{}inner products relative to |query| |row|; a query along the row is a token that looks for itself.\n"
        "QJL with one sketch row per entry, query orthogonal to the row: variance {:.6g} (Gaussian rows), {:.6g} "
        "(orthogonal; mean factor {:.6g}).\n",
        answers.setting.dimension, codebooks.text(), answers.setting.rows, answers.setting.dimension,
        answers.setting.residual_energy_fraction, answers.setting.rank, quantizers.text(),
        answers.gaussian_sketch.variance, orthogonal.variance, orthogonal.mean_factor);
}

}  // namespace spiked::reports
