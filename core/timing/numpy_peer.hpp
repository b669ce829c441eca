#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/text/json.hpp"

namespace spiked {

/// A NumPy program (numpy_peer.py and the class Work appended to it, both compiled in) in a process of Debian's
/// /usr/bin/python3 with one thread.
///
/// Every member throws input_error when there is no such Python, no NumPy, or when the program fails; the constructor
/// also when NumPy is not on OpenBLAS.
class NumpyPeer {
public:
    /// `begin` sends what belongs to the header.
    NumpyPeer(const char* work, const Json& header, const std::function<void(NumpyPeer&)>& begin);
    ~NumpyPeer();
    NumpyPeer(const NumpyPeer&) = delete;
    NumpyPeer& operator=(const NumpyPeer&) = delete;

    /// Versions, BLAS, threads.
    [[nodiscard]] const Json& description() const { return description_; }
    void send(const void* bytes, std::size_t count);
    /// Sends a command line.
    void say(std::string line);
    [[nodiscard]] Json answer();
    [[nodiscard]] static double number(const Json& answer, const char* key);
    [[nodiscard]] static std::vector<double> numbers(const Json& answer, const char* key);

private:
    int socket_ = -1;
    int process_ = -1;
    std::string received_;
    Json description_;
};

}  // namespace spiked
