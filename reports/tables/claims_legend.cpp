#include <fmt/format.h>

#include <algorithm>

#include "reports/tables/claim_report.hpp"

namespace spiked::reports {

std::vector<LegendItem> claims_legend(const validation::Validation& validation) {
    std::vector<LegendItem> legend = {
        {"printed, corrected",
         "each statement is judged as printed and, where the printed form is refuted or vacuous, in a corrected form."},
        {"kind",
         "what the verdict on the printed form means: false (as mathematics, under hypotheses of the paper), "
         "finite-size (refuted at the sizes measured, where the paper speaks of a limit), misprint (a slip that "
         "nothing else in it uses), overstated (true in a weaker form), vacuous, ambiguous (refuted in one reading), "
         "does-not-transfer (not so on a dump, of which the paper does not speak), or holds."},
        {"verdict",
         "holds, refuted and inconclusive refer to the allowed margin. Vacuous means that a negative control passed."},
        {"controls",
         "every criterion that holds has negative controls, its own trials with one planted defect, which must fail. "
         "Every refuted criterion has positive controls, its own trials changed so that the statement is true, which "
         "must pass, and a corrected form."},
        {"value",
         "brackets contain the standard error in the last digits. Rates and growth are slopes of a root mean square or "
         "a quantile against the size on logarithmic scales."},
        {"errors",
         fmt::format(
             "all {} confidence intervals, those of controls included, hold simultaneously with probability 1 - {:g}: "
             "exactly for fractions and distances, nominally for means and slopes, whose limits are corrected for "
             "skewness. Measured, a mean of 200 values misses its limits 0.8 (normal), 1.2 (exponential), 1.3 "
             "(chi-square with one degree of freedom) and 13 (lognormal) times as often as stated, one of 2000 values "
             "1.0, 0.6, 0.6 and 1.6 times.",
             validation.comparisons, validation.false_alarm)},
        {"detectable", "the smallest deviation that would have failed with probability 0.99."},
        {"largest fault that would not fail",
         "stated in its own unit or, where a fault is there or not, as the fraction of the trials that have it. Its "
         "size lies between the largest tried at which the criterion does not fail and the smallest at which it does; "
         "\"up to\" is said where no smaller one was tried at all sizes of blocks."},
        {"noise", std::string(noise_legend)}};
    if (std::any_of(validation.claims.begin(), validation.claims.end(),
                    [](const validation::ClaimOutcome& claim) { return !claim.claim->on.empty(); }))
        legend.push_back({"dumps",
                          "errors on dumps are over random rotations or orders of tokens; the blocks are fixed, so "
                          "that they say nothing about other blocks, prompts or models."});
    return legend;
}

}  // namespace spiked::reports
