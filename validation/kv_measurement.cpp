#include "validation/kv_measurement.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "estimators/ledger.hpp"
#include "theory/base/error.hpp"
#include "theory/base/sha256.hpp"
#include "validation/codec_measurement.hpp"
#include "validation/prepared_blocks.hpp"

namespace spiked::validation {
namespace {

using sim::Side;

constexpr std::size_t prompts_that_cluster = 8;

/// All blocks of one head of one tensor: a cell of the study.
struct Head : DumpHeadPlace {
    std::uint64_t rotation = 0;
    std::shared_ptr<const sim::DumpHead> blocks = {};
};

struct DumpStudy {
    KvPlan plan;
    OpenDumps open;
    std::vector<std::pair<estimators::Method, unsigned>> codecs;
    std::vector<Head> heads;
};

estimators::QuantizerOptions options_of(const DumpStudy& study, const Head& at) {
    estimators::QuantizerOptions options = study.plan.quantizer;
    options.rotation_index = at.rotation;
    options.axis = at.tensor->side == Side::key ? estimators::GroupAxis::key : estimators::GroupAxis::value;
    return options;
}

arma::mat read_block(const DumpStudy& study, const Head& at, std::uint64_t block) {
    const std::size_t tokens = study.plan.block_tokens;
    return at.blocks->read_block(block * tokens, tokens);
}

std::vector<Observation> measure(const DumpStudy& study, const Head& at,
                                 const std::vector<estimators::Compressor>& codecs, estimators::AnalysedBlock& data,
                                 std::uint64_t block) {
    std::vector<Observation> found;
    try {
        for (std::size_t m = 0; m < codecs.size(); ++m) observe_codec(codecs[m], data, m + 1, found);
    } catch (const Error& error) {
        const std::size_t tokens = study.plan.block_tokens;
        throw Error(error.code(),
                    fmt::format("{}: tensor {}, head {}, tokens {} to {}: {}", study.open.dumps[at.dump]->path(),
                                at.tensor->name, at.head, block * tokens, (block + 1) * tokens - 1, error.what()));
    }
    return found;
}

/// The picture of one head: its first block, what the first spectral codec takes for signal, and the fitted noise law.
std::vector<NamedArray> picture(const DumpStudy& study, const Head& at) {
    std::vector<NamedArray> arrays;
    for (std::size_t m = 0; m < study.codecs.size(); ++m) {
        const auto& spectral = study.codecs[m].first.spectral;
        if (!spectral) continue;
        estimators::AnalysedBlock data(read_block(study, at, 0));
        const auto [shrinkage, signal] = spectral->apply(data);
        if (!shrinkage.bulk_edge || shrinkage.noise_eigenvalues.empty()) continue;
        arrays.push_back({0, "block", data.block()});
        arrays.push_back({0, "singular_values", arma::vec(data.singular_values())});
        arrays.push_back({m + 1, "signal", signal});
        arrays.push_back({m + 1, "residual", data.block() - signal});
        arrays.push_back({m + 1, "bulk_edge", arma::mat(1, 1, arma::fill::value(shrinkage.bulk_edge->value))});
        arrays.push_back({m + 1, "noise_eigenvalues", arma::vec(shrinkage.noise_eigenvalues)});
        break;
    }
    return arrays;
}

bool wanted(const std::set<std::size_t>& chosen, std::size_t index) { return chosen.empty() || chosen.contains(index); }

std::string format_of(const std::string& path) {
    const std::string suffix = std::filesystem::path(path).extension().string();
    return suffix.empty() ? "unknown" : suffix.substr(1);
}

Json metadata_json(const sim::KvDump& dump) {
    Json json = Json::object();
    for (const auto& [key, value] : dump.metadata())
        if (value.size() <= 200) json.set(key, value);
    return json;
}

void list_heads(const KvPlan& plan, OpenDumps& open) {
    for (std::size_t f = 0; f < open.dumps.size(); ++f) {
        const auto& dump = *open.dumps[f];
        const std::size_t before = open.heads.size();
        for (const auto& tensor : dump.tensors()) {
            if (tensor.side == Side::query || (plan.side && *plan.side != tensor.side)) continue;
            if (!wanted(plan.layers, tensor.layer)) continue;
            if (tensor.tokens < plan.block_tokens)
                throw input_error("{}: tensor {} has {} tokens, fewer than one block of {}: choose a smaller --block",
                                  dump.path(), tensor.name, tensor.tokens, plan.block_tokens);
            for (std::size_t head = 0; head < tensor.heads; ++head)
                if (wanted(plan.heads, head)) open.heads.push_back({f, &tensor, head});
        }
        if (open.heads.size() == before)
            throw input_error(
                "{}: no layer, head and side is left to measure (--layers, --heads or --side exclude all): "
                "see spiked kv inspect {}",
                dump.path(), dump.path());
    }
    for (const std::size_t layer : plan.layers)
        if (std::none_of(open.heads.begin(), open.heads.end(),
                         [&](const DumpHeadPlace& at) { return at.tensor->layer == layer; }))
            throw input_error("no dump has a layer {} (asked for with --layers): see spiked kv inspect", layer);
    for (const std::size_t head : plan.heads)
        if (std::none_of(open.heads.begin(), open.heads.end(),
                         [&](const DumpHeadPlace& at) { return at.head == head; }))
            throw input_error("no dump has a head {} (asked for with --heads): see spiked kv inspect", head);
}

Factor number_factor(const std::string& name, std::size_t value) {
    return {name, static_cast<double>(value), std::to_string(value)};
}

}  // namespace

OpenDumps open_dumps(const KvPlan& plan) {
    if (plan.block_tokens == 0) throw usage_error("a block of 0 tokens is not possible: choose --block 1 or more");
    if (plan.dumps.empty()) throw usage_error("no dump was named: give one or more files");
    OpenDumps open;
    for (const auto& path : plan.dumps) {
        const auto& dump = *open.dumps.emplace_back(std::make_unique<sim::KvDump>(path, plan.dump));
        if (plan.dump.prompt_id_key != sim::DumpOptions{}.prompt_id_key && !dump.prompt_id())
            throw input_error("{}: the metadata have no \"{}\" (asked for with --prompt-id): see spiked kv inspect {}",
                              path, plan.dump.prompt_id_key, path);
        const std::string sum = hex(sha256_of_file(path));
        for (std::size_t earlier = 0; earlier < open.sha256.size(); ++earlier)
            if (open.sha256[earlier] == sum)
                throw usage_error("{}: the same content as {} (a dump counts once): name each dump once", path,
                                  open.dumps[earlier]->path());
        open.sha256.push_back(sum);
    }
    list_heads(plan, open);
    return open;
}

bool OpenDumps::clusters_by_prompt() const {
    std::set<std::string> prompts;
    for (const auto& dump : dumps) {
        if (!dump->prompt_id()) return false;
        prompts.insert(*dump->prompt_id());
    }
    return prompts.size() >= prompts_that_cluster;
}

std::string OpenDumps::cluster_of(const DumpHeadPlace& at, bool by_prompt) const {
    const auto& dump = *dumps[at.dump];
    return by_prompt ? dump.prompt_id().value_or("")
                     : fmt::format("{} layer {} head {}", dump.model(), at.tensor->layer, at.head);
}

Json head_identity(const std::string& dump_sha256, const std::string& tensor, std::size_t head,
                   std::size_t block_tokens) {
    return Json::object({{"sha256", dump_sha256}, {"tensor", tensor}, {"head", head}, {"block", block_tokens}});
}

std::uint64_t rotation_of(const Json& identity) {
    return std::stoull(hex(sha256(identity.text())).substr(0, 16), nullptr, 16);
}

std::vector<NamedCodec> named_codecs(const std::vector<std::string>& methods, const std::vector<unsigned>& bits) {
    std::vector<NamedCodec> codecs;
    for (const auto& method : methods) codecs.push_back({method, estimators::parse_method(method), bits});
    return codecs;
}

std::vector<std::string> expand_pattern(const std::string& pattern) {
    glob_t found{};
    std::vector<std::string> files;
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    globfree(&found);
    return files;
}

void make_dump_experiment(Experiment& experiment, const KvPlan& plan, const std::vector<NamedCodec>& codecs) {
    experiment.kind = "kv_dump";
    auto study = std::make_shared<DumpStudy>();
    study->plan = plan;
    experiment.methods.push_back({"sample", "sample", "sample", std::nullopt, Json::object()});
    for (const auto& codec : codecs)
        for (const unsigned bits : codec.bits) {
            study->codecs.emplace_back(codec.method, bits);
            // Bits and names are checked before any file is opened.
            (void)estimators::Compressor(codec.method, 2, bits, {.rotation = estimators::RotationKind::identity});
            const std::string name = fmt::format("{} B={}", codec.label, bits);
            for (const auto& other : experiment.methods)
                if (other.name == name)
                    throw usage_error("{} is asked for twice: name each method and bit width once", name);
            experiment.methods.push_back({name, "codec", codec.label, bits, Json::object()});
        }
    study->open = open_dumps(plan);
    for (std::size_t i = 0; i < study->open.dumps.size(); ++i) {
        const auto& dump = *study->open.dumps[i];
        experiment.inputs.push_back({dump.path(), std::filesystem::file_size(dump.path()), study->open.sha256[i],
                                     format_of(dump.path()), dump.layout().text(), dump.model(), metadata_json(dump)});
    }
    for (const auto& place : study->open.heads) study->heads.push_back({place});

    const auto& options = plan.quantizer;
    experiment.science.set("seed_of_rotations", options.seed.text());
    experiment.science.set("quantizer", Json::object({{"rotation", static_cast<int>(options.rotation)},
                                                      {"codebook", static_cast<int>(options.codebook)},
                                                      {"norm", estimators::name_of(options.norm)},
                                                      {"factor_bits", static_cast<int>(options.factor_bits)},
                                                      {"factor_codebook", static_cast<int>(options.factor_codebook)},
                                                      {"open_loop", options.open_loop},
                                                      {"group", options.group}}));
    Json files = Json::array();
    for (const auto& input : experiment.inputs) files.push(input.sha256);
    experiment.science.set("inputs", std::move(files));

    const bool by_prompt = study->open.clusters_by_prompt();
    Json cells = Json::array();
    for (auto& at : study->heads) {
        const auto& [dump_index, tensor, head] = static_cast<const DumpHeadPlace&>(at);
        const auto& dump = *study->open.dumps[dump_index];
        const std::string side(side_name(tensor->side));
        const std::string file = std::filesystem::path(dump.path()).filename().string();
        ExperimentCell cell;
        cell.label = fmt::format("{} {} layer {} head {}", file, side, tensor->layer, head);
        cell.rows = plan.block_tokens;
        cell.columns = tensor->dim;
        cell.replicates = tensor->tokens / plan.block_tokens;
        cell.params = head_identity(experiment.inputs[dump_index].sha256, tensor->name, head, plan.block_tokens);
        if (plan.view.shuffle) cell.params.set("order", "shuffled");
        if (plan.view.undo_rotary && tensor->side == Side::key) cell.params.set("rotary", "undone");
        at.blocks = std::make_shared<const sim::DumpHead>(
            dump, *tensor, head, plan.view, stream::Stream(experiment.seed, cell.hash(), stream::Role::token_order, 0));
        at.rotation = rotation_of(cell.params);
        const std::string prompt = dump.prompt_id().value_or("");
        const std::string cluster = study->open.cluster_of(at, by_prompt);
        cell.factors = {{"file", std::nullopt, dump.path()},
                        {"input", static_cast<double>(dump_index + 1), file},
                        {"model", std::nullopt, dump.model()},
                        {"prompt", std::nullopt, prompt},
                        number_factor("layer", tensor->layer),
                        {"side", std::nullopt, side},
                        number_factor("head", head),
                        {"cluster", std::nullopt, cluster},
                        {"cluster_by", std::nullopt, by_prompt ? "prompt" : "head"},
                        number_factor("tokens_skipped", tensor->tokens % plan.block_tokens)};
        cells.push(cell.params);
        experiment.cells.push_back(std::move(cell));
    }
    experiment.science.set("cells", std::move(cells));

    experiment.worker = [study](std::size_t cell, ReplicateRange range) -> Experiment::Worker {
        const Head& at = study->heads[cell];
        auto compressors = std::make_shared<std::vector<estimators::Compressor>>();
        for (const auto& [method, bits] : study->codecs)
            compressors->emplace_back(method, at.tensor->dim, bits, options_of(*study, at));
        auto blocks = std::make_shared<PreparedBlocks<arma::mat>>(
            range, study->plan.precision, [study, &at](std::uint64_t block) { return read_block(*study, at, block); },
            [](const arma::mat& block) { return block; });
        return [study, &at, compressors, blocks](std::uint64_t block) {
            return measure(*study, at, *compressors, *blocks->get(block).block, block);
        };
    };
    experiment.arrays = [study](std::size_t cell) -> std::vector<NamedArray> {
        // One head a side is enough for the picture.
        for (std::size_t c = 0; c < cell; ++c)
            if (study->heads[c].tensor->side == study->heads[cell].tensor->side) return {};
        return picture(*study, study->heads[cell]);
    };
}

KvTable kv_table(Database& store) {
    KvTable table;
    Statement inputs(store,
                     "SELECT i.path, i.sha256, i.model, sum(c.reps_target), sum(s.num) FROM input i"
                     " JOIN factor f ON f.name = 'input' AND f.num = i.input_id JOIN cell c USING(cell_id)"
                     " JOIN factor s ON s.cell_id = c.cell_id AND s.name = 'tokens_skipped' GROUP BY i.input_id ORDER "
                     "BY i.input_id");
    while (inputs.step())
        table.inputs.push_back({inputs.text(0), inputs.text(1), inputs.text(2),
                                static_cast<std::uint64_t>(inputs.integer(3)),
                                static_cast<std::uint64_t>(inputs.integer(4))});
    Statement cluster(store, "SELECT min(txt) FROM factor WHERE name = 'cluster_by'");
    if (cluster.step()) table.cluster = cluster.text(0);
    table.clusters =
        static_cast<std::size_t>(store.integer("SELECT count(DISTINCT txt) FROM factor WHERE name = 'cluster'"));

    Statement means(
        store,
        "SELECT side, method_id, method, bits, metric, blocks, mean, mcse FROM v_cluster ORDER BY side, method_id");
    constexpr std::pair<std::string_view, ClusteredValue KvRow::*> fields[] = {
        {"bits_per_entry", &KvRow::bits_per_entry}, {"paper_bits", &KvRow::paper_bits},    {"rank", &KvRow::rank},
        {"relative_l2", &KvRow::relative_l2},       {"ip_bias", &KvRow::ip_bias},          {"ip_std", &KvRow::ip_std},
        {"ip_bias_plain", &KvRow::ip_bias_plain},   {"ip_std_plain", &KvRow::ip_std_plain}};
    std::pair<std::string, std::int64_t> current;
    while (means.step()) {
        const std::pair key{means.text(0), means.integer(1)};
        if (table.rows.empty() || key != current) {
            current = key;
            KvRow& row = table.rows.emplace_back();
            row.side = means.text(0);
            row.method = means.text(2);
            row.bits = static_cast<unsigned>(means.integer(3));
            row.ledger.resize(estimators::item_count);
        }
        KvRow& row = table.rows.back();
        const std::string metric = means.text(4);
        for (const auto& [name, field] : fields)
            if (metric == name) row.*field = {means.real(6), means.real(7)};
        for (std::size_t item = 0; item < estimators::item_count; ++item)
            if (metric == fmt::format("bits.{}", estimators::item_names[item])) row.ledger[item] = means.real(6);
        if (metric == "bits_per_entry") row.blocks = static_cast<std::uint64_t>(means.integer(5));
    }
    return table;
}

}  // namespace spiked::validation
