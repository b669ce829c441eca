#pragma once
#include <cstddef>
#include <string>

#include "app/c/spiked.h"
#include "core/runtime/error.hpp"
#include "core/runtime/stop_point.hpp"

namespace spiked::c {

/// Thrown where a caller's buffer is too small; the message says how large it has to be.
struct BufferTooSmall {
    std::string message;
};

/// Sets spiked_last_error() of this thread to the message of the exception that is being handled, and returns its
/// status. Allocates nothing that it cannot do without.
[[nodiscard]] int record_failure() noexcept;

/// While objects of this class exist, OpenBLAS uses one thread, on which the bits of every result depend, and has work
/// buffers for that many calls at once. The last one that ends restores the number of threads.
class OneBlasThread {
public:
    OneBlasThread();
    ~OneBlasThread();
    OneBlasThread(const OneBlasThread&) = delete;
    OneBlasThread& operator=(const OneBlasThread&) = delete;
};

/// The question that this thread has set by spiked_stop_when.
[[nodiscard]] StopQuestion stop_question() noexcept;

/// The number of threads that this thread has asked for by spiked_use_threads.
[[nodiscard]] std::size_t asked_threads() noexcept;

/// Runs the body of a function of the interface: its status, and no exception.
template <class Work>
int guarded(const Work& work) noexcept {
    try {
        work();
        return SPIKED_OK;
    } catch (...) {
        return record_failure();
    }
}

/// The same for a body that multiplies matrices.
template <class Work>
int computed(const Work& work) noexcept {
    return guarded([&] {
        const OneBlasThread one;
        const StopScope scope(stop_question());
        work();
    });
}

/// The object that an argument points to. Throws usage_error for NULL.
template <class T>
T& required(T* argument, const char* name) {
    if (argument == nullptr) throw usage_error("{} is NULL (it is not optional): pass a pointer", name);
    return *argument;
}

/// The same of a text or an array.
template <class T>
T* required_array(T* argument, const char* name) {
    return &required(argument, name);
}

}  // namespace spiked::c
