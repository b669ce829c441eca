#pragma once
#include <stdexcept>
#include <string>

namespace spiked::cuda {

/// What the CUDA runtime answered when something failed on a GPU.
class DeviceFailure : public std::runtime_error {
public:
    DeviceFailure(const std::string& doing, const std::string& answer, bool of_memory)
        : std::runtime_error(doing + " failed on the GPU (" + answer + ")"), out_of_memory_(of_memory) {}
    [[nodiscard]] bool out_of_memory() const { return out_of_memory_; }

private:
    bool out_of_memory_;
};

}  // namespace spiked::cuda
