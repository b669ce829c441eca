#include "app/cli/build_info.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <armadillo>
#include <boost/version.hpp>
#include <string_view>

#include "app/cli/build_record.hpp"
#include "core/runtime/processor.hpp"

#ifdef SPIKED_OPENBLAS
extern "C" {
void openblas_set_num_threads(int count);
char* openblas_get_config();
char* openblas_get_corename();
}
#endif

namespace spiked::app {

std::string version_line() { return fmt::format("spiked {} ({})\n", build_version, build_commit); }

Json build_json() {
    return Json::object(
        {{"schema", "spiked.version/1"},
         {"version", build_version},
         {"commit", build_commit},
         {"compiler", build_compiler},
         {"build_type", build_type},
         {"flags", build_flags},
         {"libraries",
          Json::object(
              {{"armadillo", fmt::format("{}.{}.{}", ARMA_VERSION_MAJOR, ARMA_VERSION_MINOR, ARMA_VERSION_PATCH)},
               {"boost",
                fmt::format("{}.{}.{}", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100)},
               {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
               {"openssl", OpenSSL_version(OPENSSL_VERSION)},
               {"blas", blas_description()}})}});
}

#ifdef SPIKED_OPENBLAS
void use_one_blas_thread() { openblas_set_num_threads(1); }
std::string blas_description() { return fmt::format("{} kernel {}", openblas_get_config(), openblas_get_corename()); }
const char* blas_threads() { return "one thread"; }

std::string blas_advice() {
    constexpr std::string_view fast[] = {"Haswell", "Zen", "Excavator", "SkylakeX", "Cooperlake", "Sapphirerapids"};
    const Processor& has = processor();
    const std::string_view kernel = openblas_get_corename();
    if (!has.avx2 || !has.fma || std::find(std::begin(fast), std::end(fast), kernel) != std::end(fast)) return "";
    const bool wide = has.avx512f && has.avx512bw && has.avx512dq && has.avx512vl;
    return fmt::format(
        "it does not know this processor, and products take two to four times as long with the kernels of {} (set "
        "OPENBLAS_CORETYPE={}, or install a newer OpenBLAS)",
        kernel, wide ? "SkylakeX" : "Haswell");
}
#else
void use_one_blas_thread() {}
std::string blas_description() { return "another BLAS than OpenBLAS"; }
const char* blas_threads() { return "with threads of its own"; }
std::string blas_advice() { return ""; }
#endif

}  // namespace spiked::app
