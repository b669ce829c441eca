#include "core/device/device.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/device/device_count.hpp"
#include "core/runtime/error.hpp"
#include "core/text/enum_names.hpp"
#include "core/text/names.hpp"

template <>
struct spiked::EnumNames<spiked::cuda::Backend> {
    using Backend = spiked::cuda::Backend;
    static constexpr EnumName<Backend> table[] = {
        {Backend::cpu, "cpu"}, {Backend::cuda, "cuda"}, {Backend::emulated, "emulated"}};
};

namespace spiked::cuda {
namespace {

/// The N of `cuda:N`; empty when the text has another form.
std::optional<int> number_of(std::string_view part) {
    constexpr std::string_view prefix = "cuda:";
    int number = -1;
    const char* const end = part.data() + part.size();
    if (!part.starts_with(prefix) || std::from_chars(part.data() + prefix.size(), end, number).ptr != end || number < 0)
        return std::nullopt;
    return number;
}

}  // namespace

#ifndef SPIKED_HAS_CUDA
DeviceCount device_count() { return {0, "this build has no CUDA code, because it was compiled without nvcc"}; }
std::string device_problem(int) { return device_count().problem; }
std::size_t free_memory(int) { return 0; }
#endif

std::string_view name_of(Backend backend) { return enum_name(backend); }

bool is_device(std::string_view name) {
    if (name == "auto" || name == "cpu") return true;
    const std::vector<std::string> parts = split(name, ',');
    const auto all = [&](const auto& holds) { return std::all_of(parts.begin(), parts.end(), holds); };
    return !parts.empty() && (all([](const std::string& part) { return part == name_of(Backend::emulated); }) ||
                              all([](const std::string& part) { return number_of(part).has_value(); }));
}

std::string name_of(Backend backend, int number) {
    return backend == Backend::cuda ? fmt::format("cuda:{}", number) : std::string(name_of(backend));
}

Device choose_device(std::string_view name, const Driver& driver) {
    if (!is_device(name))
        throw usage_error("device \"{}\" is not known (auto, cpu, cuda:0 and so on, or emulated): give one of these",
                          name);
    if (name == "cpu") return {};
    if (name == "auto") {
        const DeviceCount found = driver.count();
        const std::string problem = found.count > 0 ? driver.problem(0) : found.problem;
        if (problem.empty()) return {Backend::cuda, {0}, "", true};
        return {Backend::cpu, {}, fmt::format("no GPU is used ({}): computing on the CPU", problem)};
    }
    Device device;
    for (const std::string& part : split(name, ',')) {
        const std::optional<int> number = number_of(part);
        device.backend = number ? Backend::cuda : Backend::emulated;
        device.numbers.push_back(number.value_or(static_cast<int>(device.numbers.size())));
        if (!number) continue;
        const DeviceCount found = driver.count();
        if (found.count > 0 && *number >= found.count)
            throw usage_error(
                "device \"{}\" does not exist (the driver reports {} in all, counted from 0): give a smaller number",
                part, found.count);
        const std::string problem = found.count > 0 ? driver.problem(*number) : found.problem;
        if (!problem.empty())
            throw usage_error("device \"{}\" cannot be used ({}): leave --device out, or --device cpu", part, problem);
    }
    return device;
}

}  // namespace spiked::cuda
