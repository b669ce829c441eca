#pragma once
#include <armadillo>
#include <cstdint>
#include <string>
#include <vector>

#include "core/text/json.hpp"
#include "validation/engine/sqlite.hpp"

namespace spiked::reports {

/// A figure as data: everything that a page or a folder of files needs to show it.
struct Figure {
    std::string kind;
    std::string title;
    std::string description;           ///< sentences made from the numbers shown
    std::string problem;               ///< why there is no picture, or what of it is left out; empty when all is shown
    std::string svg;                   ///< as gnuplot wrote it; empty without gnuplot
    std::vector<std::string> columns;  ///< of the data table; a leading '#' marks numbers
    std::vector<std::vector<std::string>> rows;
    std::string script;  ///< gnuplot
    std::string csv;
};

/// A kind of figure by name. `make` reads the store and the JSON of [[figure]]; one entry may yield several figures.
struct FigureKind {
    const char* name;
    const char* summary;
    std::vector<std::string> keys;  ///< beside kind and title
    bool of_dumps;
    bool of_blocks;
    std::vector<Figure> (*make)(validation::Database& store, const Json& spec);
};
[[nodiscard]] const std::vector<FigureKind>& figure_kinds();

/// Those of one kind; none where no kind has this name.
[[nodiscard]] std::vector<Figure> figures_of_kind(const std::string& name, validation::Database& store,
                                                  const Json& spec);

/// The figures of a store: those asked for in table `figure`, else the default set of its kind. A kind that is not
/// known, or one without data, gives a figure that says so.
[[nodiscard]] std::vector<Figure> figures_of(validation::Database& store);

/// Runs gnuplot on figure.script; without gnuplot the figure says so.
void draw(Figure& figure);
enum class Beside { script_and_data, nothing };
/// The picture as a file of the format that its extension says (.svg, .png or .pdf), whole or not at all, its script
/// and data beside it under the same name with .gp and .csv behind. Throws usage_error for another extension,
/// input_error for a figure without a picture, write_error without gnuplot too.
void write_picture(const Figure& figure, const std::string& path, Beside beside = Beside::script_and_data);

}  // namespace spiked::reports
