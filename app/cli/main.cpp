#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "app/cli/entry.hpp"

namespace {

/// Starts the program again without the thread pool of OpenBLAS if the address space is limited. OpenBLAS creates the
/// pool when it is loaded; it is never used, because the program parallelises over blocks. Each of its threads reserves
/// 128 MiB of address space, and one that gets none waits forever, and the whole program with it.
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
