#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "core/device/device_failure.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "validation/trials/device_trials.hpp"
#include "validation/trials/parity.hpp"

// The trials with which devices are compared with the CPU: one by one (parity.cpp) and under load
// (parity_under_load.cpp).
namespace spiked::validation {

/// The replicate of the first trial.
constexpr std::uint64_t first_parity_trial = 5;

struct ParityCase {
    estimators::Shape shape;
    estimators::Precision precision;
    sim::Colouring colouring;
    std::size_t trials;

    [[nodiscard]] bool in_float() const { return precision == estimators::Precision::float32; }
};

/// A model with two strong spikes of that shape.
[[nodiscard]] sim::SpikedModel model_of(const ParityCase& one);

constexpr std::uint32_t parity_bits = 3;
struct ParityCoding {
    const char* method;
    estimators::RotationKind rotation;
    bool same_bytes = true;
    bool rotates = true;

    [[nodiscard]] estimators::QuantizerOptions options(const stream::StudySeed& seed, std::size_t columns,
                                                       std::uint64_t replicate) const;
};
inline constexpr ParityCoding parity_codings[] = {
    {"tq-mse", estimators::RotationKind::rht2},
    {"tq-mse", estimators::RotationKind::haar, false},
    {"eden", estimators::RotationKind::rht2},
    {"tq-prod", estimators::RotationKind::haar, false},
    {"kivi", estimators::RotationKind::identity, true, false},
    {"eoptshrink+tq-mse", estimators::RotationKind::rht2, false},
};

/// Adds the codings to a plan.
void add_codings(cuda::TrialPlan& plan, const stream::StudySeed& seed, estimators::Shape shape);

/// The matrix number `at` of several that lie behind each other.
template <class Real>
arma::Mat<Real> part(const std::vector<double>& all, std::size_t at, std::size_t rows, std::size_t columns) {
    arma::Mat<Real> matrix(rows, columns);
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(at * rows * columns), rows * columns, matrix.begin());
    return matrix;
}

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

}  // namespace spiked::validation
