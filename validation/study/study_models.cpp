#include "validation/study/study_models.hpp"

#include <cmath>
#include <set>

#include "sim/spiked/covariance_spec.hpp"
#include "validation/engine/dry_run.hpp"
#include "validation/model/model_dumps.hpp"
#include "validation/study/study_sweep.hpp"

namespace spiked::validation {
namespace {

sim::CovarianceSpec read_covariance(Section& noise, const std::string& key, Diagnostics& diagnostics) {
    sim::CovarianceSpec spec;
    const std::size_t before = diagnostics.count();
    const toml::table* table = noise.table(key, "{ kind = \"ar1\", rho = 0.5 }");
    if (table == nullptr) return spec;
    Section section(*table, "noise." + key, diagnostics);
    section.require("kind", "kind = \"ar1\"");
    const auto& kinds = sim::covariance_kinds();
    spec.kind = section.choice("kind", spec.kind, kinds.names(), kinds.aliases());
    std::vector<std::string> bases = sim::covariance_bases().names();
    bases.insert(bases.begin(), "");
    spec.basis = section.choice("basis", "", bases, sim::covariance_bases().aliases());
    if (const sim::CovarianceKind* kind = kinds.find(spec.kind)) {
        for (const auto& parameter : kind->parameters()) {
            section.require(parameter, (parameter + " = 0.5").c_str());
            spec.parameters[parameter] = section.number(parameter, 0.5, -1e9, 1e9);
        }
        if (kind->reads_file()) {
            section.require("path", "path = \"eigenvalues.csv\"");
            spec.path = section.text("path", "");
        }
    }
    section.no_other_keys();
    if (diagnostics.count() == before) guarded(*table, diagnostics, [&] { sim::check_covariance(spec); });
    return spec;
}

std::optional<BlockSource> read_spiked(const toml::table& model, Diagnostics& diagnostics) {
    const std::size_t before = diagnostics.count();
    SpikedPoint point;
    Section section(model, "[model]", diagnostics);
    section.text("kind", "");
    section.require("n", "n = 128");
    section.require("d", "d = 128");
    point.rows = section.count("n", 128, 2, 65536);
    point.columns = section.count("d", 128, 2, 65536);
    point.seen = section.number("seen", point.seen, 1e-9, 1.0);
    point.seen_by = section.choice("seen_by", point.seen_by);
    point.seen_spread = section.number("seen_spread", point.seen_spread, 0.0, 1.0);
    if (const toml::table* noise = section.table("noise", "{ entries = \"gaussian\" }")) {
        Section inside(*noise, "model.noise", diagnostics);
        const std::string entries = inside.text("entries", point.entries.text());
        guarded(*noise, diagnostics, [&] { point.entries = sim::EntryLaw::parse(entries); });
        point.row = read_covariance(inside, "row_cov", diagnostics);
        point.column = read_covariance(inside, "col_cov", diagnostics);
        point.colouring = inside.choice("colouring", point.colouring);
        point.variances = inside.text("variances", "");
        point.student_rows = inside.number("student_rows", point.student_rows, 0.0, 1e6);
        point.symmetric = inside.flag("symmetric", false);
        inside.no_other_keys();
    }
    if (const toml::table* signal = section.table("signal", "{ strength = 2.0 }")) {
        Section inside(*signal, "model.signal", diagnostics);
        point.strengths = inside.numbers("strength");
        point.unit = inside.choice("unit", point.unit);
        const std::string both = inside.text("vectors", point.left_vectors.text());
        guarded(*signal, diagnostics, [&] {
            const auto vectors = sim::parse_signal_vectors(both);
            const std::string left = inside.text("left_vectors", vectors.left.text());
            const std::string right = inside.text("right_vectors", vectors.right.text());
            point.left_vectors = sim::VectorLaw::parse(left, sim::MatrixSide::row);
            point.right_vectors = sim::VectorLaw::parse(right, sim::MatrixSide::column);
        });
        const std::size_t rank = inside.count("rank", point.strengths.size(), 0, 65536);
        for (const double strength : point.strengths)
            if (!(strength >= 0.0 || point.symmetric))
                diagnostics.add(*signal->get("strength"),
                                fmt::format("strength {} is not possible: give a number of at least 0", strength));
        if (rank != point.strengths.size())
            diagnostics.add(*signal->get("rank"),
                            fmt::format("rank is {} but {} strengths are given: give one strength a component", rank,
                                        point.strengths.size()));
        inside.no_other_keys();
    }
    section.no_other_keys();
    std::optional<BlockSource> source;
    if (diagnostics.count() > before) return source;
    reject_beyond_memory(point.rows, point.columns, 1);  // computing the law of such a model alone would take long
    guarded(model, diagnostics, [&] { source = spiked_source(point); });
    return source;
}

std::optional<BlockSource> read_counts(const toml::table& model, Diagnostics& diagnostics) {
    const std::size_t before = diagnostics.count();
    sim::CountModel counts;
    Section section(model, "[model]", diagnostics);
    section.text("kind", "");
    section.require("n", "n = 128");
    section.require("d", "d = 128");
    counts.rows = section.count("n", 128, 2, 65536);
    counts.columns = section.count("d", 128, 2, 65536);
    counts.components = section.count("components", counts.components, 1, 65536);
    counts.mean = section.number("mean", counts.mean, 1e-9, 1e6);
    counts.row_spread = section.number("row_spread", counts.row_spread, 0.0, 3.0);
    counts.column_spread = section.number("column_spread", counts.column_spread, 0.0, 3.0);
    counts.dispersion = section.number("dispersion", counts.dispersion, 0.0, 100.0);
    section.no_other_keys();
    std::optional<BlockSource> source;
    if (diagnostics.count() > before) return source;
    reject_beyond_memory(counts.rows, counts.columns, 1);
    guarded(model, diagnostics, [&] { source = counts_source(counts); });
    return source;
}

std::optional<BlockSource> read_kv_like(const toml::table& model, Diagnostics& diagnostics) {
    const std::size_t before = diagnostics.count();
    KvLikePoint point;
    sim::KvLikeOptions& options = point.options;
    Section section(model, "[model]", diagnostics);
    section.text("kind", "");
    options.tokens = section.count("n", options.tokens, 2, 65536);
    options.head_dim = section.count("d", options.head_dim, 2, 65536);
    options.hidden = section.count("hidden", options.hidden, 1, 65536);
    point.values = section.second_of("side", "key", "value");
    options.fresh_projections = section.flag("fresh_projections", false);
    constexpr double most = 1e9;
    if (const toml::table* table = section.table("context", "{ rank = 3 }")) {
        Section inside(*table, "model.context", diagnostics);
        auto& context = options.context;
        context.rank = inside.count("rank", context.rank, 0, 65536);
        context.decay = inside.number("decay", context.decay, 0.0, 1.0);
        guarded(*table, diagnostics,
                [&] { context.course = sim::parse_context_course(inside.text("course", "smooth")); });
        context.period = inside.number("period", context.period, 0.0, most);
        context.key = inside.number("key", context.key, 0.0, most);
        context.value = inside.number("value", context.value, 0.0, most);
        context.query = inside.number("query", context.query, 0.0, most);
        inside.no_other_keys();
    }
    if (const toml::table* table = section.table("noise", "{ entries = \"gaussian\" }")) {
        Section inside(*table, "model.noise", diagnostics);
        auto& noise = options.noise;
        noise.scale = inside.number("scale", noise.scale, 0.0, most);
        guarded(*table, diagnostics, [&] { noise.entries = sim::EntryLaw::parse(inside.text("entries", "gaussian")); });
        noise.token_correlation = inside.number("token_correlation", noise.token_correlation, -1.0, 1.0);
        noise.hidden_decay = inside.number("hidden_decay", noise.hidden_decay, 0.0, 100.0);
        inside.no_other_keys();
    }
    if (const toml::table* table = section.table("outliers")) {
        Section inside(*table, "model.outliers", diagnostics);
        auto& outliers = options.outliers;
        outliers.channels = inside.count("channels", outliers.channels, 0, 65536);
        outliers.mean = inside.number("mean", outliers.mean, 0.0, most);
        outliers.scale = inside.number("scale", outliers.scale, 0.0, most);
        guarded(*table, diagnostics, [&] { outliers.place = sim::parse_outlier_place(inside.text("place", "slow")); });
        inside.no_other_keys();
    }
    if (const toml::table* table = section.table_or_false("sink")) {
        Section inside(*table, "model.sink", diagnostics);
        auto& sink = *options.sink;
        sink.key = inside.number("key", sink.key, 0.0, most);
        sink.value = inside.number("value", sink.value, 0.0, most);
        sink.token_part = inside.number("token_part", sink.token_part, 0.0, most);
        inside.no_other_keys();
    } else if (model.get("sink") != nullptr) {
        options.sink.reset();
    }
    if (const toml::table* table = section.table_or_false("rotary")) {
        Section inside(*table, "model.rotary", diagnostics);
        auto& rotary = *options.rotary;
        rotary.rope.base = inside.number("base", rotary.rope.base, 1.0, 1e12);
        guarded(*table, diagnostics,
                [&] { rotary.rope.style = sim::parse_rope_style(inside.text("style", "rotate-half")); });
        rotary.position_start = inside.count("position_start", 0, 0, std::size_t{1} << 40);
        inside.no_other_keys();
    } else if (model.get("rotary") != nullptr) {
        options.rotary.reset();
    }
    if (const toml::table* table = section.table("queries")) {
        Section inside(*table, "model.queries", diagnostics);
        auto& queries = options.queries;
        queries.heads = inside.count("heads", queries.heads, 0, 1024);
        queries.mean = inside.number("mean", queries.mean, 0.0, most);
        queries.scale = inside.number("scale", queries.scale, 0.0, most);
        inside.no_other_keys();
    }
    section.no_other_keys();
    std::optional<BlockSource> source;
    if (diagnostics.count() == before) guarded(model, diagnostics, [&] { source = kv_like_source(point); });
    return source;
}

/// Files of a `source` list, patterns expanded.
std::vector<std::string> read_source(Section& section, Diagnostics& diagnostics) {
    std::vector<std::string> files;
    section.require("source", "source = [\"dumps/*.safetensors\"]");
    const toml::node* source = section.node("source");
    if (source == nullptr) return files;
    const toml::array* list = source->as_array();
    if (list == nullptr)
        diagnostics.add(*source, "\"source\" must be a list of files or patterns: write source = [\"FILE\"]");
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
        const auto pattern = list->get(i)->value<std::string>();
        const auto found = pattern ? expand_pattern(*pattern) : std::vector<std::string>{};
        if (found.empty())
            diagnostics.add(*list->get(i), fmt::format("no file is called {}: correct the path, or name yours with "
                                                       "--set 'model.source=[\"FILE\"]'",
                                                       node_text(*list->get(i))));
        files.insert(files.end(), found.begin(), found.end());
    }
    return files;
}

/// How the files of matrices are read: the keys are the options of spiked spectrum.
sim::MatrixReading read_dialect(Section& section, const toml::table& model, Diagnostics& diagnostics) {
    sim::MatrixReading reading{.layout = section.text("layout", ""), .table = {}};
    const auto character = [&](const char* key, const sim::CharacterNames& names) -> std::optional<char> {
        const std::string text = section.text(key, "");
        if (text.empty()) return std::nullopt;
        std::optional<char> found;
        guarded(*model.get(key), diagnostics, [&] { found = sim::named_character(key, text, names); });
        return found;
    };
    const auto flag = [&](const char* key) -> std::optional<bool> {
        if (section.node(key) == nullptr) return std::nullopt;
        return section.flag(key, false);
    };
    reading.table = {.delimiter = character("delimiter", sim::delimiter_names()),
                     .decimal = character("decimal", sim::decimal_names()),
                     .header = flag("header"),
                     .index = flag("index")};
    if (const toml::node* covariance = section.node("covariance"))
        diagnostics.add(*covariance,
                        "a study needs the data themselves (spiked spectrum --covariance reads their covariances): "
                        "name those files as source and leave covariance out");
    return reading;
}

std::vector<StudyPoint> read_matrices(const toml::table& model, const toml::table* sweep, Diagnostics& diagnostics) {
    Section section(model, "[model]", diagnostics);
    section.text("kind", "");
    const auto files = read_source(section, diagnostics);
    sim::Preparation preparation;
    preparation.center = section.choice("center", preparation.center);
    preparation.standardize = find_enum<sim::Lines>(section.choice("standardize", "none", {"none", "rows", "columns"}))
                                  .value_or(sim::Lines::none);
    preparation.missing = section.choice("missing", preparation.missing);
    guarded(model, diagnostics, [&] { preparation.check(); });
    sim::MatrixReading reading = read_dialect(section, model, diagnostics);
    reading.keep_missing = preparation.missing != sim::Missing::none;
    reading.missing_option = "--missing uniform";  // said as a key
    section.no_other_keys();
    if (sweep != nullptr)
        diagnostics.add(*sweep, "a study of matrices has no sweep (its cells are the files): leave it out");
    std::vector<StudyPoint> points;
    for (const auto& file : files)
        guarded(*model.get("source"), diagnostics, [&] {
            StudyPoint point{matrix_source(file, preparation, reading), {{"file", std::nullopt, file}}, ""};
            complete_factors(point);
            points.push_back(std::move(point));
        });
    return points;
}

}  // namespace

