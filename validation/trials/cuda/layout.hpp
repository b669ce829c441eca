#pragma once
#include <cstddef>

namespace spiked::validation::cuda {

/// Lays out arrays one after the other in one block of memory. With a null address it only counts their bytes.
class Layout {
public:
    explicit Layout(unsigned char* memory) : memory_(memory) {}
    template <class T>
    T* take(std::size_t count) {
        T* const here = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + used_);
        used_ += (count * sizeof(T) + 255) / 256 * 256;
        return here;
    }
    [[nodiscard]] std::size_t used() const { return used_; }

private:
    unsigned char* memory_;
    std::size_t used_ = 0;
};

}  // namespace spiked::validation::cuda
