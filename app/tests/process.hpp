#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/text/json.hpp"

namespace spiked::app {

/// Whether this build has a sanitizer, which reserves much address space and must be the first library that is loaded.
inline constexpr bool sanitized =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#else
    false;
#endif

struct Outcome {
    int code = -1;
    std::string out;
    std::string err;

    [[nodiscard]] Json json() const { return Json::parse(out, "standard output"); }
};

/// A temporary folder of this process, removed at its end.
class ScratchFolder {
public:
    ScratchFolder() {
        if (mkdtemp(path_.data()) == nullptr) std::abort();
    }
    ~ScratchFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_ = "/tmp/spiked-test-XXXXXX";
};

inline std::string scratch(const std::string& name) {
    static const ScratchFolder folder;
    return folder.path() + "/" + name;
}

/// Creates a folder with the text as study.toml and returns its path.
inline std::string folder_with_study(const std::string& name, const std::string& text) {
    const std::string folder = scratch(name);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/study.toml") << text;
    return folder;
}

/// The prefix of a shell command that is to run in a folder.
inline std::string in(const std::string& folder) { return "cd \"" + folder + "\" && "; }

inline std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

/// Runs `spiked WORDS` in a shell, as a user does. `before` is put before the command, for environment or limits.
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

inline const std::string sample_dump = SPIKED_SOURCE_DIR "/sim/kv/tests/data/rope-lm-cut.safetensors";

/// How often a test kills the program: SPIKED_KILLS, or 20 times.
inline int kills_wanted() {
    const char* wanted = std::getenv("SPIKED_KILLS");
    return wanted == nullptr ? 20 : std::atoi(wanted);
}

}  // namespace spiked::app
