#pragma once
#include "reports/figures/figures.hpp"
#include "validation/model/generated_answers.hpp"

namespace spiked::reports {

/// The recall of needles by context (columns), for full precision and each of the first eleven methods: by tenths of
/// the depth, or by the number of needles as in the paper's heatmaps.
enum class AnswerRows { depth, needles };
[[nodiscard]] Figure answer_figure(const validation::GeneratedAnswers& found, AnswerRows rows);

}  // namespace spiked::reports

template <>
struct spiked::EnumNames<spiked::reports::AnswerRows> {
    using AnswerRows = spiked::reports::AnswerRows;
    static constexpr EnumName<AnswerRows> table[] = {
        {AnswerRows::depth, "depth"},
        {AnswerRows::needles, "needles"},
    };
};
