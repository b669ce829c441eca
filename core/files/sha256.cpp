#include "core/files/sha256.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "core/files/open_advice.hpp"
#include "core/runtime/error.hpp"

namespace spiked {
namespace {

class Digest {
public:
    Digest() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
        if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
            throw postcondition_error("SHA-256 cannot be started");
    }
    void add(const char* bytes, std::size_t count) {
        if (EVP_DigestUpdate(context_.get(), bytes, count) != 1) throw postcondition_error("SHA-256 failed");
    }
    Sha256 finish() {
        Sha256 digest{};
        unsigned length = 0;
        if (EVP_DigestFinal_ex(context_.get(), digest.data(), &length) != 1 || length != digest.size())
            throw postcondition_error("SHA-256 failed");
        return digest;
    }

private:
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

Sha256 sha256(std::string_view bytes) {
    Digest digest;
    digest.add(bytes.data(), bytes.size());
    return digest.finish();
}

Sha256 sha256_of_file(const std::string& path) {
    // Without O_NONBLOCK, opening a named pipe would wait for a writer.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) throw input_error("{}: cannot be opened ({}): {}", path, std::strerror(errno), open_advice(errno));
    const std::unique_ptr<const int, void (*)(const int*)> owner(&file, [](const int* one) { ::close(*one); });
    struct stat status {};
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        throw input_error("{}: is not a regular file (it is read to its end): save the data to a file first", path);
    Digest digest;
    std::vector<char> buffer(1 << 20);
    for (auto left = static_cast<std::uint64_t>(status.st_size); left > 0;) {
        const ssize_t count = ::read(file, buffer.data(), std::min<std::uint64_t>(left, buffer.size()));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0)
            throw input_error("{}: cannot be read to its end ({}): check the disk", path, std::strerror(errno));
        if (count == 0) break;
        digest.add(buffer.data(), static_cast<std::size_t>(count));
        left -= static_cast<std::uint64_t>(count);
    }
    return digest.finish();
}

std::string hex(const Sha256& digest) {
    std::string text;
    for (const auto byte : digest) text += fmt::format("{:02x}", byte);
    return text;
}

}  // namespace spiked
