#include "theory/base/cuda/device.hpp"

#include <charconv>

#include "theory/base/cuda/device_count.hpp"
#include "theory/base/error.hpp"

namespace spiked::cuda {

#ifndef SPIKED_HAS_CUDA
DeviceCount device_count() { return {0, "this build has no CUDA code, nvcc was not found"}; }
#endif

Device choose_device(std::string_view typed) {
    if (typed == "cpu") return {};
    const DeviceCount found = device_count();
    if (typed == "auto") {
        if (found.count > 0) return {0, ""};
        return {std::nullopt, fmt::format("no GPU is used ({}): computing on the CPU", found.problem)};
    }
    constexpr std::string_view prefix = "cuda:";
    int number = -1;
    const char* const end = typed.data() + typed.size();
    if (!typed.starts_with(prefix) || std::from_chars(typed.data() + prefix.size(), end, number).ptr != end ||
        number < 0)
        throw usage_error("device \"{}\" is not known (auto, cpu, or cuda:0 and so on): give one of these", typed);
    if (found.count == 0)
        throw usage_error("device \"{}\" cannot be used ({}): leave --device out, or --device cpu", typed,
                          found.problem);
    if (number >= found.count)
        throw usage_error("device \"{}\" is not there (the driver shows {}, counted from 0): give a smaller number",
                          typed, found.count);
    return {number, ""};
}

}  // namespace spiked::cuda
