#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/text/name_options.hpp"
#include "core/text/registry.hpp"
#include "estimators/svd/relative_spectrum.hpp"

namespace spiked::estimators {

/// How many components of a block to keep, from its singular values.
using RankRule = std::function<std::size_t(const RelativeSpectrum&)>;

/// What stands where a rank is asked: R itself, or a rule.
struct GivenRank {
    std::optional<std::size_t> fixed;
    RankRule rule;  ///< where it is not fixed

    [[nodiscard]] std::size_t of(const RelativeSpectrum& spectrum) const { return fixed ? *fixed : rule(spectrum); }
};

[[nodiscard]] const std::vector<RegistryEntry>& rank_rules();
/// What `spiked list` says of the options of every rule; `before` stands in front of its name.
[[nodiscard]] std::vector<OptionSpec> options_of_rank_rules(const std::string& before = "");
/// The same of a method whose value is a rank: the rank first.
[[nodiscard]] std::vector<OptionSpec> rank_options();

/// `word` as the rank of a method, with the options of its rule in the same name. Throws usage_error for a word that is
/// neither, and for an option that belongs to another rule, unless it is one of the method's `own`.
[[nodiscard]] GivenRank given_rank(const NameOptions& named, const std::string& word,
                                   const std::vector<std::string>& own = {});
/// Throws usage_error for an option of a rule in a name without a rank, unless it is one of the method's `own`.
void reject_rule_options(const NameOptions& named, const std::vector<std::string>& own);
/// The same of a name whose one value is the rank, `svd:1`, `svd:rd:bits=2`; `example` completes the error.
[[nodiscard]] GivenRank required_rank(const ParsedName& parsed, const std::string& example);

}  // namespace spiked::estimators
