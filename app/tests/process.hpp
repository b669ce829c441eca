#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "theory/base/json.hpp"

namespace spiked::app {

struct Outcome {
    int code = -1;
    std::string out;
    std::string err;

    [[nodiscard]] Json json() const { return Json::parse(out, "standard output"); }
};

inline std::string scratch(const std::string& name) {
    static const std::string folder = [] {
        std::string pattern = "/tmp/spiked-test-XXXXXX";
        if (mkdtemp(pattern.data()) == nullptr) std::abort();
        return pattern;
    }();
    return folder + "/" + name;
}

inline std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

/// Runs `spiked WORDS` in a shell, as a user does; `before` goes in front, for environment or limits.
inline Outcome spiked(const std::string& words, const std::string& before = "") {
    const std::string out = scratch("out");
    const std::string err = scratch("err");
    const std::string line = before + " '" SPIKED_BINARY "' " + words + " >'" + out + "' 2>'" + err + "' </dev/null";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), contents(out), contents(err)};
}

inline double number(const Json& json) {
    return json.real() != nullptr ? *json.real() : static_cast<double>(*json.integer());
}
inline double number(const Json& json, const char* key) { return number(*json.find(key)); }

inline const std::string sample_dump = SPIKED_SOURCE_DIR "/sim/tests/data/rope-lm-cut.safetensors";

}  // namespace spiked::app
