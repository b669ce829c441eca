#pragma once
#include <armadillo>
#include <cstdint>
#include <string>
#include <vector>

#include "core/text/json.hpp"
#include "core/text/registry.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::reports {

/// A figure as data: everything needed to show it on a page or to write it to files.
struct Figure {
    std::string kind;
    std::string title;
    std::string description;  ///< sentences with the most important numbers
    std::string problem;      ///< reason for a missing picture, or what is left out of it; empty when all is shown
    std::string svg;          ///< output of gnuplot; empty without gnuplot
    std::vector<std::string> columns;  ///< headings of the data table; a leading '#' marks numbers
    std::vector<std::vector<std::string>> rows;
    std::string script;  ///< for gnuplot
    std::string csv;
};

/// A kind of figure. `make` reads the store and the JSON of one [[figure]], which may yield several figures.
struct FigureKind {
    RegistryEntry entry;  ///< its options are the keys of [[figure]] that only some kinds have
    bool of_dumps;        ///< possible for studies of dumps and models
    bool of_blocks;       ///< possible for studies of simulated blocks
    std::vector<Figure> (*make)(validation::Database& store, const Json& spec);  ///< with the defaults of the options

    /// The keys that a [[figure]] of this kind may have besides `kind`.
    [[nodiscard]] std::vector<OptionSpec> options() const;
};
[[nodiscard]] const Registry<FigureKind>& figure_kinds();

/// The figures of one kind; none where no kind has this name.
[[nodiscard]] std::vector<Figure> figures_of_kind(const std::string& name, validation::Database& store,
                                                  const Json& spec);

/// The figures of a store: those requested in table `figure`, else the default set of its kind of study. An unknown
/// kind, or one without data, gives a figure whose `problem` is the reason.
[[nodiscard]] std::vector<Figure> figures_of(validation::Database& store);

/// Runs gnuplot on figure.script. Without gnuplot, figure.problem is set.
void draw(Figure& figure);
enum class SideFiles { script_and_data, none };
/// Writes the picture atomically, in the format of the extension (.svg, .png or .pdf), and its script and data to
/// `path`.gp and `path`.csv. Throws usage_error for another extension, input_error for a figure without a picture, and
/// output_error when the file cannot be written or gnuplot is missing.
void write_picture(const Figure& figure, const std::string& path, SideFiles side_files = SideFiles::script_and_data);

}  // namespace spiked::reports
