#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/text/option_spec.hpp"

namespace spiked {

/// How an error proposes the options of which the text is a value, `; did you mean "rank=ed"?`; empty without one.
[[nodiscard]] std::string suggested_option(std::string_view value, const std::vector<OptionSpec>& specs);

}  // namespace spiked
