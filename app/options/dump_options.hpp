#pragma once
#include "app/cli/command.hpp"
#include "validation/kv/open_dumps.hpp"

namespace spiked::app {

/// Heading of the options of a measurement that most calls leave out.
constexpr const char* how_it_is_measured = "How it is measured";

/// How a file stores its cache: names, layout, format; and which of its tokens are read.
[[nodiscard]] const std::vector<OptionSpec>& storage_options();
[[nodiscard]] const std::vector<OptionSpec>& token_options();
/// Reads those of these options that the command has. Throws input_error for an argument that is the folder of a model.
[[nodiscard]] sim::DumpOptions read_dump_options(const Arguments& arguments);

/// The options of every command that measures blocks of dumps, and the part of a plan that they determine.
[[nodiscard]] const std::vector<OptionSpec>& dump_options();
[[nodiscard]] validation::KvPlan read_dump_plan(const Arguments& arguments);
/// The options among these that were given, by their names, and the plan of dumps that are read again with them.
[[nodiscard]] Json dump_settings(const Arguments& arguments);
[[nodiscard]] validation::KvPlan read_dump_plan(const Json& settings, std::vector<std::string> dumps);

/// `--block` of commands that cut sequences into blocks.
[[nodiscard]] OptionSpec block_option(std::string help = "number of tokens in a block");

/// Dumps, with the suffixes of the files that are read as dumps.
[[nodiscard]] ValueSpec dump_value(std::string shown);
/// A file that contains a matrix.
[[nodiscard]] ValueSpec matrix_value();

/// Throws usage_error if a dump is to be written under a name that no reader accepts as a dump.
void require_dump_name(const std::string& output);

/// The number format of a dump that is written.
[[nodiscard]] OptionSpec dtype_option();
[[nodiscard]] sim::DType read_dtype(const Arguments& arguments);

}  // namespace spiked::app
