#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace spiked::estimators {

/// An array that starts at a cache line and is zero at first. Large arrays use huge pages.
template <class Real>
class AlignedArray {
public:
    static constexpr std::size_t alignment = 64;

    AlignedArray() = default;
    explicit AlignedArray(std::size_t size) : size_(size) {
        const std::size_t bytes = size * sizeof(Real);
        const std::size_t start = bytes < large_page ? alignment : large_page;
        void* const memory = operator new (bytes, std::align_val_t{start});
#if defined(__linux__)
        if (bytes >= large_page) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
        entries_ = std::unique_ptr<Real[], Free>(static_cast<Real*>(memory), Free{start});
        std::fill_n(entries_.get(), size, Real(0));
    }

    [[nodiscard]] Real* data() { return entries_.get(); }
    [[nodiscard]] const Real* data() const { return entries_.get(); }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] Real& operator[](std::size_t i) { return entries_[i]; }
    [[nodiscard]] const Real& operator[](std::size_t i) const { return entries_[i]; }

private:
    struct Free {
        std::size_t start;
        void operator()(Real* entries) const { operator delete (entries, std::align_val_t{start}); }
    };
    static constexpr std::size_t large_page = std::size_t{1} << 21;

    std::unique_ptr<Real[], Free> entries_{nullptr, Free{alignment}};
    std::size_t size_ = 0;
};

}  // namespace spiked::estimators
