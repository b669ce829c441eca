#include <fmt/format.h>

#include <cmath>

#include "app/commands/theory_models.hpp"
#include "core/runtime/error.hpp"
#include "reports/tables/text_table.hpp"
#include "sim/spiked/entry_law.hpp"
#include "theory/symmetric/spiked_wigner.hpp"

namespace spiked::app {
namespace {

using theory::Field;
using theory::SpikedWigner;

/// What theory says of symmetric or Hermitian matrices with one noise level.
struct SymmetricAnswers {
    Field field;
    double noise_level;
    std::size_t size;  ///< 0 without --size
    std::string entry_law;
    theory::WignerEntries entries;
    SpikedWigner model;
    std::vector<double> strengths;

    [[nodiscard]] double root_size() const { return std::sqrt(static_cast<double>(size)); }
    [[nodiscard]] double top_mean() const {
        return model.edge_at(size, entries) + model.edge_unit(size) * theory::tracy_widom_mean_of(field);
    }
    [[nodiscard]] double top_deviation() const {
        return model.edge_unit(size) * std::sqrt(theory::tracy_widom_variance_of(field));
    }
};

constexpr double test_level = 0.01;

std::string answers_text(const SymmetricAnswers& answers) {
    const auto& model = answers.model;
    std::string text = fmt::format(
        "{} noise with entries of variance {:g}/n: its eigenvalues lie between {} and {}\n"
        "strengths above {} are detectable, of either sign\n",
        answers.field == Field::real ? "symmetric" : "Hermitian", answers.noise_level * answers.noise_level,
        reports::four_digits(-model.edge()), reports::four_digits(model.edge()),
        reports::four_digits(model.detection_threshold()));
    if (answers.size > 0)
        text += fmt::format(
            "at n = {}, {} entries, on the diagonal with {:g} times the variance: largest eigenvalue of noise {} on "
            "average, standard deviation {}; the largest modulus exceeds {} with probability {:g}\n",
            answers.size, answers.entry_law, answers.entries.diagonal_variance.value(),
            reports::four_digits(answers.top_mean()), reports::four_digits(answers.top_deviation()),
            reports::four_digits(model.critical_modulus(test_level, answers.size, answers.entries)), test_level);
    std::vector<std::string> heads = {"strength",          "eigenvalue",       "squared overlap",
                                      "shrunk, frobenius", "shrunk, operator", "shrunk, nuclear"};
    if (answers.size > 0)
        for (const char* what : {"s.d. of eigenvalue", "s.d. of strength", "s.d. of overlap"}) heads.emplace_back(what);
    reports::TextTable table(heads);
    for (const double one : answers.strengths) {
        const double outlier = model.outlier(one);
        std::vector<std::string> cells = {fmt::format("{:g}", one), reports::four_digits(outlier),
                                          reports::four_digits(model.squared_overlap(one).value)};
        for (const auto loss : {theory::Loss::frobenius, theory::Loss::operator_norm, theory::Loss::nuclear})
            cells.push_back(reports::four_digits(model.shrunk(outlier, loss)));
        if (answers.size > 0) {
            const auto spread = model.spread(one, answers.entries);
            for (const auto part : {&SpikedWigner::Spread::outlier, &SpikedWigner::Spread::strength,
                                    &SpikedWigner::Spread::squared_overlap})
                cells.push_back(spread ? reports::four_digits((*spread).*part / answers.root_size()) : "-");
        }
        table.add(cells);
    }
    if (answers.strengths.empty()) return text;
    text += "\n" + table.text() +
            "\nsquared overlap: between the eigenvectors of signal and observation; 0 where the eigenvalue stays at "
            "the edge\n";
    if (answers.size > 0)
        text +=
            "standard deviations (s.d.) of first order, for eigenvectors spread over many coordinates and strengths "
            "that are not close; s.d. of strength: as computed from the eigenvalue\n";
    return text;
}

Json answers_json(const SymmetricAnswers& answers) {
    const auto& model = answers.model;
    Json list = Json::array();
    for (const double one : answers.strengths) {
        const auto spread = answers.size > 0 ? model.spread(one, answers.entries) : std::nullopt;
        const auto at_size = [&](double limit) { return Json(limit / answers.root_size()); };
        const double outlier = model.outlier(one);
        list.push(
            Json::object({{"strength", one},
                          {"detectable", model.detectable(one)},
                          {"eigenvalue", outlier},
                          {"squared_overlap", model.squared_overlap(one).value},
                          {"shrunk", Json::object({{"frobenius", model.shrunk(outlier, theory::Loss::frobenius)},
                                                   {"operator", model.shrunk(outlier, theory::Loss::operator_norm)},
                                                   {"nuclear", model.shrunk(outlier, theory::Loss::nuclear)}})},
                          {"eigenvalue_deviation", spread ? at_size(spread->outlier) : Json()},
                          {"strength_deviation", spread ? at_size(spread->strength) : Json()},
                          {"squared_overlap_deviation", spread ? at_size(spread->squared_overlap) : Json()}}));
    }
    Json finite;
    if (answers.size > 0)
        finite =
            Json::object({{"size", answers.size},
                          {"entries", answers.entry_law},
                          {"diagonal_variance", answers.entries.diagonal_variance.value()},
                          {"top_eigenvalue_mean", answers.top_mean()},
                          {"top_eigenvalue_deviation", answers.top_deviation()},
                          {"level", test_level},
                          {"critical_modulus", model.critical_modulus(test_level, answers.size, answers.entries)}});
    return Json::object({{"schema", "spiked.theory/1"},
                         {"symmetric", Json::object({{"noise_level", answers.noise_level},
                                                     {"complex", answers.field == Field::complex},
                                                     {"edge", model.edge()},
                                                     {"detection_threshold", model.detection_threshold()},
                                                     {"spikes", std::move(list)},
                                                     {"finite_size", std::move(finite)}})}});
}

/// The fourth cumulant of the entries; real and imaginary parts of complex ones are independent, each with the law.
double excess_kurtosis(const sim::EntryLaw& law, Field field) {
    const double excess = law.moments().kurtosis - 3.0;
    if (!std::isfinite(excess))
        throw usage_error("entries {} have no fourth moment (their largest ones decide the edge): choose another law",
                          law.text());
    return field == Field::real ? excess : 0.5 * excess;
}

}  // namespace

std::vector<OptionSpec> symmetric_theory_options() {
    const OtherOptions of_noise{{"--symmetric"}, "it describes such noise"};
    return in_group(
        "Symmetric matrices",
        {{.key = "--symmetric",
          .help = "symmetric noise (Wigner matrices): --strength has eigenvalues of the clean matrix, of either sign; "
                  "with --size also how much they vary"},
         {.key = "--noise-level",
          .value = number("S", {.above = 0.0}),
          .help = "with --symmetric: entries off the diagonal have variance S^2/n",
          .fallback = "1",
          .needs = of_noise},
         {.key = "--diagonal",
          .value = number("W", {.least = 0.0}),
          .help =
              "with --symmetric and --size: variance of the diagonal over that of other entries; 2 by default, with "
              "--complex 1, as in the Gaussian ensembles; 0 for an empty diagonal",
          .needs = {{"--symmetric", "--size"}, "it matters for such noise of one size"}}});
}

void reject_negative_strengths(const Arguments& arguments) {
    for (const double strength : arguments.numbers("--strength"))
        if (!(strength >= 0.0))
            throw usage_error(
                "--strength {:g} is not possible (a singular value is not negative): give at least 0, or --symmetric "
                "for the eigenvalue of a symmetric matrix",
                strength);
}

int run_symmetric_theory(const Arguments& arguments, std::size_t rows, std::size_t columns) {
    if (rows != columns)
        throw usage_error("--size {}x{} is no size of a symmetric matrix: give for example --size 200x200", rows,
                          columns);
    const Field field = arguments.has("--complex") ? Field::complex : Field::real;
    const double level = arguments.number("--noise-level");
    const auto law = sim::EntryLaw::parse(arguments.text("--entries"));
    const theory::WignerEntries entries{.excess_kurtosis = rows > 0 ? excess_kurtosis(law, field) : 0.0,
                                        .diagonal_variance = arguments.has("--diagonal")
                                                                 ? arguments.number("--diagonal")
                                                                 : theory::gaussian_diagonal(field)};
    const SymmetricAnswers answers{
        field, level, rows, law.text(), entries, SpikedWigner(level, field), arguments.numbers("--strength")};
    if (arguments.json())
        print_json(answers_json(answers));
    else
        print_text(answers_text(answers));
    return 0;
}

}  // namespace spiked::app
