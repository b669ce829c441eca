#include "validation/trials/block_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "core/runtime/error.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "estimators/spectral/gavish_donoho.hpp"
#include "validation/metrics/codec_measurement.hpp"
#include "validation/metrics/estimate_measurement.hpp"
#include "validation/trials/cell_predictions.hpp"
#include "validation/trials/device_trials.hpp"
#include "validation/trials/lazy_cell.hpp"
#include "validation/trials/prepared_blocks.hpp"

namespace spiked::validation {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct CellSetup {
    decltype(BlockSource::prepare) prepare;
    std::string hash;
    std::size_t spikes;
    bool truth;
    estimators::GroupAxis axis;
    std::string no_kernels;
    std::vector<double> strengths;
    std::vector<theory::SpikeCluster> clusters;  ///< only those of several detectable spikes
    std::vector<theory::GapOutlier> in_gaps;     ///< of spikes that are seen in a gap only
    std::optional<std::size_t> detectable;       ///< number of spikes above the threshold; empty without a law
    bool on_device = false;
    cuda::TrialPlan plan = {};                     ///< used if on_device: estimators and codecs
    std::vector<estimators::Ledger> ledgers = {};  ///< of the rows of each codec, the same for every block
    std::vector<PaperBits> paper_bits = {};        ///< of each codec
};

struct StudySetup {
    stream::StudySeed seed;
    estimators::Precision precision;
    std::vector<NamedEstimator> named;
    std::vector<std::pair<estimators::MethodSpec, double>> codecs;
    std::vector<CellSetup> cells;
    std::unique_ptr<TrialSlots> slots;  ///< of the device; null on the CPU
    RecentCells recent;

