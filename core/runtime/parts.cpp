#include "core/runtime/parts.hpp"

#include <algorithm>

#include "core/runtime/stop_point.hpp"

namespace spiked {

void for_each_part(ThreadTeam& team, std::size_t size, std::size_t part,
                   const std::function<void(std::size_t, std::size_t)>& work, const std::function<void()>& beside) {
    const std::size_t others = beside ? 1 : 0;
    team.for_each(others + (size + part - 1) / part, [&](std::size_t i) {
        stop_point();
        if (i < others) return beside();
        const std::size_t from = (i - others) * part;
        work(from, std::min(from + part, size));
    });
}

}  // namespace spiked
