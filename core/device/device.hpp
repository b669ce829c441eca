#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/device_count.hpp"

/// Which processor the batches of a run are computed on.
namespace spiked::cuda {

enum class Backend { cpu, cuda, emulated };
[[nodiscard]] std::string_view name_of(Backend backend);  ///< cpu, cuda, emulated
/// The name of one device in messages: cuda:0, emulated.
[[nodiscard]] std::string name_of(Backend backend, int number);

struct Device {
    Backend backend = Backend::cpu;
    std::vector<int> numbers = {};  ///< the GPUs or emulated devices that share the work; empty for the CPU
    std::string note = {};          ///< why `auto` chose the CPU; empty otherwise
    bool or_cpu = false;            ///< chosen by `auto`: the CPU may go on when every device is lost
    /// Told of each device that is lost while others go on. Called by any thread, one call at a time; may be empty.
    std::function<void(const std::string&)> report = {};
};

/// What the driver of this machine says about its GPUs; a test replaces the answers.
struct Driver {
    std::function<DeviceCount()> count = device_count;
    std::function<std::string(int)> problem = device_problem;
};

/// Parses the value of --device: `auto` (the first usable GPU, else the CPU), `cpu`, `cuda:N`, or `emulated`, which
/// runs the GPU code on the host, thread by thread, for checks. A list such as `cuda:0,cuda:1` splits the work over its
/// devices. Throws usage_error for any other name, and when a named GPU cannot be used because this build has no CUDA
/// code, there is no driver, or that GPU does not exist.
[[nodiscard]] Device choose_device(std::string_view name, const Driver& driver = {});
/// Whether choose_device accepts the name on at least some machines.
[[nodiscard]] bool is_device(std::string_view name);

}  // namespace spiked::cuda
