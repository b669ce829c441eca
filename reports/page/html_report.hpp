#pragma once
#include <string>
#include <vector>

namespace spiked::reports {

struct ReportOptions {
    /// When set, every figure's gnuplot script, CSV, pictures and heatmaps are written there; the page stays the same.
    std::string figure_folder = {};
    std::vector<std::string> figure_formats = {"svg"};  ///< of the pictures there: svg, pdf, png
    std::string against = {};  ///< printed values (see printed_values) that stand beside the means of one store
};

/// Stores as one self-contained page: no script, no network, light, dark and print; the same bytes for the same stores
/// and the same gnuplot. Every number is a query on a store. Several stores stand below each other under one verdict.
/// Throws input_error for what is no store, usage_error for a format that is none and a store given twice. Cost: a
/// gnuplot process a figure. The page is below 5 MB whatever the stores hold: of more than 200 cells (fewer where there
/// are many methods) tables show the worst and a map all; then pictures, then sections are left out, and the page says
/// so. Several stores share it.
[[nodiscard]] std::string html_report(const std::vector<std::string>& store_paths, const ReportOptions& options = {});

/// Whether a page may be written at a path that nobody typed: nothing is there, or a page of html_report.
[[nodiscard]] bool may_replace(const std::string& path);

/// The page as a file that appears whole or not at all. Throws write_error too.
void write_html_report(const std::vector<std::string>& store_paths, const std::string& output_path,
                       const ReportOptions& options = {});

}  // namespace spiked::reports
