#include "estimators/ranks/rank_rule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/runtime/error.hpp"
#include "estimators/ranks/eigenvalue_gaps.hpp"
#include "estimators/ranks/rate_distortion_rank.hpp"

namespace spiked::estimators {
namespace {

struct Row {
    CatalogueLine entry;
    RankRule (*make)(const NameOptions&);
};

const std::vector<Row>& rows() {
    static const std::vector<Row> table = {
        {{"rd",
          "components that pay for their stored bits",
          {"bits=N (of a stored entry, 1-8 or 16, default 4)"},
          "ours, after Gish & Pierce 1968"},
         [](const NameOptions& named) -> RankRule {
             return [bits = stored_entry_bits(named)](const RelativeSpectrum& spectrum) {
                 return rate_distortion_rank(spectrum, bits);
             };
         }},
        {{"ed",
          "the last gap between eigenvalues that noise of any separable covariance would not leave",
          {"cap=R (largest rank it looks for, default 2k)"},
          "Onatski 2010"},
         [](const NameOptions& named) -> RankRule {
             return [cap = named.whole("cap")](const RelativeSpectrum& spectrum) {
                 return eigenvalue_gap_rank(spectrum.eigenvalues, cap);
             };
         }},
    };
    return table;
}

/// What a name has of the options of a rule, but for those of the method itself.
std::optional<std::string> option_of(const Row& row, const NameOptions& named, const std::vector<std::string>& own) {
    for (const auto& key : keys_of(row.entry.options))
        if (named.has_option(key) && std::find(own.begin(), own.end(), key) == own.end()) return key;
    return std::nullopt;
}

}  // namespace

const std::vector<CatalogueLine>& rank_rules() {
    static const std::vector<CatalogueLine> entries = entries_of(rows());
    return entries;
}

std::vector<std::string> options_of_rank_rules(const std::string& before) {
    std::vector<std::string> all;
    for (const auto& row : rows())
        for (std::string option : row.entry.options)
            all.push_back(option.insert(option.find('(') + 1, "with " + before + row.entry.name + ": "));
    return all;
}

std::vector<std::string> rank_options() {
    std::vector<std::string> all = {":R (rank) or a rule of `spiked list ranks`, required"};
    for (auto& option : options_of_rank_rules()) all.push_back(std::move(option));
    return all;
}

GivenRank given_rank(const NameOptions& named, const std::string& word, const std::vector<std::string>& own) {
    GivenRank given;
    std::vector<std::string> names;
    for (const auto& row : rows()) {
        names.push_back(row.entry.name);
        if (row.entry.name == word) {
            given.rule = row.make(named);
            continue;
        }
        if (const auto key = option_of(row, named, own))
            throw usage_error("\"{}\": {}= belongs to the rank rule {}: leave it out or write {} in the place of {}",
                              named.text(), *key, row.entry.name, row.entry.name, word);
    }
    if (given.rule) return given;
    const auto rank = to_integer(word);
    if (!rank || *rank < 0)
        throw usage_error("\"{}\": rank \"{}\" is neither a whole number of at least 0 nor a rank rule ({}){}",
                          named.text(), word, fmt::join(names, ", "), suggestion(word, names));
    given.fixed = static_cast<std::size_t>(*rank);
    return given;
}

void reject_rule_options(const NameOptions& named, const std::vector<std::string>& own) {
    for (const auto& row : rows())
        if (const auto key = option_of(row, named, own))
            throw usage_error("\"{0}\": {1}= belongs to rank={2}: write {0}:rank={2}, or leave it out", named.text(),
                              *key, row.entry.name);
}

GivenRank required_rank(const ParsedName& parsed, const std::string& example) {
    if (parsed.values.size() != 1)
        throw usage_error("\"{}\": {} needs its rank: write for example {}", parsed.text, parsed.name, example);
    return given_rank(NameOptions(parsed, keys_of(rank_options()), parsed.values), parsed.values.front());
}

}  // namespace spiked::estimators
