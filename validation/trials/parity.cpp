#include "validation/trials/parity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

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
#include "validation/trials/parity_cases.hpp"

namespace spiked::validation {
namespace {

constexpr std::string_view cell = "parity";

/// Tall, wide and square blocks, the largest tile that registers hold, a block that they do not hold, and last one
/// whose rows are too long for the kernels that most Haar vectors and rotations take.
constexpr ParityCase cases[] = {
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

/// The low-rank parts that the host stored while a device coded: of each coding, of each trial.
using StoredLowRanks = std::vector<std::vector<std::optional<cuda::StoredFactors>>>;

/// A low-rank part as a decoder reads it.
arma::fmat low_rank_of(const cuda::StoredFactors& stored, estimators::Shape shape) {
    const std::size_t rank = stored.rank();
    const arma::fmat left(stored.left.data(), shape.rows, rank);
    const arma::fmat right(stored.right.data(), shape.columns, rank);
    return left * arma::diagmat(arma::fvec(stored.values)) * right.t();
}

double largest(const arma::mat& matrix) { return arma::abs(matrix).max(); }

template <class Real>
void check_decomposition(const ParityCase& one, const cuda::TrialPlan& plan, const cuda::TrialStages& stages,
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

void check_shrinkage(const ParityCase& one, const cuda::TrialResult& trial, Checks& checks) {
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

void check_coding(const ParityCase& one, const stream::StudySeed& seed, const cuda::TrialStages& stages,
                  const StoredLowRanks& stored, std::size_t t, Checks& checks) {
    const auto [rows, columns] = one.shape;
    const std::size_t entries = rows * columns;
    for (std::size_t c = 0; c < std::size(parity_codings); ++c) {
        arma::fmat block = part<float>(stages.observed, t, rows, columns);
        arma::fmat low_rank(rows, columns, arma::fill::zeros);
        if (!stored[c].empty()) {
            checks.bytes.require(stored[c][t].has_value());
            if (!stored[c][t]) continue;
            low_rank = low_rank_of(*stored[c][t], one.shape);
            block -= low_rank;
        }
        const auto options = parity_codings[c].options(seed, columns, first_parity_trial + t);
        const auto quantizer =
            estimators::parse_method(parity_codings[c].method).quantizer.make(columns, parity_bits, options);
        if (parity_codings[c].rotates) {
            const arma::fmat rotated = estimators::row_rotation(options, columns).rotate(block);
            const float* const found = stages.rotated[c].data() + t * entries;
            if (parity_codings[c].same_bytes)
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
        if (parity_codings[c].same_bytes)
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
void check_products(const ParityCase& one, const stream::StudySeed& seed, std::uint64_t replicate,
                    const cuda::TrialStages& stages, const cuda::TrialResult& trial, std::size_t t, Checks& checks) {
    const auto [rows, columns] = one.shape;
    const auto observed = part<double>(stages.observed, t, rows, columns);
    estimators::AnalysedBlock block(observed, estimators::AnalysedBlock::EmptyLines::strip, one.precision);
    const BlockQueries queries = queries_for(block, stream::Stream(seed, cell, stream::Role::query, replicate));
    const double allowed = one.in_float() ? 1e-5 : 1e-9;
    for (std::size_t c = 0; c < std::size(parity_codings); ++c) {
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

void check_whole(const ParityCase& one, const stream::StudySeed& seed, std::uint64_t replicate,
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
    for (std::size_t c = 0; c < std::size(parity_codings); ++c) {
        const estimators::Compressor compressor(estimators::parse_method(parity_codings[c].method), one.shape.columns,
                                                parity_bits,
                                                parity_codings[c].options(seed, one.shape.columns, replicate));
        const auto coded = compressor.encode(block);
        const arma::mat decoded = compressor.decode(coded.encoded.bytes, one.shape.rows);
        checks.whole.require(trial.codes[c].rank == coded.rank);
        // An entry close to a threshold may get the neighbouring index, which hardly changes the error.
        checks.whole.difference(
            std::abs(trial.codes[c].error / arma::accu(arma::square(decoded - sample.observed)) - 1.0), 1e-4);
    }
}

void check_case(cuda::TrialDevice& device, const ParityCase& one, Checks& checks) {
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
                return of_trial[found.block - first_parity_trial] = code(found);
            };
        }
    cuda::TrialStages stages;
    const auto trials = device.run(plan, first_parity_trial, one.trials, {}, &stages);
    for (std::size_t t = 0; t < one.trials; ++t) {
        const sim::SpikedSample sample = sim::sample(model, seed, cell, first_parity_trial + t);
        checks.whole.require(trials[t].status == cuda::TrialStatus::fine);
        arma::mat normals(rows, columns);
        stream::fill_normal(stream::Stream(seed, cell, stream::Role::noise, first_parity_trial + t),
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
        check_products(one, seed, first_parity_trial + t, stages, trials[t], t, checks);
        check_whole(one, seed, first_parity_trial + t, sample, trials[t], checks);
    }
}

}  // namespace

std::vector<ParityCheck> check_parity(cuda::TrialDevice& device, std::size_t most_entries) {
    Checks checks;
    for (const ParityCase& one : cases)
        if (one.shape.rows * one.shape.columns <= most_entries) check_case(device, one, checks);
    std::vector<ParityCheck> found;
    for (const LargestDifference* worst :
         {&checks.normals, &checks.samples, &checks.values, &checks.vectors, &checks.shrinkage, &checks.rotation,
          &checks.bytes, &checks.products, &checks.whole})
        found.push_back(worst->check());
    return found;
}

std::vector<ParityCheck> check_parity(const spiked::cuda::Device& device) {
    constexpr std::size_t memory = std::size_t{256} << 20;
    return check_each_gpu(
        device, [&](int number) { return check_parity(*cuda::trial_device(device.backend, number, memory)); });
}

}  // namespace spiked::validation
