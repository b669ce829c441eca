#pragma once
#include <optional>
#include <string>
#include <vector>

#include "validation/claims/claims.hpp"

namespace spiked::reports {

struct ReportOptions {
    /// When set, the gnuplot script, CSV and pictures of every figure are written there; the page does not change.
    std::string figure_folder = {};
    std::vector<std::string> figure_formats = {"svg"};  ///< formats of these pictures: svg, pdf, png
    std::string against = {};  ///< file of printed values to compare with the means of one store (printed_values.hpp)
    /// Claims that one store of claims is judged on (stored_verdicts); those of this program if empty.
    std::vector<validation::Claim> claims = {};
    std::optional<double> false_alarm = {};  ///< judges the stores again at this rate (judge_again)
};

/// Stores as one self-contained page without scripts and network access, for light and dark screens and for print. The
/// same stores and the same gnuplot give the same bytes. Every number comes from a query on a store. Several stores are
/// shown below each other under one overall verdict. The page is smaller than 5 MB for any stores, which share this
/// size: with more than 200 cells (fewer where there are many methods) tables show the worst cells and a map shows all;
/// then pictures and finally sections are left out, each with a note. Throws input_error for a file that is not a
/// store, and usage_error for an unknown format or a store that is given twice. Cost: one gnuplot process per figure.
[[nodiscard]] std::string html_report(const std::vector<std::string>& store_paths, const ReportOptions& options = {});

/// Whether a page may be written to a default path: no file exists there, or it is a page of html_report.
[[nodiscard]] bool may_replace(const std::string& path);

/// Writes the page atomically. Throws the errors of html_report and output_error.
void write_html_report(const std::vector<std::string>& store_paths, const std::string& output_path,
                       const ReportOptions& options = {});

}  // namespace spiked::reports
