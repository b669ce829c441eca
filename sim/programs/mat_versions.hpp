#pragma once
#include <memory>
#include <string>

#include "sim/io/file_formats.hpp"
#include "sim/io/tensor_container.hpp"

namespace spiked::sim {

/// A file that begins as read_mat4_head reads it: full and sparse matrices of real numbers; others are listed.
[[nodiscard]] std::unique_ptr<TensorContainer> open_mat4(const std::string& path);
/// A file that begins_octave_text accepts: matrices, arrays and scalars of real numbers, sparse ones too; others are
/// listed. Throws input_error for a file with a struct or a cell, whose parts are written like variables.
[[nodiscard]] std::unique_ptr<TensorContainer> open_octave_text(const std::string& path);

}  // namespace spiked::sim
