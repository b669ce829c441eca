#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "app/cli/build_info.hpp"
#include "app/cli/command.hpp"
#include "app/cli/exit_code.hpp"
#include "core/runtime/error.hpp"
#include "validation/trials/host_checks.hpp"
#include "validation/trials/parity.hpp"

namespace spiked::app {
namespace {

struct Finding {
    std::string name;
    std::string status;  ///< ok | warning | failed
    std::string detail;
};

Finding finding_of(const validation::ParityCheck& check) {
    return {check.name, check.passed ? "ok" : "failed", check.detail};
}

Finding check_folder() {
    if (access(".", W_OK) != 0)
        return {"current folder", "warning",
                fmt::format("not writable ({}): give output paths elsewhere", std::strerror(errno))};
    struct statvfs disk {};
    if (statvfs(".", &disk) != 0) return {"current folder", "ok", "writable"};
    const double gib = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize) / 0x1p30;
    return {"current folder", gib < 0.1 ? "warning" : "ok", fmt::format("writable, {:.1f} GiB free", gib)};
}

Finding check_blas() {
    const std::string description = blas_description() + ", " + blas_threads();
    const std::string advice = blas_advice();
    if (advice.empty()) return {"BLAS", "ok", description};
    return {"BLAS", "warning", description + ": " + advice};
}

int run_doctor(const Arguments& arguments) {
    const spiked::cuda::Device gpu = spiked::cuda::choose_device("auto");
    const spiked::cuda::Device device = spiked::cuda::choose_device(arguments.text("--device"));
    std::vector<Finding> findings = {
        {"spiked", "ok", version_line().substr(7, version_line().size() - 8)},
        check_blas(),
        {"processors", "ok", std::to_string(std::thread::hardware_concurrency())},
        {"memory", "ok",
         fmt::format("{:.1f} GiB", static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                                       static_cast<double>(sysconf(_SC_PAGESIZE)) / 0x1p30)},
        {"GPU", "ok", gpu.note.empty() ? "cuda:0 can be used" : gpu.note},
        finding_of(validation::check_product()),
        finding_of(validation::check_decomposition()),
        check_folder(),
    };
    for (const auto& check : validation::check_parity(device)) findings.push_back(finding_of(check));
    if (arguments.has("--stress")) {
        if (device.backend == spiked::cuda::Backend::cpu)
            throw usage_error(
                "--stress has no effect on a CPU (it loads a device): name one, as in --device cuda:0 --stress");
        const bool on_a_gpu = device.backend == spiked::cuda::Backend::cuda;
        for (const auto& check : validation::check_under_load(device, on_a_gpu ? 4096 : 17, on_a_gpu ? 1 << 20 : 16))
            findings.push_back(finding_of(check));
    }
    bool failed = false;
    std::string text;
    Json list = Json::array();
    for (const auto& finding : findings) {
        failed = failed || finding.status == "failed";
        text += fmt::format("{:<8} {:<16} {}\n", finding.status, finding.name, finding.detail);
        list.push(Json::object({{"name", finding.name}, {"status", finding.status}, {"detail", finding.detail}}));
    }
    if (arguments.json())
        print_json(Json::object({{"schema", "spiked.doctor/1"}, {"healthy", !failed}, {"findings", std::move(list)}}));
    else
        print_text(text);
    return static_cast<int>(failed ? ExitCode::check_failed : ExitCode::fine);
}

}  // namespace

Command doctor_command() {
    return {"doctor",
            "report what this machine and build can do, and check their linear algebra",
            {"spiked doctor", "spiked doctor --json", "spiked doctor --device cuda:0"},
            {},
            0,
            0,
            {device_option(
                 "compare the kernels of a device with the CPU: a GPU, or its code on the host; exit 1 if one differs",
                 "cpu"),
             {"--stress",
              {},
              "with --device also full batches of decompositions, trials and codecs, and a million random matrices"}},
            run_doctor};
}

}  // namespace spiked::app
