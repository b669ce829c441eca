#include "validation/trials/block_source.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "core/files/sha256.hpp"
#include "core/runtime/error.hpp"
#include "sim/spiked/variance_profile.hpp"
#include "theory/missing/missing_entries.hpp"

namespace spiked::validation {
namespace {

Json covariance_json(const sim::CovarianceSpec& spec) {
    Json json = Json::object({{"kind", spec.kind}});
    for (const auto& [name, value] : spec.parameters) json.set(name, value);
    // The file is identified by its content, so that moving it does not change the study.
    if (!spec.path.empty()) json.set("sha256", hex(sha256_of_file(spec.path)));
    if (!spec.basis.empty()) json.set("basis", spec.basis);
    return json;
}

Json spiked_json(const SpikedPoint& point) {
    Json signal = Json::object({{"strength", point.strengths}, {"unit", enum_name(point.unit)}});
    if (point.left_vectors.text() == point.right_vectors.text()) {
        signal.set("vectors", point.left_vectors.text());
    } else {
        signal.set("left_vectors", point.left_vectors.text());
        signal.set("right_vectors", point.right_vectors.text());
    }
    Json noise = Json::object({{"entries", point.entries.text()},
                               {"row_cov", covariance_json(point.row)},
                               {"col_cov", covariance_json(point.column)}});
    if (point.colouring == sim::Colouring::eigenbasis) noise.set("colouring", enum_name(point.colouring));
    if (const std::string file = "file:"; point.variances.starts_with(file))
        noise.set("variances", Json::object({{"sha256", hex(sha256_of_file(point.variances.substr(file.size())))}}));
    else if (!point.variances.empty())
        noise.set("variances", point.variances);
    if (point.student_rows > 0.0) noise.set("student_rows", point.student_rows);
    if (point.symmetric) noise.set("symmetric", true);
    Json json = Json::object({{"kind", "spiked"},
                              {"n", point.rows},
                              {"d", point.columns},
                              {"noise", std::move(noise)},
                              {"signal", std::move(signal)}});
    if (point.seen < 1.0) json.set("seen", point.seen);
    if (point.seen < 1.0 && point.seen_by != sim::Missing::uniform)
        json.set("seen_by", enum_name(point.seen_by)).set("seen_spread", point.seen_spread);
    return json;
}

bool is_diagonal(const sim::CovarianceSpec& spec) {
    return sim::covariance_kinds().named(spec.kind).white || sim::basis_of(spec).vectors == nullptr;
}

theory::SeparableLaw law_of(const SpikedPoint& point, double signal_square) {
    const theory::SeenSpectra seen = theory::seen_spectra(
        {sim::covariance_spectrum(point.row, point.rows), is_diagonal(point.row)},
        {sim::covariance_spectrum(point.column, point.columns), is_diagonal(point.column)}, point.seen, signal_square);
    return {seen.row, seen.column, AspectRatio::of(point.rows, point.columns)};
}

estimators::NoiseCovariance known(const sim::Covariance& covariance) {
    if (covariance.is_diagonal()) return estimators::NoiseCovariance::diagonal(covariance.eigenvalues());
    return estimators::NoiseCovariance::on_basis(covariance.eigenvalues(), covariance.basis());
}

/// The covariances of the noise of the entries seen; at most one side is not diagonal.
estimators::KnownNoise known_noise(const sim::SpikedModel& model) {
    if (model.seen == 1.0) return {known(model.row), known(model.column)};
    const auto seen = [&](const sim::Covariance& side) {
        if (side.is_diagonal()) return estimators::NoiseCovariance::diagonal(side.eigenvalues() / model.seen);
        arma::mat covariance = (side.basis().each_row() % side.eigenvalues().t()) * side.basis().t();
        covariance.diag() /= model.seen;
        return estimators::NoiseCovariance::full(arma::symmatu(covariance));
    };
    if (!model.row.is_diagonal()) return {seen(model.row), known(model.column)};
    return {known(model.row), seen(model.column)};
}

/// The variances of the entries of a block, with the fractions of its rows and columns as weights. Throws usage_error
/// where the law of the noise would be another.
theory::VarianceProfile profile_of(const SpikedPoint& point) {
    const auto white = [](const sim::CovarianceSpec& side) { return sim::covariance_kinds().named(side.kind).white; };
    if (!white(point.row) || !white(point.column))
        throw usage_error(
            "variances are given beside row_cov or col_cov (the law of noise with both is not known): leave one out");
    if (point.seen < 1.0)
        throw usage_error("seen = {} is given beside variances (this noise has another profile): leave one out",
                          point.seen);
    if (point.colouring == sim::Colouring::eigenbasis)
        throw usage_error("colouring = \"eigenbasis\" has no effect on variances of entries: leave it out");
    return sim::profile_of_size(sim::parse_profile(point.variances), point.rows, point.columns);
}

/// A message about a matrix in the words of a study, whose keys stand for the options of commands.
std::string in_keys(std::string text) {
    static const std::pair<std::string, std::string> words[] = {{"--header yes", "header = true"},
                                                                {"--header no", "header = false"},
                                                                {"--index yes", "index = true"},
                                                                {"--index no", "index = false"},
                                                                {"--delimiter comma", "delimiter = \"comma\""},
                                                                {"--decimal comma", "decimal = \"comma\""},
                                                                {"--header", "header"},
                                                                {"--index", "index"},
                                                                {"--delimiter", "delimiter"},
                                                                {"--decimal", "decimal"},
                                                                {"--layout", "layout"},
                                                                {"--center rows", "center = \"rows\""},
                                                                {"--center columns", "center = \"columns\""},
                                                                {"--missing uniform", "missing = \"uniform\""}};
    for (const auto& [option, key] : words)
        for (std::size_t at = text.find(option); at != std::string::npos; at = text.find(option, at + key.size()))
            text.replace(at, option.size(), key);
    return text;
}

sim::NotedMatrix read_in_study(const std::string& path, const sim::MatrixReading& reading) {
    try {
        return sim::read_noted_matrix(path, reading);
    } catch (const Error& error) {
        throw Error(error.kind(), in_keys(error.what()));
    }
}

/// Throws usage_error where a symmetric block has covariances or variances, or vectors of its own on each side.
void reject_sides_of_symmetric(const SpikedPoint& point) {
    const auto white = [](const sim::CovarianceSpec& side) { return sim::covariance_kinds().named(side.kind).white; };
    if (!white(point.row) || !white(point.column) || !point.variances.empty())
        throw usage_error(
            "symmetric = true needs white noise (row_cov, col_cov and variances are of other models): "
            "leave one out");
    if (point.left_vectors.text() != point.right_vectors.text())
        throw usage_error("symmetric = true needs the same vectors on both sides, not {} and {}: give vectors alone",
                          point.left_vectors.text(), point.right_vectors.text());
}

/// Throws usage_error where such blocks cannot be drawn, whatever their covariances.
void reject_impossible(const SpikedPoint& point, const std::vector<SignalStrength>& strengths) {
    if (point.symmetric) reject_sides_of_symmetric(point);
    if (point.student_rows > 0.0 && point.seen < 1.0)
        throw usage_error("seen = {} is given beside student_rows (nothing is known of this noise): leave one out",
                          point.seen);
    sim::require_possible({.row = sim::Covariance::identity(point.rows),
                           .column = sim::Covariance::identity(point.columns),
                           .strengths = strengths,
                           .entries = point.entries,
                           .left_vectors = point.left_vectors,
                           .right_vectors = point.right_vectors,
                           .colouring = point.colouring,
                           .symmetric = point.symmetric,
                           .seen = point.seen,
                           .student_rows = point.student_rows,
                           .seen_by = point.seen_by,
                           .seen_spread = point.seen_spread});
}

/// The part of the model that has no kernels; empty where all of it has.
std::string without_kernels(const SpikedPoint& point, const theory::SeparableLaw& law) {
    const auto vanishes = [](const theory::Spectrum& spectrum) {
        return std::any_of(spectrum.atoms().begin(), spectrum.atoms().end(),
                           [](const theory::Atom& atom) { return atom.value == 0.0; });
    };
    if (!point.entries.gaussian()) return fmt::format("{} entries", point.entries.text());
    if (vanishes(law.row()) || vanishes(law.column())) return "noise that vanishes in some direction";
    if (point.seen < 1.0) return "matrices with missing entries";
    if (!point.variances.empty()) return "noise with a variance profile";
    if (point.student_rows > 0.0) return "rows of random scale";
    if (point.symmetric) return "symmetric blocks";
    if (!point.left_vectors.orthonormal()) return "random scores in place of left vectors";
    return "";
}

}  // namespace

BlockSource spiked_source(const SpikedPoint& point) {
    BlockSource source;
    source.params = spiked_json(point);
    source.rows = point.rows;
    source.columns = point.columns;
    source.spikes = point.strengths.size();
    SpikedPoint whole = point;
    whole.seen = 1.0;
    const theory::SeparableLaw law = law_of(whole, 0.0);
    SignalStrength threshold = law.detection_threshold();
    std::shared_ptr<const theory::VarianceProfile> profile;
    if (!point.variances.empty()) {
        profile = std::make_shared<const theory::VarianceProfile>(profile_of(point));
        threshold = theory::ProfileLaw(*profile, law.aspect()).detection_threshold();
    }
    double signal_square = 0.0;
    for (const double strength : point.strengths) {
        source.strengths.push_back(
            sim::absolute_strength(point.symmetric ? std::abs(strength) : strength, point.unit, threshold, point.rows));
        signal_square += std::pow(source.strengths.back().value, 2) / static_cast<double>(point.rows);
    }
    if (point.seen < 1.0) (void)law_of(point, signal_square);  // rejects noise that would not be separable
    if (point.student_rows > 0.0) {
        source.notes.push_back(
            "the scales of rows are drawn anew in every block (student_rows): nothing is compared with the theory");
    } else if (point.seen < 1.0 && point.seen_by != sim::Missing::uniform) {
        source.notes.push_back(
            "rows or columns have probabilities of their own to be seen (seen_by): nothing is compared with the "
            "theory");
    } else if (!profile) {
        source.law = [point, signal_square] { return law_of(point, signal_square); };
    } else if (point.left_vectors.spread_evenly() && point.right_vectors.spread_evenly()) {
        source.profile = [profile, aspect = law.aspect()] { return theory::ProfileLaw(*profile, aspect); };
    } else {
        source.notes.push_back(fmt::format(
            "vectors {} and {} are not spread evenly over the variances: nothing is compared with the theory, which "
            "`spiked theory --variances` has for given places",
            point.left_vectors.text(), point.right_vectors.text()));
    }
    if (!point.symmetric)
        source.excess_kurtosis = theory::seen_kurtosis(point.entries.moments().kurtosis, point.seen) - 3.0;
    source.symmetric = point.symmetric;
    reject_impossible(point, source.strengths);
    const bool eigenbasis = point.colouring == sim::Colouring::eigenbasis;
    source.own_rows = !eigenbasis || is_diagonal(point.row);
    source.own_columns = !eigenbasis || is_diagonal(point.column);
    source.no_kernels = without_kernels(point, law);
    if (!std::is_sorted(source.strengths.rbegin(), source.strengths.rend()))
        throw usage_error(
            "strengths must not increase (component k is compared with the k-th largest singular value): write them "
            "largest first");
    std::vector<SignalStrength> signed_strengths = source.strengths;
    for (std::size_t i = 0; i < signed_strengths.size(); ++i)
        if (point.strengths[i] < 0.0) signed_strengths[i].value *= -1.0;
    source.prepare = [point, profile, strengths = std::move(signed_strengths)](const stream::StudySeed& seed,
                                                                               const std::string& cell) {
        const auto model = std::make_shared<const sim::SpikedModel>(sim::SpikedModel{
            sim::build_covariance(point.row, point.rows, sim::MatrixSide::row, seed, cell),
            sim::build_covariance(point.column, point.columns, sim::MatrixSide::column, seed, cell), strengths,
            point.entries, point.left_vectors, point.right_vectors, point.colouring, point.symmetric, point.seen,
            profile ? sim::entry_variances(*profile, point.rows, point.columns) : arma::mat(), point.student_rows,
            point.seen_by, point.seen_spread});
        const std::function<estimators::KnownNoise()> noise = [model]() -> estimators::KnownNoise {
            if (model->colouring == sim::Colouring::eigenbasis)
                return {known(model->row.in_eigenbasis()), known(model->column.in_eigenbasis())};
            return known_noise(*model);
        };
        return PreparedSource{
            [model, seed, cell](std::uint64_t replicate) { return sim::sample(*model, seed, cell, replicate); },
            model->seen < 1.0 && model->seen_by != sim::Missing::uniform ? nullptr : noise, model};
    };
    return source;
}

BlockSource counts_source(const sim::CountModel& model) {
    BlockSource source;
    source.no_kernels = "blocks of counts";
    source.params = Json::object({{"kind", "counts"},
                                  {"n", model.rows},
                                  {"d", model.columns},
                                  {"components", model.components},
                                  {"mean", model.mean},
                                  {"row_spread", model.row_spread},
                                  {"column_spread", model.column_spread},
                                  {"dispersion", model.dispersion}});
    source.rows = model.rows;
    source.columns = model.columns;
    source.spikes = model.components;
    source.signal_rank = model.components;
    require_possible(model);
    source.prepare = [model](const stream::StudySeed& seed, const std::string& cell) {
        const auto draw = [model, seed, cell](std::uint64_t replicate) {
            sim::CountSample drawn = sim::sample_counts(model, seed, cell, replicate);
            const sim::TrueSignal truth = sim::true_signal(drawn.means);
            const std::size_t known = std::min<std::size_t>(model.components, truth.left.n_cols);
            arma::mat noise = drawn.observed - drawn.means;
            return sim::SpikedSample{std::move(drawn.observed), std::move(drawn.means), std::move(noise),
                                     truth.left.head_cols(known), truth.right.head_cols(known)};
        };
        return PreparedSource{draw, nullptr};
    };
    return source;
}

BlockSource kv_like_source(const KvLikePoint& point) {
    BlockSource source;
    source.no_kernels = "blocks of kind kv_like";
    source.params = sim::describe(point.options);
    source.params.set("side", point.values ? "value" : "key");
    source.keys = !point.values;
    source.rows = point.options.tokens;
    source.columns = point.options.head_dim;
    const sim::KvSignalRank rank = sim::signal_rank(point.options);
    source.spikes = point.values ? rank.value : rank.key;
    source.prepare = [point, spikes = source.spikes](const stream::StudySeed& seed, const std::string& cell) {
        const auto head = std::make_shared<const sim::KvLikeHead>(point.options, seed, cell);
        const auto draw = [head, spikes, values = point.values](std::uint64_t replicate) {
            sim::KvLikeSample drawn = head->sample(replicate);
            sim::KvLikePart& part = values ? drawn.value : drawn.key;
            const sim::TrueSignal truth = sim::true_signal(part.signal);
            const std::size_t known = std::min<std::size_t>(spikes, truth.left.n_cols);
            return sim::SpikedSample{std::move(part.observed), std::move(part.signal), std::move(part.noise),
                                     truth.left.head_cols(known), truth.right.head_cols(known)};
        };
        return PreparedSource{draw, nullptr};
    };
    return source;
}

BlockSource matrix_source(const std::string& path, const sim::Preparation& preparation,
                          const sim::MatrixReading& reading) {
    BlockSource source;
    source.no_kernels = "a matrix of a file";
    sim::NotedMatrix read = read_in_study(path, reading);
    const auto note = [&](const std::vector<std::string>& notes) {
        for (const auto& text : notes) source.notes.push_back(fmt::format("{}: {}", path, text));
    };
    for (const auto& text : read.notes) source.notes.push_back(in_keys(text));  // they name the file
    sim::NoteContext context{read.of_text, std::nullopt};
    if (preparation.empty()) context.largest_value = sim::largest_value_of_means(read.matrix);
    for (const auto& text : sim::data_notes(read.matrix, context)) note({in_keys(text)});
    sim::NotedMatrix ready =
        located([&] { return path; }, [&] { return sim::prepared(std::move(read.matrix), preparation); });
    note(ready.notes);
    const auto block = std::make_shared<const arma::mat>(std::move(ready.matrix));
    const std::string bytes(reinterpret_cast<const char*>(block->memptr()), block->n_elem * sizeof(double));
    source.params = Json::object({{"kind", "matrix"},
                                  {"n", static_cast<std::size_t>(block->n_rows)},
                                  {"d", static_cast<std::size_t>(block->n_cols)},
                                  {"sha256", hex(sha256(bytes))}});
    if (!preparation.empty())
        source.params.set("centered", enum_name(preparation.centered()))
            .set("standardized", enum_name(preparation.standardize));
    if (preparation.missing != sim::Missing::none) source.params.set("missing", enum_name(preparation.missing));
    source.rows = block->n_rows;
    source.columns = block->n_cols;
    source.truth = false;
    source.prepare = [block](const stream::StudySeed&, const std::string&) {
        return PreparedSource{[block](std::uint64_t) { return sim::SpikedSample{*block, {}, {}, {}, {}}; }, nullptr};
    };
    return source;
}

}  // namespace spiked::validation
