#pragma once
#include <optional>
#include <string>
#include <vector>

#include "app/cli/command.hpp"
#include "core/text/json.hpp"
#include "estimators/inference/spike_intervals.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/svd/leading/leading_part.hpp"
#include "estimators/svd/shape.hpp"
#include "estimators/transforms/spectral_method.hpp"

namespace spiked::app {

/// The estimators of `spiked spectrum`, parsed before the file is read, so that errors in the names and options that do
/// not go together are reported first. With --values there may be none.
[[nodiscard]] std::vector<estimators::SpectralMethod> chosen_methods(const Arguments& arguments, theory::Loss loss);

/// `--values`, `--precision` and `--threads`, and the numbers of the decomposition.
[[nodiscard]] std::vector<OptionSpec> computing_options();
[[nodiscard]] estimators::Precision chosen_precision(const Arguments& arguments);
/// What the singular values of such a decomposition may be off by, as a fraction of the largest: the bound of
/// BatchDecomposition for float, reports::rounding_level for double.
[[nodiscard]] double rounding_of(estimators::Precision precision, estimators::Shape shape);

/// With --values: throws a usage_error where as many components were found as there are values, so that there may be
/// more.
void reject_rank_without_end(const estimators::SpectralMethod& method, std::size_t rank,
                             const estimators::LeadingPart& leading, estimators::Shape shape);
/// The largest singular values of --values with their bounds, and how they were found where that was not by
/// decomposition.
[[nodiscard]] std::string leading_text(const estimators::LeadingPart& leading, std::size_t short_side);
[[nodiscard]] std::string note_on_iteration(const estimators::LeadingPart& leading);

/// The intervals of one estimate and how they were made.
struct Uncertainty {
    estimators::IntervalMethod method = estimators::IntervalMethod::none;
    double confidence = 0.0;
    std::optional<std::vector<estimators::SpikeIntervals>> components;  ///< none: they were not asked for
    std::optional<double> next_p_value;
    std::optional<estimators::NoiseTails> tails;  ///< of the entries behind the components
};

/// The intervals as `spiked spectrum --json` has them; null where they were not asked for.
[[nodiscard]] Json intervals_json(const Uncertainty& of);
/// One line for each component.
[[nodiscard]] std::string intervals_text(const Uncertainty& of);

/// `--symmetric`: eigenvalues of both signs under the spiked Wigner model in place of singular values.
[[nodiscard]] std::vector<OptionSpec> symmetric_options();
int run_symmetric_spectrum(const Arguments& arguments);

}  // namespace spiked::app
