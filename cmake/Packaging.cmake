# The installed files, and the packages made by `cpack -G DEB` and `cpack -G TGZ`: the command ("spiked"), the program
# for cluster jobs ("spiked-mpi", where Open MPI is found) and the libraries with their headers ("libspiked-dev").
get_property(SPIKED_MODULES GLOBAL PROPERTY SPIKED_MODULES)
set(MODULE_TARGETS spiked_armadillo)
foreach(MODULE ${SPIKED_MODULES})
  list(APPEND MODULE_TARGETS spiked_${MODULE})
endforeach()
foreach(TARGET ${MODULE_TARGETS})
  string(REPLACE spiked_ "" NAME ${TARGET})
  set_target_properties(${TARGET} PROPERTIES EXPORT_NAME ${NAME})
endforeach()

# The modules as one shared library. Its binary interface may change with every minor version until 1.0.
if(SPIKED_SHARED)
  # Written only when it changes, so that configuring again rebuilds nothing.
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/shared.cpp CONTENT "// A library needs a source of its own.\n")
  add_library(spiked_shared SHARED ${PROJECT_BINARY_DIR}/generated/shared.cpp)
  # Each archive once and whole; as targets they would be named again for each other.
  set(PARTS)
  foreach(MODULE ${SPIKED_MODULES})
    list(APPEND PARTS $<TARGET_FILE:spiked_${MODULE}>)
    add_dependencies(spiked_shared spiked_${MODULE})
  endforeach()
  target_link_libraries(spiked_shared PRIVATE -Wl,--whole-archive ${PARTS} -Wl,--no-whole-archive OpenSSL::Crypto
                        Boost::context ZLIB::ZLIB SQLite::SQLite3 tomlplusplus::tomlplusplus pugixml::pugixml Threads::Threads)
  if(SPIKED_HAS_CUDA)
    find_package(CUDAToolkit REQUIRED)
    target_link_libraries(spiked_shared PRIVATE CUDA::cudart_static)
  endif()
  target_link_options(spiked_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/spiked.map -Wl,--no-undefined)
  set_target_properties(spiked_shared PROPERTIES OUTPUT_NAME spiked VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} EXPORT_NAME shared
                        LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/spiked.map)
  target_include_directories(spiked_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(spiked_shared PUBLIC spiked_armadillo fmt::fmt Boost::headers)
  target_compile_features(spiked_shared INTERFACE cxx_std_20)
  install(TARGETS spiked_shared EXPORT spiked LIBRARY COMPONENT development)
endif()

set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/spiked)
install(TARGETS spiked RUNTIME COMPONENT program)
if(TARGET spiked-mpi)
  install(TARGETS spiked-mpi RUNTIME COMPONENT mpi)
