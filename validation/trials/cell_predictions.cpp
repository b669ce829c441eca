#include "validation/trials/cell_predictions.hpp"

#include "validation/trials/predictions.hpp"

namespace spiked::validation {
namespace {

/// Whether another component has the same strength. The theory then predicts nothing about each of them separately.
bool tied(const std::vector<SignalStrength>& strengths, std::size_t i) {
    const auto same = [&](std::size_t j) { return j < strengths.size() && strengths[j].value == strengths[i].value; };
    return same(i + 1) || (i > 0 && same(i - 1));
}

}  // namespace

void add_limits(ExperimentCell& cell, const theory::SeparableLaw& law, const std::vector<SignalStrength>& strengths) {
    cell.limits.push_back({"bulk_edge", 0, law.bulk_edge().value});
    for (std::size_t i = 0; i < strengths.size(); ++i) {
        const theory::SpikePrediction spike = law.spike(strengths[i]);
        if (spike.detectable && tied(strengths, i)) continue;
        const int k = static_cast<int>(i) + 1;
        cell.limits.push_back({"outlier", k, spike.outlier.value});
        cell.limits.push_back({"overlap.left", k, spike.overlap_left.value});
        cell.limits.push_back({"overlap.right", k, spike.overlap_right.value});
        cell.limits.push_back({"strength", k, spike.strength.value});
        cell.limits.push_back({"shrunk", k, spike.shrunk(theory::Loss::frobenius).value});
    }
}

void add_predictions(ExperimentCell& cell, const Experiment& experiment, const std::vector<std::string>& codecs,
                     const theory::SeparableLaw& law, const std::vector<SignalStrength>& strengths) {
    const std::size_t before_codecs = experiment.methods.size() - codecs.size();
    for (const auto& [claim, form] : study_forms()) {
        for (std::size_t m = 0; m < experiment.methods.size(); ++m) {
            const auto& method = experiment.methods[m];
            if (method.kind != form.kind) continue;
            if (!form.codec.empty() && codecs[m - before_codecs] != form.codec) continue;
            const std::size_t count = form.per_spike ? strengths.size() : 1;
            for (std::size_t i = 0; i < count; ++i) {
                const ClaimPoint at{&law, cell.rows, cell.columns, form.per_spike ? strengths[i] : SignalStrength{},
                                    static_cast<unsigned>(method.bits.value_or(0.0))};
                if (!form.applies(at) || (form.per_spike && law.spike(strengths[i]).detectable && tied(strengths, i)))
                    continue;
                cell.predictions.push_back({claim, form.metric, m, form.per_spike ? static_cast<int>(i) + 1 : 0,
                                            form.predicted(at), form.with_defect(at)});
            }
        }
    }
}

}  // namespace spiked::validation
