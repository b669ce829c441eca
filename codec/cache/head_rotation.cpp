#include "codec/cache/head_rotation.hpp"

#include "core/files/sha256.hpp"

namespace spiked::codec {

Json head_identity(const std::string& dump_sha256, const std::string& tensor, std::size_t head,
                   std::size_t block_tokens) {
    return Json::object({{"sha256", dump_sha256}, {"tensor", tensor}, {"head", head}, {"block", block_tokens}});
}

std::uint64_t rotation_of(const Json& identity) {
    return std::stoull(hex(sha256(identity.text())).substr(0, 16), nullptr, 16);
}

}  // namespace spiked::codec
