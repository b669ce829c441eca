#pragma once
#include "sim/random/box_muller.hpp"
#include "sim/random/philox.hpp"

namespace spiked::stream {

/// The standard normals from one word block (the four words of a Philox counter), computed one at a time: two in
/// double, four in float.
SPIKED_DEVICE inline void normals_of_block(const PhiloxCounter& words, double* out) {
    box_muller::double_normals<box_muller::PlainDouble>(words[0], words[1], words[2], words[3], out[0], out[1]);
}
SPIKED_DEVICE inline void normals_of_block(const PhiloxCounter& words, float* out) {
    box_muller::float_normals<box_muller::PlainFloat>(words[0], words[1], out[0], out[1]);
    box_muller::float_normals<box_muller::PlainFloat>(words[2], words[3], out[2], out[3]);
}

}  // namespace spiked::stream
