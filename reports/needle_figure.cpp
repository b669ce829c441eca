#include "reports/needle_figure.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reports/gnuplot.hpp"

namespace spiked::reports {

Figure needle_figure(const validation::Retrieval& found) {
    constexpr std::size_t most = 12;
    const std::size_t shown = std::min(found.rows.size(), most);
    const std::size_t questions = found.rows.front().where.n_rows;
    Figure figure;
    figure.kind = "needle-attention";
    figure.title = fmt::format("attention of {} questions on their needles, layer {}, head {}", questions,
                               found.best_layer, found.best_head);
    figure.description =
        "Rows are questions, columns the needles they ask for, darker is more attention: a question that finds its own "
        "needle is dark on the diagonal. The last column is attention elsewhere.";
    if (shown < found.rows.size())
        figure.problem = fmt::format("the first {} of {} methods are shown", shown, found.rows.size());
    figure.columns = {"method", "#question", "#needle", "#attention"};
    figure.csv = csv_line({"method", "question", "needle", "attention"});

    std::string data;
    std::vector<Panel> panels;
    const auto last = static_cast<double>(questions);
    const std::string settings = fmt::format(
        "set xrange [-0.5:{0}.5]\nset yrange [{1}.5:-0.5]\nset cbrange [0:1]\nset palette defined (0 '#ffffff', 0.25 "
        "'#9ecae1', 1 '#08306b')\nset xlabel 'needle, last: elsewhere'\nset ylabel 'question'\nunset grid\nset tics "
        "out\nset xtics {2}\nset ytics {2}\nunset colorbox\n",
        questions, questions - 1, questions > 12 ? 8 : 2);
    for (std::size_t i = 0; i < shown; ++i) {
        const auto& row = found.rows[i];
        const std::string name =
            row.method == "none" ? "full precision"
            : row.budget         ? fmt::format("{} at {:g}, {:.2f} bits", row.method, *row.budget, row.ledger.total())
                                 : fmt::format("{}, {:.2f} bits", row.method, row.ledger.total());
        data += fmt::format("$m{} << END\n", i);
        for (arma::uword question = 0; question < row.where.n_rows; ++question)
            for (arma::uword needle = 0; needle < row.where.n_cols; ++needle) {
                const double weight = row.where(question, needle);
                data += fmt::format("{} {} {:.4f}\n", needle, question, weight);
                const std::vector<std::string> cells = {
                    name, std::to_string(question),
                    needle == questions ? std::string("elsewhere") : std::to_string(needle), exact(weight)};
                figure.rows.push_back(cells);
                figure.csv += csv_line(cells);
            }
        data += "END\n";
        panels.push_back(
            {name,
             settings,
             {fmt::format("$m{} using 1:2:3 with image pixels", i),
              fmt::format("'+' using ({0}-0.5):(-0.5+{0}*$0/99.0) with lines lw 1 lc rgb '#999999'", last)}});
    }
    figure.script = panel_script(figure.title, data, "set samples 100\n", panels, {}, {.heading = figure.title});
    return figure;
}

}  // namespace spiked::reports
