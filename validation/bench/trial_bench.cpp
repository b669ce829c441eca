#include "validation/bench/trial_bench.hpp"

#include <cmath>

#include "theory/base/error.hpp"
#include "validation/bench/trial_in_numpy.hpp"

namespace spiked::validation {
namespace {

/// Float data, different order of sums; measured 1e-7.
constexpr double agreement = 1e-5;

bool close(double a, double b) { return std::abs(a - b) <= agreement * std::abs(a); }

bool agree(const TrialOutcome& a, const TrialOutcome& b) {
    if (a.rank != b.rank || a.shrunk.size() != b.shrunk.size()) return false;
    for (std::size_t i = 0; i < a.shrunk.size(); ++i)
        if (!close(a.shrunk[i], b.shrunk[i])) return false;
    return close(a.mean_squared_error, b.mean_squared_error);
}

}  // namespace

TrialTimings time_trials(double seconds) {
    const TrialSetup setup = trial_setup();
    Trial dense(setup, sim::Colouring::dense);
    Trial eigenbasis(setup, sim::Colouring::eigenbasis);
    TrialInNumpy numpy(setup);

    TrialTimings result;
    result.numpy = numpy.description();
    const auto note = [&](const char* what, const TrialOutcome& outcome) {
        result.outcomes.push_back(Json::object({{"what", what},
                                                {"rank", outcome.rank},
                                                {"shrunk", outcome.shrunk},
                                                {"mean_squared_error", outcome.mean_squared_error}}));
    };
    const TrialOutcome ours = dense.run(0);
    note("spiked", ours);
    note("spiked-eigenbasis-hadamard", eigenbasis.run(0));
    for (const auto& [what, decomposition] : {std::pair{"numpy", "svd"}, std::pair{"numpy-eigh", "eigh"}}) {
        const TrialOutcome theirs = numpy.run(decomposition, dense.white());
        note(what, theirs);
        if (!agree(ours, theirs))
            throw bug("{} finds rank {} and error {:.9g} where spiked finds rank {} and {:.9g}", what, theirs.rank,
                      theirs.mean_squared_error, ours.rank, ours.mean_squared_error);
    }

    std::uint64_t replicate = 0;
    // Always the same trial, so that each step finds what fits it.
    Trial staged(setup, sim::Colouring::dense);
    Trial other_staged(setup, sim::Colouring::eigenbasis);
    static_cast<void>(staged.run(0));
    static_cast<void>(other_staged.run(0));
    const auto whole = [&replicate](Trial& trial) {
        return [&] { use_result(trial.run(++replicate).mean_squared_error); };
    };
    const auto in_numpy = [&numpy](const char* decomposition) {
        return [&numpy, decomposition](std::size_t trials) { return numpy.microseconds(decomposition, trials); };
    };
    const auto stage = [](Trial& trial, auto... steps) {
        return [&trial, steps...] { (static_cast<void>((trial.*steps)()), ...); };
    };
    result.rows = time_interleaved({{"spiked", whole(dense)},
                                    {"spiked-eigenbasis-hadamard", whole(eigenbasis)},
                                    {"numpy", {}, in_numpy("svd")},
                                    {"numpy-eigh", {}, in_numpy("eigh")},
                                    {"stage:normals", [&staged] { staged.draw(0); }},
                                    {"stage:colour", stage(staged, &Trial::colour)},
                                    {"stage:decompose", stage(staged, &Trial::find_values, &Trial::find_vectors)},
                                    {"stage:shrink", stage(staged, &Trial::estimate, &Trial::subtract)},
                                    {"stage:rotate", stage(staged, &Trial::rotate)},
                                    {"stage:quantize", stage(staged, &Trial::quantize)},
                                    {"stage:colour-eigenbasis", stage(other_staged, &Trial::colour)},
                                    {"stage:rotate-hadamard", stage(other_staged, &Trial::rotate)}},
                                   seconds);
    return result;
}

}  // namespace spiked::validation
