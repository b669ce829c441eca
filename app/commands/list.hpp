#pragma once
#include <string>
#include <vector>

namespace spiked::app {

/// What `spiked list TOPIC` names and a user can type as it stands: no patterns such as svd:K.
[[nodiscard]] std::vector<std::string> listed_names(const std::string& topic);

}  // namespace spiked::app
