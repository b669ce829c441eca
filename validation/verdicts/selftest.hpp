#pragma once
#include <functional>
#include <string>
#include <vector>

#include "validation/verdicts/claim_verdicts.hpp"

namespace spiked::validation {

/// A known error of programs in this field, and the negative control that plants it.
struct PlantedDefect {
    std::string name;
    std::string claim;
    std::string criterion;
    std::string control;
};
[[nodiscard]] const std::vector<PlantedDefect>& planted_defects();

struct DefectOutcome {
    PlantedDefect defect;
    bool caught = false;  ///< the criterion fails with the defect and does not fail without it
    bool intact = false;  ///< the criterion does not fail without the defect
    Finding finding;      ///< finding of the criterion with the defect
};

/// Whether a statistical procedure keeps its stated level on draws from its own null law.
struct CalibrationOutcome {
    std::string name;
    std::string measures;
    double p_value = 1.0;  ///< p-value of the observed rate under the stated level
    bool passed = false;
    /// The same for a version with a planted defect, which must be rejected.
    std::string control;
    double control_p_value = 1.0;
    bool control_rejected = false;
};

struct SelftestPlan {
    stream::StudySeed seed;
    /// Probability that a correct program fails any part; nominal for defects planted in claims about means and slopes.
    double false_alarm = 1e-6;
    std::size_t threads = 0;
    std::vector<PlantedDefect> defects = planted_defects();
    std::function<void(std::size_t done, std::size_t of)> progress;
};

struct Selftest {
    std::vector<DefectOutcome> defects;
    std::vector<CalibrationOutcome> calibrations;

    [[nodiscard]] std::size_t caught() const;
    [[nodiscard]] bool passed() const;
};

/// Tests the statistical procedures themselves: planted defects must be caught, p-values must be uniform under their
/// null laws, intervals must have their stated coverage or more, and an equivalence test must not reject a truth on its
/// margin more often than its level. Cost: under a minute on two processors.
[[nodiscard]] Selftest run_selftest(const SelftestPlan& plan);

}  // namespace spiked::validation
