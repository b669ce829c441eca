# The Python package python/spiked. A wheel (SPIKED_WHEEL, which pyproject.toml sets) holds the command and the C library
# beside its files; the Debian package python3-spiked uses those that are installed, and the tests those of the build folder.
option(SPIKED_WHEEL "Install the command and the library into a Python wheel (pyproject.toml)" OFF)
if(NOT TARGET spiked_c)
  return()
endif()

if(SPIKED_WHEEL)
  install(TARGETS spiked RUNTIME DESTINATION spiked/bin COMPONENT wheel)
  # A wheel has no links: one file, under the name that the package loads.
  install(FILES $<TARGET_FILE:spiked_c> DESTINATION spiked RENAME $<TARGET_SONAME_FILE_NAME:spiked_c> COMPONENT wheel)
  install(FILES python/_spiked_command.py DESTINATION . COMPONENT wheel)
endif()
install(DIRECTORY python/spiked DESTINATION lib/python3/dist-packages COMPONENT python
        FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
install(FILES python/examples/tutorial.py DESTINATION ${CMAKE_INSTALL_DOCDIR}/python/examples COMPONENT program)

# With Debian's Python where it is, because that has the packages of tools/packages.txt. A program built without sanitizers
# cannot load a library built with them.
if(SPIKED_TESTS AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  find_program(SPIKED_PYTHON NAMES python3 HINTS /usr/bin DOC "Python for the tests of the package")
  if(SPIKED_PYTHON)
    foreach(NAME denoising docs e2e e2e_chat e2e_metrics e2e_model hf hf_contract hf_trained inputs laws library missing quantization sklearn store)
      add_test(NAME python/${NAME} COMMAND ${SPIKED_PYTHON} ${PROJECT_SOURCE_DIR}/python/tests/run_tests.py ${NAME})
      set_tests_properties(python/${NAME} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${SPIKED_TEST_TIMEOUT} ENVIRONMENT
        "SPIKED_LIBRARY=$<TARGET_SONAME_FILE:spiked_c>;SPIKED_COMMAND=$<TARGET_FILE:spiked>;OPENBLAS_NUM_THREADS=1;PYTHONDONTWRITEBYTECODE=1")
    endforeach()
    # Not its times, but that both columns do the same work.
    add_test(NAME python/call_cost COMMAND ${SPIKED_PYTHON} ${PROJECT_SOURCE_DIR}/tools/python-call-cost $<TARGET_FILE:call_cost> --calls 3)
    set_tests_properties(python/call_cost PROPERTIES TIMEOUT ${SPIKED_TEST_TIMEOUT} ENVIRONMENT
      "SPIKED_LIBRARY=$<TARGET_SONAME_FILE:spiked_c>;PYTHONPATH=${PROJECT_SOURCE_DIR}/python;OPENBLAS_NUM_THREADS=1;PYTHONDONTWRITEBYTECODE=1")
    set_target_properties(call_cost PROPERTIES EXCLUDE_FROM_ALL OFF)
  endif()
endif()

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-spiked)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "python3, python3-numpy, libspiked0 (>= ${PROJECT_VERSION}), spiked (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-pandas, python3-matplotlib, python3-sklearn")
