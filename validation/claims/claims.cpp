#include "validation/claims/claims.hpp"

#include <algorithm>
#include <iterator>

#include "core/runtime/error.hpp"

namespace spiked::validation {

// Each list is defined in a source file of this folder, without a header.
std::vector<Claim> outlier_claims();
std::vector<Claim> vector_claims();
std::vector<Claim> shrinkage_claims();
std::vector<Claim> rank_claims();
std::vector<Claim> white_noise_claims();
std::vector<Claim> principal_component_claims();
std::vector<Claim> symmetric_claims();
std::vector<Claim> inference_claims();
std::vector<Claim> residual_claims();
std::vector<Claim> residual_bias_claims();
std::vector<Claim> residual_proof_claims();
std::vector<Claim> row_claims();
std::vector<Claim> quantizer_claims();
std::vector<Claim> sketch_claims();
std::vector<Claim> compression_claims();
std::vector<Claim> rope_claims();
std::vector<Claim> spectrum_gain_claims();

namespace {

std::vector<Claim> all_claims() {
    std::vector<Claim> all;
    for (auto list :
         {outlier_claims, vector_claims, shrinkage_claims, rank_claims, white_noise_claims, principal_component_claims,
          symmetric_claims, inference_claims, residual_claims, residual_bias_claims, residual_proof_claims, row_claims,
          quantizer_claims, sketch_claims, compression_claims, rope_claims, spectrum_gain_claims}) {
        auto claims = list();
        std::move(claims.begin(), claims.end(), std::back_inserter(all));
    }
    for (const auto& [id, form] : study_forms()) {
        const auto claim = std::find_if(all.begin(), all.end(), [&id = id](const Claim& one) { return one.id == id; });
        if (claim == all.end()) throw precondition_error("no claim \"{}\" for a study to check", id);
        claim->in_study = form;
    }
    return all;
}

}  // namespace

std::string_view name_of(Form form) { return form == Form::printed ? "printed" : "corrected"; }
std::string_view name_of(PrintedVerdict verdict) { return enum_name(verdict); }
std::string_view name_of(Summary summary) { return enum_name(summary); }

RegistryEntry entry_of(const Claim& claim) {
    return {.name = claim.id, .summary = claim.statement, .source = claim.place};
}

const Registry<Claim>& claims() {
    static const Registry<Claim> table("claim", all_claims());
    return table;
}

const Claim* find_claim(std::string_view id) { return claims().find(id); }

}  // namespace spiked::validation
