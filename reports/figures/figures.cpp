#include "reports/figures/figures.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/files/output_file.hpp"
#include "core/runtime/error.hpp"
#include "reports/figures/figure_parts.hpp"
#include "reports/figures/gnuplot.hpp"
#include "reports/figures/needle_figure.hpp"
#include "reports/figures/svg.hpp"
#include "reports/tables/store_queries.hpp"
#include "validation/kv/open_dumps.hpp"

namespace spiked::reports {

using validation::Database;
using validation::Statement;

// The functions that make figures; each is defined in a file of its own without a header.
std::vector<Figure> estimate_against_theory(Database& store, const Json& spec);
std::vector<Figure> distortion_by_bits(Database& store, const Json& spec);
std::vector<Figure> frontier(Database& store, const Json& spec);
std::vector<Figure> factor_map(Database& store, const Json& spec);
std::vector<Figure> distribution(Database& store, const Json& spec);
std::vector<Figure> rate(Database& store, const Json& spec);
std::vector<Figure> bias_by_query(Database& store, const Json& spec);
std::vector<Figure> rank_map(Database& store, const Json& spec);
std::vector<Figure> head_pictures(Database& store, const Json& spec);

static std::vector<FigureKind> all_figure_kinds() {
    const OptionSpec x{"x", any_text("FACTOR"), "of the horizontal axis"};
    const OptionSpec y{"y", names_from({"metrics"}, any_text("METRIC")), "of the vertical axis"};
    const OptionSpec metrics{"y", several(y.value), "in panels of their own"};
    const OptionSpec method{"method", any_text("METHOD"), "as the study names it"};
    return {
        {{"estimate-vs-theory",
          "metrics y against a factor x (\"cell\": every cell by itself), with standard errors and theory",
          {x, metrics}},
         false,
         true,
         estimate_against_theory},
        {{"distortion", "distortion of codecs against their bits, with theory", {y}}, true, true, distortion_by_bits},
        {{"frontier", "an error y (default relative_l2) against stored bits an entry, one curve for each method", {y}},
         true,
         true,
         frontier},
        {{"map",
          "a metric over two factors, or the deviation of the worst check of each cell in units of its margin",
          {x, {"by", any_text("FACTOR"), "of the vertical axis"}, {"y", y.value, "the colour"}, method}},
         false,
         true,
         factor_map},
        {{"distribution",
          "histogram and distribution function of kept draws, with a confidence band",
          {y, method, {"cell", several(any_text("LABEL")), "the cells to show"}}},
         true,
         true,
         distribution},
        {{"rate",
          "how a deviation from theory, or a standard deviation, falls with a factor, with the fitted slope",
          {{"x", x.value, x.help, "n"},
           metrics,
           {"of", one_of({"deviation", "spread", "mean"}), "spread: the standard deviation", "deviation"},
           {"slope", spiked::number("SLOPE"), "of a line to compare with"}}},
         false,
         true,
         rate},
        {{"bias-by-query",
          "inner-product bias of methods by kind of query, itself or relative to the plain quantizer of the same bits",
          {{"over", any_text("METHOD"), "the plain quantizer", "tq-mse"},
           {"bits", any_text("B"), "only this number of bits"},
           {"of", one_of({"ratio", "bias"}), "ratio: to the plain quantizer", "ratio"}}},
         true,
         true,
         bias_by_query},
        {{"rank-map", "mean rank by layer and head (dump studies)", {method}}, true, false, rank_map},
        {{"head-picture",
          "spectrum of a block with edge and fitted noise, heatmaps of block, signal and residual (dump studies)",
          {method,
           {"file", any_text("FILE"), "of the dump"},
           {"model", any_text("MODEL"), "that wrote the dump"},
           {"side", one_of({sim::Side::key, sim::Side::value}), "only pictures of this side"},
           {"layer", whole("LAYER"), "only pictures of this layer"},
           {"head", whole("HEAD"), "only pictures of this head"}}},
         true,
         false,
         head_pictures},
        {{"needle-attention", "attention of the questions before and after coding (studies of a retrieval model)"},
         true,
         false,
         needle_attention}};
}

const Registry<FigureKind>& figure_kinds() {
    static const Registry<FigureKind> kinds("kind of figure", all_figure_kinds());
    return kinds;
}

std::vector<OptionSpec> FigureKind::options() const {
    std::vector<OptionSpec> all = {{"title", any_text("TEXT"), "above the figure"}};
    all.insert(all.end(), entry.options.begin(), entry.options.end());
    return all;
}

std::vector<Figure> figures_of_kind(const std::string& name, Database& store, const Json& spec) {
    const FigureKind* kind = figure_kinds().find(name);
    if (kind == nullptr) return {};
    Json with_defaults = spec.members() != nullptr ? spec : Json::object();
    for (const auto& option : kind->entry.options)
        if (!option.fallback.empty() && with_defaults.find(option.key) == nullptr)
            with_defaults.set(option.key, option.fallback);
    return kind->make(store, with_defaults);
}

std::vector<Figure> figures_of(Database& store) {
    constexpr std::size_t most_figures = 50;  // each one runs gnuplot
    std::vector<std::pair<std::string, Json>> wanted;
    Statement query(store, "SELECT kind, spec FROM figure ORDER BY figure_id");
    while (wanted.size() < most_figures && query.step())
        wanted.emplace_back(query.text(0), Json::parse(query.text(1), store.path() + ": table figure"));
    if (wanted.empty()) {
        const auto with_y = [](Json::Array y) { return Json::object({{"y", std::move(y)}}); };
        if (is_dump_study(store)) {
            wanted.emplace_back("frontier", Json::object({{"y", frontier_metric(store)}}));
            if (replicate_name(store) == "block")
                for (const char* kind : {"rank-map", "head-picture"}) wanted.emplace_back(kind, Json::object());
        } else {
            // A study without spikes measures false alarms or ranks.
            const bool spikes = has_means(store, "overlap.left") || has_means(store, "outlier");
            const char* rank = has_means(store, "rank_over") ? "rank_over" : "rank";
            if (spikes || !has_means(store, rank)) {
                wanted.emplace_back("estimate-vs-theory", with_y({"overlap.left", "overlap.right"}));
                wanted.emplace_back("estimate-vs-theory", with_y({"outlier"}));
            } else {
                wanted.emplace_back("estimate-vs-theory", with_y({rank}));
            }
        }
    }
    std::vector<Figure> figures;
    for (const auto& [kind, spec] : wanted) {
        if (figure_kinds().find(kind) == nullptr) {
            Figure unknown;
            unknown.kind = kind;
            unknown.title = kind;
            unknown.problem = fmt::format("no kind of figure is called {}; there are: {}", kind,
                                          fmt::join(figure_kinds().names(), ", "));
            figures.push_back(std::move(unknown));
            continue;
        }
        auto made = figures_of_kind(kind, store, spec);
        for (auto& figure : made) {
            figure.kind = kind;
            // Several figures of one entry keep their own titles behind the common one.
            if (const std::string title = text_of(spec, "title"); !title.empty())
                figure.title = made.size() > 1 ? title + ", " + figure.title : title;
            figures.push_back(std::move(figure));
        }
    }
    if (const auto all = static_cast<std::size_t>(store.integer("SELECT count(*) FROM figure")); all > most_figures) {
        figures.push_back(
            without_data("The others", fmt::format("{} more figures of the study are left out (a page has at most {})",
                                                   all - most_figures, most_figures)));
        figures.back().kind = "more";
    }
    return figures;
}

void draw(Figure& figure) {
    if (figure.script.empty()) return;
    std::optional<std::string> svg;
    try {
        svg = run_gnuplot(figure.script);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::internal) throw;
        figure.problem =
            fmt::format("the picture is missing ({})", error.what());  // for example numbers too large to draw
        return;
    }
    if (svg)
        figure.svg = *svg;
    else
        figure.problem =
            "gnuplot is not installed, so the picture is missing (Debian: apt-get install gnuplot-nox, then spiked "
            "report); the data table has its numbers" +
            (figure.problem.empty() ? std::string() : ". " + figure.problem);
}

void write_picture(const Figure& figure, const std::string& path, SideFiles side_files) {
    const PictureFormat format = picture_format(path);
    if (figure.script.empty()) throw input_error("{}: not written ({}): leave the picture out", path, figure.problem);
    auto picture = run_gnuplot(picture_script(figure.script, format));
    if (!picture)
        throw output_error("{}: cannot be drawn (gnuplot is not installed): install it (Debian: gnuplot-nox)", path);
    if (format == PictureFormat::svg) picture = titled_svg(*picture, figure.title, figure.description);
    write_file(path, *picture);
    if (side_files == SideFiles::none) return;
    // The full name with an extension added, because a data.csv beside data.svg may be the input of the picture.
    write_derived_file(path + ".gp", figure.script);
    if (!figure.csv.empty()) write_derived_file(path + ".csv", figure.csv);
}

}  // namespace spiked::reports
