#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/text/json.hpp"

namespace spiked {

/// A NumPy program in a single-threaded process of Debian's /usr/bin/python3. The program is numpy_peer.py followed by
/// a class Work; both are compiled into this binary.
///
/// Every member throws input_error when this Python or NumPy is missing or the program fails, and the constructor also
/// when NumPy does not use OpenBLAS.
class NumpyPeer {
public:
    /// `begin` sends the data that follow the header line.
    NumpyPeer(const char* work, const Json& header, const std::function<void(NumpyPeer&)>& begin);
    ~NumpyPeer();
    NumpyPeer(const NumpyPeer&) = delete;
    NumpyPeer& operator=(const NumpyPeer&) = delete;

    /// Versions of Python and NumPy, the BLAS and its number of threads.
    [[nodiscard]] const Json& description() const { return description_; }
    void send(const void* bytes, std::size_t count);
    /// Sends one line, which is a command.
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
