// Studies on a device, with the code of a GPU on an emulated device: the results agree with the CPU's and do not depend
// on batches, threads and interruptions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include "app/tests/process.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::app {
namespace {

namespace fs = std::filesystem;

/// A folder with a study of blocks of 10 x 14 and 22 x 14 with dense covariances.
std::string blocks_folder(const std::string& name, const std::string& precision = "double",
                          const std::string& estimator = "eoptshrink:edgefit", const std::string& more = "") {
    return folder_with_study(name, R"(spiked = 1
[study]
name = "small"
seed = "0x5eed"
[model]
kind = "spiked"
n = 10
d = 14
noise = { row_cov = { kind = "ar1", rho = 0.5 }, col_cov = { kind = "exponential", c = 1.0 } }
signal = { strength = [4.0, 2.0], unit = "threshold" }
[sweep]
n = [10, 22]
[[estimator]]
name = "eoptshrink"
[[estimator]]
name = ")" + estimator + R"("
as = "second"
[[codec]]
name = "tq-mse"
bits = [3]
[run]
reps = { min = 60, batch = 6 }
precision = ")" + precision + "\"\n" + more +
                                       R"([store]
path = "small.spiked"
)");
}

std::string table(const std::string& folder, const std::string& name) {
    const Outcome found = spiked("export small.spiked --format csv --table " + name, in(folder));
    EXPECT_EQ(found.code, 0) << found.err;
    return found.out;
}

std::string backend(const std::string& folder) {
    const std::string path = folder + "/small.spiked";
    if (!fs::exists(path)) return "";
    validation::Database store(path, validation::Database::Mode::read);
    // A process that is killed while it creates the store leaves it without tables.
    if (store.integer("SELECT count(*) FROM sqlite_master WHERE name = 'study'") == 0) return "";
    validation::Statement study(store, "SELECT backend FROM study");
    return study.step() ? study.text(0) : "";
}

/// The largest difference between the values of two stores, infinite if one is missing. For codecs it is relative to
/// the largest value of the same method and metric, otherwise relative to the value if that is above 1.
double worst_difference(const std::string& one, const std::string& other, bool codecs = false) {
    validation::Database store(one + "/small.spiked", validation::Database::Mode::read);
    store.execute("ATTACH '" + other + "/small.spiked' AS other");
    // Each metric needs its own scale: a bias is a hundredth of an error.
    validation::Statement values(
        store,
        "SELECT a.v, b.v, max(abs(a.v)) OVER (PARTITION BY a.method_id, a.metric_id) FROM value a JOIN method m "
        "USING(method_id) LEFT JOIN other.value b USING(cell_id, rep, method_id, metric_id, k) WHERE (m.kind = "
        "'codec') = ?");
    values.bind(1, codecs ? std::int64_t{1} : std::int64_t{0});
    double worst = 0.0;
    std::size_t count = 0;
    while (values.step()) {
        ++count;
        if (values.is_null(0) != values.is_null(1)) return std::numeric_limits<double>::infinity();
        if (values.is_null(0)) continue;
        const double scale = codecs ? values.real(2) : std::max(1.0, std::abs(values.real(0)));
        const double difference = std::abs(values.real(0) - values.real(1));
        if (difference > 0.0) worst = std::max(worst, difference / scale);
    }
    EXPECT_GT(count, 2000U);
    return worst;
}

TEST(DeviceCommand, AStudyOnAnEmulatedDeviceAgreesWithTheCpu) {
    for (const auto& [precision, limit] : {std::pair{"double", 1e-10}, std::pair{"float", 2e-4}}) {
        SCOPED_TRACE(precision);
        const std::string all_kernels =
            "[[estimator]]\nname = 'gd-hard'\n[[estimator]]\nname = 'gd-shrink'\n[[codec]]\nname = 'eden'\nbits = [2]\n"
            "[[codec]]\nname = 'tq-prod'\nbits = [2]\n[[codec]]\nname = 'kivi:group=8'\nbits = [2]\n"
            "[[codec]]\nname = 'eoptshrink+tq-mse'\nbits = [2]\n[[codec]]\nname = 'svd:1+tq-prod'\nbits = [2]\n";
        const auto folder = [&, precision = precision](const std::string& name) {
            return blocks_folder(name + "-" + precision, precision, "eoptshrink:edgefit", all_kernels);
        };
        const std::string cpu = folder("cpu");
        const std::string device = folder("device");
        ASSERT_EQ(spiked("run study.toml --no-report --device cpu", in(cpu)).code, 0);
        const Outcome found = spiked("run study.toml --no-report --device emulated", in(device));
        ASSERT_EQ(found.code, 0) << found.err;
        EXPECT_EQ(found.err.find("CPU"), std::string::npos) << "no cell stays there: " << found.err;
        EXPECT_EQ(backend(cpu), "cpu");
        EXPECT_EQ(backend(device), "emulated");
        EXPECT_LT(worst_difference(cpu, device), limit);
        // Norms and coordinates are computed in float, so that a stored norm may be the neighbouring fp16 value, and an
        // index the next one.
        EXPECT_LT(worst_difference(cpu, device, true), 1e-3);
        EXPECT_NE(table(cpu, "values"), table(device, "values"))
            << "negative control: the device did compute the values";
    }
}

TEST(DeviceCommand, ResultsDoNotDependOnBatchesThreadsDevicesShardsOrInterruptions) {
    const std::string whole = blocks_folder("device-whole");
    ASSERT_EQ(spiked("run study.toml --no-report --device emulated --threads 1", in(whole)).code, 0);
    const std::string values = table(whole, "values");
    const std::string other = blocks_folder("device-batches");
    ASSERT_EQ(
        spiked("run study.toml --no-report --device emulated,emulated --threads 3 --set run.reps.batch=25", in(other))
            .code,
        0);
    EXPECT_EQ(table(other, "values"), values);

    const std::string parts = blocks_folder("device-parts");
    for (const char* part : {"1", "2"})
        ASSERT_EQ(spiked(std::string("run study.toml --no-report --device emulated --shard ") + part + "/2 -o part" +
                             part + ".spiked",
                         in(parts))
                      .code,
                  0);
    ASSERT_EQ(spiked("merge part1.spiked part2.spiked -o small.spiked", in(parts)).code, 0);
    EXPECT_EQ(table(parts, "values"), values);

    const std::string killed = blocks_folder("device-killed");
    int kills = 0;
    // The time until the kill grows, so that a slow program ends, too.
    for (double seconds = 0.1; seconds < 300.0; seconds *= 1.1) {
        // Without --device the run resumes on the device on which it was begun.
        const int code =
            spiked(std::string("run study.toml --no-report") + (backend(killed).empty() ? " --device emulated" : ""),
                   in(killed) + fmt::format("timeout -s KILL {:.3f}", seconds))
                .code;
        if (code == 0) break;
        ASSERT_EQ(code, 137);
        ++kills;
    }
    EXPECT_GE(kills, 1);
    EXPECT_EQ(backend(killed), "emulated");
    EXPECT_EQ(table(killed, "values"), values);
}

TEST(DeviceCommand, ReplayComputesOnTheDeviceOfTheStore) {
    const std::string folder = blocks_folder("device-replay");
    ASSERT_EQ(spiked("run study.toml --no-report --device emulated", in(folder)).code, 0);
    const Outcome same = spiked("replay small.spiked --cell 2 --rep 17", in(folder));
    EXPECT_EQ(same.code, 0) << same.out;
    EXPECT_EQ(same.err.find("computed on"), std::string::npos) << same.err;
    const Outcome near = spiked("replay small.spiked --cell 2 --rep 17 --device cpu", in(folder));
    EXPECT_EQ(near.code, 0) << near.out;
    EXPECT_NE(near.err.find("computed on emulated, this on cpu"), std::string::npos) << near.err;
}

TEST(DeviceCommand, AnotherBackendIsRejectedWithoutMixed) {
    const std::string folder = blocks_folder("device-mixed");
    ASSERT_EQ(spiked("run study.toml --no-report --device emulated --set run.reps.min=60 --shard 1/2", in(folder)).code,
              0);
    const Outcome rejected = spiked("run study.toml --no-report --device cpu", in(folder));
    EXPECT_EQ(rejected.code, 2);
    EXPECT_NE(rejected.err.find("computed on emulated, this would be cpu"), std::string::npos) << rejected.err;
    EXPECT_NE(rejected.err.find("--mixed"), std::string::npos);
    // A store of another study is left as it is, also with --mixed.
    EXPECT_EQ(spiked("run study.toml --no-report --device cpu --mixed --seed 0x77", in(folder)).code, 2);
    EXPECT_EQ(backend(folder), "emulated");
    const Outcome mixed = spiked("run study.toml --no-report --device cpu --mixed --json", in(folder));
    EXPECT_EQ(mixed.code, 0) << mixed.err;
    EXPECT_EQ(*mixed.json().find("backend")->string(), "mixed");
    EXPECT_EQ(backend(folder), "mixed");
    const std::string cpu = blocks_folder("device-unmixed");
    ASSERT_EQ(spiked("run study.toml --no-report --device cpu", in(cpu)).code, 0);
    EXPECT_LT(worst_difference(folder, cpu), 1e-10);
}

TEST(DeviceCommand, CellsWithoutKernelsAreComputedOnTheCpuWithANote) {
    const std::string folder = blocks_folder("device-none", "double", "screenot:4");
    const Outcome found = spiked("run study.toml --no-report --device emulated", in(folder));
    EXPECT_EQ(found.code, 0);
    EXPECT_NE(found.err.find("2 of 2 cells are computed on the CPU, no kernel does this: estimator screenot:4"),
              std::string::npos)
        << found.err;
    EXPECT_EQ(backend(folder), "cpu");
    const std::string large = blocks_folder("device-large");
    const Outcome some =
        spiked("run study.toml --no-report --device emulated --set sweep.n=[10,257] --set run.reps.min=6", in(large));
    EXPECT_EQ(some.code, 0);
    EXPECT_NE(some.err.find("1 of 2 cells are computed on the CPU, no kernel does this: blocks of 257 x 14"),
              std::string::npos)
        << some.err;
    EXPECT_EQ(backend(large), "emulated");
}

TEST(DeviceCommand, AMissingGpuIsAnErrorOnlyWhenNamed) {
    const std::string folder = blocks_folder("device-absent");
    const Outcome asked = spiked("run study.toml --no-report --device cuda:99", in(folder));
    EXPECT_EQ(asked.code, 2);
    EXPECT_NE(asked.err.find("cuda:99"), std::string::npos);
    EXPECT_FALSE(fs::exists(folder + "/small.spiked")) << "nothing ran";
    const Outcome unasked = spiked("run study.toml --no-report", in(folder));
    EXPECT_EQ(unasked.code, 0);
    EXPECT_EQ(unasked.err.find("GPU"), std::string::npos) << unasked.err;
    EXPECT_EQ(spiked("run study.toml --no-report --set exec.device='\"gpu\"'", in(folder)).code, 2);
}

TEST(DeviceCommand, DoctorComparesEveryStage) {
    const Outcome found = spiked("doctor --device emulated --json");
    ASSERT_EQ(found.code, 0) << found.out;
    const Json json = found.json();
    EXPECT_TRUE(*json.find("healthy")->boolean());
    for (const char* stage : {"normals", "samples", "values", "vectors", "eOptShrink", "rotation", "quantizer bytes",
                              "inner products", "whole trial"})
        EXPECT_NE(found.out.find(std::string("\"name\": \"") + stage + "\""), std::string::npos) << stage << found.out;
}

/// The coded dump is decoded by the CPU. Nearly all its bytes are those of the CPU, whose arithmetic is in double.
TEST(DeviceCommand, ADumpIsCodedOnADevice) {
    const std::string folder = scratch("device-kv");
    fs::create_directories(folder);
    for (const char* how : {"tq-mse --rotation haar", "tq-mse --rotation rht2", "tq-mse --rotation identity",
                            "eden --rotation rht2", "tq-prod --rotation haar", "kivi:residual=0:group=32"}) {
        SCOPED_TRACE(how);
        const std::string words = "kv encode '" + sample_dump + "' --bits 3 --json --method " + how;
        const Outcome cpu = spiked(words + " -o cpu.spkv", in(folder));
        const Outcome device = spiked(words + " -o device.spkv --device emulated --threads 2", in(folder));
        ASSERT_EQ(device.code, 0) << device.err;
        EXPECT_GT(number(device.json(), "blocks"), 3.0);
        EXPECT_EQ(number(device.json(), "device_blocks"), number(device.json(), "blocks"));
        EXPECT_EQ(number(cpu.json(), "device_blocks"), 0.0);
        EXPECT_EQ(number(device.json(), "bytes"), number(cpu.json(), "bytes"));
        EXPECT_EQ(device.json().find("ledger_bits")->text(), cpu.json().find("ledger_bits")->text());
        for (const char* side : {"key", "value"})
            EXPECT_NEAR(
                number(*device.json().find("relative_l2"), side) / number(*cpu.json().find("relative_l2"), side), 1.0,
                1e-4);
        const std::string one = contents(folder + "/cpu.spkv");
        const std::string other = contents(folder + "/device.spkv");
        std::size_t differing = 0;
        for (std::size_t i = 0; i < one.size(); ++i) differing += one[i] != other[i] ? 1 : 0;
        EXPECT_LT(static_cast<double>(differing), 2e-3 * static_cast<double>(one.size()));
        EXPECT_EQ(spiked("kv decode device.spkv -o back.safetensors", in(folder)).code, 0);
    }
    // The signs of singular vectors are arbitrary, and with them the bits of their entries.
    for (const char* how : {"eoptshrink+tq-mse", "unrope+svd:1+tq-prod --rotation rht2"}) {
        SCOPED_TRACE(how);
        const std::string words = "kv encode '" + sample_dump + "' --bits 3 --json --method " + how;
        const Outcome cpu = spiked(words + " -o cpu.spkv", in(folder));
        const Outcome device = spiked(words + " -o device.spkv --device emulated --threads 2", in(folder));
        ASSERT_EQ(device.code, 0) << device.err;
        EXPECT_EQ(number(device.json(), "device_blocks"), number(device.json(), "blocks"));
        for (const char* same : {"ledger_bits", "mean_rank", "paper_bits"})
            EXPECT_EQ(device.json().find(same)->text(), cpu.json().find(same)->text()) << same;
        for (const char* side : {"key", "value"})
            EXPECT_NEAR(
                number(*device.json().find("relative_l2"), side) / number(*cpu.json().find("relative_l2"), side), 1.0,
                1e-3);
        EXPECT_EQ(spiked("kv decode device.spkv -o back.safetensors", in(folder)).code, 0);
    }
    const Outcome none =
        spiked("kv encode '" + sample_dump + "' --method rabitq --bits 2 -o none.spkv --device emulated", in(folder));
    EXPECT_EQ(none.code, 0);
    EXPECT_NE(none.err.find("blocks were coded on the CPU"), std::string::npos) << none.err;
    EXPECT_EQ(none.err.find("--residual"), std::string::npos) << none.err;
    const std::string kivi =
        "kv encode '" + sample_dump + "' --bits 2 -o kivi.spkv --device emulated --json --method kivi";
    const Outcome kept = spiked(kivi, in(folder));
    EXPECT_EQ(number(kept.json(), "device_blocks"), 0.0);
    EXPECT_NE(kept.err.find("kivi keeps the last 128 tokens: --residual 0 keeps none)"), std::string::npos) << kept.err;
    const Outcome all = spiked(kivi + " --residual 0", in(folder));
    EXPECT_EQ(number(all.json(), "device_blocks"), number(all.json(), "blocks")) << all.err;
    EXPECT_EQ(all.err.find("coded on the CPU"), std::string::npos) << all.err;
    EXPECT_EQ(spiked("kv encode '" + sample_dump + "' -o none.spkv --device cuda:99", in(folder)).code, 2);
}

/// A benchmark compares the results with the CPU's before it times them, so that one that ends has compared them.
TEST(DeviceCommand, BenchmarksTimeBatchesOnTheDeviceAndTheCpu) {
    const auto rows_of = [](const Json& document) {
        std::set<std::string> names;
        for (const auto& row : *document.find("rows")->items()) {
            EXPECT_GT(*row.find("p10")->real(), 0.0) << *row.find("what")->string();
            names.insert(*row.find("what")->string());
        }
        return names;
    };
    for (const char* shape : {"--rows 20 --cols 12 --precision float", "--rows 12 --cols 20 --precision double"}) {
        const Outcome timed =
            spiked("bench decompose --device emulated --vectors 3 --seconds 0.05 --json " + std::string(shape));
        ASSERT_EQ(timed.code, 0) << timed.err;
        EXPECT_EQ(rows_of(timed.json()),
                  (std::set<std::string>{"cpu", "emulated", "emulated-bidiagonal", "emulated-values"}));
        EXPECT_EQ(*timed.json().find("clock")->string(), "wall");
        EXPECT_EQ(*timed.json().find("batch")->integer(), 2);
    }
    const Outcome coded = spiked("bench quantize --device emulated --seconds 0.05 --json");
    ASSERT_EQ(coded.code, 0) << coded.err;
    const auto names = rows_of(coded.json());
    EXPECT_EQ(names.size(), 50U) << "five methods at two widths: two stages on the CPU, three on the device";
    EXPECT_TRUE(names.contains("tq-prod:4:copied:emulated"));
    const Outcome trials =
        spiked("bench trial --device emulated --seconds 0.05 --json --rows 12 --cols 20 --precision double");
    ASSERT_EQ(trials.code, 0) << trials.err;
    EXPECT_EQ(rows_of(trials.json()), (std::set<std::string>{"dense:cpu", "dense:emulated", "eigenbasis:cpu",
                                                             "eigenbasis:emulated", "coded:cpu", "coded:emulated"}));
    EXPECT_EQ(*trials.json().find("cols_of_block")->integer(), 20);
    EXPECT_EQ(*trials.json().find("precision")->string(), "double");
    const Outcome large = spiked("bench trial --device emulated --seconds 0.05 --rows 300");
    EXPECT_EQ(large.code, 2) << large.err;
    EXPECT_NE(large.err.find("choose another size"), std::string::npos) << large.err;
    const Outcome alone = spiked("bench trial --seconds 0.05 --precision double");
    EXPECT_EQ(alone.code, 2);
    EXPECT_NE(alone.err.find("--precision has no effect without --device"), std::string::npos) << alone.err;
    const auto rejected = [](const std::string& options) {
        const Outcome outcome = spiked("bench decompose --seconds 0.05 " + options);
        EXPECT_EQ(outcome.code, 2) << options;
        return outcome.err;
    };
    EXPECT_NE(rejected("--device emulated --rows 300").find("kernels take 256 x 256"), std::string::npos);
    EXPECT_NE(rejected("--device emulated --vectors 40").find("kernels find 32"), std::string::npos);
    EXPECT_NE(rejected("--device cpu").find("leave --device out"), std::string::npos);
    EXPECT_NE(rejected("--device emulated,emulated").find("only one is timed"), std::string::npos);
    EXPECT_EQ(rejected("--device cuda:99").find("bug"), std::string::npos);
}

/// The script for a machine with a GPU, run from a bundle that contains all it needs.
TEST(GpuCheck, WritesItsTableFromABundleInAnEmptyEnvironment) {
    const std::string folder = scratch("gpu-check");
    fs::create_directories(folder);
    const std::string script = SPIKED_SOURCE_DIR "/tools/gpu-check";
    ASSERT_EQ(
        std::system((script + " --bundle '" + folder + "/b.tar.gz' --program '" SPIKED_BINARY "' > /dev/null").c_str()),
        0);
    EXPECT_LT(fs::file_size(folder + "/b.tar.gz"), 30'000'000U)
        << "the bundle must stay small enough to be copied anywhere";
    ASSERT_EQ(std::system(("tar xf '" + folder + "/b.tar.gz' -C '" + folder + "'").c_str()), 0);
    const std::string run = in(folder) + " env -i PATH=/usr/bin:/bin bundle/gpu-check --seconds 0.1 --limit 1000 ";
    const std::string steps = "--only doctor,study,decompose-128,trial,quantize,profile,racecheck ";
    ASSERT_EQ(std::system((run + steps + "--device emulated 2> /dev/null").c_str()), 0);
    const std::string table = contents(folder + "/gpu-check.md");
    for (const char* row : {"| normals | ok |", "| whole trial | ok |", "| study | ok |", "| racecheck | skipped |",
                            "| coded:emulated | ok |", "| emulated-bidiagonal 16 float | ok |",
                            "| cpu 16 double | ok |", "| kivi:4:copied:emulated | ok |"})
        EXPECT_NE(table.find(row), std::string::npos) << row << "\n" << table;
    EXPECT_NE(std::system((run + "--only fast 2> /dev/null").c_str()), 0) << "no such step";
    EXPECT_NE(std::system((run + "--only doctor --limit 0.01 --device emulated -o late.md 2> /dev/null").c_str()), 0);
    EXPECT_NE(contents(folder + "/late.md").find("stopped after the 0.01 seconds of a step"), std::string::npos);
    EXPECT_NE(std::system((run + "--device cuda:99 --only doctor -o none.md 2> /dev/null").c_str()), 0);
    EXPECT_NE(contents(folder + "/none.md").find("| doctor | failed |"), std::string::npos);
}

/// The functions of the script: what ncu prints for two batches, of 3 and of 100 trials, summaries that differ, two
/// programs, and the time limit.
TEST(GpuCheck, ReadsMeasurementsComparesSummariesAndProgramsAndEndsAStep) {
    const std::string folder = scratch("gpu-check-ncu");
    fs::create_directories(folder);
    std::ofstream(folder + "/check.py") << R"py(
import importlib.machinery, importlib.util, sys
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("gpu_check", sys.argv[1])
script = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
loader.exec_module(script)
def run_kernel(name):
    return f"void spiked::cuda::run_kernel<spiked::estimators::cuda::{name}>(const T1)"
columns = ["ID", "Kernel Name", "Grid Size", "gpu__time_duration.sum", "dram__bytes.sum"]
rows = [["", "", "", "us", "Kbyte"],
        ["0", run_kernel("Bidiagonalise<float, (unsigned int)8, (unsigned int)16>"), "(3, 1, 1)", "1.0", "5"],
        ["1", run_kernel("PairSums<float>"), "(3, 1, 1)", "1.0", "5"],
        ["2", run_kernel("Bidiagonalise<float, 8u, 16u>"), "(100, 1, 1)", "1,250.5", "7"],
        ["3", run_kernel("PairSums<float>"), "(400, 1, 1)", "2.0", "1"],
        ["4", run_kernel("PairSums<float>"), "(200, 1, 1)", "3.0", "1"],
        ["5", run_kernel("Narrow"), "(9, 1, 1)", "4.0", "1"]]
text = "==PROF== Connected\n" + "\n".join(",".join(f'"{cell}"' for cell in row) for row in [columns] + rows)
launches = script.launches_of(text)
assert len(launches) == 6, launches
assert abs(launches[2]["time"] - 1250.5e-6) < 1e-12 and launches[2]["bytes"] == 7000 and launches[2]["issue"] == 0, launches[2]
trials, batch = script.largest_batch(launches)
assert trials == 100, trials
names = [launch["kernel"] for launch in batch]
assert names == ["Bidiagonalise<float, 8, 16>", "PairSums<float>", "PairSums<float>"], names

def summary(mean=2.0, sd=0.5, n=100, metric="rank"):
    return {("cell", "method", metric, 0): {"mean": mean, "sd": sd, "n": n, "failed": 0}}
def difference(other):
    return script.difference_of(summary(), other)[0]
assert difference(summary()) == 0
assert abs(difference(summary(mean=2.0025)) - 0.05) < 1e-9
assert difference(summary(mean=2.01)) > script.EQUAL
assert difference(summary(sd=0.53)) > script.EQUAL
assert difference(summary(n=99)) == difference(summary(metric="other")) == float("inf")
assert script.difference_of(summary(sd=0.0), summary(mean=2.0 + 1e-9, sd=0.0))[0] < script.EQUAL

# Two programs side by side: each row names its own.
import types
class Rows(list):
    def row(self, what, state, detail):
        self.append((what, state, detail))
def prints(text):
    return ["sh", "-c", f"echo 'dense:emulated {text}'"]
rows = Rows()
check = script.Check(types.SimpleNamespace(device="emulated", limit=1000.0, seconds=0.1),
                     {"spiked": prints("3.5 2.5"), "against": prints("4.5 3.5")}, rows, None)
check.step("trial")
assert rows == [("dense:emulated (spiked)", "ok", "2.5 us per trial (p10), median 3.5"),
                ("dense:emulated (against)", "ok", "3.5 us per trial (p10), median 4.5")], rows

# The time limit is that of a whole step, for all its commands and programs.
check.step("machine")
assert 1900 < check.time_left() <= 2000, check.time_left()
assert check.run(["echo", "text"]) == (0, "text\n", "")
check.end -= 2000
status, _, error = check.run(["sleep", "100"])
assert status == 124 and error == "stopped after the 2000 seconds of a step", (status, error)
)py";
    EXPECT_EQ(std::system(("python3 '" + folder + "/check.py' '" SPIKED_SOURCE_DIR "/tools/gpu-check'").c_str()), 0);
}

