#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/text/enum_names.hpp"
#include "estimators/pca/covariance_loss.hpp"
#include "estimators/svd/shape.hpp"

namespace spiked::estimators {

/// How the noise level is estimated from the n x p data behind k components:
///   mean    the mean of the variance that the components do not explain, (sum of the other eigenvalues + sum of sample
///           minus population eigenvalues of the components) / (p - k), which is solved for itself (Kritchman and
///           Nadler 2008)
///   median  the median of the other eigenvalues over that of the Marchenko-Pastur law, as data of n - k samples and
///           p - k features. Many components too weak for the test, and a few features of unusual variance, move it
///           less than the mean. Under white noise its standard deviation is twice that of the mean, and small data
///           exceed the level of the test
/// White Gaussian data of 60 x 40 (200 x 100) with a component at level .01, in 2000 (600) draws: mean .002 (.005),
/// median .022 (.023), known .006 (.007). With 40 spikes of 2.2 in 400 x 200 the mean is 1.15 s^2, the median 1.04 s^2.
enum class VarianceRule { mean, median };

/// What an eigenvalue of the sample covariance is replaced by.
enum class EigenvalueShrinker {
    optimal,   ///< the value that minimises a loss
    debiased,  ///< the estimated population eigenvalue
    sample,    ///< itself
};

struct PcaOptions {
    EigenvalueShrinker shrinker = EigenvalueShrinker::optimal;
    const CovarianceLoss* loss = nullptr;  ///< null: the first of the table
    VarianceRule rule = VarianceRule::mean;
    std::optional<double> noise_level = {};  ///< a known variance
    double level = 0.01;                     ///< of the test of each component
    std::optional<std::size_t> most_components = {};
};

/// Components whose eigenvalues differ by less than so many standard errors get a note. Errors of their cosines cover
/// less than 95 %, and those of their eigenvalues do: Gaussian data of 240 x 80, 400 sets, eigenvalues of 16 and 16
/// .61, 16 and 14 (1.4 errors) .81, 16 and 12.5 (2.4) .90, 16 and 10 (4.1) .93; of 400 x 40, 10 and 8.6 (2.0) .90.
inline constexpr double separation_of_components = 3.0;

/// Principal components under the spiked covariance model (theory/laws/spiked_covariance.hpp): every eigenvalue is a
/// variance, in the squared unit of the data. Vectors but `eigenvalues` have length `components`.
struct SpikedPca {
    double noise_level = 0.0;         ///< s^2, the variance of the noise in every direction
    std::vector<double> eigenvalues;  ///< of the sample covariance, min(n, p) of them, descending; the others are 0
    std::size_t components = 0;
    std::vector<double> debiased;  ///< estimated population eigenvalues
    std::vector<double> debiased_errors;
    std::vector<double> cosines;        ///< absolute cosines (not squared) between sample and population eigenvectors
    std::vector<double> cosine_errors;  ///< of the estimate against the cosine in this sample
    /// Kurtosis - 3 of the scores, which check_samples estimates; empty where they are taken as Gaussian.
    std::vector<double> score_cumulants;
    std::vector<double> shrunk;  ///< eigenvalues of the estimated covariance; it has `noise_level` in other directions
    std::string note;            ///< empty unless the model cannot hold
    /// The noise level of `eigenvalues`, where it is another because entries are missing (seen_components.hpp).
    std::optional<double> weighted_noise_level = {};

    /// The noise level to which the bulk edge belongs.
    [[nodiscard]] double bulk_noise_level() const { return weighted_noise_level.value_or(noise_level); }
};

/// The components of n samples (rows) of p features (columns) from the singular values of the data, descending;
/// eigenvalues are their squares over n. Data with centred columns have n - 1 samples, whatever their number of rows.
///
/// Components: from the largest on, while they lie above the `level` quantile of the top noise eigenvalue, edge +
/// Tracy-Widom (TracyWidomTest), with the noise level estimated again after every component. Then each population
/// eigenvalue and cosine follow from the noise level and the sample eigenvalue. A component that the test counts at or
/// below the edge, as a level above .17 allows, gets the threshold as its eigenvalue and cosine 0.
///
/// The standard errors are the first order in 1/sqrt(n), noise level known, those of eigenvalues for Gaussian scores
/// (check_samples in sample_checks.hpp has others). They grow without limit towards the threshold, where they mean that
/// the number is not determined (those of cosines end at 1), and are 0 for a component at or below the edge. At twice
/// the threshold's distance from the noise level cosines vary 1.3 to 1.8 times as much at n p of 1e4. Cosines are
/// limits, which those of a sample fall short of where eigenvalues are close; their errors include this. Data of
/// exactly low rank (more than half the values 0) have noise level 0, and every component is kept as it is.
///
/// Throws input_error for fewer than 2 samples or features, precondition_error unless there are min(n, p) descending
/// values, and usage_error for a noise level or level out of range. Source: Johnstone 2001; Kritchman and Nadler 2008
/// and 2009; Donoho, Gavish and Johnstone 2018. Cost: O(p) per component and component before it, and 30 ms for a
/// quantile at a new level.
[[nodiscard]] SpikedPca spiked_pca(std::span<const double> singular_values, Shape shape,
                                   const PcaOptions& options = {});

}  // namespace spiked::estimators

template <>
struct spiked::EnumNames<spiked::estimators::VarianceRule> {
    static constexpr EnumName<spiked::estimators::VarianceRule> table[] = {
        {spiked::estimators::VarianceRule::mean, "mean"}, {spiked::estimators::VarianceRule::median, "median"}};
};

template <>
struct spiked::EnumNames<spiked::estimators::EigenvalueShrinker> {
    static constexpr EnumName<spiked::estimators::EigenvalueShrinker> table[] = {
        {spiked::estimators::EigenvalueShrinker::optimal, "optimal"},
        {spiked::estimators::EigenvalueShrinker::debiased, "debiased"},
        {spiked::estimators::EigenvalueShrinker::sample, "sample"}};
};
