#include "validation/study/command_studies.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "estimators/caches/method_name.hpp"
#include "validation/kv/kv_measurement.hpp"
#include "validation/model/model_study.hpp"
#include "validation/study/study.hpp"
#include "validation/verdicts/claim_study.hpp"

namespace spiked::validation {
namespace {

namespace fs = std::filesystem;

/// Where the file of an input was, in its meta.
constexpr const char* path_key = "absolute_path";

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

DumpMethod dump_method(const std::string& text) {
    if (estimators::is_cache_method(text)) return estimators::cache_method(text);
    return estimators::method_named(text, estimators::and_caches());
}

Experiment dump_experiment(KvPlan plan, const std::vector<DumpMethod>& methods, const std::vector<double>& bits,
                           const CommandOrigin& origin) {
    Experiment experiment = begun_experiment("kv-run", "kv_dump", plan.dumps.empty() ? "" : plan.dumps.front(),
                                             plan.quantizer.seed, origin);
    if (plan.dumps.size() != 1) experiment.title = fmt::format("{} dumps", plan.dumps.size());
    experiment.raw_per_cell = 0;
    Json names = Json::array();
    std::vector<NamedCodec> codecs;
    for (const auto& method : methods) {
        names.push(std::visit([](const auto& one) { return one.text; }, method));
        if (const auto* codec = std::get_if<estimators::MethodSpec>(&method)) {
            codecs.push_back({codec->text, *codec, bits});
            continue;
        }
        const auto& cache = std::get<estimators::CacheMethod>(method);
        for (const double width : bits) {
            cache.check_bits(width);
            plan.caches.push_back({cache, width});
        }
    }
    for (const double width : bits) names.push(bits_json(width));
    experiment.science.set("methods", std::move(names));
    make_dump_experiment(experiment, plan, codecs);
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

Experiment validation_experiment(const ValidationPlan& plan, const std::vector<Claim>& claims, const OpenDumps* dumps,
                                 const Json& settings, const CommandOrigin& origin) {
    Experiment experiment = claim_experiment(plan, claims);
    experiment.config_source = origin.command;
    experiment.seed_source = origin.seed_given ? "cli" : "config";
    if (dumps == nullptr) return experiment;
    Json files = Json::array();
    for (std::size_t i = 0; i < dumps->dumps.size(); ++i) {
        files.push(dumps->sha256[i]);
        const auto& dump = *dumps->dumps[i];
        experiment.inputs.push_back({dumps->name_of(i), fs::file_size(dump.path()), dumps->sha256[i],
                                     format_of(dump.path()), dump.layout().text(), dump.model(),
                                     Json::object({{path_key, fs::absolute(dump.path()).string()}})});
    }
    experiment.science.set("dumps", std::move(files));
    experiment.science.set("dump_settings", settings);
    return experiment;
}

std::vector<StoredDump> stored_dumps(Database& store) {
    std::vector<std::string> names;
    std::vector<StoredDump> inputs;
    Statement input(store, "SELECT path, bytes, sha256, meta FROM input ORDER BY input_id");
    while (input.step()) {
        names.push_back(input.text(0));
        const Json meta = Json::parse(input.text(3), store.path() + ": meta of an input", 8);
        inputs.push_back(
            {text_of(meta, path_key, input.text(0)), {}, static_cast<std::uint64_t>(input.integer(1)), input.text(2)});
    }
    const auto titles = dump_titles(names);
    std::vector<StoredDump> dumps;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (dumps.empty() || dumps.back().path != inputs[i].path) dumps.push_back(inputs[i]);
        dumps.back().titles.push_back(titles[i]);
    }
    return dumps;
}

Json stored_dump_settings(Database& store) {
    Statement study(store, "SELECT config_resolved FROM study");
    if (!study.step()) return Json::object();
    const Json science = Json::parse(study.text(0), store.path() + ": config_resolved", 64);
    const Json* settings = science.find("dump_settings");
    return settings == nullptr || settings->members() == nullptr ? Json::object() : *settings;
}

std::vector<Claim> claims_on_stored_dump(const StoredDump& dump, KvPlan plan, std::string& why) {
    std::error_code failure;
    // A store may come from elsewhere, so that only a file of the size that it names is read.
    if (!fs::is_regular_file(dump.path, failure)) {
        why = fmt::format("{}: no such file", dump.path);
    } else if (fs::file_size(dump.path, failure) != dump.bytes) {
        why = fmt::format("{}: another file than the one that was judged (its size differs)", dump.path);
    } else {
        try {
            plan.dumps = {dump.path};
            const auto open = std::make_shared<const OpenDumps>(open_dumps(plan));
            if (open->sha256.front() == dump.sha256 && open->dumps.size() == dump.titles.size())
                return claims_on_dumps(open, dump.titles, plan.block_tokens);
            why = fmt::format("{}: another file than the one that was judged (its content differs)", dump.path);
        } catch (const Error& error) {
            why = error.what();
        }
    }
    return {};
}

}  // namespace spiked::validation
