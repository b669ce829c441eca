#include "core/files/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>

#include "core/files/byte_file.hpp"

namespace spiked {
namespace {

/// The mapped files, for a signal handler, which must not wait for a lock. More files than these are not mapped.
std::array<std::atomic<const MappedFile*>, 1024>& mapped_files() {
    static std::array<std::atomic<const MappedFile*>, 1024> files{};
    return files;
}

int code_of_shrunk = 1;

void write_out(const char* text) {
    for (std::size_t left = std::strlen(text); left > 0;) {
        const ssize_t count = ::write(STDERR_FILENO, text, left);
        if (count <= 0) return;
        text += count;
        left -= static_cast<std::size_t>(count);
    }
}

/// Calls only what a signal handler may call.
void end_with_message(int signal, siginfo_t* info, void* /*context*/) {
    const auto* const at = static_cast<const std::byte*>(info->si_addr);
    for (const auto& one : mapped_files()) {
        const MappedFile* const file = one.load();
        if (file == nullptr || at < file->bytes().data() || at >= file->bytes().data() + file->bytes().size()) continue;
        write_out("spiked: ");
        write_out(file->path().c_str());
        write_out(
            ": shrank while it was read, or its disk failed (its numbers are read when they are needed): wait until "
            "the program that writes it has finished\n");
        ::_exit(code_of_shrunk);
    }
    // Not of a mapped file: the access is repeated and ends the process.
    ::signal(signal, SIG_DFL);
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::of(const std::string& path) {
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (file.number() < 0 || ::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
        return nullptr;
    const auto size = static_cast<std::size_t>(status.st_size);
    void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
    if (begin == MAP_FAILED) return nullptr;
    std::shared_ptr<MappedFile> mapped(new MappedFile(static_cast<const std::byte*>(begin), size, path));
    for (auto& place : mapped_files()) {
        const MappedFile* none = nullptr;
        if (place.compare_exchange_strong(none, mapped.get())) return mapped;
    }
    return nullptr;
}

MappedFile::~MappedFile() {
    for (auto& place : mapped_files()) {
        const MappedFile* own = this;
        if (place.compare_exchange_strong(own, nullptr)) break;
    }
    ::munmap(const_cast<std::byte*>(begin_), size_);
}

void end_where_mapped_files_shrink(int exit_code) {
    (void)mapped_files();  // made before a handler may run
    code_of_shrunk = exit_code;
    struct sigaction action {};
    action.sa_sigaction = end_with_message;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    (void)::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace spiked
