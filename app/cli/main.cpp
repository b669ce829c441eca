#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "app/cli/entry.hpp"

namespace {

/// OpenBLAS is loaded with a pool of threads (never used: parallel work is over blocks), each with a buffer of 128 MiB
/// of address space; one that finds none waits for ever, and everything with it. Under a limit: again, without a pool.
void start_again_without_pool(char** argv) {
    constexpr const char* pool = "OPENBLAS_NUM_THREADS";
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || std::getenv(pool) != nullptr) return;
    if (setenv(pool, "1", 1) == 0) execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
    start_again_without_pool(argv);
    return spiked::app::run_command_line(argc, argv);
}
