#include <cstdio>
#include <cstdlib>

#include "app/fuzz/targets.hpp"

// The entry point of libFuzzer for all targets. The environment variable SPIKED_FUZZ names the target.

namespace {

const spiked::app::FuzzTarget* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    const char* name = std::getenv("SPIKED_FUZZ");
    for (const auto& target : spiked::app::fuzz_targets())
        if (name != nullptr && target.name == name) chosen = &target;
    if (chosen != nullptr) return 0;
    for (const auto& target : spiked::app::fuzz_targets()) std::printf("%s\n", target.name.c_str());
    std::fprintf(stderr, "SPIKED_FUZZ names none of these targets\n");
    std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    (void)spiked::app::accepts(*chosen, {data, size});
    return 0;
}
