#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/io/dtype.hpp"
#include "sim/io/npy.hpp"
#include "sim/io/safetensors.hpp"

namespace spiked::sim {

class NpzFile;

/// The description of a tensor in a file.
struct StoredTensor {
    std::string name;
    std::optional<DType> dtype;  ///< empty: a type that is not read
    std::string dtype_text;      ///< as the file names it
    std::vector<std::size_t> shape;
    bool fortran_order = false;
    std::optional<std::uint64_t> packed;  ///< its compressed bytes in the file, where it is compressed
};

/// The named tensors of a file: .safetensors, .npz, .mat, or .npy and .mtx (one tensor, named like the file without its
/// suffix). A .npz in which SciPy saved a sparse matrix holds one tensor, `matrix`.
class TensorContainer {
public:
    virtual ~TensorContainer() = default;
    [[nodiscard]] virtual const std::string& path() const = 0;
    /// Empty where the format has none.
    [[nodiscard]] virtual const Metadata& metadata() const = 0;
    [[nodiscard]] virtual const std::vector<StoredTensor>& tensors() const = 0;
    /// What was decided on reading the file, a sentence each.
    [[nodiscard]] virtual const std::vector<std::string>& notes() const;
    /// Reads elements of tensors()[index] from number `first` on, in storage order. Safe from several threads. Throws
    /// input_error.
    virtual void read(std::size_t index, std::uint64_t first, std::span<double> out) const = 0;
    /// Reads bytes of tensors()[index] from first_byte on in the format of safetensors: little-endian, C order. Safe
    /// from several threads. Throws input_error where the file stores another format.
    virtual void read_bytes(std::size_t index, std::uint64_t first_byte, std::span<std::byte> out) const = 0;
};

/// Opens a file by its suffix. A .npz keeps its three last used members unpacked in memory, and more where they are
/// small; the other formats read from the disk.
[[nodiscard]] std::unique_ptr<TensorContainer> open_tensors(const std::string& path);
/// Opens a file of one format, whatever its suffix.
[[nodiscard]] std::unique_ptr<TensorContainer> open_safetensors(const std::string& path);
/// The same file with each QuantizedKVCache of mlx-lm as numbers: `layer.side` of dtype F32 for its words, scales and
/// biases. The numbers are exact, where mlx rounds them to the type of the scales. Throws input_error for a cache whose
/// parts do not agree.
[[nodiscard]] std::unique_ptr<TensorContainer> unpack_mlx_cache(std::unique_ptr<TensorContainer> file);
[[nodiscard]] std::unique_ptr<TensorContainer> open_npz(const std::string& path);
/// What scipy.sparse.save_npz wrote (csr, csc, coo, bsr or dia): one dense tensor, `matrix`. Null for another archive.
[[nodiscard]] std::unique_ptr<TensorContainer> open_scipy_sparse(std::shared_ptr<const NpzFile> file);
[[nodiscard]] std::unique_ptr<TensorContainer> open_npy(const std::string& path);
/// MATLAB 4 to 7.3 and Octave's text: full and sparse numeric and logical arrays; others are listed and cannot be read.
[[nodiscard]] std::unique_ptr<TensorContainer> open_mat(const std::string& path);
/// The two that are no MAT-file of version 5 or later: what begins as `read_mat4_head` reads it, and what
/// `begins_octave_text` accepts. Throws input_error for a struct or a cell of Octave, whose parts are written like
/// variables.
[[nodiscard]] std::unique_ptr<TensorContainer> open_mat4(const std::string& path);
[[nodiscard]] std::unique_ptr<TensorContainer> open_octave_text(const std::string& path);
/// Matrix Market, array or coordinate. Entries of a pattern are 1; entries at the same place are summed, as in SciPy.
[[nodiscard]] std::unique_ptr<TensorContainer> open_matrix_market(const std::string& path);
/// Opens a .npy array of another source under this name.
[[nodiscard]] std::unique_ptr<TensorContainer> open_npy(ByteSource source, std::string name);

}  // namespace spiked::sim
