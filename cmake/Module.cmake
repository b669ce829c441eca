# Functions that turn the file lists of a module into a library and a test program.

# Compile options of every target of the project; projects that use the libraries do not inherit them. Floating-point
# contraction and fast-math are off, so that every build gives the same draws and the same codes. Messages of internal
# errors name source files, relative to the folder of the project. Armadillo prints no warnings, because a decomposition
# that fails is reported by our own messages.
add_library(spiked_options INTERFACE)
target_compile_definitions(spiked_options INTERFACE ARMA_WARN_LEVEL=0)
target_compile_options(spiked_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wno-sign-conversion;-Wno-missing-field-initializers;-ffp-contract=off>
  # In a unity build names of other files are visible as well, and shadowing them is harmless: GCC can check local names
  # only, and Clang checks none there. tools/lint and the preset `fuzz`, which compile each file alone, check all names.
  $<$<COMPILE_LANGUAGE:CXX>:$<IF:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,$<$<CXX_COMPILER_ID:GNU>:-Wshadow=local>,-Wshadow>>
  # Clang does not know the attribute optimize("O3") and vectorises these loops without it.
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:Clang>>:-Wno-unknown-attributes>
  "$<$<COMPILE_LANGUAGE:CXX>:$<$<BOOL:${SPIKED_WERROR}>:-Werror>>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;--expt-relaxed-constexpr;-DFMT_USE_CONSTEXPR=1;-Xcompiler=-ffp-contract=off,-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=$<$<BOOL:${SPIKED_WERROR}>:;--Werror=all-warnings>>")

# Precompiles the headers that most files include: once for the libraries and once for the tests, in the target OWNER.
# <filesystem> is not among them: it declares std::quoted, which overload resolution would prefer to a function of ours.
function(spiked_common_headers NAME OWNER)
  if(NAME STREQUAL OWNER)
    target_precompile_headers(${NAME} PRIVATE <armadillo> <fmt/format.h> <fmt/ranges.h> <map> <string> <vector> ${ARGN})
  elseif(TARGET ${OWNER})
    target_precompile_headers(${NAME} REUSE_FROM ${OWNER})
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    # GCC 12 gives false warnings of these kinds for std::string, more often with precompiled headers (GCC bug 105651).
    target_compile_options(${NAME} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)
  endif()
endfunction()

# With SPIKED_UNITY, compiles several files of a target together, so that common headers and templates are processed
# once. Their unnamed namespaces are merged, so that a new file may need other names for its helpers.
function(spiked_unity NAME)
  if(SPIKED_UNITY)
    set_target_properties(${NAME} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE BATCH UNITY_BUILD_BATCH_SIZE ${SPIKED_UNITY_BATCH})
  endif()
endfunction()

# Fails when a source file of this folder is in none of the lists: it would be left out of the build without a message.
function(spiked_require_listed)
  cmake_parse_arguments(PARSE_ARGV 0 HERE "" "" "LISTED;EXCEPT")
  file(GLOB_RECURSE FILES CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cpp *.cu)
  foreach(PATTERN ${HERE_EXCEPT})
    list(FILTER FILES EXCLUDE REGEX "${PATTERN}")
  endforeach()
  list(REMOVE_ITEM FILES ${HERE_LISTED})
  if(FILES)
    list(JOIN FILES ", " FILES)
    message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}/CMakeLists.txt does not name ${FILES} (every source file must be in a list): add new files to its lists")
  endif()
endfunction()

