#include "core/device/device.hpp"

#include <gtest/gtest.h>

#include "core/device/device_count.hpp"
#include "core/runtime/error.hpp"

namespace spiked::cuda {
namespace {

std::string rejection(std::string_view name, const Driver& driver = {}) {
    try {
        (void)choose_device(name, driver);
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

TEST(Device, ABuildWithoutCudaCodeSaysSo) {
#ifdef SPIKED_HAS_CUDA
    EXPECT_EQ(device_count().problem.find("no CUDA code"), std::string::npos);
#else
    const std::string reason = "(this build has no CUDA code, because it was compiled without nvcc)";
    EXPECT_EQ(choose_device("auto").note, "no GPU is used " + reason + ": computing on the CPU");
    EXPECT_EQ(rejection("cuda:0"),
              "device \"cuda:0\" cannot be used " + reason + ": leave --device out, or --device cpu");
    EXPECT_EQ(free_memory(0), 0U);
#endif
}

/// Drivers with a problem: too old for the runtime, without a GPU, with a GPU for which the build has no code.
TEST(Device, ADriverThatCannotRunTheKernelsIsReportedAndAutoTakesTheCpu) {
    const std::string too_old = "CUDA driver version is insufficient for CUDA runtime version";
    const std::string no_code = "no kernel image is available for execution on the device";
    const Driver old{[&] { return DeviceCount{0, too_old}; }, [](int) { return std::string("not asked"); }};
    const Driver new_gpu{[] { return DeviceCount{2, ""}; }, [&](int number) { return number == 1 ? no_code : ""; }};
    const auto expect_reason = [](const std::string& text, const std::string& reason) {
        EXPECT_NE(text.find(reason), std::string::npos) << text;
    };
    EXPECT_EQ(choose_device("auto", old).backend, Backend::cpu);
    expect_reason(choose_device("auto", old).note, too_old);
    expect_reason(rejection("cuda:0", old), "\"cuda:0\" cannot be used (" + too_old + ")");
    EXPECT_EQ(choose_device("auto", new_gpu).numbers, std::vector<int>{0});
    EXPECT_TRUE(choose_device("auto", new_gpu).or_cpu) << "who leaves the choice open accepts the CPU";
    EXPECT_FALSE(choose_device("cuda:0", new_gpu).or_cpu);
    EXPECT_EQ(choose_device("cuda:0", new_gpu).backend, Backend::cuda);
    expect_reason(rejection("cuda:0,cuda:1", new_gpu), "\"cuda:1\" cannot be used (" + no_code + ")");
    expect_reason(rejection("cuda:2", new_gpu), "reports 2 in all");
    EXPECT_EQ(choose_device("cpu", old).note, "") << "nobody asks the driver";
    EXPECT_EQ(choose_device("emulated", old).backend, Backend::emulated);
}

TEST(Device, OtherNamesAreRejected) {
    for (const char* name : {"", "gpu", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:0x", "CPU", "emulated,cuda:0",
                             "emulated,", "auto,cpu"})
        EXPECT_NE(rejection(name).find("auto, cpu, cuda:0"), std::string::npos) << name;
}

}  // namespace
}  // namespace spiked::cuda
