# Writes the output of `spiked completion KIND` to FILE.
get_filename_component(FOLDER ${FILE} DIRECTORY)
file(MAKE_DIRECTORY ${FOLDER})
execute_process(COMMAND ${COMMAND} completion ${KIND} OUTPUT_FILE ${FILE} COMMAND_ERROR_IS_FATAL ANY)
