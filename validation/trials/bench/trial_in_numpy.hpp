#pragma once
#include <string_view>

#include "core/timing/numpy_peer.hpp"
#include "validation/trials/bench/trial.hpp"

namespace spiked::validation {

/// The same trial in a NumPy program (trial_in_numpy.py). `decomposition` is svd or eigh. Throws as NumpyPeer does.
class TrialInNumpy {
public:
    explicit TrialInNumpy(const TrialSetup& setup);

    [[nodiscard]] const Json& description() const { return peer_.description(); }
    /// Mean time of a trial over `trials` trials on new draws, measured by the program itself.
    [[nodiscard]] double microseconds(std::string_view decomposition, std::size_t trials);
    /// Runs one trial on these standard normals.
    [[nodiscard]] TrialOutcome run(std::string_view decomposition, const arma::fmat& white);

private:
    NumpyPeer peer_;
};

}  // namespace spiked::validation
