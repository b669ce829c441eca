#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/io/dtype.hpp"
#include "sim/io/npy.hpp"
#include "sim/io/safetensors.hpp"

namespace spiked::sim {

/// A tensor as some file stores it.
struct StoredTensor {
    std::string name;
    std::optional<DType> dtype;  ///< nothing: of a kind that is not read
    std::string dtype_text;      ///< as the file writes it
    std::vector<std::size_t> shape;
    bool fortran_order = false;
    std::optional<std::uint64_t> packed;  ///< bytes in the file, where it is packed there
};

/// Named tensors behind one interface: .safetensors, .npz, or one .npy (whose name is the file's without suffix).
class TensorContainer {
public:
    virtual ~TensorContainer() = default;
    [[nodiscard]] virtual const std::string& path() const = 0;
    /// Empty where the format has none.
    [[nodiscard]] virtual const Metadata& metadata() const = 0;
    [[nodiscard]] virtual const std::vector<StoredTensor>& tensors() const = 0;
    /// Elements first ... of tensors()[index] in storage order. Safe from several threads. Throws input_error.
    virtual void read(std::size_t index, std::uint64_t first, std::span<double> out) const = 0;
    /// Bytes first_byte ... of tensors()[index] as a safetensors file holds them: little-endian, C order. Safe from
    /// several threads. Throws input_error where the file stores them in another way.
    virtual void read_bytes(std::size_t index, std::uint64_t first_byte, std::span<std::byte> out) const = 0;
};

/// Whether a path ends in these lower-case letters, itself in any case.
[[nodiscard]] bool has_suffix(const std::string& path, std::string_view suffix);
/// Of the files that are read so.
[[nodiscard]] const std::vector<std::string>& dump_suffixes();
/// How a tensor of each is named: `.npz:name|.npy`.
[[nodiscard]] std::string tensor_words();

/// By suffix. A .npz keeps its three last used members unpacked in memory, more where they are small; the others read
/// from the disk.
[[nodiscard]] std::unique_ptr<TensorContainer> open_tensors(const std::string& path);
/// A .npy file, whatever it is called.
[[nodiscard]] std::unique_ptr<TensorContainer> open_npy(const std::string& path);
/// An array of NumPy that lies elsewhere, under this name.
[[nodiscard]] std::unique_ptr<TensorContainer> open_npy(ByteSource source, std::string name);

}  // namespace spiked::sim
