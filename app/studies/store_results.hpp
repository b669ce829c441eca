#pragma once
#include <string>

#include "validation/store/sqlite.hpp"

namespace spiked::app {

/// A line that says how much of a study is done; empty where it is complete.
[[nodiscard]] std::string partial_text(validation::Database& store);
/// What a store of a study holds: its checks, the table of a dump study, or the summary.
[[nodiscard]] std::string results_text(validation::Database& store);
/// NAME.html beside NAME.spiked. Because the user did not name this file, it may only replace a report of this program;
/// else throws output_error with the advice.
[[nodiscard]] std::string page_beside(const std::string& store, const char* advice);

}  // namespace spiked::app
