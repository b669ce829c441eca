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

/// Paths that a handler of signals may read at any moment. Few live at once; more than these are removed by their
/// destructors alone.
class LivingPaths {
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
    static_assert(std::atomic<const char*>::is_always_lock_free, "a handler of signals reads them");
    std::array<std::atomic<const char*>, most> slots_{};
};

LivingPaths living_files;
LivingPaths living_folders;

/// Removes the folder and the files in it by system calls alone, which a handler of signals may make.
void remove_folder(const char* path) noexcept {
    struct Entry {  // as the kernel writes it
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
    // Not the process number: in containers those come again, and so would the name a kill has left.
    path_ = fmt::format("{}.{:08x}-{}.tmp", target, std::random_device()(), counter++);
    living_files.add(path_.c_str());
}

TemporaryName::~TemporaryName() {
    if (!path_.empty()) ::unlink(path_.c_str());
    leave();
}

void TemporaryName::leave() {
    living_files.remove(path_.c_str());
    path_.clear();
}

TemporaryFolder::TemporaryFolder(const std::string& purpose)
    : path_(fmt::format("{}/spiked-{}-XXXXXX", temporary_root(), purpose)) {
    if (::mkdtemp(path_.data()) == nullptr)
        throw write_error("{}: no temporary folder can be made ({}): set TMPDIR to a folder with room", path_,
                          std::generic_category().message(errno));
    living_folders.add(path_.c_str());
}

TemporaryFolder::~TemporaryFolder() {
    remove_folder(path_.c_str());
    living_folders.remove(path_.c_str());
}

std::string temporary_root() {
    std::error_code failure;
    const auto root = std::filesystem::temp_directory_path(failure);
    if (failure)
        throw write_error("TMPDIR is no folder ({}): set it to a folder with room, or unset it", failure.message());
    return root.string();
}

void remove_temporary_names() noexcept {
    living_files.for_each([](const char* path) { ::unlink(path); });
    living_folders.for_each(remove_folder);
}

}  // namespace spiked
