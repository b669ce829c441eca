#include "validation/kv/kv_measurement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "codec/cache/head_rotation.hpp"
#include "core/runtime/error.hpp"
#include "core/text/name_options.hpp"
#include "estimators/coding/ledger.hpp"
#include "estimators/quantizers/quantizer_options.hpp"
#include "validation/kv/dump_attention.hpp"
#include "validation/metrics/codec_measurement.hpp"
#include "validation/trials/prepared_blocks.hpp"

namespace spiked::validation {

namespace {

using sim::Side;

/// Observes a block of a cache method. Its bits are those of its group of heads, the same for every block.
void observe_cached(const codec::CachedHead& head, const arma::mat& block, std::size_t first_token,
                    const BlockQueries& queries, std::size_t method, std::vector<Observation>& to) {
    CodeSize size{.rank = head.rank, .items = head.bits_per_entry, .shared_bits = head.shared_bits_per_entry};
    for (const double bits : head.bits_per_entry) size.bits_per_entry += bits;
    observe_size(size, method, to);
    const arma::fmat rows = head.rows.rows(first_token, first_token + block.n_rows - 1);
    observe_errors(block, arma::conv_to<arma::mat>::from(rows), queries, method, to);
}

/// `derotated_data`: the block with RoPE undone; null if no codec needs it.
std::vector<Observation> measure(const DumpStudy& study, const StudiedHead& at,
                                 const std::vector<estimators::HeadCodec>& codecs, estimators::AnalysedBlock& data,
                                 estimators::AnalysedBlock* derotated_data, std::uint64_t block) {
    DerotatedBlock derotated_block{derotated_data, {}};
    if (derotated_data != nullptr)
        derotated_block.back = [&](const arma::mat& rows) {
            return rotated(study, *rotary_of(study, at), rows, block);
        };
    std::vector<Observation> found;
    // Outside of `located`, because errors of reading queries name their own tensor.
    arma::mat dumped;
    const std::size_t tokens = study.plan.block_tokens;
    if (at.queries != nullptr && at.tensor->side == Side::key)
        for (const auto& head_queries : read_queries(study, at, block * tokens, tokens))
            dumped = arma::join_cols(dumped, head_queries);
    located(study, at, block, [&] {
        BlockQueries queries =
            queries_for(data, stream::Stream(study.plan.quantizer.seed, at.cell, stream::Role::query, block));
        queries.dumped = std::move(dumped);
        for (std::size_t m = 0; m < codecs.size(); ++m)
            observe_codec(codecs[m].of(block), data, queries, m + 1, found,
                          study.codecs[m].first.unrope ? derotated_block : DerotatedBlock{});
        for (std::size_t c = 0; c < study.caches.size(); ++c)
            observe_cached(study.caches[c]->of(*study.open.dumps[at.dump], *at.tensor, at.head), data.block(),
                           block * tokens, queries, codecs.size() + c + 1, found);
    });
    return found;
}

/// Arrays for the figures of one head: its first block, the signal that the first spectral codec estimates, and the
/// fitted noise law.
std::vector<NamedArray> picture(const DumpStudy& study, const StudiedHead& at) {
    std::vector<NamedArray> arrays;
    for (std::size_t m = 0; m < study.codecs.size(); ++m) {
        const auto& spectral = study.codecs[m].first.spectral;
        if (!spectral) continue;
        const auto& rotary = rotary_of(study, at);
        const bool undoes_rope = study.codecs[m].first.unrope && rotary;
        const arma::mat rows = read_block(study, at, 0);
        estimators::AnalysedBlock data(undoes_rope ? derotated(study, *rotary, rows, 0) : rows);
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

Json metadata_json(const sim::KvDump& dump) {
    Json::Object members;
    for (const auto& [key, value] : dump.metadata())
        if (value.size() <= 200) members.emplace_back(key, value);
    return Json::object(std::move(members));
}

void add_method(Experiment& experiment, const std::string& label, double bits) {
    const std::string name = fmt::format("{} B={}", label, bits);
    for (const auto& other : experiment.methods)
        if (other.name == name) throw usage_error("{} is given twice: name each method and bit width once", name);
    experiment.methods.push_back({name, "codec", label, bits, Json::object()});
}

void add_codecs(Experiment& experiment, DumpStudy& study, const std::vector<NamedCodec>& codecs) {
    for (const auto& codec : codecs)
        for (const double bits : codec.bits) {
            study.codecs.emplace_back(codec.method, bits);
            // Bits and names are checked before any file is opened.
            codec.method.quantizer.check_bits(bits);
            (void)estimators::Compressor(codec.method, 2, bits, {.rotation = estimators::RotationKind::identity});
            add_method(experiment, codec.label, bits);
        }
}

void add_inputs(Experiment& experiment, const DumpStudy& study) {
    for (std::size_t i = 0; i < study.open.dumps.size(); ++i) {
        const auto& dump = *study.open.dumps[i];
        experiment.inputs.push_back({study.plan.names.empty() ? study.open.name_of(i) : study.plan.names[i],
                                     std::filesystem::file_size(dump.path()), study.open.sha256[i],
                                     format_of(dump.path()), dump.layout().text(), dump.model(), metadata_json(dump)});
    }
}

/// Says of each dump whether cache methods that may take the rotary embedding off keys do so.
void note_derotated_keys(DumpStudy& study) {
    if (study.plan.side == Side::value) return;
    const auto& caches = study.plan.caches;
    const auto found = std::find_if(caches.begin(), caches.end(), [](const auto& at) { return at.method.derotates; });
    if (found == caches.end()) return;
    for (std::size_t i = 0; i < study.open.dumps.size(); ++i)
        study.open.notes.push_back(fmt::format("{}: {} codes keys {}", study.open.name_of(i), found->method.own.name(),
                                               sim::has_rotary(*study.open.dumps[i])
                                                   ? "without their rotary embedding, which the metadata state"
                                                   : "as they are (the metadata state no rotary embedding)"));
}

/// Throws for a dump without the token ids that a cache method needs.
void require_token_ids(const DumpStudy& study) {
    const auto& caches = study.plan.caches;
    const auto found =
        std::find_if(caches.begin(), caches.end(), [](const auto& at) { return at.method.needs_token_ids(); });
    if (found == caches.end()) return;
    for (const auto& dump : study.open.dumps)
        if (sim::token_ids(*dump, dump->tensors().front()).empty())
            throw input_error(
                "{}: it has no tensor {} (\"{}\" predicts a token from the last one of the same id): dump it again "
                "with "
                "spiked kv dump, add the ids, or leave same=on out",
                dump->path(), sim::token_ids_name, found->method.text);
}

void add_caches(Experiment& experiment, DumpStudy& study) {
    note_derotated_keys(study);
    require_token_ids(study);
    const auto& caches = study.plan.caches;
    const auto calibrated = [](const NamedCache& cache) { return cache.method.calibrated; };
    if (!study.plan.calibration.empty() && std::none_of(caches.begin(), caches.end(), calibrated))
        throw usage_error("--calibrate has no effect (no method is calibrated): add one of {} to --method",
                          fmt::join(estimators::calibrated_caches(), ", "));
    study.calibration =
        codec::Calibration(study.plan.calibration, study.plan.dump, study.open.dumps, study.open.sha256);
    for (const auto& cache : caches)
        study.caches.push_back(
            std::make_unique<codec::CacheRows>(cache.method, cache.bits, study.plan.quantizer, study.calibration));
    if (study.calibration.empty()) return;
    Json sums = Json::array();
    for (const auto& sum : study.calibration.sums()) sums.push(sum);
    experiment.science.set("calibration", std::move(sums));
}

Factor number_factor(const std::string& name, std::size_t value) {
    return {name, static_cast<double>(value), std::to_string(value)};
}

ExperimentCell head_cell(const ExperimentInput& input, const DumpStudy& study, const StudiedHead& at, bool by_prompt) {
    const auto& plan = study.plan;
    const auto& dump = *study.open.dumps[at.dump];
    const auto& tensor = *at.tensor;
    const std::string side(side_name(tensor.side));
    const std::string file = std::filesystem::path(study.open.name_of(at.dump)).filename().string();
    ExperimentCell cell;
    cell.label = fmt::format("{} {} layer {} head {}", file, side, tensor.layer, at.head);
    cell.rows = plan.block_tokens;
    cell.columns = tensor.dim;
    cell.replicates = tensor.tokens / plan.block_tokens;
    cell.params = codec::head_identity(input.sha256, tensor.name, at.head, plan.block_tokens);
    if (plan.view.shuffle) cell.params.set("order", "shuffled");
    if (plan.view.undo_rotary && tensor.side == Side::key) cell.params.set("rotary", "undone");
    cell.factors = {{"file", std::nullopt, input.path},
                    {"input", static_cast<double>(at.dump + 1), file},
                    {"model", std::nullopt, dump.model()},
                    {"prompt", std::nullopt, dump.prompt_id().value_or("")},
                    number_factor("layer", tensor.layer),
                    {"side", std::nullopt, side},
                    number_factor("head", at.head),
                    {"cluster", std::nullopt, study.open.cluster_of(at, by_prompt)},
                    {"cluster_by", std::nullopt, by_prompt ? "prompt" : "head"},
                    number_factor("tokens_skipped", tensor.tokens % plan.block_tokens)};
    return cell;
}

/// Adds a cell for every head and sets what follows from its identity: the order of tokens and the rotation.
void add_cells(Experiment& experiment, DumpStudy& study) {
    const bool by_prompt = study.open.clusters_by_prompt();
    Json cells = Json::array();
    Json attends = Json::array();
    for (StudiedHead& at : study.heads) {
        ExperimentCell cell = head_cell(experiment.inputs[at.dump], study, at, by_prompt);
        at.cell = cell.hash();
        at.blocks = std::make_shared<const sim::DumpHead>(
            *study.open.dumps[at.dump], *at.tensor, at.head, study.plan.view,
            stream::Stream(experiment.seed, at.cell, stream::Role::token_order, 0));
        at.rotation = codec::rotation_of(cell.params);
        if (at.attention) experiment.batch = std::max(experiment.batch, cell.replicates);
        cells.push(cell.params);
        attends.push(at.attention ? Json(static_cast<std::int64_t>(*at.attention)) : Json());
        experiment.cells.push_back(std::move(cell));
    }
    experiment.science.set("cells", std::move(cells));
    experiment.science.set("attention", std::move(attends));
}

using HeadBlocks = PreparedBlocks<arma::mat>;

HeadBlocks head_blocks(const DumpStudy& study, ReplicateRange range,
                       std::function<arma::mat(std::uint64_t block)> read) {
    return {range, study.plan.precision, std::move(read), [](const arma::mat& block) { return block; }};
}

/// State that the worker of one head keeps between blocks.
struct HeadWork {
    std::shared_ptr<const DumpStudy> study;
    const StudiedHead* at;  ///< owned by the study
    ReplicateRange range;
    std::vector<estimators::HeadCodec> codecs;
    HeadBlocks blocks;
    std::optional<HeadBlocks> derotated;  ///< with RoPE undone, if a codec needs them
    ReplicateRange attending = {};
    std::vector<std::vector<Observation>> attention = {};  ///< for the blocks in `attending`
};

std::vector<Observation> work_on(HeadWork& work, std::uint64_t block) {
    const StudiedHead& at = *work.at;
    std::vector<Observation> found = measure(*work.study, at, work.codecs, *work.blocks.get(block).block,
                                             work.derotated ? work.derotated->get(block).block : nullptr, block);
    if (!at.attention) return found;
    auto& range_done = work.attending;
    if (work.attention.empty() || block < range_done.first || block >= range_done.end()) {
        const auto& range = work.range;
        range_done = block >= range.first && block < range.end() ? range : ReplicateRange{block, 1};
        work.attention = measure_attention(*work.study, at, range_done);
    }
    const auto& more = work.attention.at(block - range_done.first);
    found.insert(found.end(), more.begin(), more.end());
    return found;
}

Experiment::Worker head_worker(const std::shared_ptr<const DumpStudy>& study, const StudiedHead& at,
                               ReplicateRange range) {
    std::vector<estimators::HeadCodec> codecs;
    for (std::size_t m = 0; m < study->codecs.size(); ++m) codecs.push_back(head_codec(*study, at, m));
    HeadBlocks blocks =
        head_blocks(*study, range, [study, &at](std::uint64_t block) { return read_block(*study, at, block); });
    std::optional<HeadBlocks> derotated_blocks;
    if (const auto& rotary = rotary_of(*study, at))
        derotated_blocks = head_blocks(*study, range, [study, &at, &rotary](std::uint64_t block) {
            return derotated(*study, *rotary, read_block(*study, at, block), block);
        });
    auto work = std::make_shared<HeadWork>(
        HeadWork{study, &at, range, std::move(codecs), std::move(blocks), std::move(derotated_blocks)});
    return [work](std::uint64_t block) { return work_on(*work, block); };
}

/// What a user says about the file's contents decides the numbers; --format and --pattern only choose names of tensors,
/// which the cells hold.
void set_reading(Json& science, const sim::DumpOptions& dump) {
    const auto set = [&](const char* key, const std::string& text) {
        if (!text.empty()) science.set(key, text);
    };
    set("tokens", dump.tokens);
    if (dump.skip_empty) science.set("skip_empty", true);
    if (dump.batch) science.set("batch", *dump.batch);
    set("layout", dump.layout);
    set("block_table", dump.block_table);
    set("codes", dump.codes);
    set("scale", dump.scale);
    set("zero_point", dump.zero_point);
}

}  // namespace

bool measures_attention(const Experiment& experiment) {
    const auto& modes = *experiment.science.find("attention")->items();
    return std::any_of(modes.begin(), modes.end(), [](const Json& mode) { return !mode.is_null(); });
}

void make_dump_experiment(Experiment& experiment, const KvPlan& plan, const std::vector<NamedCodec>& codecs) {
    experiment.kind = "kv_dump";
    auto study = std::make_shared<DumpStudy>();
    study->plan = plan;
    experiment.methods.push_back({"sample", "sample", "sample", std::nullopt, Json::object()});
    add_codecs(experiment, *study, codecs);
    for (const auto& cache : plan.caches) add_method(experiment, cache.method.text, cache.bits);
    study->open = open_dumps(plan);
    add_inputs(experiment, *study);
    for (const auto& place : study->open.heads) study->heads.push_back({place});
    add_caches(experiment, *study);
    find_rotaries(*study);
    experiment.notes = study->open.notes;
    const auto of_queries = find_queries(*study);
    experiment.notes.insert(experiment.notes.end(), of_queries.begin(), of_queries.end());

    const auto& options = plan.quantizer;
    experiment.science.set("seed_of_rotations", options.seed.text());
    experiment.science.set("quantizer", estimators::quantizer_json(options, estimators::options_in_stores));
    Json files = Json::array();
    for (const auto& input : experiment.inputs) files.push(input.sha256);
    experiment.science.set("inputs", std::move(files));
    set_reading(experiment.science, plan.dump);
    add_cells(experiment, *study);

    experiment.worker = [study](std::size_t cell, ReplicateRange range) {
        return head_worker(study, study->heads[cell], range);
    };
    experiment.arrays = [study](std::size_t cell) -> std::vector<NamedArray> {
        // Arrays of one head per side are enough for the figures.
        for (std::size_t c = 0; c < cell; ++c)
            if (study->heads[c].tensor->side == study->heads[cell].tensor->side) return {};
        return picture(*study, study->heads[cell]);
    };
}

}  // namespace spiked::validation