    [[nodiscard]] std::shared_ptr<LazyCell> cell(std::size_t at) {
        return recent.get(at,
                          [&] { return std::make_shared<LazyCell>(cells[at].prepare, named, seed, cells[at].hash); });
    }
};

/// The reduction of the squared error by the optimal singular values for the observed vectors of the true components.
double oracle_gain(const sim::SpikedSample& sample, const estimators::SingularVectors& vectors, std::size_t spikes) {
    double sum = 0.0;
    for (std::size_t i = 0; i < spikes; ++i) {
        const double best = arma::as_scalar(vectors.left.col(i).t() * sample.signal * vectors.right.col(i));
        sum += best * best;
    }
    return sum;
}

/// The eigenvalue of a spike that is seen in a gap only, and the overlaps of its vectors.
GapResult gap_result(const theory::GapOutlier& at, const sim::SpikedSample& sample, estimators::AnalysedBlock& block) {
    GapResult result{.spike = at.spike};
    const auto& values = block.singular_values();
    if (at.index >= values.size() || at.spike >= sample.left.n_cols) return result;
    const auto vectors = block.vectors(at.index + 1);
    result.outlier = values[at.index] * values[at.index];
    result.overlap_left = std::pow(arma::dot(vectors.left.col(at.index), sample.left.col(at.spike)), 2);
    result.overlap_right = std::pow(arma::dot(vectors.right.col(at.index), sample.right.col(at.spike)), 2);
    return result;
}

/// Records the method name if the label differs from it.
Json label_params(const std::string& label, const std::string& name) {
    Json params = Json::object();
    if (label != name) params.set("method", name);
    return params;
}

Json params_of(const NamedEstimator& named) {
    Json params = label_params(named.label, named.method.name);
    params.set("loss", theory::name_of(named.method.loss));
    if (named.known_law) params.set("law", "known");
    return params;
}

/// Each replicate has its own rotation, so that replicates are independent.
estimators::QuantizerOptions coding(const StudySetup& study, const CellSetup& cell, std::uint64_t replicate) {
    return {.axis = cell.axis, .seed = study.seed, .rotation_index = replicate};
}

/// Converts the results of kernels into the observations that `measure` returns.
std::vector<Observation> observations_of(const CellSetup& cell, const cuda::TrialResult& trial) {
    const std::size_t spikes = cell.spikes;
    SampleResult result{.detectable = cell.detectable, .spikes = spikes, .truth = cell.truth};
    double gain = 0.0;
    for (std::size_t i = 0; i < spikes; ++i) {
        result.values.push_back(trial.values[i]);
        result.left.push_back(trial.left_products[i * spikes + i]);
        result.right.push_back(trial.right_products[i * spikes + i]);
        double best = 0.0;
        for (std::size_t k = 0; k < spikes; ++k)
            best += trial.left_products[i * spikes + k] * cell.strengths[k] * trial.right_products[i * spikes + k];
        gain += best * best;
    }
    for (const auto& cluster : cell.clusters) {
        const arma::mat left(trial.left_products.data(), spikes, spikes);
        const arma::mat right(trial.right_products.data(), spikes, spikes);
        result.subspaces.push_back(subspace_result(cluster, result.values, left, right));
    }
    result.energy = trial.energy;
    result.oracle = trial.energy - gain;
    std::vector<Observation> found;
    observe_sample(result, found);
    std::size_t method = 0;
    for (const auto& from : trial.estimates)
        observe_estimate({.sample = result,
                          .rank = from.rank,
                          .bulk_edge = from.bulk_edge.value_or(nan),
                          .strengths = from.strengths,
                          .shrunk = from.shrunk,
                          .error = from.error},
                         ++method, found);
    const auto errors = [](const cuda::TrialResult::Products& from) {
        return InnerProductErrors{.bias = from.renormalised.bias,
                                  .deviation = from.renormalised.deviation,
                                  .bias_plain = from.plain.bias,
                                  .deviation_plain = from.plain.deviation};
    };
    for (std::size_t c = 0; c < trial.codes.size(); ++c) {
        const auto& code = trial.codes[c];
        const double entries = static_cast<double>(cell.plan.rows) * cell.plan.columns;
        estimators::Ledger ledger = cell.ledgers[c];
        ledger += code.factors;
        observe_bits(code.rank, cell.paper_bits[c].of(code.rank), ledger, entries, ++method, found);
        observe_metrics({.relative_l2 = std::sqrt(code.error / code.energy),
                         .linear_gain = code.across / code.energy,
                         .other = errors(code.other),
                         .random = errors(code.random),
                         .aligned = errors(code.aligned),
                         .own = errors(code.own)},
                        method, found);
    }
    return found;
}

std::vector<Observation> measure(const StudySetup& study, const CellSetup& cell,
                                 const std::vector<estimators::SpectralMethod>& methods,
                                 const sim::SpikedSample& sample, estimators::AnalysedBlock& block,
                                 std::uint64_t replicate) {
    const std::size_t spikes = std::min<std::size_t>(cell.spikes, sample.left.n_cols);
    const auto& s = block.singular_values();
    // A block may have fewer singular values than spikes; an all-zero block has none.
    const std::size_t seen = std::min(spikes, s.size());
    const auto vectors = block.vectors(seen);
    SampleResult result{.detectable = cell.detectable, .spikes = spikes, .truth = cell.truth};
    for (std::size_t i = 0; i < seen; ++i) {
        result.values.push_back(s[i]);
        result.left.push_back(arma::dot(vectors.left.col(i), sample.left.col(i)));
        result.right.push_back(arma::dot(vectors.right.col(i), sample.right.col(i)));
    }
    for (const auto& cluster : cell.clusters)
        result.subspaces.push_back(subspace_result(cluster, result.values,
                                                   sample.left.head_cols(seen).t() * vectors.left,
                                                   sample.right.head_cols(seen).t() * vectors.right));
    for (const auto& outlier : cell.in_gaps) result.in_gaps.push_back(gap_result(outlier, sample, block));
    result.energy = cell.truth ? arma::accu(arma::square(sample.signal)) : 0.0;
    result.oracle = result.energy - oracle_gain(sample, vectors, seen);
    std::vector<Observation> found;
    observe_sample(result, found);
    std::size_t method = 1;
    for (const auto& estimator : methods) {
        const auto [shrinkage, signal] =
            cell.truth ? estimator.apply(block) : estimators::SpectralMethod::Applied{estimator.estimate(block), {}};
        const double error = cell.truth ? arma::accu(arma::square(signal - sample.signal)) : 0.0;
        observe_estimate({.sample = result,
                          .rank = shrinkage.rank,
                          .bulk_edge = shrinkage.bulk_edge ? shrinkage.bulk_edge->value : nan,
                          .strengths = shrinkage.strengths,
                          .shrunk = shrinkage.shrunk,
                          .error = error},
                         method, found);
        ++method;
    }
    BlockQueries queries;
    if (!study.codecs.empty())
        queries = queries_for(block, stream::Stream(study.seed, cell.hash, stream::Role::query, replicate));
    for (const auto& [codec, bits] : study.codecs) {
        const estimators::Compressor compressor(codec, sample.observed.n_cols, bits, coding(study, cell, replicate));
        observe_codec(compressor, block, queries, method, found);
        ++method;
    }
    return found;
}

Experiment::Worker host_worker(const std::shared_ptr<StudySetup>& study, const std::shared_ptr<LazyCell>& lazy,
                               const CellSetup& cell, ReplicateRange range) {
    auto samples = std::make_shared<PreparedBlocks<sim::SpikedSample>>(
        range, study->precision, [lazy](std::uint64_t replicate) { return lazy->draw(replicate); },
        [](const sim::SpikedSample& sample) { return sample.observed; });
    return [study, &cell, lazy, samples](std::uint64_t replicate) {
        const auto [sample, block] = samples->get(replicate);
        return measure(*study, cell, lazy->methods(), *sample, *block, replicate);
    };
}

/// Trials that kernels leave to the host, or that cannot be drawn, go to the host's worker, which reports the reason.
Experiment::Worker device_worker(const std::shared_ptr<StudySetup>& study, const std::shared_ptr<LazyCell>& lazy,
                                 const CellSetup& cell, ReplicateRange range) {
    const auto draw = [study, lazy, &cell](std::uint64_t replicate, const cuda::TrialDraw& to) {
        sim::SignalSides sides;
        try {
            sides = sim::signal_sides(lazy->model(), study->seed, cell.hash, replicate);
        } catch (const Error&) {
            sides.left = arma::mat(lazy->model().row.size(), cell.spikes, arma::fill::value(nan));
            sides.right = arma::mat(lazy->model().column.size(), cell.spikes, arma::fill::value(nan));
        }
        if (to.left != nullptr) std::copy(sides.left.begin(), sides.left.end(), to.left);
        if (to.right != nullptr) std::copy(sides.right.begin(), sides.right.end(), to.right);
    };
    auto trials = std::make_shared<DeviceTrials>(*study->slots, lazy->plan(study->precision, cell.plan), range, draw);
    return [study, &cell, lazy, trials](std::uint64_t replicate) {
        const cuda::TrialResult& trial = trials->get(replicate);
        if (trial.status != cuda::TrialStatus::fine) return host_worker(study, lazy, cell, {replicate, 1})(replicate);
        return observations_of(cell, trial);
    };
}

/// Why kernels cannot compute a cell. Empty if they can; then the cell's plan is filled in.
std::string unsupported_reason(const StudySetup& study, CellSetup& cell, estimators::Shape shape) {
    if (!cell.no_kernels.empty()) return cell.no_kernels;
    cuda::TrialPlan& plan = cell.plan;
    for (const auto& [codec, bits] : study.codecs) {
        const estimators::QuantizerOptions options = coding(study, cell, 0);
        if (const std::string why = coding_unsupported_reason(codec, options, shape, bits); !why.empty())
            return fmt::format("codec {}", why);
        plan.codecs.push_back(trial_codec(codec.quantizer, options, shape, bits));
        plan.codecs.back().low_rank = low_rank_part(codec, options, shape);
        cell.paper_bits.emplace_back(codec, options, shape, bits);
        cell.ledgers.push_back(ledger_of(codec.quantizer, options, shape, bits));
    }
    if (plan.takes_rotations()) plan.rotation = drawn_rotation(coding(study, cell, 0));
    for (const auto& named : study.named) {
        const std::string why = fmt::format("estimator {}", named.method.name);
        if (!named.method.transforms.empty()) return why;
        const auto* options = estimators::eoptshrink_options(named.method.estimator);
        const auto white = estimators::white_rule(named.method.estimator, shape);
        if (options != nullptr && !options->rank_rule)
            plan.estimators.emplace_back(estimators::eoptshrink_rule(shape, *options));
        else if (white)
            plan.estimators.emplace_back(*white);
        else
            return why;
    }
    plan.rows = static_cast<std::uint32_t>(shape.rows);
    plan.columns = static_cast<std::uint32_t>(shape.columns);
    plan.in_float = study.precision == estimators::Precision::float32;
    plan.strengths = cell.strengths;
    return plan.unsupported_reason();
}

bool move_to(StudySetup& study, const std::vector<estimators::Shape>& shapes, const spiked::cuda::Device& device,
             std::size_t threads, std::vector<std::string>& notes) {
    if (device.backend == spiked::cuda::Backend::cpu) {
        for (CellSetup& cell : study.cells) cell.on_device = false;
        study.slots.reset();
        return false;
    }
    std::map<std::string, std::size_t> stay;
    std::size_t moved = 0;
    for (std::size_t c = 0; c < study.cells.size(); ++c) {
        const std::string why = unsupported_reason(study, study.cells[c], shapes[c]);
        study.cells[c].on_device = why.empty();
        if (why.empty())
            ++moved;
        else
            ++stay[why];
    }
    for (const auto& [why, count] : stay)
        notes.push_back(fmt::format("{} of {} cells are computed on the CPU, no kernel does this: {}", count,
                                    study.cells.size(), why));
    if (moved > 0) study.slots = std::make_unique<TrialSlots>(device, threads);
    return moved > 0;
}

/// Codecs act on the tokens of a block, and some on its channels. In the eigenbasis of a covariance neither exists.
void require_own_axes(const BlockSource& source, const NamedCodec& codec) {
    const bool by_channel = codec.method.quantizer.entry().channels;
    if (source.own_rows && (source.own_columns || !by_channel)) return;
    throw usage_error(
        "colouring = \"eigenbasis\" mixes the {} of a block, on which codec \"{}\" acts: use colouring = \"dense\"",
        source.own_rows ? "columns" : "rows", codec.label);
}

/// A cell without limits and predictions.
ExperimentCell cell_of(const BlockSource& source, std::vector<Factor> factors, std::string label,
                       Replicates replicates) {
    ExperimentCell cell;
    cell.label = std::move(label);
    cell.rows = source.rows;
    cell.columns = source.columns;
    cell.params = source.params;
    cell.replicates = replicates.most;
    cell.least_replicates = replicates.least;
    cell.factors = std::move(factors);
    return cell;
}

void require_known_laws(const BlockSource& source, const std::vector<NamedEstimator>& estimators) {
    for (const auto& named : estimators)
        if (named.known_law && !source.law)
            throw usage_error(
                "estimator \"{}\" cannot know the law (law = \"known\", but this model has no law): leave the key out",
                named.label);
}

/// Adds the methods of a study, the sample first. Returns the names of the codecs.
std::vector<std::string> add_methods(Experiment& experiment, StudySetup& study, const std::vector<NamedCodec>& codecs) {
    experiment.methods.push_back({"sample", "sample", "sample", std::nullopt, Json::object()});
    for (const auto& named : study.named)
        experiment.methods.push_back({named.label, "estimator", named.label, std::nullopt, params_of(named)});
    std::vector<std::string> names;
    for (const auto& codec : codecs)
        for (const double bits : codec.bits) {
            estimators::reject_unrope(codec.method);
            experiment.methods.push_back({fmt::format("{} B={}", codec.label, bits), "codec", codec.label, bits,
                                          label_params(codec.label, codec.method.text)});
            study.codecs.emplace_back(codec.method, bits);
            names.push_back(codec.method.text);
        }
    return names;
}

}  // namespace

