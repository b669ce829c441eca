#include "validation/study/command_studies.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "core/text/json.hpp"
#include "estimators/caches/cache_method.hpp"
#include "validation/claims/claim_study.hpp"
#include "validation/kv/kv_measurement.hpp"
#include "validation/model/model_study.hpp"
#include "validation/study/study.hpp"

namespace spiked::validation {
namespace {

/// What the studies of all commands have in common. `source` is the path of what they measure, for the title.
Experiment begun_experiment(const char* name, const char* kind, const std::filesystem::path& source,
                            const stream::StudySeed& seed, const CommandOrigin& origin) {
    Experiment experiment;
    experiment.name = name;
    experiment.title = source.filename().string();
    experiment.config_source = origin.command;
    experiment.claims = claims_of_studies();
    experiment.science = Json::object({{"spiked", 1}, {"kind", kind}});
    experiment.seed = seed;
    experiment.seed_source = origin.seed_given ? "cli" : "config";
    return experiment;
}

Experiment begun_model_experiment(const char* name, const std::string& model, const stream::StudySeed& seed,
                                  const CommandOrigin& origin) {
    return begun_experiment(name, "kv_model", std::filesystem::path(model + "/").parent_path(), seed, origin);
}

}  // namespace

std::vector<std::string> default_methods(const KvPlan& plan, std::vector<std::string> always,
                                         const std::vector<std::string>& of_rotated) {
    std::vector<std::string> methods = std::move(always);
    const bool calibrated = !plan.calibration.empty();
    if (calibrated)
        for (auto& name : estimators::calibrated_caches()) methods.push_back(std::move(name));
    if (plan.side != sim::Side::value && all_have_rotary_keys(plan.dumps, plan.dump)) {
        methods.insert(methods.end(), of_rotated.begin(), of_rotated.end());
        if (calibrated) methods.emplace_back("unrope+kvtc");
    }
    return methods;
}

Experiment dump_experiment(KvPlan plan, const std::vector<std::string>& methods, const std::vector<double>& bits,
                           const CommandOrigin& origin) {
    Experiment experiment = begun_experiment("kv-run", "kv_dump", plan.dumps.empty() ? "" : plan.dumps.front(),
                                             plan.quantizer.seed, origin);
    if (plan.dumps.size() != 1) experiment.title = fmt::format("{} dumps", plan.dumps.size());
    experiment.raw_per_cell = 0;
    Json names = Json::array();
    std::vector<std::string> codecs, caches;
    for (const auto& method : methods) {
        names.push(method);
        (estimators::is_cache_method(method) ? caches : codecs).push_back(method);
    }
    for (const double width : bits) names.push(bits_json(width));
    experiment.science.set("methods", std::move(names));
    plan.caches = named_caches(caches, bits);
    make_dump_experiment(experiment, plan, named_codecs(codecs, bits));
    return experiment;
}

Experiment perplexity_experiment(const PerplexityPlan& plan, const CommandOrigin& origin) {
    Experiment experiment = begun_model_experiment("kv-frontier", plan.model, plan.quantizer.seed, origin);
    make_perplexity_experiment(experiment, plan);
    return experiment;
}

Experiment retrieval_experiment(const RetrievalPlan& plan, const CommandOrigin& origin) {
    Experiment experiment = begun_model_experiment("kv-frontier", plan.model, plan.quantizer.seed, origin);
    make_retrieval_experiment(experiment, plan);
    return experiment;
}

Experiment answers_experiment(const std::shared_ptr<const OpenAnswers>& open, const CommandOrigin& origin) {
    Experiment experiment = begun_model_experiment("kv-retrieve", open->plan.model, open->plan.quantizer.seed, origin);
    make_answers_experiment(experiment, open);
    return experiment;
}

Experiment validation_experiment(const ValidationPlan& plan, const std::vector<Claim>& claims, const KvPlan& kv,
                                 const Json& settings, const CommandOrigin& origin) {
    Experiment experiment = claim_experiment(plan, claims);
    experiment.config_source = origin.command;
    experiment.seed_source = origin.seed_given ? "cli" : "config";
    if (kv.dumps.empty()) return experiment;
    const OpenDumps open = open_dumps(kv);
    Json files = Json::array();
    for (std::size_t i = 0; i < open.dumps.size(); ++i) {
        files.push(open.sha256[i]);
        const auto& dump = *open.dumps[i];
        experiment.inputs.push_back({open.name_of(i), std::filesystem::file_size(dump.path()), open.sha256[i],
                                     format_of(dump.path()), dump.layout().text(), dump.model()});
    }
    experiment.science.set("dumps", std::move(files));
    experiment.science.set("dump_settings", settings);
    return experiment;
}

}  // namespace spiked::validation
