#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

#include "core/files/sha256.hpp"
#include "core/runtime/error.hpp"

namespace spiked {
namespace {

std::string message_of(const std::function<void()>& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(Sha256, MatchesThePublishedDigestForTextAndFile) {
    const std::string expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    EXPECT_EQ(hex(sha256("abc")), expected);
    const std::string path = testing::TempDir() + "/spiked-sha256";
    std::ofstream(path) << "abc";
    EXPECT_EQ(hex(sha256_of_file(path)), expected);
    std::remove(path.c_str());
    EXPECT_NE(message_of([&] { (void)sha256_of_file(path); }).find(path), std::string::npos);
}

}  // namespace
}  // namespace spiked
