#include "validation/trials/parity_cases.hpp"

#include <bit>

#include "estimators/compressors/compressor.hpp"

namespace spiked::validation {

sim::SpikedModel model_of(const ParityCase& one) {
    sim::SpikedModel model{
        sim::Covariance::ar1(0.4, one.shape.rows), sim::Covariance::exponential(1.0, one.shape.columns), {}};
    model.strengths = {SignalStrength{8.0}, SignalStrength{5.0}};
    model.colouring = one.colouring;
    return model;
}

estimators::QuantizerOptions ParityCoding::options(const stream::StudySeed& seed, std::size_t columns,
                                                   std::uint64_t replicate) const {
    estimators::QuantizerOptions wanted;
    const bool no_power_of_two = rotation == estimators::RotationKind::rht2 && !std::has_single_bit(columns);
    wanted.rotation = no_power_of_two ? estimators::RotationKind::fht_kac : rotation;
    wanted.seed = seed;
    wanted.rotation_index = replicate;
    return wanted;
}

void add_codings(cuda::TrialPlan& plan, const stream::StudySeed& seed, estimators::Shape shape) {
    for (const ParityCoding& one : parity_codings) {
        const estimators::MethodSpec method = estimators::parse_method(one.method);
        const auto options = one.options(seed, shape.columns, first_parity_trial);
        plan.codecs.push_back(trial_codec(method.quantizer, options, shape, parity_bits));
        plan.codecs.back().low_rank = low_rank_part(method, options, shape);
        if (one.rotation == estimators::RotationKind::haar) plan.rotation = drawn_rotation(options);
    }
}

}  // namespace spiked::validation
