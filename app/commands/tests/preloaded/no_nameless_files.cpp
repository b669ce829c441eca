// A library to preload: lets unnamed files (O_TMPFILE) fail, as on file systems without them.
#include <dlfcn.h>
#include <fcntl.h>

#include <cerrno>
#include <cstdarg>

extern "C" int open(const char* path, int flags, ...) {
    using Real = int (*)(const char*, int, ...);
    static const auto real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "open"));
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    return real(path, flags, mode);
}