/// Its table has the loops of every kernel, which change with the code and with the compiler.
TEST(PredictedRates, KnowsTheLoopsOfTheBuiltProgram) {
    if (const std::string gpu = spiked("doctor --json").out;
        gpu.find("this build has no CUDA code") != std::string::npos)
        GTEST_SKIP() << "this build has no CUDA code";
    if (std::system("PATH=\"$PATH:/usr/local/cuda/bin\" command -v cuobjdump >/dev/null") != 0)
        GTEST_SKIP() << "cuobjdump (a part of the CUDA toolkit) is not installed";
    const std::string file = scratch("predicted-rates.txt");
    const int status = std::system(
        ("python3 '" SPIKED_SOURCE_DIR "/tools/predicted-rates' '" SPIKED_BINARY "' >'" + file + "' 2>&1").c_str());
    EXPECT_EQ(status, 0) << contents(file);
    EXPECT_NE(contents(file).find("| coded trial |"), std::string::npos) << contents(file);
}

TEST(PredictedRates, FollowsTheLoopsAndStallsOfADisassembly) {
    const std::string folder = scratch("predicted-rates");
    fs::create_directories(folder);
    EXPECT_EQ(
        std::system(("python3 '" SPIKED_SOURCE_DIR "/app/commands/tests/predicted_rates_check.py' '" SPIKED_SOURCE_DIR
                     "/tools/predicted-rates' '" +
                     folder + "'")
                        .c_str()),
        0);
}

}  // namespace
}  // namespace spiked::app
