#include "validation/block_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>

#include "theory/base/error.hpp"
#include "validation/claims.hpp"
#include "validation/codec_measurement.hpp"
#include "validation/prepared_blocks.hpp"

namespace spiked::validation {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The estimators of a study for the blocks of one cell, told the law where they are.
std::vector<estimators::SpectralMethod> methods_for(const std::vector<NamedEstimator>& named,
                                                    const PreparedSource& source) {
    std::vector<estimators::SpectralMethod> methods;
    std::optional<estimators::KnownNoise> noise;
    for (const auto& estimator : named) {
        if (estimator.told_law && !noise) noise = source.noise();
        methods.push_back(estimator.told_law
                              ? estimators::spectral_method(estimator.method.name, estimator.loss, *noise)
                              : estimator.method);
    }
    return methods;
}

/// The blocks of one cell and the estimators for them, made ready by the first thread that asks.
class LazyCell {
public:
    LazyCell(decltype(BlockSource::prepare) prepare, const std::vector<NamedEstimator>& estimators,
             stream::StudySeed seed, std::string cell)
        : prepare_(std::move(prepare)), estimators_(estimators), seed_(seed), cell_(std::move(cell)) {}

    [[nodiscard]] sim::SpikedSample draw(std::uint64_t replicate) {
        make_ready();
        return source_.draw(replicate);
    }
    [[nodiscard]] const std::vector<estimators::SpectralMethod>& methods() {
        make_ready();
        return methods_;
    }

private:
    void make_ready() {
        std::call_once(once_, [&] {
            source_ = prepare_(seed_, cell_);
            methods_ = methods_for(estimators_, source_);
        });
    }

    decltype(BlockSource::prepare) prepare_;
    const std::vector<NamedEstimator>& estimators_;  ///< of the study, which outlives its cells
    stream::StudySeed seed_;
    std::string cell_;
    std::once_flag once_;
    PreparedSource source_;
    std::vector<estimators::SpectralMethod> methods_;
};

/// The cells asked for last: a study of many holds the bases of a few.
class RecentCells {
public:
    template <class Make>
    [[nodiscard]] std::shared_ptr<LazyCell> get(std::size_t cell, const Make& make) {
        const std::lock_guard lock(guard_);
        auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& one) { return one.first == cell; });
        if (found == kept_.end()) {
            if (kept_.size() == most) kept_.pop_back();
            found = kept_.emplace(kept_.begin(), cell, make());
        }
        std::rotate(kept_.begin(), found, found + 1);
        return kept_.front().second;
    }

private:
    static constexpr std::size_t most = 16;
    std::mutex guard_;
    std::vector<std::pair<std::size_t, std::shared_ptr<LazyCell>>> kept_;
};

struct CellSetup {
    decltype(BlockSource::prepare) prepare;
    std::string hash;
    std::size_t spikes;
    bool truth;
    estimators::GroupAxis axis;
};

struct StudySetup {
    stream::StudySeed seed;
    estimators::Precision precision;
    std::vector<NamedEstimator> named;
    std::vector<std::pair<estimators::Method, double>> codecs;
    std::vector<CellSetup> cells;
    RecentCells recent;

    [[nodiscard]] std::shared_ptr<LazyCell> cell(std::size_t at) {
        return recent.get(at,
                          [&] { return std::make_shared<LazyCell>(cells[at].prepare, named, seed, cells[at].hash); });
    }
};

/// By how much the best values for the observed vectors of the true components reduce the squared error.
double oracle_gain(const sim::SpikedSample& sample, const estimators::SingularVectors& vectors, std::size_t spikes) {
    double sum = 0.0;
    for (std::size_t i = 0; i < spikes; ++i) {
        const double best = arma::as_scalar(vectors.left.col(i).t() * sample.signal * vectors.right.col(i));
        sum += best * best;
    }
    return sum;
}

Json params_of(const NamedEstimator& named) {
    Json params = Json::object({{"loss", theory::name_of(named.loss)}});
    if (named.told_law) params.set("law", "known");
    return params;
}