std::vector<StudyPoint> read_points(ModelKind kind, const toml::table& model, const toml::table* sweep,
                                    Diagnostics& diagnostics) {
    if (kind == ModelKind::matrix) return read_matrices(model, sweep, diagnostics);
    const auto read = kind == ModelKind::kv_like ? read_kv_like : kind == ModelKind::counts ? read_counts : read_spiked;
    return points_of_sweep(read, model, sweep, diagnostics);
}

KvPlan read_dump_model(const toml::table& model, Diagnostics& diagnostics) {
    KvPlan plan;
    const std::size_t before = diagnostics.count();
    Section section(model, "[model]", diagnostics);
    section.text("kind", "");
    if (const toml::node* folder = section.node("model")) {
        const std::string name = section.text("model", "");
        const std::string tokens = section.text("tokens", "");
        std::vector<std::size_t> documents;
        for (const double row : section.numbers("documents")) {
            if (row >= 0.0 && row < 1e9 && row == std::floor(row))
                documents.push_back(static_cast<std::size_t>(row));
            else
                diagnostics.add(*section.node("documents"),
                                fmt::format("document {} is not a row of the tokens: give whole numbers from 0", row));
        }
        std::set<std::size_t> known;
        for (const std::size_t row : documents)
            if (!known.insert(row).second) {
                diagnostics.add(*section.node("documents"), fmt::format("document {} is listed twice", row));
                break;
            }
        if (section.node("source") != nullptr)
            diagnostics.add(*folder,
                            "\"model\" and \"source\" are both given (the dumps come from one of them): leave one out");
        section.require("tokens", "tokens = \"pages.npy\"");
        if (diagnostics.count() == before)
            guarded(*folder, diagnostics, [&] {
                const auto dumps = std::make_shared<const ModelDumps>(name, tokens, documents);
                plan.dumps = dumps->paths();
                plan.names = dumps->names();
                plan.kept = dumps;
            });
    } else {
        plan.dumps = read_source(section, diagnostics);
    }
    if (const toml::table* block = section.table("block")) {
        Section inside(*block, "model.block", diagnostics);
        plan.block_tokens = inside.count("tokens", 128, 1, 1 << 20);
        inside.choice("tail", "skip", {"skip"});
        inside.no_other_keys();
    }
    plan.view.shuffle = section.second_of("order", "as-is", "shuffled");
    plan.view.undo_rotary = section.second_of("rotary", "as-is", "undone");
    if (const toml::node* mode = section.node("attention"))
        guarded(*mode, diagnostics, [&] { plan.attention = attention_mode(mode->value_or<std::string>("")); });
    plan.dump.prompt_id_key = section.text("cluster", plan.dump.prompt_id_key);
    if (const toml::table* tensor = section.table("tensor")) {
        Section inside(*tensor, "model.tensor", diagnostics);
        plan.dump.tensor_pattern = inside.text("name", inside.text("pattern", ""));
        if (inside.node("name") != nullptr && inside.node("pattern") != nullptr)
            diagnostics.add(*inside.node("name"), "\"name\" and \"pattern\" are the same: leave one out");
        plan.dump.layout = inside.text("layout", "");
        plan.dump.format = inside.text("format", "");
        plan.dump.tokens = inside.text("tokens", "");
        plan.dump.skip_empty = inside.flag("skip_empty", false);
        plan.dump.head_dim = inside.node("head_dim") != nullptr ? inside.count("head_dim", 1, 1, 1 << 20) : 0;
        if (inside.node("batch") != nullptr) plan.dump.batch = inside.count("batch", 0, 0, 1 << 20);
        plan.dump.block_table = inside.text("block_table", "");
        plan.dump.scale = inside.text("scale", "");
        plan.dump.zero_point = inside.text("zero_point", "");
        plan.dump.codes = inside.text("codes", "");
        inside.no_other_keys();
        guarded(*section.node("tensor"), diagnostics, [&] { sim::check_options(plan.dump); });
    }
    section.no_other_keys();
    return plan;
}

}  // namespace spiked::validation
