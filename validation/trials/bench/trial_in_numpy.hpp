#pragma once
#include <string_view>

#include "core/timing/numpy_peer.hpp"
#include "validation/trials/bench/trial.hpp"

namespace spiked::validation {

/// The same trial as a NumPy program (trial_in_numpy.py). `decomposition` is svd or eigh. Throws like NumpyPeer.
class TrialInNumpy {
public:
    explicit TrialInNumpy(const TrialSetup& setup);

    [[nodiscard]] const Json& description() const { return peer_.description(); }
    /// A trial, over so many of them on fresh draws, by the program's own clock.
    [[nodiscard]] double microseconds(std::string_view decomposition, std::size_t trials);
    /// One trial on these normals.
    [[nodiscard]] TrialOutcome run(std::string_view decomposition, const arma::fmat& white);

private:
    NumpyPeer peer_;
};

}  // namespace spiked::validation
