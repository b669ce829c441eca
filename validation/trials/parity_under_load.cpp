#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "estimators/svd/decomposition.hpp"
#include "validation/trials/cuda/device_passes.hpp"
#include "validation/trials/parity_cases.hpp"

namespace spiked::validation {
namespace {

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
         {std::pair{ParityCase{{128, 128}, estimators::Precision::float32, sim::Colouring::eigenbasis, trials / 2},
                    false},
          std::pair{ParityCase{{96, 64}, estimators::Precision::float64, sim::Colouring::dense, trials / 4}, false},
          std::pair{ParityCase{{40, 100}, estimators::Precision::float32, sim::Colouring::dense, trials / 4}, false},
          std::pair{ParityCase{{20, 140}, estimators::Precision::float32, sim::Colouring::dense, coded_trials}, true},
          std::pair{ParityCase{{48, 32}, estimators::Precision::float64, sim::Colouring::dense, coded_trials}, true}}) {
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
