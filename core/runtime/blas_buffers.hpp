#pragma once
#include <cstddef>

namespace spiked {

/// Makes OpenBLAS allocate the buffers (128 MiB of address space each, not touched) that concurrent calls on this many
/// threads need. Without address space for a buffer, OpenBLAS would wait forever in its first product; this function
/// throws std::bad_alloc instead. Where the linked BLAS does not offer its allocation (SPIKED_BLAS_BUFFERS of CMake),
/// it only makes sure that there is address space for the buffers now.
void hold_blas_buffers(std::size_t threads);

}  // namespace spiked
