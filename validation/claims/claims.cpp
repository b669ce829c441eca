#include "validation/claims/claims.hpp"

#include <algorithm>
#include <iterator>

#include "core/runtime/error.hpp"
#include "validation/claims/fixture.hpp"

namespace spiked::validation {
namespace {

std::vector<Claim> all_claims() {
    std::vector<Claim> all;
    for (auto list :
         {outlier_claims, vector_claims, shrinkage_claims, rank_claims, white_noise_claims, residual_claims,
          residual_bias_claims, residual_proof_claims, row_claims, quantizer_claims, compression_claims, rope_claims}) {
        auto claims = list();
        std::move(claims.begin(), claims.end(), std::back_inserter(all));
    }
    for (const auto& [id, form] : study_forms()) {
        const auto claim = std::find_if(all.begin(), all.end(), [&id = id](const Claim& one) { return one.id == id; });
        if (claim == all.end()) throw precondition_error("no claim \"{}\" for a study to check", id);
        claim->in_study = form;
    }
    for (const auto& [id, words] : plain_words()) {
        const auto claim = std::find_if(all.begin(), all.end(), [&id = id](const Claim& one) { return one.id == id; });
        if (claim == all.end()) throw precondition_error("no claim \"{}\" for plain words", id);
        claim->plain = words;
    }
    return all;
}

}  // namespace

std::string_view name_of(Form form) { return form == Form::printed ? "printed" : "corrected"; }
std::string_view name_of(PrintedVerdict verdict) {
    constexpr std::string_view names[] = {"none", "holds", "refuted", "inconclusive", "vacuous"};
    return names[static_cast<int>(verdict)];
}
std::string_view name_of(Summary summary) {
    constexpr std::string_view names[] = {"mean", "share", "rate", "growth", "distance"};
    return names[static_cast<int>(summary)];
}

RegistryEntry entry_of(const Claim& claim) {
    return {.name = claim.id, .summary = claim.statement, .source = claim.place};
}

const Registry<Claim>& claims() {
    static const Registry<Claim> table("claim", all_claims());
    return table;
}

const Claim* find_claim(std::string_view id) { return claims().find(id); }

}  // namespace spiked::validation
