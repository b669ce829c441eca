#pragma once
#include "core/files/byte_file.hpp"

namespace spiked::sim {

enum class FileKind { safetensors, npy, zip, text };

/// Throws input_error when the file is empty, or when its first bytes show that it is not of the expected kind but a
/// git-lfs pointer, a web page saved in its place, or another format.
void reject_other_format(const ByteFile& file, FileKind expected);

}  // namespace spiked::sim
