#include "core/files/temporary.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <system_error>

#include "core/runtime/error.hpp"

namespace spiked {
namespace {

/// Paths that a signal handler may read at any moment. Few exist at once; paths beyond the number of slots are removed
/// only by their destructors.
class RegisteredPaths {
public:
    void add(const char* path) {
        for (auto& slot : slots_)
            if (const char* none = nullptr; slot.compare_exchange_strong(none, path)) return;
    }
    void remove(const char* path) {
        for (auto& slot : slots_)
            if (const char* own = path; slot.compare_exchange_strong(own, nullptr)) return;
    }
    template <class Action>
    void for_each(Action action) const noexcept {
        for (const auto& slot : slots_)
            if (const char* path = slot.load(); path != nullptr) action(path);
    }

private:
    static constexpr std::size_t most = 64;
    static_assert(std::atomic<const char*>::is_always_lock_free, "a signal handler reads them");
    std::array<std::atomic<const char*>, most> slots_{};
};

RegisteredPaths registered_files;
RegisteredPaths registered_folders;

/// Removes the folder and the files in it with async-signal-safe system calls only.
void remove_folder(const char* path) noexcept {
    struct Entry {  // the layout that the kernel writes
        std::uint64_t inode;
        std::int64_t offset;
        unsigned short length;
        unsigned char type;
    };
    constexpr std::size_t name_at = 19;
    const int folder = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (folder < 0) return;
    alignas(Entry) std::array<char, 4096> buffer;
    for (bool removed = true; removed;) {
        removed = false;
        ::lseek(folder, 0, SEEK_SET);
        long filled = 0;
        while ((filled = ::syscall(SYS_getdents64, folder, buffer.data(), buffer.size())) > 0)
            for (long at = 0; at < filled;) {
                const auto* entry = reinterpret_cast<const Entry*>(buffer.data() + at);
                if (::unlinkat(folder, buffer.data() + at + name_at, 0) == 0) removed = true;
                at += entry->length;
            }
    }
    ::close(folder);
    ::rmdir(path);
}

}  // namespace

TemporaryName::TemporaryName(const std::string& target) {
    static std::atomic<unsigned> counter = 0;
    // The process number is not used: in containers it repeats, and could give the name that a killed process left.
    path_ = fmt::format("{}.{:08x}-{}.tmp", target, std::random_device()(), counter++);
    registered_files.add(path_.c_str());
}

TemporaryName::~TemporaryName() {
    if (!path_.empty()) ::unlink(path_.c_str());
    release();
}

void TemporaryName::release() {
    registered_files.remove(path_.c_str());
    path_.clear();
}

TemporaryFolder::TemporaryFolder(const std::string& purpose)
    : path_(fmt::format("{}/spiked-{}-XXXXXX", temporary_root(), purpose)) {
    if (::mkdtemp(path_.data()) == nullptr)
        throw output_error("{}: the temporary folder cannot be created ({}): set TMPDIR to a folder with free space",
                           path_, std::generic_category().message(errno));
    registered_folders.add(path_.c_str());
}

TemporaryFolder::~TemporaryFolder() {
    remove_folder(path_.c_str());
    registered_folders.remove(path_.c_str());
}

std::string temporary_root() {
    std::error_code failure;
    const auto root = std::filesystem::temp_directory_path(failure);
    if (failure)
        throw output_error("TMPDIR is not a folder ({}): set it to a folder with free space, or unset it",
                           failure.message());
    return root.string();
}

void remove_temporary_names() noexcept {
    registered_files.for_each([](const char* path) { ::unlink(path); });
    registered_folders.for_each(remove_folder);
}

}  // namespace spiked
