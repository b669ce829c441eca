#pragma once
#include <stdexcept>
#include <string>

namespace spiked::cuda {

/// A call to the CUDA runtime failed. The message holds the runtime's error text.
class DeviceFailure : public std::runtime_error {
public:
    DeviceFailure(const std::string& doing, const std::string& reason, bool of_memory)
        : std::runtime_error(doing + " failed on the GPU (" + reason + ")"), out_of_memory_(of_memory) {}
    [[nodiscard]] bool out_of_memory() const { return out_of_memory_; }

private:
    bool out_of_memory_;
};

}  // namespace spiked::cuda
