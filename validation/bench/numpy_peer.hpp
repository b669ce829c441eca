#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "theory/base/json.hpp"
#include "validation/bench/trial.hpp"

namespace spiked::validation {

/// The same trial as a NumPy program (trial_numpy.py, compiled in) in a process of Debian's /usr/bin/python3 with one
/// thread. `decomposition` is svd or eigh.
///
/// Every member throws input_error when there is no such Python, no NumPy, or when the program fails; the constructor
/// also when NumPy is not on OpenBLAS.
class NumpyPeer {
public:
    explicit NumpyPeer(const TrialSetup& setup);
    ~NumpyPeer();
    NumpyPeer(const NumpyPeer&) = delete;
    NumpyPeer& operator=(const NumpyPeer&) = delete;

    /// Versions, BLAS, threads.
    [[nodiscard]] const Json& description() const { return description_; }
    /// A trial, over so many of them on fresh draws, by the program's own clock.
    [[nodiscard]] double microseconds(std::string_view decomposition, std::size_t trials);
    /// One trial on these normals.
    [[nodiscard]] TrialOutcome run(std::string_view decomposition, const arma::fmat& white);

private:
    void send(const void* bytes, std::size_t count);
    [[nodiscard]] Json answer();

    int socket_ = -1;
    int process_ = -1;
    std::string received_;
    Json description_;
};

}  // namespace spiked::validation
