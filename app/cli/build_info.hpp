#pragma once
#include <string>

#include "core/text/json.hpp"

namespace spiked::app {

[[nodiscard]] std::string version_line();
/// The document `spiked.version/1`: version, commit, compiler, flags and libraries.
[[nodiscard]] Json build_json();

/// Restricts OpenBLAS to one thread: the program parallelises over blocks, and small decompositions are slower on more
/// threads. Another BLAS keeps the threads that its own environment variables give it.
void use_one_blas_thread();
[[nodiscard]] std::string blas_description();
/// What to do where OpenBLAS does not know this processor, and multiplies with the instructions of one without AVX2,
/// which takes two to four times as long; "" elsewhere.
[[nodiscard]] std::string blas_advice();
/// How many threads a matrix product uses, in words.
[[nodiscard]] const char* blas_threads();

}  // namespace spiked::app
