# The libraries that Spiked needs, found by their own CMake files where they have one. Debian's packages:
# tools/packages.txt.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(Boost 1.74 CONFIG REQUIRED COMPONENTS context)
find_package(fmt REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(pugixml REQUIRED)
find_path(ARMADILLO_INCLUDE_DIR armadillo REQUIRED)
find_path(LIBZIP_INCLUDE_DIR zip.h REQUIRED)
find_library(LIBZIP_LIBRARY zip REQUIRED)   # Debian's CMake file for libzip requires programs that the library does not need

# Any BLAS with LAPACK works; -DBLA_VENDOR=NAME chooses one by CMake's names. Without it OpenBLAS, which includes
# LAPACK, is used where it is installed: only for OpenBLAS can Spiked keep a matrix product on the calling thread.
if(NOT DEFINED BLA_VENDOR)
  set(BLA_VENDOR OpenBLAS)
  find_package(LAPACK QUIET)
  if(NOT LAPACK_FOUND)
    unset(BLA_VENDOR)
  endif()
endif()
find_package(LAPACK REQUIRED)
list(REMOVE_DUPLICATES LAPACK_LIBRARIES)

# What only OpenBLAS has. SPIKED_OPENBLAS: its public functions for threads and its description. SPIKED_BLAS_BUFFERS: its
# allocation of work buffers, which is not public; without it, a program in little address space may wait forever
# (core/runtime/blas_buffers.cpp). -DSPIKED_BLAS_BUFFERS=OFF leaves it out.
include(CheckFunctionExists)
set(CMAKE_REQUIRED_LIBRARIES ${LAPACK_LIBRARIES})
check_function_exists(openblas_set_num_threads SPIKED_OPENBLAS)
check_function_exists(blas_memory_alloc SPIKED_BLAS_BUFFERS)
unset(CMAKE_REQUIRED_LIBRARIES)

# Armadillo's headers, with BLAS and LAPACK linked directly rather than through Armadillo's wrapper library, and
# libzip. Their paths are not exported: cmake/spikedConfig.cmake.in finds them again on the machine that uses an
# installed Spiked. ARMA_DONT_USE_WRAPPER is exported, because without it every program that includes our headers would
# call functions of the wrapper library, which we do not link.
add_library(spiked_armadillo INTERFACE)
target_include_directories(spiked_armadillo SYSTEM INTERFACE $<BUILD_INTERFACE:${ARMADILLO_INCLUDE_DIR}>)
target_compile_definitions(spiked_armadillo INTERFACE ARMA_DONT_USE_WRAPPER)
target_link_libraries(spiked_armadillo INTERFACE "$<BUILD_INTERFACE:${LAPACK_LIBRARIES}>" $<BUILD_INTERFACE:${LIBZIP_LIBRARY}>)

if(SPIKED_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
  find_package(benchmark QUIET)
endif()
find_package(MPI COMPONENTS CXX QUIET)
