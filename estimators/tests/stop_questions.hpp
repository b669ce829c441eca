#pragma once
#include <cstddef>

#include "core/runtime/stop_point.hpp"

namespace spiked::estimators {

/// Counts questions; the answer is true from question `stop_at` on.
struct StopQuestions {
    std::size_t stop_at = 0;  ///< 0: never
    std::size_t asked = 0;

    [[nodiscard]] StopQuestion question() {
        return {[](const void* of) {
                    auto& all = *static_cast<StopQuestions*>(const_cast<void*>(of));
                    ++all.asked;
                    return all.stop_at > 0 && all.asked >= all.stop_at;
                },
                this};
    }
};

}  // namespace spiked::estimators
