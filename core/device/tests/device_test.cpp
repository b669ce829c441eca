#include "core/device/device.hpp"

#include <gtest/gtest.h>

#include "core/device/device_count.hpp"
#include "core/runtime/error.hpp"

namespace spiked::cuda {
namespace {

std::string rejection(std::string_view name) {
    try {
        (void)choose_device(name);
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::usage);
        return error.what();
    }
    return "";
}

TEST(Device, IsTheCpuUnlessAGpuCanBeUsed) {
    EXPECT_EQ(choose_device("cpu").backend, Backend::cpu);
    EXPECT_EQ(choose_device("cpu").note, "");
    const Device chosen = choose_device("auto");
    const bool gpu = device_count().count > 0 && device_problem(0).empty();
    EXPECT_EQ(chosen.backend, gpu ? Backend::cuda : Backend::cpu);
    EXPECT_EQ(chosen.numbers.size(), gpu ? 1U : 0U);
    EXPECT_EQ(chosen.note.empty(), gpu) << "falling back to the CPU must give the reason";
}

TEST(Device, EmulatedDevicesExistEverywhereAndAListNumbersThem) {
    EXPECT_EQ(choose_device("emulated").backend, Backend::emulated);
    EXPECT_EQ(choose_device("emulated,emulated").numbers, (std::vector<int>{0, 1}));
    EXPECT_TRUE(is_device("cuda:7,cuda:0"));
}

TEST(Device, BackendsHaveTheNamesThatChooseThem) {
    EXPECT_EQ(name_of(Backend::cpu), "cpu");
    EXPECT_EQ(name_of(Backend::cuda), "cuda");
    EXPECT_EQ(name_of(Backend::emulated), "emulated");
}

TEST(Device, AnAbsentGpuIsRejectedWhenNamed) {
    EXPECT_NE(rejection("cuda:99"), "");
    EXPECT_EQ(rejection("cuda:0").empty(), device_count().count > 0);
}

TEST(Device, OtherNamesAreRejected) {
    for (const char* name : {"", "gpu", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:0x", "CPU", "emulated,cuda:0",
                             "emulated,", "auto,cpu"})
        EXPECT_NE(rejection(name).find("auto, cpu, cuda:0"), std::string::npos) << name;
}

}  // namespace
}  // namespace spiked::cuda
