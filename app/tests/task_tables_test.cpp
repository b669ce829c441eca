// tools/task-tables with small inputs in place of its two trained models: the committed table is what it would write.

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "app/tests/process.hpp"

namespace spiked::app {
namespace {

/// What of the tables does not depend on the models: headings, commands, columns, and of each table the first two
/// cells of its rows, in the order of names.
std::vector<std::string> shape_of(const std::string& tables) {
    std::vector<std::string> shape, rows;
    std::istringstream lines(tables);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("|`")) {
            rows.push_back(line.substr(0, line.find('|', line.find('|', 1) + 1)));
            continue;
        }
        std::sort(rows.begin(), rows.end());
        shape.insert(shape.end(), rows.begin(), rows.end());
        rows.clear();
        if (line.starts_with("#") || line.starts_with("spiked ") || line.starts_with("|")) shape.push_back(line);
    }
    return shape;
}

TEST(TaskTables, AreWhatTheToolWritesForWhatTheProgramKnows) {
    const std::string folder = scratch("tiny");
    std::filesystem::create_directories(folder);
    const auto run = [](const std::string& line) {
        return std::system((line + " 2> '" + scratch("err") + "'").c_str());
    };
    ASSERT_EQ(run("/usr/bin/python3 '" SPIKED_SOURCE_DIR "/sim/tests/llama_in_numpy.py' '" + folder +
                  "' untied 300 > /dev/null"),
              0);
    const std::string dump = scratch("needles.safetensors");
    ASSERT_EQ(spiked("kv generate --tokens 320 --head-dim 64 --layers 1 --heads 1 --needles 16 -o '" + dump + "'").code,
              0);
    // The tool's words with the small inputs in them; everything else is as it is typed.
    std::ofstream(scratch("small.py")) << R"(import os, sys
folder, dump, program, *words = sys.argv[1:]
if "perplexity" in words:
    words[words.index("--model") + 1] = folder
    words[words.index("--tokens") + 1] = folder + "/documents.npy"
elif "retrieve" in words:
    for option in ("--model", "--needles", "--prompts"):
        if option in words:
            del words[words.index(option):words.index(option) + 2]
    words.insert(2, dump)
os.execv(program, [program, *words])
)";
    std::ofstream(scratch("small")) << "#!/bin/sh\nexec /usr/bin/python3 '" << scratch("small.py") << "' '" << folder
                                    << "' '" << dump << "' '" SPIKED_BINARY "' \"$@\"\n";
    std::filesystem::permissions(scratch("small"), std::filesystem::perms::owner_all);
    const int code = run("/usr/bin/python3 '" SPIKED_SOURCE_DIR "/tools/task-tables' small '" + scratch("small") +
                         "' > '" + scratch("tables.md") + "'");
    ASSERT_EQ(code, 0) << contents(scratch("err"));
    const auto written = shape_of(contents(scratch("tables.md")));
    const auto committed = shape_of(contents(SPIKED_SOURCE_DIR "/validation/TASKS.md"));
    EXPECT_GT(written.size(), 100);
    EXPECT_EQ(written, committed);
}

}  // namespace
}  // namespace spiked::app
