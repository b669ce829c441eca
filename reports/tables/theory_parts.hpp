#pragma once
#include <string>

#include "core/text/json.hpp"
#include "theory/laws/finite_size.hpp"
#include "theory/quantization/quantization_overview.hpp"

// Parts of the report of a law (theory_report.hpp): matrices of finite size, and quantization of rows.
namespace spiked::reports {

/// Quantiles of the largest noise eigenvalue.
[[nodiscard]] Json quantiles_json(const theory::FiniteSize& finite, Eigenvalue edge);
/// Mean, standard deviation and quantiles of the largest noise eigenvalue.
[[nodiscard]] std::string top_noise_text(const theory::FiniteSize& finite, Eigenvalue edge);
/// What a finite size changes: the largest noise eigenvalue, rank rules and standard deviations of spikes.
[[nodiscard]] Json finite_size_json(const theory::FiniteSize& finite, Eigenvalue edge);
[[nodiscard]] std::string finite_size_text(const theory::FiniteSize& finite, Eigenvalue edge);

[[nodiscard]] Json quantization_json(const theory::QuantizationOverview& answers);
[[nodiscard]] std::string quantization_text(const theory::QuantizationOverview& answers);

}  // namespace spiked::reports
