#include "core/timing/numpy_peer.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/runtime/error.hpp"
#include "core/timing/numpy_peer_program.hpp"

namespace spiked {
namespace {

constexpr const char* python = "/usr/bin/python3";

const Json& part_of(const Json& answer, const char* key) {
    const Json* part = answer.find(key);
    if (part == nullptr) throw data_error("the answer of the NumPy program lacks {}", key);
    return *part;
}

double number_of(const Json& json) {
    return json.real() != nullptr ? *json.real() : static_cast<double>(*json.integer());
}

}  // namespace

NumpyPeer::NumpyPeer(const char* work, const Json& header, const std::function<void(NumpyPeer&)>& begin) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
        throw output_error("no connection to {} can be created ({}): close other programs", python,
                           std::strerror(errno));
    socket_ = ends[0];
    const timeval timeout{.tv_sec = 900, .tv_usec = 0};  // a decomposition of 4096 x 4096 takes minutes
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    // -I ignores the working folder and the user's packages, so that NumPy is Debian's.
    std::string name = python;
    std::string isolated = "-I";
    std::string command = "-c";
    std::string program =
        std::string(numpy_peer_program) + work + "\nmain(Work, sys.stdin.buffer, sys.stdout.buffer)\n";
    std::array<char*, 5> arguments = {name.data(), isolated.data(), command.data(), program.data(), nullptr};
    const int status = posix_spawn(&process_, python, &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (status != 0) {
        close(socket_);
        throw input_error("{} cannot be started ({}): apt install python3-numpy", python, std::strerror(status));
    }
    try {
        say(header.text());
        begin(*this);
        description_ = answer();
        const Json* blas = description_.find("blas");
        if (blas == nullptr || blas->is_null())
            throw input_error(
                "NumPy of {} uses {} instead of OpenBLAS (the reference BLAS is many times slower, and ratios to it "
                "mean nothing): apt install libopenblas0-pthread, or choose it with update-alternatives --config "
                "libblas.so.3-x86_64-linux-gnu",
                python, description_.find("blas_file")->text());
    } catch (...) {
        close(socket_);
        waitpid(process_, nullptr, 0);
        throw;
    }
}

NumpyPeer::~NumpyPeer() {
    close(socket_);  // the program ends when its input ends
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

void NumpyPeer::say(std::string line) {
    line += '\n';
    send(line.data(), line.size());
}

double NumpyPeer::number(const Json& answer, const char* key) { return number_of(part_of(answer, key)); }

std::vector<double> NumpyPeer::numbers(const Json& answer, const char* key) {
    std::vector<double> values;
    for (const Json& value : *part_of(answer, key).items()) values.push_back(number_of(value));
    return values;
}

void NumpyPeer::send(const void* bytes, std::size_t count) {
    const auto* at = static_cast<const char*>(bytes);
    while (count > 0) {
        const ssize_t sent = ::send(socket_, at, count, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return;  // the program has ended; answer() reports why
        at += sent;
        count -= static_cast<std::size_t>(sent);
    }
}

Json NumpyPeer::answer() {
    std::array<char, 4096> buffer;
    std::size_t end = 0;
    while ((end = received_.find('\n')) == std::string::npos) {
        const ssize_t got = recv(socket_, buffer.data(), buffer.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            throw input_error("the NumPy program of {} gave no answer ({}): run {} -c \"import numpy\"", python,
                              got == 0 ? "it ended" : std::strerror(errno), python);
        received_.append(buffer.data(), static_cast<std::size_t>(got));
    }
    Json document = Json::parse(received_.substr(0, end), "the NumPy program");
    received_.erase(0, end + 1);
    if (const Json* error = document.find("error"); error != nullptr)
        throw input_error("NumPy cannot be used with {} ({}): apt install python3-numpy", python, *error->string());
    return document;
}

}  // namespace spiked
