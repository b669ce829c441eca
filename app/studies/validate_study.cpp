#include "app/studies/validate_study.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "app/options/dump_options.hpp"
#include "validation/verdicts/claim_study.hpp"

namespace spiked::app {

std::vector<std::string> names_of_dumps(const validation::OpenDumps& dumps) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < dumps.dumps.size(); ++i) names.push_back(dumps.name_of(i));
    return names;
}

ValidateStudy validate_study(const validation::ValidationPlan& plan, const std::vector<std::string>& dumps,
                             const Json& settings, const validation::CommandOrigin& origin) {
    ValidateStudy study{validation::claims().rows(), nullptr, {}};
    if (!dumps.empty()) {
        const validation::KvPlan kv = read_dump_plan(settings, dumps);
        study.dumps = std::make_shared<const validation::OpenDumps>(open_dumps(kv));
        auto claims =
            claims_on_dumps(study.dumps, validation::dump_titles(names_of_dumps(*study.dumps)), kv.block_tokens);
        std::move(claims.begin(), claims.end(), std::back_inserter(study.claims));
    }
    study.experiment = validation::validation_experiment(plan, study.claims, study.dumps.get(), settings, origin);
    return study;
}

Json validate_recipe(const validation::ValidationPlan& plan, const std::vector<std::string>& dumps,
                     const Json& settings) {
    return Json::object({{"tier", enum_name(plan.tier)},
                         {"seed", plan.seed.text()},
                         {"claims", plan.claims},
                         {"dumps", dumps},
                         {"dump_settings", settings}});
}

validation::Experiment validate_experiment(const Json& recipe) {
    const auto texts = [&](const char* key) {
        std::vector<std::string> found;
        for (const Json& one : *recipe.find(key)->items()) found.push_back(*one.string());
        return found;
    };
    validation::ValidationPlan plan;
    plan.tier = *find_enum<validation::Tier>(text_of(recipe, "tier"));
    plan.seed = stream::StudySeed::parse(text_of(recipe, "seed"));
    plan.claims = texts("claims");
    return validate_study(plan, texts("dumps"), *recipe.find("dump_settings"), {}).experiment;
}

}  // namespace spiked::app