endif()
install(TARGETS ${MODULE_TARGETS} EXPORT spiked ARCHIVE COMPONENT development)
install(EXPORT spiked NAMESPACE spiked:: FILE spikedTargets.cmake DESTINATION ${PACKAGE_DIR} COMPONENT development)
# Programs include <spiked/theory/laws/separable_law.hpp>, and installed headers include each other in the same way.
install(CODE "set(SPIKED_SOURCE_DIR \"${PROJECT_SOURCE_DIR}\")
set(SPIKED_HEADERS_TO \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/spiked\")
include(\"${PROJECT_SOURCE_DIR}/cmake/install-headers.cmake\")" COMPONENT development)

include(CMakePackageConfigHelpers)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/spikedConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/generated/spikedConfig.cmake INSTALL_DESTINATION ${PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/spikedConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/spikedConfig.cmake ${PROJECT_BINARY_DIR}/generated/spikedConfigVersion.cmake
        DESTINATION ${PACKAGE_DIR} COMPONENT development)

# Static libraries are linked in this order: a library before those that it uses.
set(SPIKED_PC_LIBS)
foreach(MODULE ${SPIKED_MODULES})
  list(PREPEND SPIKED_PC_LIBS -lspiked_${MODULE})
endforeach()
list(JOIN SPIKED_PC_LIBS " " SPIKED_PC_LIBS)
set(SPIKED_PC_LAPACK)
foreach(LIBRARY ${LAPACK_LIBRARIES})
  get_filename_component(LIBRARY ${LIBRARY} NAME_WE)
  string(REGEX REPLACE "^(lib|-l)" "" LIBRARY ${LIBRARY})
  string(APPEND SPIKED_PC_LAPACK " -l${LIBRARY}")
endforeach()
# CUDA has no file for pkg-config; where it is elsewhere, `pkg-config --define-variable=cudadir=FOLDER` says so.
set(SPIKED_PC_CUDADIR)
set(SPIKED_PC_CUDA)
if(SPIKED_HAS_CUDA)
  find_package(CUDAToolkit REQUIRED)
  get_target_property(CUDART CUDA::cudart_static IMPORTED_LOCATION)
  get_filename_component(CUDART ${CUDART} DIRECTORY)
  set(SPIKED_PC_CUDADIR "cudadir=${CUDART}\n")
  set(SPIKED_PC_CUDA " -L\${cudadir} -lcudart_static -ldl -lrt")
endif()
file(RELATIVE_PATH SPIKED_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/spiked.pc.in ${PROJECT_BINARY_DIR}/generated/spiked.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/spiked.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

# The manual page and the shell completions are printed by the command itself.
set(COMPLETIONS)
foreach(PAIR man:${CMAKE_INSTALL_MANDIR}/man1:spiked.1
             bash:${CMAKE_INSTALL_DATADIR}/bash-completion/completions:spiked
             zsh:${CMAKE_INSTALL_DATADIR}/zsh/site-functions:_spiked
             fish:${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d:spiked.fish)
  string(REPLACE ":" ";" PAIR ${PAIR})
  list(GET PAIR 0 KIND)
  list(GET PAIR 1 FOLDER)
  list(GET PAIR 2 NAME)
  set(FILE ${PROJECT_BINARY_DIR}/generated/completion/${KIND}/${NAME})
  add_custom_command(OUTPUT ${FILE} DEPENDS spiked VERBATIM
    COMMAND ${CMAKE_COMMAND} -D COMMAND=$<TARGET_FILE:spiked> -D KIND=${KIND} -D FILE=${FILE}
            -P ${PROJECT_SOURCE_DIR}/cmake/completion.cmake)
  list(APPEND COMPLETIONS ${FILE})
  install(FILES ${FILE} DESTINATION ${FOLDER} COMPONENT program)
endforeach()
add_custom_target(completions ALL DEPENDS ${COMPLETIONS})
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
# The documents keep their places relative to each other, so that their links work.
set(PAGE_FOLDERS docs docs/explanation docs/reference core theory sim estimators estimators/svd/bench estimators/svd/cuda codec
                 validation reports app tools)
foreach(FOLDER ${PAGE_FOLDERS})
  file(GLOB PAGES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${FOLDER}/*.md ${PROJECT_SOURCE_DIR}/${FOLDER}/*.png)
  install(FILES ${PAGES} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${FOLDER} COMPONENT program)
endforeach()
# A page in another folder would be left out without a message.
get_property(WITH_PAGES DIRECTORY ${PROJECT_SOURCE_DIR} PROPERTY SUBDIRECTORIES)
list(APPEND WITH_PAGES ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/tools)
list(TRANSFORM WITH_PAGES APPEND /*.md)
file(GLOB_RECURSE PAGES CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${WITH_PAGES})
list(FILTER PAGES EXCLUDE REGEX "/tests/")
foreach(PAGE ${PAGES})
  get_filename_component(FOLDER ${PAGE} DIRECTORY)
  if(NOT FOLDER IN_LIST PAGE_FOLDERS)
    message(FATAL_ERROR "cmake/Packaging.cmake installs no pages of ${FOLDER} (${PAGE} is there): add the folder to PAGE_FOLDERS")
  endif()
endforeach()
install(PROGRAMS tools/export-kv DESTINATION ${CMAKE_INSTALL_DOCDIR}/tools COMPONENT program)
# In the same places as in the source tree, because studies name the sample dump by a path relative to their own.
install(DIRECTORY validation/studies DESTINATION ${CMAKE_INSTALL_DATADIR}/spiked/validation COMPONENT program)
install(FILES sim/kv/tests/data/rope-lm-cut.safetensors DESTINATION ${CMAKE_INSTALL_DATADIR}/spiked/sim/kv/tests/data
        COMPONENT program)

set(CPACK_PACKAGE_VENDOR "Spiked")
set(CPACK_PACKAGE_CONTACT "the authors of Spiked <spiked@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program development)
if(TARGET spiked-mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME spiked)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "gnuplot-nox | gnuplot-qt | gnuplot-x11")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "python3-numpy, spiked-mpi")
set(CPACK_DEBIAN_MPI_PACKAGE_NAME spiked-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "openmpi-bin")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libspiked-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libarmadillo-dev, libopenblas-dev, libboost-dev, libboost-context-dev, libfmt-dev, libssl-dev, nlohmann-json3-dev, libzip-dev, libsqlite3-dev, libtomlplusplus-dev, libpugixml-dev, zlib1g-dev")
include(CPack)
