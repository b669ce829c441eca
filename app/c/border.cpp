#include "app/c/border.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string_view>

#include "app/c/arrays.hpp"
#include "app/cli/exit_code.hpp"
#include "core/runtime/blas_buffers.hpp"
#include "core/runtime/parallel.hpp"
#include "core/text/printable.hpp"

#ifdef SPIKED_OPENBLAS
extern "C" {
int openblas_get_num_threads();
void openblas_set_num_threads(int count);
}
#endif

namespace spiked::c {
namespace {

/// An array, so that remembering a message cannot fail.
thread_local std::array<char, 2048> last_message{};

/// The number that the caller named in spiked_stop_when, not 0 once calls of this thread are to stop; null without one.
constinit thread_local const volatile int* stop_number = nullptr;
constinit thread_local std::size_t thread_number = 1;

int remember(int status, std::string_view message) noexcept {
    const std::size_t length = std::min(message.size(), last_message.size() - 1);
    std::memcpy(last_message.data(), message.data(), length);
    last_message[length] = '\0';
    return status;
}

/// Makes the message one line of UTF-8 that fits.
int remember_text(int status, const std::string& message) noexcept {
    try {
        std::string line = without_control_characters(one_line(message));
        if (line.size() >= last_message.size()) {
            line.resize(last_message.size() - 1);
            trim_partial_character(line);
        }
        return remember(status, line);
    } catch (...) {
        return remember(status, message);
    }
}

int out_of_memory() noexcept {
    return remember(SPIKED_MEMORY, "out of memory (the call needs more than there is): pass less data at once");
}

struct BlasThreads {
    std::mutex guard;
    std::size_t calls = 0;
    int before = 0;
};

BlasThreads& blas_threads();

/// The child of a fork has only the thread that forked, so calls of other threads never end there.
void forget_calls_in_child() {
    BlasThreads& blas = blas_threads();
#ifdef SPIKED_OPENBLAS
    if (blas.calls > 0 && blas.before != 1) openblas_set_num_threads(blas.before);
#endif
    blas.calls = 0;
    blas.guard.unlock();
}

BlasThreads* made_blas_threads() {
    auto* const state = new BlasThreads;
    // Without memory for it, a child keeps the number of threads that it has.
    (void)pthread_atfork([] { blas_threads().guard.lock(); }, [] { blas_threads().guard.unlock(); },
                         forget_calls_in_child);
    return state;
}

/// Never destroyed, so that calls may come from destructors at the end of the program.
BlasThreads& blas_threads() {
    static auto* const state = made_blas_threads();
    return *state;
}

}  // namespace

int record_failure() noexcept {
    try {
        throw;
    } catch (const BufferTooSmall& error) {
        return remember_text(SPIKED_TOO_SMALL, error.message);
    } catch (const Error& error) {
        return remember_text(static_cast<int>(app::exit_code(error.kind())), error.what());
    } catch (const std::bad_alloc&) {
        return out_of_memory();
    } catch (const std::length_error&) {
        return out_of_memory();
    } catch (const std::filesystem::filesystem_error& error) {
        return remember_text(SPIKED_INPUT, error.what());
    } catch (const std::exception& error) {
        return remember_text(SPIKED_INTERNAL, error.what());
    } catch (...) {
        return remember(SPIKED_INTERNAL, "unexpected: an exception of an unknown type");
    }
}

StopQuestion stop_question() noexcept {
    if (stop_number == nullptr) return {};
    return {[](const void* number) { return __atomic_load_n(static_cast<const int*>(number), __ATOMIC_RELAXED) != 0; },
            const_cast<const int*>(stop_number)};
}

std::size_t asked_threads() noexcept { return thread_number; }

OneBlasThread::OneBlasThread() {
    BlasThreads& blas = blas_threads();
    const std::lock_guard lock(blas.guard);
    hold_blas_buffers(blas.calls + 1);
#ifdef SPIKED_OPENBLAS
    if (blas.calls == 0) {
        blas.before = openblas_get_num_threads();
        if (blas.before != 1) openblas_set_num_threads(1);
    }
#endif
    ++blas.calls;
}

OneBlasThread::~OneBlasThread() {
    BlasThreads& blas = blas_threads();
    const std::lock_guard lock(blas.guard);
    if (blas.calls == 0) return;  // this call began before a fork
    --blas.calls;
#ifdef SPIKED_OPENBLAS
    if (blas.calls == 0 && blas.before != 1) openblas_set_num_threads(blas.before);
#endif
}

}  // namespace spiked::c

extern "C" {

const char* spiked_last_error(void) { return spiked::c::last_message.data(); }

void spiked_stop_when(const volatile int* stop) { spiked::c::stop_number = stop; }

int spiked_use_threads(int64_t threads) {
    return spiked::c::guarded([&] {
        const std::size_t asked = spiked::c::count_of(threads, 0, "threads");
        (void)spiked::thread_count(asked);  // rejects too many
        spiked::c::thread_number = asked;
    });
}

}  // extern "C"
