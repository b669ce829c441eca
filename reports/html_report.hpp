#pragma once
#include <string>

namespace spiked::reports {

struct ReportOptions {
    /// When set, every figure's gnuplot script, CSV, SVG and PNGs are written there; the page stays the same.
    std::string figure_folder;
};

/// A store as one self-contained page: no script, no network, light, dark and print; the same bytes for the same store
/// and the same gnuplot. Every number is a query on the store. Throws input_error for what is no store. Cost: a gnuplot
/// process a figure; below 5 MB however large the store is (more than 200 cells: tables show the worst 50).
[[nodiscard]] std::string html_report(const std::string& store_path, const ReportOptions& options = {});

/// The page as a file that appears whole or not at all. Throws write_error too.
void write_html_report(const std::string& store_path, const std::string& output_path,
                       const ReportOptions& options = {});

}  // namespace spiked::reports
