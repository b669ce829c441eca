#pragma once
#include <complex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/text/json.hpp"
#include "theory/laws/bulk_distribution.hpp"
#include "theory/laws/finite_size.hpp"
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

}  // namespace spiked::reports
