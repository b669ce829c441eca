#pragma once
#include <cstddef>
#include <functional>

#include "core/runtime/parallel.hpp"

namespace spiked {

/// Cuts the numbers from 0 to `size` into parts of `part` of them, and runs work(from, end) for each on the team. The
/// first thing that it runs is `beside`, where one is given. There is a stop point before each call. The parts do not
/// depend on the number of threads.
void for_each_part(ThreadTeam& team, std::size_t size, std::size_t part,
                   const std::function<void(std::size_t from, std::size_t end)>& work,
                   const std::function<void()>& beside = nullptr);

}  // namespace spiked
