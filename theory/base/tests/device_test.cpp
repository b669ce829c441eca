#include "theory/base/cuda/device.hpp"

#include <gtest/gtest.h>

#include "theory/base/cuda/device_count.hpp"
#include "theory/base/error.hpp"

namespace spiked::cuda {
namespace {

std::string refusal(std::string_view typed) {
    try {
        (void)choose_device(typed);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        return error.what();
    }
    return "";
}

TEST(Device, IsTheProcessorUnlessAGpuIsThere) {
    EXPECT_FALSE(choose_device("cpu").gpu);
    EXPECT_EQ(choose_device("cpu").note, "");
    const Device chosen = choose_device("auto");
    EXPECT_EQ(chosen.gpu.has_value(), device_count().count > 0);
    EXPECT_EQ(chosen.note.empty(), chosen.gpu.has_value()) << "the fallback says why";
}

TEST(Device, OneThatIsNotThereIsRefusedWhenAskedFor) {
    EXPECT_NE(refusal("cuda:99"), "");
    EXPECT_EQ(refusal("cuda:0").empty(), device_count().count > 0);
}

TEST(Device, OtherWordsAreRefused) {
    for (const char* typed : {"", "gpu", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:0x", "CPU"})
        EXPECT_NE(refusal(typed).find("auto, cpu, or cuda:0"), std::string::npos) << typed;
}

}  // namespace
}  // namespace spiked::cuda
