#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/text/name_options.hpp"
#include "core/text/registry.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/svd/relative_spectrum.hpp"

namespace spiked::estimators {

/// Chooses how many components of a block to keep, from its singular values.
using RankRule = std::function<std::size_t(const RelativeSpectrum&)>;

/// The same for a rule that needs the block itself.
using BlockRankRule = std::function<std::size_t(AnalysedBlock&)>;

/// The rank that a name gives: a number or a rule.
struct GivenRank {
    std::optional<std::size_t> fixed;
    RankRule rule;                  ///< used where `fixed` is empty; throws usage_error where it needs the block
    BlockRankRule block_rule = {};  ///< set where the rule needs the block

    [[nodiscard]] std::size_t of(const RelativeSpectrum& spectrum) const { return fixed ? *fixed : rule(spectrum); }
};

[[nodiscard]] const std::vector<RegistryEntry>& rank_rules();
/// The options of all rules, as `spiked list` shows them; `before` is printed before the name of the rule. Rules that
/// share a key share the option, with the same value and default.
[[nodiscard]] std::vector<OptionSpec> options_of_rank_rules(const std::string& before = "");
/// A rank or the name of a rule.
[[nodiscard]] ValueSpec rank_value();
/// The options of a method whose value is a rank: the rank first, then the options of all rules.
[[nodiscard]] std::vector<OptionSpec> rank_options();

/// Reads `word`, a value that rank_value accepts, as the rank of a method; the options of its rule are in the same
/// name. Throws usage_error for an option that belongs to another rule, unless it is one of the method's `own`.
[[nodiscard]] GivenRank given_rank(const NameOptions& named, const std::string& word,
                                   const std::vector<std::string>& own = {});
/// Throws usage_error for an option of a rule in a name without a rank rule, unless it is one of the method's `own`.
void reject_rule_options(const NameOptions& named, const std::vector<std::string>& own);
/// The rank of a name whose only value is the rank, `svd:1` or `svd:rd:bits=2`; `example` completes the error message.
[[nodiscard]] GivenRank required_rank(const NameOptions& named, const std::string& example);

}  // namespace spiked::estimators