void make_block_experiment(Experiment& experiment, const std::string& kind, std::vector<StudyPoint> points,
                           const std::vector<NamedEstimator>& estimators, const std::vector<NamedCodec>& codecs,
                           Replicates replicates, estimators::Precision precision) {
    experiment.kind = kind;
    auto study = std::make_shared<StudySetup>();
    study->seed = experiment.seed;
    study->precision = precision;
    study->named = estimators;
    const std::vector<std::string> codec_names = add_methods(experiment, *study, codecs);

    Json cells = Json::array();
    std::vector<estimators::Shape> shapes;
    ClusterNotes cluster_notes;
    GapNotes gap_notes;
    for (auto& [source, factors, label] : points) {
        shapes.push_back({source.rows, source.columns});
        experiment.notes.insert(experiment.notes.end(), source.notes.begin(), source.notes.end());
        for (const auto& codec : codecs) require_own_axes(source, codec);
        require_known_laws(source, estimators);
        ExperimentCell cell = cell_of(source, std::move(factors), std::move(label), replicates);
        if (source.truth) cell.components = source.spikes;
        std::vector<theory::SpikeCluster> close;
        std::vector<theory::GapOutlier> in_gaps;
        std::optional<std::size_t> detectable = source.signal_rank;
        const auto group = [&, &source = source](auto threshold, const std::vector<theory::SpikeCluster>& clusters) {
            detectable =
                static_cast<std::size_t>(std::count_if(source.strengths.begin(), source.strengths.end(),
                                                       [&](SignalStrength strength) { return strength > threshold; }));
            cluster_notes.add(cell, clusters);
            std::copy_if(clusters.begin(), clusters.end(), std::back_inserter(close),
                         [](const theory::SpikeCluster& one) { return one.count > 1 && one.detectable; });
        };
        if (source.law) {
            const theory::SeparableLaw law = source.law();
            const auto clusters = theory::spike_clusters(law, source.strengths, source.rows, source.columns);
            const theory::SupportGaps outside(law);
            in_gaps = theory::gap_outliers(law, outside, source.strengths, source.rows, source.columns);
            const CellSpikes spikes{source.strengths, clusters, outside, in_gaps};
            add_limits(cell, law, spikes);
            add_predictions(cell, experiment, codec_names, law, spikes, source.excess_kurtosis, source.symmetric);
            gap_notes.add(cell, spikes);
            group(law.detection_threshold(), clusters);
        } else if (source.profile) {
            const theory::ProfileLaw law = source.profile();
            const auto clusters = clusters_in_profile(law, source.strengths, source.rows, source.columns);
            add_limits(cell, law, source.strengths, clusters);
            group(law.detection_threshold(), clusters);
        }
        cells.push(cell.params);
        study->cells.push_back(
            {source.prepare,
             cell.hash(),
             source.spikes,
             source.truth,
             source.keys ? estimators::GroupAxis::key : estimators::GroupAxis::value,
             source.no_kernels.empty() && !in_gaps.empty() ? "outliers in gaps of the noise" : source.no_kernels,
             {},
             std::move(close),
             std::move(in_gaps),
             detectable});
        for (const auto& strength : source.strengths) study->cells.back().strengths.push_back(strength.value);
        experiment.cells.push_back(std::move(cell));
    }
    cluster_notes.write(experiment.notes);
    gap_notes.write(experiment.notes);
    experiment.science.set("cells", std::move(cells));
    experiment.move_to = [study, shapes = std::move(shapes)](const spiked::cuda::Device& device, std::size_t threads,
                                                             std::vector<std::string>& notes) {
        return move_to(*study, shapes, device, threads, notes);
    };
    experiment.worker = [study](std::size_t cell, ReplicateRange range) -> Experiment::Worker {
        const auto lazy = study->cell(cell);
        const CellSetup& at = study->cells[cell];
        if (at.on_device) return device_worker(study, lazy, at, range);
        return host_worker(study, lazy, at, range);
    };
    experiment.block = [study](std::size_t cell, std::uint64_t replicate) {
        return study->cell(cell)->draw(replicate).observed;
    };
}

}  // namespace spiked::validation
