#pragma once
#include <cstdint>
#include <limits>

#include "core/runtime/error.hpp"
#include "sim/random/address.hpp"

namespace spiked::stream {

/// The sub-stream of one element, as a generator for the distributions of Boost.Random and the standard library. It
/// provides 2^18 words and throws precondition_error after that. No two elements use the same word.
class ElementEngine {
public:
    using result_type = std::uint32_t;

    ElementEngine(const Stream& stream, std::uint32_t element) : stream_(&stream), element_(element) {}

    static constexpr result_type min() { return 0; }
    static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }

    result_type operator()() {
        if (used_ % 4 == 0) {
            if (used_ >= 4U << 16)
                throw precondition_error("element {} has used all 2^18 words of its sub-stream", element_);
            block_ = stream_->words(element_, static_cast<std::uint16_t>(used_ / 4));
        }
        return block_[used_++ % 4];
    }

private:
    const Stream* stream_;
    std::uint32_t element_;
    std::uint32_t used_ = 0;
    PhiloxCounter block_{};
};

}  // namespace spiked::stream