std::vector<Observation> measure(const StudySetup& study, const CellSetup& cell,
                                 const std::vector<estimators::SpectralMethod>& methods,
                                 const sim::SpikedSample& sample, estimators::AnalysedBlock& block,
                                 std::uint64_t replicate) {
    const std::size_t spikes = std::min<std::size_t>(cell.spikes, sample.left.n_cols);
    const auto& s = block.singular_values();
    // A block may have fewer: an all-zero one has none.
    const std::size_t seen = std::min(spikes, s.size());
    const auto vectors = block.vectors(seen);
    std::vector<Observation> found;
    const auto add = [&](std::size_t method, std::string_view metric, std::size_t k, double value) {
        found.push_back({method, metric_index(metric), static_cast<int>(k), value});
    };
    for (std::size_t i = 0; i < spikes; ++i) {
        const double left = i < seen ? arma::dot(vectors.left.col(i), sample.left.col(i)) : nan;
        const double right = i < seen ? arma::dot(vectors.right.col(i), sample.right.col(i)) : nan;
        add(0, "outlier", i + 1, i < seen ? s[i] * s[i] : nan);
        add(0, "overlap.left", i + 1, left * left);
        add(0, "overlap.right", i + 1, right * right);
    }
    std::size_t method = 1;
    const double energy = cell.truth ? arma::accu(arma::square(sample.signal)) : 0.0;
    const double oracle = energy - oracle_gain(sample, vectors, seen);
    for (const auto& estimator : methods) {
        const auto [shrinkage, signal] =
            cell.truth ? estimator.apply(block) : estimators::SpectralMethod::Applied{estimator.estimate(block), {}};
        add(method, "rank", 0, static_cast<double>(shrinkage.rank));
        if (cell.truth) {
            add(method, "rank_over", 0, shrinkage.rank > cell.spikes ? 1.0 : 0.0);
            add(method, "rank_right", 0, shrinkage.rank == cell.spikes ? 1.0 : 0.0);
        }
        add(method, "bulk_edge", 0, shrinkage.bulk_edge ? shrinkage.bulk_edge->value : nan);
        const std::size_t shown = cell.truth ? spikes : shrinkage.rank;
        for (std::size_t i = 0; i < shown; ++i) {
            add(method, "strength", i + 1, i < shrinkage.rank ? shrinkage.strengths[i] : nan);
            add(method, "shrunk", i + 1, i < shrinkage.rank ? shrinkage.shrunk[i] : nan);
        }
        if (cell.truth) {
            const double error = arma::accu(arma::square(signal - sample.signal));
            add(method, "relative_error", 0, energy > 0.0 ? error / energy : nan);
            // Where the true vectors are found to rounding nothing is left to compare with.
            add(method, "loss_ratio", 0, oracle > 1e-12 * energy ? error / oracle : nan);
        }
        ++method;
    }
    BlockQueries queries;
    if (!study.codecs.empty())
        queries = queries_for(block, stream::Stream(study.seed, cell.hash, stream::Role::query, replicate));
    for (const auto& [codec, bits] : study.codecs) {
        // A rotation of its own each replicate, so replicates are independent.
        const estimators::Compressor compressor(codec, sample.observed.n_cols, bits,
                                                {.axis = cell.axis, .seed = study.seed, .rotation_index = replicate});
        observe_codec(compressor, block, queries, method, found);
        ++method;
    }
    return found;
}

/// Codecs act on tokens, and some on channels: in the eigenbasis of a covariance there are none.
void require_own_lines(const BlockSource& source, const NamedCodec& codec) {
    const bool by_channel = codec.method.quantizer.starts_with("kivi");
    if (source.own_rows && (source.own_columns || !by_channel)) return;
    throw usage_error(
        "colouring = \"eigenbasis\" mixes the {} of a block, on which codec \"{}\" acts: use colouring = \"dense\"",
        source.own_rows ? "columns" : "rows", codec.label);
}

/// Whether components of equal strength share what the theory says of one: then it says nothing about each.
bool tied(const std::vector<SignalStrength>& strengths, std::size_t i) {
    const auto same = [&](std::size_t j) { return j < strengths.size() && strengths[j].value == strengths[i].value; };
    return same(i + 1) || (i > 0 && same(i - 1));
}

void add_limits(ExperimentCell& cell, const theory::SeparableLaw& law, const std::vector<SignalStrength>& strengths) {
    cell.limits.push_back({"bulk_edge", 0, law.bulk_edge().value});
    for (std::size_t i = 0; i < strengths.size(); ++i) {
        const theory::SpikePrediction spike = law.spike(strengths[i]);
        if (spike.detectable && tied(strengths, i)) continue;
        const int k = static_cast<int>(i) + 1;
        cell.limits.push_back({"outlier", k, spike.outlier.value});
        cell.limits.push_back({"overlap.left", k, spike.overlap_left.value});
        cell.limits.push_back({"overlap.right", k, spike.overlap_right.value});
        cell.limits.push_back({"strength", k, spike.strength.value});
        cell.limits.push_back({"shrunk", k, spike.shrunk(theory::Loss::frobenius).value});
    }
}

