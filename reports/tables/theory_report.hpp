#pragma once
#include <complex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/text/json.hpp"
#include "theory/laws/bulk_distribution.hpp"
#include "theory/laws/finite_size.hpp"
#include "theory/laws/profile_law.hpp"
#include "theory/laws/separable_law.hpp"
#include "theory/laws/support_gaps.hpp"
#include "theory/quantization/quantization_overview.hpp"

namespace spiked::reports {

/// The theory of one law, as far as it was requested.
struct TheoryAnswers {
    /// Density and cdf on a grid, quantiles, and transforms at one point, each only when requested.
    struct Bulk {
        std::vector<theory::BulkPoint> curve;
        std::vector<std::pair<double, Eigenvalue>> quantiles;
        std::optional<std::pair<std::complex<double>, theory::StieltjesPair>> transforms;
    };

    std::string row_spectrum;  ///< names as given by the user
    std::string column_spectrum;
    const theory::SeparableLaw& law;
    const theory::BulkDistribution& bulk;
    std::vector<theory::SpikePrediction> spikes;               ///< in the order given
    std::vector<theory::SupportGap> gaps;                      ///< from the top down
    std::vector<std::vector<theory::PlacedOutlier>> outliers;  ///< of each spike
    theory::EdgeRegularity regularity;
    Bulk of_bulk;
    std::optional<theory::FiniteSize> finite;
    std::string entries = "gaussian";  ///< the entry law that `finite` is for, as given by the user
    std::string entries_note = {};     ///< what `finite` leaves out of its effect; empty for Gaussian entries
    std::optional<theory::QuantizationOverview> quantization;
};

/// The answers for a terminal.
[[nodiscard]] std::string theory_text(const TheoryAnswers& answers);
/// JSON of schema `spiked.theory/1`. `detectable` of a spike, and what is beside it, refer to the top edge; `outliers`
/// lists all of the spike, with the position in `gaps` of the gap that each lies in, null above the top edge. `gaps`
/// are listed from the top down; one with `lower` 0 lies between zero and the bulk. Strengths are null when infinite.
[[nodiscard]] Json theory_json(const TheoryAnswers& answers);

/// The theory of noise with a variance profile (`spiked theory --variances`), as far as it was requested.
struct ProfileAnswers {
    struct DensityPoint {
        Eigenvalue x;
        double density = 0.0;
    };

    std::string variances;  ///< as given by the user
    AspectRatio aspect;
    const theory::ProfileLaw& law;
    double mean = 0.0;                            ///< of the noise eigenvalues
    bool even = true;                             ///< whether spikes are spread evenly over rows and columns
    SignalStrength threshold;                     ///< of spikes where they lie
    std::vector<theory::SpikePrediction> spikes;  ///< in the order given
    std::vector<theory::SupportGap> gaps;         ///< from the top down
    std::vector<std::vector<theory::PlacedOutlier>> outliers;  ///< of every spike
    std::string note;                                          ///< why gaps were not looked for
    std::vector<DensityPoint> curve;
    std::optional<theory::FiniteSize> finite;  ///< only its size, and mean shift and deviation of the top eigenvalue
    std::optional<std::pair<std::complex<double>, theory::StieltjesPair>> transforms;
};

/// The answers for a terminal.
[[nodiscard]] std::string theory_text(const ProfileAnswers& answers);
/// JSON of schema `spiked.theory/1` without the keys that are not known of such noise, and with `variances`.
[[nodiscard]] Json theory_json(const ProfileAnswers& answers);

}  // namespace spiked::reports
