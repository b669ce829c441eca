#pragma once
#include "app/cli/command.hpp"
#include "validation/kv/open_dumps.hpp"

namespace spiked::app {

/// The options of every command that measures blocks of dumps, and the part of a plan that they say.
[[nodiscard]] const std::vector<OptionSpec>& dump_options();
[[nodiscard]] validation::KvPlan read_dump_plan(const Arguments& arguments);

/// Whether default methods may turn its keys back; false too for what is no dump, of which readers say more.
[[nodiscard]] bool has_rotary_keys(const std::string& path, const sim::DumpOptions& options);

/// A dump, or several: what is read as one, and so how the name of its file ends.
[[nodiscard]] ValueSpec dump_value(std::string shown);
/// A file with a matrix in it.
[[nodiscard]] ValueSpec matrix_value();

/// Throws usage_error for a file that would hold a dump under a name that no reader takes for one.
void require_dump_name(const std::string& output);

/// Of the numbers in a dump that is written.
[[nodiscard]] OptionSpec dtype_option();
[[nodiscard]] sim::DType read_dtype(const Arguments& arguments);

}  // namespace spiked::app