void add_predictions(ExperimentCell& cell, const Experiment& experiment, const theory::SeparableLaw& law,
                     const std::vector<SignalStrength>& strengths) {
    for (const auto& claim : claims()) {
        if (!claim.in_study) continue;
        const StudyForm& form = *claim.in_study;
        for (std::size_t m = 0; m < experiment.methods.size(); ++m) {
            const auto& method = experiment.methods[m];
            if (method.kind != form.kind || (!form.codec.empty() && method.base != form.codec)) continue;
            const std::size_t count = form.per_spike ? strengths.size() : 1;
            for (std::size_t i = 0; i < count; ++i) {
                const ClaimPoint at{&law, cell.rows, cell.columns, form.per_spike ? strengths[i] : SignalStrength{},
                                    static_cast<unsigned>(method.bits.value_or(0.0))};
                if (!form.applies(at) || (form.per_spike && law.spike(strengths[i]).detectable && tied(strengths, i)))
                    continue;
                cell.predictions.push_back({claim.id, form.metric, m, form.per_spike ? static_cast<int>(i) + 1 : 0,
                                            form.predicted(at), form.with_fault(at)});
            }
        }
    }
}

}  // namespace

void make_block_experiment(Experiment& experiment, const std::string& kind, std::vector<StudyPoint> points,
                           const std::vector<NamedEstimator>& estimators, const std::vector<NamedCodec>& codecs,
                           Replicates replicates, estimators::Precision precision) {
    experiment.kind = kind;
    experiment.methods.push_back({"sample", "sample", "sample", std::nullopt, Json::object()});
    auto study = std::make_shared<StudySetup>();
    study->seed = experiment.seed;
    study->precision = precision;
    study->named = estimators;
    for (const auto& named : estimators)
        experiment.methods.push_back({named.label, "estimator", named.method.name, std::nullopt, params_of(named)});
    for (const auto& codec : codecs)
        for (const double bits : codec.bits) {
            estimators::refuse_unrope(codec.method);
            experiment.methods.push_back(
                {fmt::format("{} B={}", codec.label, bits), "codec", codec.method.text, bits, Json::object()});
            study->codecs.emplace_back(codec.method, bits);
        }

    Json cells = Json::array();
    for (auto& [source, factors, label] : points) {
        for (const auto& codec : codecs) require_own_lines(source, codec);
        for (const auto& named : estimators)
            if (named.told_law && !source.law)
                throw usage_error(
                    "estimator \"{}\" is to be told the law (law = \"known\"), which this model has none of: "
                    "leave the key out",
                    named.label);
        ExperimentCell cell;
        cell.label = std::move(label);
        cell.rows = source.rows;
        cell.columns = source.columns;
        cell.params = source.params;
        cell.replicates = replicates.most;
        cell.least_replicates = replicates.least;
        cell.factors = std::move(factors);
        if (source.law) {
            add_limits(cell, *source.law, source.strengths);
            add_predictions(cell, experiment, *source.law, source.strengths);
        }
        cells.push(cell.params);
        study->cells.push_back({source.prepare, cell.hash(), source.spikes, source.truth,
                                source.keys ? estimators::GroupAxis::key : estimators::GroupAxis::value});
        experiment.cells.push_back(std::move(cell));
    }
    experiment.science.set("cells", std::move(cells));
    experiment.worker = [study](std::size_t cell, ReplicateRange range) -> Experiment::Worker {
        const auto lazy = study->cell(cell);
        const CellSetup& at = study->cells[cell];
        auto samples = std::make_shared<PreparedBlocks<sim::SpikedSample>>(
            range, study->precision, [lazy](std::uint64_t replicate) { return lazy->draw(replicate); },
            [](const sim::SpikedSample& sample) { return sample.observed; });
        return [study, &at, lazy, samples](std::uint64_t replicate) {
            const auto [sample, block] = samples->get(replicate);
            return measure(*study, at, lazy->methods(), *sample, *block, replicate);
        };
    };
    experiment.block = [study](std::size_t cell, std::uint64_t replicate) {
        return study->cell(cell)->draw(replicate).observed;
    };
}

}  // namespace spiked::validation
