#include "app/entry.hpp"

int main(int argc, char** argv) { return spiked::app::run_command_line(argc, argv); }
