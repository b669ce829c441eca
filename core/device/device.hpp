#pragma once
#include <string>
#include <string_view>
#include <vector>

/// Which processor the batches of a run are computed on.
namespace spiked::cuda {

enum class Backend { cpu, cuda, emulated };
[[nodiscard]] std::string_view name_of(Backend backend);  ///< cpu, cuda, emulated

struct Device {
    Backend backend = Backend::cpu;
    std::vector<int> numbers = {};  ///< GPUs that share the work; of `emulated` one a place; empty: the CPU
    std::string note = {};          ///< why `auto` took the CPU; empty otherwise
};

/// `auto` (the first GPU that can be used, else the CPU), `cpu`, `cuda:N`, or `emulated`: the code of a GPU on the
/// host, thread by thread, for checks; a list, `cuda:0,cuda:1`, shares the work. Throws usage_error on other words, and
/// where a GPU is asked for that cannot be used: without CUDA code in this build, without a driver, without that GPU.
[[nodiscard]] Device choose_device(std::string_view typed);
/// Whether the words are some that choose_device takes on some machine.
[[nodiscard]] bool is_device(std::string_view typed);

}  // namespace spiked::cuda
