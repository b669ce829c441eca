#include "reports/figures/needle_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "reports/figures/figure_parts.hpp"
#include "reports/figures/gnuplot.hpp"
#include "reports/tables/csv_text.hpp"
#include "reports/tables/text_table.hpp"

namespace spiked::reports {

namespace {

/// The attention of the questions under one method: questions x (needles, then elsewhere).
struct NeedlePanel {
    std::string name;
    arma::mat attention;
};

Figure figure_of(const std::vector<NeedlePanel>& all, std::size_t layer, std::size_t head) {
    constexpr std::size_t most = 12;
    const std::size_t shown = std::min(all.size(), most);
    const std::size_t questions = all.front().attention.n_rows;
    Figure figure;
    figure.title = fmt::format("attention of {} questions on their needles, layer {}, head {}", questions, layer, head);
    figure.description =
        "Rows are questions, columns are needles, and darker is more attention (white: none, darkest blue: all). A "
        "question that finds its own needle is dark on the diagonal. The last column is the attention elsewhere.";
    if (shown < all.size()) figure.problem = fmt::format("the first {} of {} methods are shown", shown, all.size());
    figure.columns = {"method", "#question", "#needle", "#attention"};
    figure.csv = csv_line({"method", "question", "needle", "attention"});

    std::string data;
    std::vector<Panel> panels;
    const auto last = static_cast<double>(questions);
    const std::string settings = fmt::format(
        "set xrange [-0.5:{0}.5]\nset yrange [{1}.5:-0.5]\nset cbrange [0:1]\nset palette defined (0 '#ffffff', 0.25 "
        "'#9ecae1', 1 '#08306b')\nset xlabel 'needle, last: elsewhere' offset 0,0.6\nset ylabel 'question'\nunset "
        "grid\nset tics out\nset xtics {2}\nset ytics {2}\nunset colorbox\n",
        questions, questions - 1, questions > 12 ? 8 : 2);
    for (std::size_t i = 0; i < shown; ++i) {
        const auto& [name, attention] = all[i];
        data += fmt::format("$m{} << END\n", i);
        for (arma::uword question = 0; question < attention.n_rows; ++question)
            for (arma::uword needle = 0; needle < attention.n_cols; ++needle) {
                const double weight = attention(question, needle);
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

std::string panel_name(const std::string& method, double bits) { return fmt::format("{}, {:.2f} bits", method, bits); }

}  // namespace

Figure needle_figure(const validation::Retrieval& found) {
    std::vector<NeedlePanel> all;
    for (const auto& row : found.rows)
        all.push_back({row.method == "none" ? "full precision"
                                            : panel_name(method_at(row.method, row.budget), row.ledger.total()),
                       row.where});
    return figure_of(all, found.best_layer, found.best_head);
}

std::vector<Figure> needle_attention(validation::Database& store, const Json&) {
    validation::Statement query(
        store,
        "SELECT a.cell_id, a.rep, m.name, m.kind, coalesce(b.mean, 0) FROM array a JOIN method m USING(method_id) "
        "LEFT JOIN v_cluster b ON b.method_id = m.method_id AND b.metric = 'bits_per_entry' WHERE a.name = "
        "'needle_attention' AND a.cell_id = (SELECT min(cell_id) FROM array WHERE name = 'needle_attention') ORDER BY "
        "m.method_id");
    std::vector<NeedlePanel> all;
    std::optional<arma::mat> layer_and_head;
    while (query.step()) {
        const std::string method = query.text(2);
        const auto attention = stored_array(store, query.integer(0), query.integer(1), method, "needle_attention");
        std::string shown = method;  // without the index bits, because the panel shows all stored bits
        if (const std::size_t at = shown.find(" B="); at != std::string::npos)
            shown.erase(at, shown.find(' ', at + 1) - at);
        all.push_back({query.text(3) == "sample" ? "full precision" : panel_name(shown, query.real(4)), *attention});
        if (!layer_and_head)
            layer_and_head = stored_array(store, query.integer(0), query.integer(1), method, "needle_head");
    }
    if (all.empty() || !layer_and_head || layer_and_head->n_elem != 2)
        return {without_data("attention of questions on their needles",
                             "the store holds no needle_attention yet (the first prompt has not run)")};
    Figure figure = figure_of(all, static_cast<std::size_t>(layer_and_head->at(0)),
                              static_cast<std::size_t>(layer_and_head->at(1)));
    draw(figure);
    return {figure};
}

}  // namespace spiked::reports
