#pragma once
#include <cstdint>
#include <string>

namespace spiked::validation {

enum class Verdict { pass, fail, inconclusive };
[[nodiscard]] std::string_view name_of(Verdict verdict);

/// A mean with its error against a prediction and a margin.
struct Comparison {
    Verdict verdict = Verdict::inconclusive;
    double low = 0.0;  ///< of the interval for the mean
    double high = 0.0;
    double detectable = 0.0;  ///< smallest deviation from the prediction that fails with probability 0.99
    std::uint64_t needed =
        0;  ///< replicates that would decide an inconclusive one; 0: none would (it lies on the margin)
};

/// Pass when the interval of level 1 - alpha for the mean lies inside expected +- margin, fail when it lies outside,
/// otherwise inconclusive. The limit z comes from Student's law at count - 1 degrees of freedom, so the chance of a
/// false fail is at most alpha whatever the count. Inconclusive with fewer than two replicates or without an error.
[[nodiscard]] Comparison compare(double mean, double mcse, std::uint64_t count, double expected, double margin,
                                 double alpha);

}  // namespace spiked::validation
