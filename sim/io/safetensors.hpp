#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/files/byte_file.hpp"
#include "core/files/output_file.hpp"
#include "sim/io/dtype.hpp"

namespace spiked::sim {

/// The texts of a file header by key, in file order.
using Metadata = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] const std::string* find_metadata(const Metadata& metadata, std::string_view key);

struct TensorInfo {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::size_t> shape;  ///< C order: the last axis is contiguous in the file; empty: a single number
    std::uint64_t offset = 0;        ///< of its first byte in the file
    std::uint64_t bytes = 0;

    [[nodiscard]] std::uint64_t elements() const { return bytes * 8 / dtype_bits(dtype); }
};

/// A safetensors file. The whole header is checked when the file is opened: all tensors lie inside the file, without
/// overlaps or gaps, and each has the bytes that its shape and dtype need. Failures are input_errors that name file and
/// tensor. Reading is safe from several threads.
class SafetensorsFile {
public:
    explicit SafetensorsFile(std::string path);

    [[nodiscard]] const std::string& path() const { return file_.path(); }
    [[nodiscard]] const Metadata& metadata() const { return metadata_; }
    /// The tensors in the order of the header.
    [[nodiscard]] const std::vector<TensorInfo>& tensors() const { return tensors_; }
    /// Throws input_error with the nearest name.
    [[nodiscard]] const TensorInfo& tensor(const std::string& name) const;
    /// Reads out.size() elements of a tensor from number first_element on, in file order. Throws input_error for types
    /// that are neither of is_block_dtype nor of is_code_dtype; those of the latter are codes, without their scale.
    void read(const TensorInfo& tensor, std::uint64_t first_element, std::span<double> out) const;
    /// Reads stored bytes of a tensor of any type.
    void read_bytes(const TensorInfo& tensor, std::uint64_t first_byte, std::span<std::byte> out) const;

private:
    void parse_header(std::uint64_t header_bytes);

    ByteFile file_;
    Metadata metadata_;
    std::vector<TensorInfo> tensors_;
    std::map<std::string, std::size_t>
        index_;  ///< not a hash table, because a hostile file could choose colliding names
};

/// The bytes of a tensor of this shape; empty when they overflow 64 bits or are not a whole number.
[[nodiscard]] std::optional<std::uint64_t> tensor_bytes(std::span<const std::size_t> shape, DType dtype);

/// The name, type and shape of a tensor to write.
struct TensorForm {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::size_t> shape;
};

/// Writes a file atomically (see OutputFile), its tensors in chunks, in any order and of any dtype. Wider dtypes come
/// first in the file so that every tensor is aligned; the header keeps the given order. The chunks must cover every
/// tensor.
class SafetensorsWriter {
public:
    SafetensorsWriter(const std::string& path, const Metadata& metadata, const std::vector<TensorForm>& tensors);

    void write(std::size_t tensor, std::uint64_t first_byte, std::span<const std::byte> bytes);
    void commit() { out_.commit(); }
    /// The bytes of the whole file.
    [[nodiscard]] std::uint64_t size() const { return plan_.size; }

    /// The layout of the file.
    struct Plan {
        std::string head;                    ///< length and header
        std::vector<std::uint64_t> offsets;  ///< of the tensors in the file
        std::vector<std::size_t> order;      ///< in which the tensors lie in the file
        std::uint64_t size = 0;
    };

private:
    Plan plan_;
    OutputFile out_;
};

/// A tensor to write. `values` fills `out` with the elements from number first_element on, in C order; it is called in
/// ascending order.
struct TensorSource {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::size_t> shape;
    std::function<void(std::uint64_t first_element, std::span<double> out)> values;
};

[[nodiscard]] TensorSource tensor_of(std::string name, DType dtype, std::vector<std::size_t> shape,
                                     std::vector<double> values);

/// Writes a file atomically, with the layout of SafetensorsWriter. Throws a output_error that names the element for a
/// finite value that its dtype cannot hold.
void write_safetensors(const std::string& path, const Metadata& metadata, const std::vector<TensorSource>& tensors);

}  // namespace spiked::sim
