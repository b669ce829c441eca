#pragma once
#include <cstddef>
#include <functional>

#include "core/runtime/parallel.hpp"

namespace spiked {

/// Runs work(from, end) for parts of `part` of `size` numbers, and `beside`, where there is one, before them, with a
/// stop point before each. What the parts are does not depend on the number of threads.
void for_each_part(ThreadTeam& team, std::size_t size, std::size_t part,
                   const std::function<void(std::size_t from, std::size_t end)>& work,
                   const std::function<void()>& beside = nullptr);

}  // namespace spiked
