#pragma once
#include "reports/figures/figures.hpp"
#include "validation/model/retrieval.hpp"

namespace spiked::reports {

/// Where the questions of the first prompt attend to, before and after: for full precision and each method (the first
/// eleven) a square of questions by needles, in the head that finds its needles best in full precision. A question that
/// finds its needle is a dark square on the diagonal; the last column is attention on anything but needles.
[[nodiscard]] Figure needle_figure(const validation::Retrieval& found);

/// The same from a store of retrieval, whose first prompt keeps arrays `needle_attention` by method and `needle_head`
/// (layer and head): kind "needle-attention".
[[nodiscard]] std::vector<Figure> needle_attention(validation::Database& store, const Json& spec);

}  // namespace spiked::reports
