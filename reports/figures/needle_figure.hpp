#pragma once
#include "reports/figures/figures.hpp"
#include "validation/model/retrieval.hpp"

namespace spiked::reports {

/// The attention of the questions of the first prompt before and after compression: for full precision and each of the
/// first eleven methods a map of questions by needles, in the head that finds the needles best in full precision. A
/// question that finds its needle is a dark square on the diagonal. The last column is the attention elsewhere.
[[nodiscard]] Figure needle_figure(const validation::Retrieval& found);

/// The same from the store of a retrieval study, as the kind "needle-attention". Its first prompt has the arrays
/// `needle_attention` for each method and `needle_head` (layer and head).
[[nodiscard]] std::vector<Figure> needle_attention(validation::Database& store, const Json& spec);

}  // namespace spiked::reports
