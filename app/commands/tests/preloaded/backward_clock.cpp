// A library to preload: sets the calendar clock of a process back by one more day at every call. The monotonic clock is
// not changed.
#include <dlfcn.h>
#include <sys/time.h>

#include <atomic>
#include <ctime>

namespace {

time_t seconds_back() {
    static std::atomic<time_t> calls = 0;
    return 86400 * ++calls;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
    using Real = int (*)(clockid_t, timespec*);
    static const auto real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "clock_gettime"));
    const int result = real(clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec -= seconds_back();
    return result;
}

int gettimeofday(timeval* now, void*) noexcept {
    timespec time{};
    const int result = clock_gettime(CLOCK_REALTIME, &time);
    *now = {time.tv_sec, time.tv_nsec / 1000};
    return result;
}

time_t time(time_t* result) noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    if (result != nullptr) *result = now.tv_sec;
    return now.tv_sec;
}
}
