# Runs at every build: writes app/cli/build_record.hpp with the current commit. The file is touched only when it
# changes.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE SPIKED_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT SPIKED_COMMIT)
  set(SPIKED_COMMIT "unknown commit")
endif()
configure_file(${SOURCE}/app/cli/build_record.hpp.in ${TARGET} @ONLY)
