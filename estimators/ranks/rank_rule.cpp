#include "estimators/ranks/rank_rule.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"
#include "estimators/ranks/bi_cross_validation.hpp"
#include "estimators/ranks/deterministic_parallel_analysis.hpp"
#include "estimators/ranks/eigenvalue_gaps.hpp"
#include "estimators/ranks/kritchman_nadler.hpp"
#include "estimators/ranks/parallel_analysis.hpp"
#include "estimators/ranks/rate_distortion_rank.hpp"

template <>
struct spiked::EnumNames<spiked::estimators::ResidualCopies> {
    static constexpr EnumName<spiked::estimators::ResidualCopies> table[] = {
        {spiked::estimators::ResidualCopies::permutations, "permute"},
        {spiked::estimators::ResidualCopies::signs, "signs"}};
};

namespace spiked::estimators {
namespace {

struct Row {
    RegistryEntry entry;
    RankRule (*make)(const NameOptions&);  ///< null where the rule needs the block
    BlockRankRule (*make_for_blocks)(const NameOptions&) = nullptr;
};

BlockRankRule parallel_analysis(const NameOptions& named) {
    const double level = named.number_or_default("level");
    const std::size_t least = ParallelAnalysis::least_draws(level);
    const std::size_t draws = named.whole("draws").value_or(least);
    if (draws < least)
        throw usage_error("\"{}\": {} draws are not possible at level {}: give {} or more", named.text(), draws, level,
                          least);
    const auto copies = named.choice_or_default<ResidualCopies>("copies");
    if (named.choice_or_default("center") == "yes")
        return [=](AnalysedBlock& block) {
            arma::mat matrix = block.core();
            matrix.each_row() -= arma::rowvec(arma::mean(matrix, 0));
            AnalysedBlock centred(std::move(matrix));
            return ParallelAnalysis(centred, level, draws, copies).rank();
        };
    return [=](AnalysedBlock& block) { return ParallelAnalysis(block, level, draws, copies).rank(); };
}

BlockRankRule bi_cross_validation(const NameOptions& named) {
    const std::size_t folds = named.whole_or_default("folds");
    return [=](AnalysedBlock& block) { return bi_cross_validation_rank(block.core(), folds); };
}

BlockRankRule deterministic_parallel_analysis(const NameOptions& named) {
    const double level = named.number_or_default("alpha");
    const auto variances = named.choice_or_default<NoiseVariances>("variances");
    return [=](AnalysedBlock& block) { return deflated_deterministic_rank(block, level, variances); };
}

/// The option of the rules with Tracy-Widom tests.
OptionSpec test_level() {
    return {"alpha", number("P", {.above = 0.0, .below = 1.0}), "nominal false-alarm rate of each test", "0.005"};
}

const Registry<Row>& rows() {
    static const Registry<Row> table(
        "rank rule",
        {
            {{"rd",
              "keeps the components that reduce the error by more than their stored bits would in the quantizer",
              {{"bits", one_of_or({"16"}, whole("N", 1, 8)), "bits of each stored entry of a factor, 1 to 8 or 16",
                "4"}},
              "ours, after Gish & Pierce 1968"},
             [](const NameOptions& named) -> RankRule {
                 return [bits = static_cast<unsigned>(named.whole_or_default("bits"))](
                            const RelativeSpectrum& spectrum) { return rate_distortion_rank(spectrum, bits); };
             }},
            {{"ed",
              "counts the eigenvalues above the last gap that is wider than noise of any separable covariance leaves",
              {{"cap", whole("R"), "largest rank that is considered", "2k"}},
              "Onatski 2010"},
             [](const NameOptions& named) -> RankRule {
                 return [cap = named.whole("cap")](const RelativeSpectrum& spectrum) {
                     return eigenvalue_gap_rank(spectrum.eigenvalues, cap);
                 };
             }},
            {{"kn",
              "counts components by sequential Tracy-Widom tests under white noise of unknown level",
              {test_level()},
              "Kritchman & Nadler 2009; Nadler 2011"},
             [](const NameOptions& named) -> RankRule {
                 return [level = named.number_or_default("alpha")](const RelativeSpectrum& spectrum) {
                     return kritchman_nadler_rank(spectrum, level);
                 };
             }},
            {{"pa",
              "parallel analysis: counts components that stand out of copies of the residual without components; "
              "needs the matrix",
              {{"copies", one_of<ResidualCopies>(),
                "permute the entries of each column, or give every entry a random sign",
                std::string(enum_name(ResidualCopies::permutations))},
               {"center", one_of({"yes", "no"}), "centre the columns first, so that their means are not a component",
                "no"},
               {"level", number("P", {.above = 0.0, .below = 1.0}), "false-alarm rate of each component", "0.05"},
               {"draws", whole("N", 1, ParallelAnalysis::most_draws), "number of copies", "1/level - 1"}},
              "Horn 1965; Buja & Eyuboglu 1992; Hong, Sheng & Dobriban 2020; Dobriban & Owen 2019"},
             nullptr,
             parallel_analysis},
            {{"ddpa",
              "counts components above the edge of noise with the variances of the residual's rows and columns; needs "
              "the matrix",
              {test_level(),
               {"variances", one_of<NoiseVariances>(),
                "whether noise variances may differ between rows and between columns, or between columns alone",
                std::string(enum_name(NoiseVariances::both))}},
              "Dobriban & Owen 2019"},
             nullptr,
             deterministic_parallel_analysis},
            {{"bcv",
              "bi-cross-validation: the rank that predicts blocks of entries best from the others; needs the matrix",
              {{"folds", whole("K", 2, 100), "number of parts of the rows, and of the columns", "3"}},
              "Owen & Perry 2009"},
             nullptr,
             bi_cross_validation},
        });
    return table;
}

RankRule needs_the_block(const std::string& name) {
    return [name](const RelativeSpectrum&) -> std::size_t {
        throw usage_error(
            "the rank rule {} needs the matrix (only its singular values are known here): choose another rule", name);
    };
}

/// The first option of a rule that a name has, apart from those that are also options of the method itself (`own`).
std::optional<std::string> option_of(const Row& row, const NameOptions& named, const std::vector<std::string>& own) {
    for (const auto& option : row.entry.options)
        if (named.has_option(option.key) && std::find(own.begin(), own.end(), option.key) == own.end())
            return option.key;
    return std::nullopt;
}

}  // namespace

const std::vector<RegistryEntry>& rank_rules() {
    static const auto entries = rows().entries();
    return entries;
}

std::vector<OptionSpec> options_of_rank_rules(const std::string& before) {
    std::vector<OptionSpec> all;
    std::vector<std::string> rules;  // that take each of them
    for (const auto& row : rows())
        for (const auto& option : row.entry.options) {
            const auto shared =
                std::find_if(all.begin(), all.end(), [&](const OptionSpec& other) { return other.key == option.key; });
            if (shared != all.end()) {
                rules[static_cast<std::size_t>(shared - all.begin())] += " or " + before + row.entry.name;
                continue;
            }
            rules.push_back(before + row.entry.name);
            all.push_back(option);
        }
    for (std::size_t i = 0; i < all.size(); ++i) all[i].help = "with " + rules[i] + ": " + all[i].help;
    return all;
}

ValueSpec rank_value() { return one_of_or(rows().names(), names_from({"ranks"}, whole("R"))); }

std::vector<OptionSpec> rank_options() {
    std::vector<OptionSpec> all = {{"", rank_value(), "rank, or a rule of `spiked list ranks`, required"}};
    for (auto& option : options_of_rank_rules()) all.push_back(std::move(option));
    return all;
}

GivenRank given_rank(const NameOptions& named, const std::string& word, const std::vector<std::string>& own) {
    GivenRank given;
    std::vector<std::string> allowed = own;
    for (const auto& row : rows())
        if (row.entry.name == word)
            for (const auto& option : row.entry.options) allowed.push_back(option.key);
    for (const auto& row : rows()) {
        if (row.entry.name == word) {
            given.rule = row.make != nullptr ? row.make(named) : needs_the_block(row.entry.name);
            if (row.make_for_blocks != nullptr) given.block_rule = row.make_for_blocks(named);
            continue;
        }
        if (const auto key = option_of(row, named, allowed))
            throw usage_error("\"{}\": {}= belongs to the rank rule {}: leave it out or write {} in the place of {}",
                              named.text(), *key, row.entry.name, row.entry.name, word);
    }
    if (!given.rule) given.fixed = static_cast<std::size_t>(to_integer(word).value());
    return given;
}

void reject_rule_options(const NameOptions& named, const std::vector<std::string>& own) {
    for (const auto& row : rows())
        if (const auto key = option_of(row, named, own))
            throw usage_error("\"{0}\": {1}= belongs to rank={2}: write {0}:rank={2}, or leave it out", named.text(),
                              *key, row.entry.name);
}

GivenRank required_rank(const NameOptions& named, const std::string& example) {
    if (named.words().size() != 1)
        throw usage_error("\"{}\": {} needs its rank: write for example {}", named.text(), named.name(), example);
    return given_rank(named, named.words().front());
}

}  // namespace spiked::estimators
