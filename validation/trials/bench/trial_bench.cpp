#include "validation/trials/bench/trial_bench.hpp"

#include <cmath>
#include <functional>

#include "core/runtime/error.hpp"
#include "validation/trials/bench/trial_in_numpy.hpp"

namespace spiked::validation {
namespace {

/// Relative tolerance: the programs sum floats in different orders, measured to differ by 1e-7.
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
    Trials dense(setup, sim::Colouring::dense);
    Trials eigenbasis(setup, sim::Colouring::eigenbasis);
    TrialInNumpy numpy(setup);

    TrialTimings result;
    result.numpy = numpy.description();
    const auto note = [&](const char* what, const TrialOutcome& outcome) {
        result.outcomes.push_back(Json::object({{"what", what},
                                                {"rank", outcome.rank},
                                                {"shrunk", outcome.shrunk},
                                                {"mean_squared_error", outcome.mean_squared_error}}));
    };
    const TrialOutcome ours = dense.run(0).front();
    note("spiked", ours);
    note("spiked-eigenbasis-hadamard", eigenbasis.run(0).front());
    for (const auto& [what, decomposition] : {std::pair{"numpy", "svd"}, std::pair{"numpy-eigh", "eigh"}}) {
        const TrialOutcome theirs = numpy.run(decomposition, Trials::white(0));
        note(what, theirs);
        if (!agree(ours, theirs))
            throw postcondition_error("{} finds rank {} and error {:.9g} where spiked finds rank {} and {:.9g}", what,
                                      theirs.rank, theirs.mean_squared_error, ours.rank, ours.mean_squared_error);
    }

    std::uint64_t replicate = 0;
    // The stages always run on the same trials, so that the input of each step is consistent.
    Trials staged(setup, sim::Colouring::dense);
    Trials other_staged(setup, sim::Colouring::eigenbasis);
    static_cast<void>(staged.run(0));
    static_cast<void>(other_staged.run(0));
    const auto whole = [&replicate](const char* what, Trials& trials) {
        return batch_job(what, Trials::batch_size, [&] {
            use_result(trials.run(replicate).front().mean_squared_error);
            replicate += Trials::batch_size;
        });
    };
    const auto in_numpy = [&numpy](const char* decomposition) {
        return [&numpy, decomposition](std::size_t trials) { return numpy.microseconds(decomposition, trials); };
    };
    const auto decompose = batch_job("stage:decompose", Trials::batch_size, [&staged] {
        staged.find_values();
        for (std::size_t at = 0; at < Trials::batch_size; ++at) {
            staged.estimate(at);
            staged.find_vectors(at);
        }
    });
    const std::size_t last = Trials::batch_size - 1;
    result.rows = time_interleaved({whole("spiked", dense),
                                    whole("spiked-eigenbasis-hadamard", eigenbasis),
                                    {"numpy", {}, in_numpy("svd")},
                                    {"numpy-eigh", {}, in_numpy("eigh")},
                                    {"stage:normals", [&] { staged.draw(0); }},
                                    {"stage:colour", [&] { staged.colour(last); }},
                                    decompose,
                                    {"stage:shrink", [&] { staged.estimate(last); }},
                                    {"stage:subtract", [&] { staged.subtract(last); }},
                                    {"stage:rotate", [&] { staged.rotate(); }},
                                    {"stage:quantize", [&] { staged.quantize(); }},
                                    {"stage:colour-eigenbasis", [&] { other_staged.colour(last); }},
                                    {"stage:rotate-hadamard", [&] { other_staged.rotate(); }}},
                                   seconds);
    return result;
}

}  // namespace spiked::validation
