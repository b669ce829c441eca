#include "validation/trials/lazy_cell.hpp"

#include <optional>

#include "validation/trials/device_trials.hpp"

namespace spiked::validation {
namespace {

/// The estimators of a study for the blocks of one cell; those with `known_law` get its noise covariances.
std::vector<estimators::SpectralMethod> methods_for(const std::vector<NamedEstimator>& named,
                                                    const PreparedSource& source) {
    std::vector<estimators::SpectralMethod> methods;
    std::optional<estimators::KnownNoise> noise;
    for (const auto& estimator : named) {
        if (estimator.known_law && !noise) noise = source.noise();
        methods.push_back(estimator.known_law ? estimator.method.knowing(*noise) : estimator.method);
    }
    return methods;
}

}  // namespace

sim::SpikedSample LazyCell::draw(std::uint64_t replicate) {
    prepare_once();
    return source_.draw(replicate);
}

const std::vector<estimators::SpectralMethod>& LazyCell::methods() {
    prepare_once();
    return methods_;
}

const sim::SpikedModel& LazyCell::model() {
    prepare_once();
    return *source_.model;
}

const cuda::TrialPlan& LazyCell::plan(estimators::Precision precision, const cuda::TrialPlan& methods) {
    prepare_once();
    planned_([&] {
        plan_ = trial_plan(*source_.model, seed_, cell_, precision, methods.estimators);
        plan_.codecs = methods.codecs;
        plan_.rotation = methods.rotation;
    });
    return plan_;
}

void LazyCell::prepare_once() {
    prepared_([&] {
        source_ = prepare_(seed_, cell_);
        methods_ = methods_for(estimators_, source_);
    });
}

}  // namespace spiked::validation
