#include "theory/base/sha256.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "theory/base/error.hpp"
#include "theory/base/open_advice.hpp"

namespace spiked {
namespace {

class Digest {
public:
    Digest() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
        if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
            throw bug("SHA-256 cannot be started");
    }
    void add(const char* bytes, std::size_t count) {
        if (EVP_DigestUpdate(context_.get(), bytes, count) != 1) throw bug("SHA-256 failed");
    }
    Sha256 finish() {
        Sha256 digest{};
        unsigned length = 0;
        if (EVP_DigestFinal_ex(context_.get(), digest.data(), &length) != 1 || length != digest.size())
            throw bug("SHA-256 failed");
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
    std::ifstream file(path, std::ios::binary);
    if (!file) throw input_error("{}: cannot be opened ({}): {}", path, std::strerror(errno), open_advice(errno));
    Digest digest;
    std::vector<char> buffer(1 << 20);
    while (file) {
        file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
        digest.add(buffer.data(), static_cast<std::size_t>(file.gcount()));
    }
    if (file.bad()) throw input_error("{}: cannot be read to its end ({}): check the disk", path, std::strerror(errno));
    return digest.finish();
}

std::string hex(const Sha256& digest) {
    std::string text;
    for (const auto byte : digest) text += fmt::format("{:02x}", byte);
    return text;
}

}  // namespace spiked
