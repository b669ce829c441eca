#pragma once
#include <optional>
#include <string>
#include <string_view>

/// Which processor the batches of a run are computed on.
namespace spiked::cuda {

struct Device {
    std::optional<int> gpu;  ///< its number; the CPU where there is none
    std::string note;        ///< why `auto` took the CPU; empty otherwise
};

/// `auto` (the first GPU that can be used, else the CPU), `cpu` or `cuda:N`. Throws usage_error on other words, and
/// where a GPU is asked for that cannot be used: without CUDA code in this build, without a driver, without that GPU.
[[nodiscard]] Device choose_device(std::string_view typed);

}  // namespace spiked::cuda
