#include "core/runtime/memory.hpp"

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace spiked {
namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

/// The number in a limit file of a control group; no_limit when the file holds "max" or does not exist.
std::uint64_t number_in(const std::string& path) {
    std::ifstream file(path);
    std::uint64_t bytes = 0;
    return file >> bytes ? bytes : no_limit;
}

/// The smallest memory limit of this process's control group (version 2) and the groups that contain it.
std::uint64_t group_limit() {
    std::ifstream groups("/proc/self/cgroup");
    std::string line;
    std::uint64_t least = no_limit;
    while (std::getline(groups, line)) {
        if (!line.starts_with("0::/")) continue;
        for (std::string group = line.substr(3);; group.resize(group.rfind('/'))) {
            least = std::min(least, number_in("/sys/fs/cgroup" + group + "/memory.max"));
            if (group.empty() || group == "/") break;
        }
    }
    return least;
}

std::uint64_t limits_of_process() {
    std::uint64_t least = group_limit();
    struct sysinfo machine {};
    if (sysinfo(&machine) == 0)
        least =
            std::min<std::uint64_t>(least, (std::uint64_t{machine.totalram} + machine.totalswap) * machine.mem_unit);
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        least = std::min<std::uint64_t>(least, limit.rlim_cur);
    return least;
}

}  // namespace

std::uint64_t allowed_memory() {
    static const std::uint64_t least = limits_of_process();  // cached, because every cell of a study calls this
    return least;
}

}  // namespace spiked
