#include "validation/trials/parity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "core/device/device_failure.hpp"
#include "core/runtime/error.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/quantizers/quantizer_table.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/svd/batch_decomposition.hpp"
#include "estimators/svd/decomposition.hpp"
#include "sim/random/normal.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "validation/metrics/codec_measurement.hpp"
#include "validation/trials/cuda/device_passes.hpp"
#include "validation/trials/device_trials.hpp"

namespace spiked::validation {
namespace {

constexpr std::string_view cell = "parity";
constexpr std::uint64_t first = 5;

struct Case {
    estimators::Shape shape;
    estimators::Precision precision;
    sim::Colouring colouring;
    std::size_t trials;

    [[nodiscard]] bool in_float() const { return precision == estimators::Precision::float32; }
};

/// Tall, wide and square blocks, the largest tile that registers hold, a block that they do not hold, and last one
/// whose rows are too long for the kernels that most Haar vectors and rotations take.
constexpr Case cases[] = {
    {{48, 32}, estimators::Precision::float64, sim::Colouring::dense, 3},
    {{20, 64}, estimators::Precision::float32, sim::Colouring::eigenbasis, 3},
    {{64, 64}, estimators::Precision::float64, sim::Colouring::eigenbasis, 2},
    {{128, 128}, estimators::Precision::float32, sim::Colouring::dense, 2},
    {{140, 128}, estimators::Precision::float64, sim::Colouring::eigenbasis, 1},
    {{20, 140}, estimators::Precision::float32, sim::Colouring::dense, 1},
};

/// The largest of several differences, each relative to its tolerance.
class LargestDifference {
public:
    explicit LargestDifference(std::string name, std::string allowed)
        : name_(std::move(name)), allowed_(std::move(allowed)) {}
    void difference(double size, double allowed) {
        const double ratio = size / allowed;
        // NaN counts as a difference.
        if (!(ratio <= worst_)) worst_ = std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
    }
    void require(bool holds) {
        if (!holds) worst_ = std::numeric_limits<double>::infinity();
    }
    [[nodiscard]] ParityCheck check() const {
        return {name_, worst_ <= 1.0,
                std::isinf(worst_) ? fmt::format("differs from the CPU's (allowed: {})", allowed_)
                                   : fmt::format("at most {:.2g} of what is allowed ({})", worst_, allowed_)};
    }

private:
    std::string name_, allowed_;
    double worst_ = 0.0;
};

struct Checks {
    LargestDifference normals{"normals", "the same bits"};
    LargestDifference samples{"samples", "1e-12 of the largest entry"};
    LargestDifference values{"values", "1e-12 p of the largest, in float 1e-6 + 4e-9 q"};
    LargestDifference vectors{"vectors", "1e-11 of the largest value, in float 5e-6"};
    LargestDifference shrinkage{"eOptShrink", "the same rank; 1e-10"};
    LargestDifference rotation{"rotation", "Hadamard the same bits; Haar 1e-5"};
    LargestDifference bytes{"quantizer bytes", "the same after Hadamard and for groups; else 1 of 200 indices"};
    LargestDifference products{"inner products", "1e-9, in float 1e-5"};
    LargestDifference whole{"whole trial", "the same rank; 1e-9, in float 1e-4"};
};

sim::SpikedModel model_of(const Case& one) {
    sim::SpikedModel model{
        sim::Covariance::ar1(0.4, one.shape.rows), sim::Covariance::exponential(1.0, one.shape.columns), {}};
    model.strengths = {SignalStrength{8.0}, SignalStrength{5.0}};
    model.colouring = one.colouring;
    return model;
}

constexpr std::uint32_t code_bits = 3;
struct Coding {
    const char* method;
    estimators::RotationKind rotation;
    bool same_bytes = true;
    bool rotates = true;