# spiked_module(NAME SOURCES files... LINKS libraries...): the library spiked_NAME and the test program NAME_tests.
#   UNITY           compile several files together when SPIKED_UNITY is on
#   ALONE           sources that are nevertheless compiled by themselves
#   KERNELS         sources that run kernels on the host; SPIKED_HAS_CUDA is defined for them when GPU code is compiled
#   DEVICE          .cu files, compiled where nvcc is found
#   TESTS           sources of NAME_tests, which is also linked with TEST_LINKS
#   BENCH           benchmarks of `spiked bench`, part of the library spiked_bench
#   UNINSTRUMENTED  first parts of names of sources whose control flow does not depend on input files; the fuzzer skips
#                   them, since libFuzzer examines every instrumented edge after every input
#   EXCEPT          regular expressions of files below this folder that are in the lists of other CMakeLists.txt
function(spiked_module NAME)
  cmake_parse_arguments(PARSE_ARGV 1 MODULE "UNITY" "" "SOURCES;ALONE;KERNELS;DEVICE;TESTS;BENCH;LINKS;TEST_LINKS;UNINSTRUMENTED;EXCEPT")
  spiked_require_listed(LISTED ${MODULE_SOURCES} ${MODULE_KERNELS} ${MODULE_DEVICE} ${MODULE_TESTS} ${MODULE_BENCH}
                        EXCEPT ${MODULE_EXCEPT})
  set_source_files_properties(${MODULE_KERNELS} ${MODULE_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(SPIKED_HAS_CUDA)
    set_source_files_properties(${MODULE_KERNELS} PROPERTIES COMPILE_DEFINITIONS SPIKED_HAS_CUDA)
  else()
    set(MODULE_DEVICE)
  endif()
  if(SPIKED_FUZZ)
    foreach(BEGINNING ${MODULE_UNINSTRUMENTED})
      set(BEGUN ${MODULE_SOURCES})
      list(FILTER BEGUN INCLUDE REGEX "^${BEGINNING}")
      set_source_files_properties(${BEGUN} PROPERTIES COMPILE_OPTIONS -fno-sanitize=fuzzer-no-link)
    endforeach()
    set_property(SOURCE ${MODULE_KERNELS} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=fuzzer-no-link)
  endif()
  add_library(spiked_${NAME} STATIC ${MODULE_SOURCES} ${MODULE_KERNELS} ${MODULE_DEVICE})
  target_compile_features(spiked_${NAME} PUBLIC cxx_std_20)
  target_include_directories(spiked_${NAME} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_include_directories(spiked_${NAME} PRIVATE ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(spiked_${NAME} PUBLIC Threads::Threads ${MODULE_LINKS} PRIVATE $<BUILD_INTERFACE:spiked_options>)
  set_target_properties(spiked_${NAME} PROPERTIES POSITION_INDEPENDENT_CODE ON VISIBILITY_INLINES_HIDDEN ON)
  if(MODULE_UNITY)
    spiked_unity(spiked_${NAME})
  endif()
  spiked_common_headers(spiked_${NAME} spiked_random)
  set_property(GLOBAL APPEND PROPERTY SPIKED_MODULES ${NAME})
  list(TRANSFORM MODULE_BENCH PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL APPEND PROPERTY SPIKED_BENCH ${MODULE_BENCH})
  if(MODULE_TESTS AND SPIKED_TESTS)
    spiked_tests(${NAME} SOURCES ${MODULE_TESTS} LINKS spiked_${NAME} ${MODULE_TEST_LINKS})
  endif()
endfunction()

# spiked_tests(NAME SOURCES files... LINKS libraries... COST number DEFINITIONS macros...): the program NAME_tests.
# Tests are compiled with -O1, which saves a quarter of their compile time. Programs with a larger COST start first.
function(spiked_tests NAME)
  cmake_parse_arguments(PARSE_ARGV 1 TESTS "" "COST" "SOURCES;LINKS;DEFINITIONS")
  add_executable(${NAME}_tests ${TESTS_SOURCES})
  target_link_libraries(${NAME}_tests PRIVATE ${TESTS_LINKS} spiked_options GTest::gtest_main)
  spiked_unity(${NAME}_tests)
  target_compile_options(${NAME}_tests PRIVATE $<$<AND:$<CONFIG:RelWithDebInfo,Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
  # GCC 13 and later take a reference that a helper returns out of its first argument for one to a temporary.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(${NAME}_tests PRIVATE -Wno-dangling-reference)
  endif()
  spiked_common_headers(${NAME}_tests random_tests <filesystem> <fstream> <gtest/gtest.h>)
  target_compile_definitions(${NAME}_tests PRIVATE SPIKED_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             SPIKED_BINARY="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/spiked" ${TESTS_DEFINITIONS})
  set(COST)
  if(TESTS_COST)
    set(COST COST ${TESTS_COST})
  endif()
  gtest_discover_tests(${NAME}_tests TEST_PREFIX ${NAME}/ DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${SPIKED_TEST_TIMEOUT} ENVIRONMENT OPENBLAS_NUM_THREADS=1 ${COST})
endfunction()

# spiked_embed(FILE.hpp.in NAME=file...): writes FILE.hpp under generated/, with the text of each file in place of
# @NAME@.
function(spiked_embed TEMPLATE)
  foreach(PAIR ${ARGN})
    string(REPLACE "=" ";" PAIR ${PAIR})
    list(GET PAIR 0 VARIABLE)
    list(GET PAIR 1 FILE)
    file(READ ${FILE} ${VARIABLE})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${FILE})
  endforeach()
  file(RELATIVE_PATH HERE ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE ".in" "" HEADER ${TEMPLATE})
  configure_file(${TEMPLATE} ${PROJECT_BINARY_DIR}/generated/${HERE}/${HEADER} @ONLY)
endfunction()
