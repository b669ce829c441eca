# Runs at every build: writes app/cli/build_record.hpp with the commit of now, touching it only when something changed.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE SPIKED_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT SPIKED_COMMIT)
  set(SPIKED_COMMIT "unknown commit")
endif()
configure_file(${SOURCE}/app/cli/build_record.hpp.in ${TARGET} @ONLY)
