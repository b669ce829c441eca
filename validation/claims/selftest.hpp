#pragma once
#include <functional>
#include <string>
#include <vector>

#include "validation/claims/claim_verdicts.hpp"

namespace spiked::validation {

/// A mistake that programs of this field have made, and the control that plants it.
struct PlantedDefect {
    std::string name;
    std::string claim;
    std::string criterion;
    std::string fault;
};
[[nodiscard]] const std::vector<PlantedDefect>& planted_defects();

struct DefectOutcome {
    PlantedDefect defect;
    bool caught = false;  ///< refused with the defect in, and not without it
    bool intact = false;  ///< not refused without it
    Finding finding;      ///< of the criterion with the defect in
};

/// Whether a procedure keeps its promise on draws from its own null law.
struct CalibrationOutcome {
    std::string name;
    std::string measures;
    double p_value = 1.0;  ///< of what was seen, were the promise kept
    bool passed = false;
    /// The same of a version with a mistake in it: must be refused.
    std::string control;
    double control_p_value = 1.0;
    bool control_refused = false;
};

struct SelftestPlan {
    stream::StudySeed seed;
    double false_alarm = 1e-6;  ///< that an intact program fails any part
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

/// Judges the judge: planted defects must be caught, p-values of the tests must be uniform under their null laws,
/// intervals must cover as often as they say, an equivalence check must not reject a truth on its margin more often
/// than its share. Cost: under a minute on two processors.
[[nodiscard]] Selftest run_selftest(const SelftestPlan& plan);

}  // namespace spiked::validation