    [[nodiscard]] estimators::QuantizerOptions options(const stream::StudySeed& seed, std::size_t columns,
                                                       std::uint64_t replicate) const {
        estimators::QuantizerOptions wanted;
        const bool no_power_of_two = rotation == estimators::RotationKind::rht2 && !std::has_single_bit(columns);
        wanted.rotation = no_power_of_two ? estimators::RotationKind::fht_kac : rotation;
        wanted.seed = seed;
        wanted.rotation_index = replicate;
        return wanted;
    }
};
constexpr Coding codings[] = {
    {"tq-mse", estimators::RotationKind::rht2},
    {"tq-mse", estimators::RotationKind::haar, false},
    {"eden", estimators::RotationKind::rht2},
    {"tq-prod", estimators::RotationKind::haar, false},
    {"kivi", estimators::RotationKind::identity, true, false},
    {"eoptshrink+tq-mse", estimators::RotationKind::rht2, false},
};

/// Adds the codings to a plan.
void add_codings(cuda::TrialPlan& plan, const stream::StudySeed& seed, estimators::Shape shape) {
    for (const Coding& one : codings) {
        const estimators::MethodSpec method = estimators::parse_method(one.method);
        const auto options = one.options(seed, shape.columns, first);
        plan.codecs.push_back(trial_codec(method.quantizer, options, shape, code_bits));
        plan.codecs.back().low_rank = low_rank_part(method, options, shape);
        if (one.rotation == estimators::RotationKind::haar) plan.rotation = drawn_rotation(options);
    }
}

/// The low-rank parts that the host stored while a device coded: of each coding, of each trial.
using StoredLowRanks = std::vector<std::vector<std::optional<cuda::StoredFactors>>>;

/// A low-rank part as a decoder reads it.
arma::fmat low_rank_of(const cuda::StoredFactors& stored, estimators::Shape shape) {
    const std::size_t rank = stored.rank();
    const arma::fmat left(stored.left.data(), shape.rows, rank);
    const arma::fmat right(stored.right.data(), shape.columns, rank);
    return left * arma::diagmat(arma::fvec(stored.values)) * right.t();
}

template <class Real>
arma::Mat<Real> part(const std::vector<double>& all, std::size_t at, std::size_t rows, std::size_t columns) {
    arma::Mat<Real> matrix(rows, columns);
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(at * rows * columns), rows * columns, matrix.begin());
    return matrix;
}

double largest(const arma::mat& matrix) { return arma::abs(matrix).max(); }

template <class Real>
void check_decomposition(const Case& one, const cuda::TrialPlan& plan, const cuda::TrialStages& stages,
                         const cuda::TrialResult& trial, std::size_t t, Checks& checks) {
    const auto [rows, columns] = one.shape;
    const auto block = part<Real>(stages.observed, t, rows, columns);
    estimators::BatchDecomposition<Real> cpu(one.shape);
    cpu.decompose({block.memptr(), block.n_elem});
    const auto expected = cpu.singular_values(0);
    const double top = expected[0];
    const auto p = static_cast<double>(one.shape.short_side());
    const auto q = static_cast<double>(one.shape.long_side());
    checks.values.require(trial.values.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
        checks.values.difference(std::abs(trial.values[i] - expected[i]),
                                 (one.in_float() ? 1e-6 + 4e-9 * q : 1e-12 * p) * top);
    const auto u = part<double>(stages.left_vectors, t, rows, plan.vectors());
    const auto v = part<double>(stages.right_vectors, t, columns, plan.vectors());
    const auto a = arma::conv_to<arma::mat>::from(block);
    const arma::mat s =
        arma::diagmat(arma::vec(std::vector<double>(expected.begin(), expected.begin() + plan.vectors())));
    const arma::mat eye(plan.vectors(), plan.vectors(), arma::fill::eye);
    const double allowed = one.in_float() ? 5e-6 : 1e-11;
    checks.vectors.difference(largest(a * v - u * s), allowed * top);
    checks.vectors.difference(largest(a.t() * u - v * s), allowed * top);
    checks.vectors.difference(largest(u.t() * u - eye), allowed);
    checks.vectors.difference(largest(v.t() * v - eye), allowed);
}

void check_shrinkage(const Case& one, const cuda::TrialResult& trial, Checks& checks) {
    const auto cpu = estimators::eoptshrink(trial.values, one.shape, estimators::EOptShrinkOptions::edge_fit());
    const auto& found = trial.estimates.front();
    checks.shrinkage.require(found.rank == cpu.rank && found.bulk_edge.has_value() == cpu.bulk_edge.has_value());
    if (found.rank != cpu.rank || !found.bulk_edge || !cpu.bulk_edge) return;
    checks.shrinkage.difference(std::abs(*found.bulk_edge - cpu.bulk_edge->value), 1e-10 * cpu.bulk_edge->value);
    for (std::size_t i = 0; i < cpu.rank; ++i) {
        checks.shrinkage.difference(std::abs(found.strengths[i] - cpu.strengths[i]), 1e-10 * cpu.strengths[i]);
        checks.shrinkage.difference(std::abs(found.shrunk[i] - cpu.shrunk[i]), 1e-10 * cpu.strengths[i]);
    }
}

void check_coding(const Case& one, const stream::StudySeed& seed, const cuda::TrialStages& stages,
                  const StoredLowRanks& stored, std::size_t t, Checks& checks) {
    const auto [rows, columns] = one.shape;
    const std::size_t entries = rows * columns;
    for (std::size_t c = 0; c < std::size(codings); ++c) {
        arma::fmat block = part<float>(stages.observed, t, rows, columns);
        arma::fmat low_rank(rows, columns, arma::fill::zeros);
        if (!stored[c].empty()) {
            checks.bytes.require(stored[c][t].has_value());
            if (!stored[c][t]) continue;
            low_rank = low_rank_of(*stored[c][t], one.shape);
            block -= low_rank;
        }
        const auto options = codings[c].options(seed, columns, first + t);
        const auto quantizer = estimators::row_quantizer(estimators::parse_method(codings[c].method).quantizer.text,
                                                         columns, code_bits, options);
        if (codings[c].rotates) {
            const arma::fmat rotated = estimators::row_rotation(options, columns).rotate(block);
            const float* const found = stages.rotated[c].data() + t * entries;
            if (codings[c].same_bytes)
                checks.rotation.require(std::memcmp(found, rotated.memptr(), entries * sizeof(float)) == 0);
            else
                for (std::size_t i = 0; i < entries; ++i)
                    checks.rotation.difference(std::abs(found[i] - rotated[i]), 1e-5 * arma::abs(rotated).max());
        }
        const auto cpu = quantizer.encode_float(block).bytes;
        const std::vector<std::uint8_t> bytes(
            stages.bytes[c].begin() + static_cast<std::ptrdiff_t>(t * cpu.size()),
            stages.bytes[c].begin() + static_cast<std::ptrdiff_t>((t + 1) * cpu.size()));
        double differing = 0.0;
        for (std::size_t i = 0; i < cpu.size(); ++i) differing += bytes[i] != cpu[i] ? 1.0 : 0.0;
        if (codings[c].same_bytes)
            checks.bytes.require(differing == 0.0);
        else
            checks.bytes.difference(differing, static_cast<double>(entries) / 200.0);
        const arma::fmat decoded = quantizer.decode_float(bytes, rows) + low_rank;
        for (std::size_t i = 0; i < entries; ++i)
            checks.bytes.difference(std::abs(stages.decoded[c][t * entries + i] - decoded[i]),
                                    1e-5 * arma::abs(decoded).max());
    }
}

/// Compares inner products of the blocks that kernels decoded with those of measure_block.
void check_products(const Case& one, const stream::StudySeed& seed, std::uint64_t replicate,
                    const cuda::TrialStages& stages, const cuda::TrialResult& trial, std::size_t t, Checks& checks) {
    const auto [rows, columns] = one.shape;
    const auto observed = part<double>(stages.observed, t, rows, columns);
    estimators::AnalysedBlock block(observed, estimators::AnalysedBlock::EmptyLines::strip, one.precision);
    const BlockQueries queries = queries_for(block, stream::Stream(seed, cell, stream::Role::query, replicate));
    const double allowed = one.in_float() ? 1e-5 : 1e-9;
    for (std::size_t c = 0; c < std::size(codings); ++c) {
        arma::mat decoded(rows, columns);
        std::copy_n(stages.decoded[c].begin() + static_cast<std::ptrdiff_t>(t * decoded.n_elem), decoded.n_elem,
                    decoded.begin());
        const BlockMetrics cpu = measure_block(observed, decoded, queries);
        const auto& code = trial.codes[c];
        checks.products.difference(std::abs(code.across / arma::dot(observed, decoded) - 1.0), allowed);
        for (const auto& [found, expected] : {std::pair{&code.other, &cpu.other}, std::pair{&code.random, &cpu.random},
                                              std::pair{&code.aligned, &cpu.aligned}, std::pair{&code.own, &cpu.own}}) {
            checks.products.difference(std::abs(found->renormalised.bias - expected->bias), allowed);
            checks.products.difference(std::abs(found->renormalised.deviation - expected->deviation), allowed);
            checks.products.difference(std::abs(found->plain.bias - expected->bias_plain), allowed);
            checks.products.difference(std::abs(found->plain.deviation - expected->deviation_plain), allowed);
        }
    }
}

void check_whole(const Case& one, const stream::StudySeed& seed, std::uint64_t replicate,
                 const sim::SpikedSample& sample, const cuda::TrialResult& trial, Checks& checks) {
    estimators::AnalysedBlock block(sample.observed, estimators::AnalysedBlock::EmptyLines::strip, one.precision);
    const auto cpu =
        estimators::eoptshrink(block.singular_values(), one.shape, estimators::EOptShrinkOptions::edge_fit());
    const double allowed = one.in_float() ? 1e-4 : 1e-9;
    const double error = arma::accu(arma::square(block.denoised(cpu.shrunk) - sample.signal));
    const auto vectors = block.vectors(sample.left.n_cols);
    checks.whole.require(trial.estimates.front().rank == cpu.rank);
    checks.whole.difference(std::abs(trial.estimates.front().error / error - 1.0), allowed);
    checks.whole.difference(std::abs(trial.energy / arma::accu(arma::square(sample.signal)) - 1.0), allowed);
    for (std::size_t i = 0; i < sample.left.n_cols; ++i) {
        const auto difference = [&](double found, double expected) {
            checks.whole.difference(std::abs(std::abs(found) - std::abs(expected)), allowed);
        };
        difference(trial.left_products[i * sample.left.n_cols + i], arma::dot(vectors.left.col(i), sample.left.col(i)));
        difference(trial.right_products[i * sample.left.n_cols + i],
                   arma::dot(vectors.right.col(i), sample.right.col(i)));
    }
    for (std::size_t c = 0; c < std::size(codings); ++c) {
        const estimators::Compressor compressor(estimators::parse_method(codings[c].method), one.shape.columns,
                                                code_bits, codings[c].options(seed, one.shape.columns, replicate));
        const auto coded = compressor.encode(block);
        const arma::mat decoded = compressor.decode(coded.encoded.bytes, one.shape.rows);
        checks.whole.require(trial.codes[c].rank == coded.rank);
        // An entry close to a threshold may get the neighbouring index, which hardly changes the error.
        checks.whole.difference(
            std::abs(trial.codes[c].error / arma::accu(arma::square(decoded - sample.observed)) - 1.0), 1e-4);
    }
}

void check_case(cuda::TrialDevice& device, const Case& one, Checks& checks) {
    const stream::StudySeed seed{};
    const auto [rows, columns] = one.shape;
    const sim::SpikedModel model = model_of(one);
    cuda::TrialPlan plan =
        trial_plan(model, seed, std::string(cell), one.precision,
                   {estimators::eoptshrink_rule(one.shape, estimators::EOptShrinkOptions::edge_fit())});
    add_codings(plan, seed, one.shape);
    StoredLowRanks stored(plan.codecs.size());
    for (std::size_t c = 0; c < plan.codecs.size(); ++c)
        if (auto& low_rank = plan.codecs[c].low_rank) {
            stored[c].resize(one.trials);
            low_rank->code = [code = low_rank->code, &of_trial = stored[c]](const cuda::FoundFactors& found) {
                return of_trial[found.block - first] = code(found);
            };
        }
    cuda::TrialStages stages;
    const auto trials = device.run(plan, first, one.trials, {}, &stages);
    for (std::size_t t = 0; t < one.trials; ++t) {
        const sim::SpikedSample sample = sim::sample(model, seed, cell, first + t);
        checks.whole.require(trials[t].status == cuda::TrialStatus::fine);
        arma::mat normals(rows, columns);
        stream::fill_normal(stream::Stream(seed, cell, stream::Role::noise, first + t),
                            {normals.memptr(), normals.n_elem});
        checks.normals.require(std::memcmp(stages.normals.data() + t * normals.n_elem, normals.memptr(),
                                           normals.n_elem * sizeof(double)) == 0);
        for (const auto& [found, expected] :
             {std::pair{&stages.observed, &sample.observed}, std::pair{&stages.signal, &sample.signal}})
            checks.samples.difference(largest(part<double>(*found, t, rows, columns) - *expected),
                                      1e-12 * largest(*expected));
        if (one.in_float())
            check_decomposition<float>(one, plan, stages, trials[t], t, checks);
        else
            check_decomposition<double>(one, plan, stages, trials[t], t, checks);
        check_shrinkage(one, trials[t], checks);
        check_coding(one, seed, stages, stored, t, checks);
        check_products(one, seed, first + t, stages, trials[t], t, checks);
        check_whole(one, seed, first + t, sample, trials[t], checks);
    }
}

}  // namespace

std::vector<ParityCheck> check_parity(cuda::TrialDevice& device, std::size_t most_entries) {
    Checks checks;
    for (const Case& one : cases)
        if (one.shape.rows * one.shape.columns <= most_entries) check_case(device, one, checks);
    std::vector<ParityCheck> found;
    for (const LargestDifference* worst :
         {&checks.normals, &checks.samples, &checks.values, &checks.vectors, &checks.shrinkage, &checks.rotation,
          &checks.bytes, &checks.products, &checks.whole})
        found.push_back(worst->check());
    return found;
}

namespace {

/// Runs the checks on each GPU of a device. One that fails gives one check `kernels` that did not pass.
template <class Check>
std::vector<ParityCheck> check_each_gpu(const spiked::cuda::Device& device, const Check& check) {
    using spiked::cuda::Backend;
    std::vector<ParityCheck> found;
    if (device.backend == Backend::cpu) return found;
    for (const int number : device.numbers) {
        const std::string name = spiked::cuda::name_of(device.backend, number);
        try {
            for (auto& one : check(number)) found.push_back({one.name, one.passed, name + ": " + one.detail});
        } catch (const spiked::cuda::DeviceFailure& failure) {
            found.push_back({"kernels", false, name + ": " + failure.what()});
        }
    }
    return found;
}

/// Shapes that each use a different register tile; registers do not hold the last one.
constexpr estimators::Shape tiles[] = {{32, 32}, {64, 64}, {96, 96}, {128, 64}, {128, 128}, {256, 128}, {250, 256}};

template <class Real>
ParityCheck check_copies(const DeviceUnderLoad& device, std::size_t count, std::size_t most_entries) {
    constexpr std::uint32_t vectors = 16;
    constexpr bool in_float = sizeof(Real) == sizeof(float);
    const std::string name = in_float ? "copies, float" : "copies, double";
    double worst = 0.0;
    std::size_t shapes = 0;
    try {
        for (const estimators::Shape shape : tiles) {
            if (shape.rows * shape.columns > most_entries) continue;
            ++shapes;
            cuda::BlocksToDecompose blocks{static_cast<std::uint32_t>(shape.rows),
                                           static_cast<std::uint32_t>(shape.columns),
                                           vectors,
                                           in_float,
                                           {}};
            const std::size_t different = std::clamp<std::size_t>(count / 2, 1, 16);
            const sim::SpikedModel model = model_of({shape, {}, sim::Colouring::eigenbasis, 0});
            for (std::uint64_t r = 0; r < different; ++r) {
                const auto block =
                    arma::conv_to<arma::Mat<Real>>::from(sim::sample(model, stream::StudySeed{}, "load", r).observed);
                blocks.blocks.insert(blocks.blocks.end(), block.begin(), block.end());
            }
            const auto pass = device.decompose(blocks, count);
            pass->run();
            const auto found = pass->outcome();
            for (std::size_t b = 0, at = 0; at < found.size(); ++b) {
                const auto reference =
                    estimators::singular_values(part<double>(blocks.blocks, b, shape.rows, shape.columns));
                for (const double value : reference)
                    worst = std::max(worst, std::abs(found.at(at++) - value) / reference[0]);
            }
        }
    } catch (const Error& error) {
        return {name, false, error.what()};
    }
    const double allowed = in_float ? 2e-6 : 1e-13;
    return {name, worst <= allowed,
            fmt::format(
                "{} blocks of {} shapes, the same bits in every copy, singular vectors; values within {:.1e} of the "
                "largest (allowed {:.0e})",
                count, shapes, worst, allowed)};
}

ParityCheck check_statuses(cuda::TrialDevice& device, std::size_t trials, std::size_t most_entries) {
    const stream::StudySeed seed{};
    std::size_t fine = 0;
    std::size_t others = 0;  // left to the host, which is allowed for singular values that are too close
    std::size_t done = 0;
    const std::size_t coded_trials = std::max<std::size_t>(1, trials / 128);  // 8192 of a million
    for (const auto& [one, is_coded] :
         {std::pair{Case{{128, 128}, estimators::Precision::float32, sim::Colouring::eigenbasis, trials / 2}, false},
          std::pair{Case{{96, 64}, estimators::Precision::float64, sim::Colouring::dense, trials / 4}, false},
          std::pair{Case{{40, 100}, estimators::Precision::float32, sim::Colouring::dense, trials / 4}, false},
          std::pair{Case{{20, 140}, estimators::Precision::float32, sim::Colouring::dense, coded_trials}, true},
          std::pair{Case{{48, 32}, estimators::Precision::float64, sim::Colouring::dense, coded_trials}, true}}) {
        if (one.shape.rows * one.shape.columns > most_entries) continue;
        cuda::TrialPlan plan =
            trial_plan(model_of(one), seed, "load", one.precision,
                       {estimators::eoptshrink_rule(one.shape, estimators::EOptShrinkOptions::edge_fit())});
        if (is_coded) add_codings(plan, seed, one.shape);
        constexpr std::size_t batch_size = 4096;
        for (std::size_t first_trial = 0; first_trial < one.trials; first_trial += batch_size) {
            const auto found = device.run(plan, first_trial, std::min(batch_size, one.trials - first_trial), {});
            for (const auto& trial : found) {
                bool plausible = trial.values[0] > 0.0;
                for (const auto& code : trial.codes)
                    plausible = plausible && code.error > 0.0 && code.error < code.energy;
                fine += trial.status == cuda::TrialStatus::fine && plausible ? 1 : 0;
                others += trial.status == cuda::TrialStatus::for_the_host ? 1 : 0;
            }
            done += found.size();
        }
    }
    return {"random matrices", done > 0 && others * 10000 <= done && fine + others == done,
            fmt::format("{} of {} computed, {} left to the CPU (allowed 1 in 10000), {} failed", fine, done, others,
                        done - fine - others)};
}

}  // namespace

std::vector<ParityCheck> check_parity(const spiked::cuda::Device& device) {
    constexpr std::size_t memory = std::size_t{256} << 20;
    return check_each_gpu(
        device, [&](int number) { return check_parity(*cuda::trial_device(device.backend, number, memory)); });
}

std::vector<ParityCheck> check_under_load(const DeviceUnderLoad& device, std::size_t blocks, std::size_t trials,
                                          std::size_t most_entries) {
    return {check_copies<float>(device, blocks, most_entries), check_copies<double>(device, blocks, most_entries),
            check_statuses(device.trials, trials, most_entries)};
}

std::vector<ParityCheck> check_under_load(const spiked::cuda::Device& device, std::size_t blocks, std::size_t trials) {
    constexpr std::size_t memory = std::size_t{8} << 30;
    return check_each_gpu(device, [&](int number) {
        const auto decompose = [&](const cuda::BlocksToDecompose& wanted, std::size_t count) {
            return cuda::decomposition_pass(device.backend, number, memory, wanted, count,
                                            cuda::DecompositionPart::vectors);
        };
        const auto trial_device = cuda::trial_device(device.backend, number, memory);
        return check_under_load({decompose, *trial_device}, blocks, trials);
    });
}

}  // namespace spiked::validation
