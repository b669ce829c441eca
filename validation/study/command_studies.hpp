#pragma once
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "estimators/caches/cache_method.hpp"
#include "estimators/compressors/compressor.hpp"
#include "validation/kv/open_dumps.hpp"
#include "validation/model/generated_answers.hpp"
#include "validation/model/perplexity.hpp"
#include "validation/model/retrieval.hpp"
#include "validation/store/experiment.hpp"
#include "validation/verdicts/claim_verdicts.hpp"

// Studies that the options of a command describe in place of a study file.
namespace spiked::validation {

/// The command that a study comes from. Stores keep both.
struct CommandOrigin {
    std::string command;      ///< the command line
    bool seed_given = false;  ///< whether it names the seed
};

/// The methods that are measured where none is named: `always`; calibrated caches if the plan has dumps to calibrate
/// them; and, if keys are measured and every dump says how its keys were rotated, `of_rotated` and kvtc with `unrope`.
[[nodiscard]] std::vector<std::string> default_methods(const KvPlan& plan, std::vector<std::string> always,
                                                       const std::vector<std::string>& of_rotated);

/// A method of the blocks of a dump, or one of its whole sequences.
using DumpMethod = std::variant<estimators::MethodSpec, estimators::CacheMethod>;
/// Throws the errors of cache_method and method_named.
[[nodiscard]] DumpMethod dump_method(const std::string& text);

/// The study `kv-run` of the blocks of dumps: every codec and cache at every number of bits, codecs first. Its seed is
/// that of plan.quantizer. Throws usage_error for bits that a method does not accept, and the errors of
/// make_dump_experiment.
[[nodiscard]] Experiment dump_experiment(KvPlan plan, const std::vector<DumpMethod>& methods,
                                         const std::vector<double>& bits, const CommandOrigin& origin);

/// The study `kv-frontier` of a model on documents, and on prompts that are built for it. Their seed is that of
/// plan.quantizer. Throws the errors of make_perplexity_experiment and make_retrieval_experiment.
[[nodiscard]] Experiment perplexity_experiment(const PerplexityPlan& plan, const CommandOrigin& origin);
[[nodiscard]] Experiment retrieval_experiment(const RetrievalPlan& plan, const CommandOrigin& origin);

/// The study `kv-retrieve` of prompts that a model answers in its own words. Throws the errors of
/// make_answers_experiment.
[[nodiscard]] Experiment answers_experiment(const std::shared_ptr<const OpenAnswers>& open,
                                            const CommandOrigin& origin);

/// The study `validate` of claims, some of which may be about the blocks of `dumps` (null: of none); `settings` are the
/// options that say how these are read. Throws the errors of claim_experiment.
[[nodiscard]] Experiment validation_experiment(const ValidationPlan& plan, const std::vector<Claim>& claims,
                                               const OpenDumps* dumps, const Json& settings,
                                               const CommandOrigin& origin);

/// A dump of a store of claims, as validation_experiment keeps it.
struct StoredDump {
    std::string path;                 ///< where the file was, absolute
    std::vector<std::string> titles;  ///< Claim::on, one for each of its sequences
    std::uint64_t bytes = 0;
    std::string sha256;
};
/// The dumps of a store of claims; a store that does not say where a file was has the name that the command had.
[[nodiscard]] std::vector<StoredDump> stored_dumps(Database& store);
/// The settings of validation_experiment; an empty object for a store without dumps.
[[nodiscard]] Json stored_dump_settings(Database& store);
/// The claims on a dump of a store, read by `plan`, if it still is where it was; otherwise none, and `why` says why.
[[nodiscard]] std::vector<Claim> claims_on_stored_dump(const StoredDump& dump, KvPlan plan, std::string& why);

}  // namespace spiked::validation
