#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/runtime/error.hpp"

namespace spiked::sim {

/// A folder for one test, removed with everything in it.
class ScratchFolder {
public:
    ScratchFolder() {
        static std::atomic<unsigned> counter = 0;
        folder_ = std::filesystem::temp_directory_path() /
                  ("spiked-sim-" + std::to_string(::getpid()) + "-" + std::to_string(counter++));
        std::filesystem::create_directories(folder_);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    ~ScratchFolder() {
        std::error_code none;
        std::filesystem::remove_all(folder_, none);
    }
    [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
    [[nodiscard]] std::string write(const std::string& name, std::string_view bytes) const {
        std::ofstream(path(name), std::ios::binary) << bytes;
        return path(name);
    }
    [[nodiscard]] std::size_t files() const {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
    }

private:
    std::filesystem::path folder_;
};

[[nodiscard]] inline std::string bytes_of_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Expects the action to throw an Error of this kind and a one-line message that contains every part.
template <class Action>
void expect_error(ErrorKind kind, Action action, std::initializer_list<std::string_view> parts) {
    try {
        action();
        ADD_FAILURE() << "no error; expected one with: " << *parts.begin();
    } catch (const Error& error) {
        const std::string message = error.what();
        EXPECT_EQ(error.kind(), kind) << message;
        EXPECT_EQ(message.find('\n'), std::string::npos) << message;
        for (const auto part : parts)
            EXPECT_NE(message.find(part), std::string::npos) << part << "\nis not in\n" << message;
    }
}

/// `value` in `width` bytes, little-endian.
[[nodiscard]] inline std::string little_endian(std::uint64_t value, std::size_t width) {
    std::string bytes;
    for (std::size_t i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFFU);
    return bytes;
}

/// A safetensors file of the length of the header, the header and the data, none of them checked.
[[nodiscard]] inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
    return little_endian(header.size(), 8) + header + data;
}

/// A .npy file of version 1, 2 or 3 with this header text.
[[nodiscard]] inline std::string npy_bytes(const std::string& header, const std::string& data, int version = 1) {
    return std::string("\x93NUMPY") + static_cast<char>(version) + '\0' +
           little_endian(header.size(), version == 1 ? 2 : 4) + header + data;
}

}  // namespace spiked::sim
