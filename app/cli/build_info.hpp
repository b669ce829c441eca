#pragma once
#include <string>

#include "core/text/json.hpp"

namespace spiked::app {

[[nodiscard]] std::string version_line();
/// `spiked.version/1`: version, commit, compiler, flags, libraries.
[[nodiscard]] Json build_json();

/// OpenBLAS on one thread: parallel work is over blocks, and small decompositions are slower on more.
void use_one_blas_thread();
[[nodiscard]] std::string blas_description();

}  // namespace spiked::app
