#pragma once
#include <string>
#include <vector>

namespace spiked::app {

/// The names in `spiked list TOPIC` that can be used as they are, without patterns such as svd:K.
[[nodiscard]] std::vector<std::string> listed_names(const std::string& topic);

}  // namespace spiked::app
