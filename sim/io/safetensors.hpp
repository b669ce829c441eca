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

/// Texts of a file header, in file order.
using Metadata = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] const std::string* find_metadata(const Metadata& metadata, std::string_view key);

struct TensorInfo {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::size_t> shape;  ///< C order: the last axis is adjacent in the file; empty: one number
    std::uint64_t offset = 0;        ///< of the first byte, from the beginning of the file
    std::uint64_t bytes = 0;

    [[nodiscard]] std::uint64_t elements() const { return bytes * 8 / dtype_bits(dtype); }
};

/// A safetensors file. The header is checked whole when it is opened: every tensor then lies inside the file, none
/// overlap, none leave holes, and each has the bytes that its shape and dtype need. Failures are input_errors that
/// name file and tensor. Reading is safe from several threads.
class SafetensorsFile {
public:
    explicit SafetensorsFile(std::string path);

    [[nodiscard]] const std::string& path() const { return file_.path(); }
    [[nodiscard]] const Metadata& metadata() const { return metadata_; }
    /// In the order of the header.
    [[nodiscard]] const std::vector<TensorInfo>& tensors() const { return tensors_; }
    /// Throws input_error with the nearest name.
    [[nodiscard]] const TensorInfo& tensor(const std::string& name) const;
    /// Elements first_element ... of a tensor of this file, in file order. Only F16, BF16, F32 and F64 are read as
    /// numbers; other types are an input_error.
    void read(const TensorInfo& tensor, std::uint64_t first_element, std::span<double> out) const;
    /// The same as stored, of any type.
    void read_bytes(const TensorInfo& tensor, std::uint64_t first_byte, std::span<std::byte> out) const;

private:
    void parse_header(std::uint64_t header_bytes);

    ByteFile file_;
    Metadata metadata_;
    std::vector<TensorInfo> tensors_;
    std::map<std::string, std::size_t> index_;  ///< no hash table: a file chooses its names
};

/// Bytes of a tensor of this shape; nothing when they overflow 64 bits or are not whole.
[[nodiscard]] std::optional<std::uint64_t> tensor_bytes(std::span<const std::size_t> shape, DType dtype);

/// A tensor to write, without its content.
struct TensorForm {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::size_t> shape;
};

/// A file whose tensors are written piece by piece, in any order and of any dtype; whole or not at all (see
/// OutputFile). Wider dtypes come first in the file so that every tensor is aligned; the header keeps the given order.
/// The pieces must cover every tensor.
class SafetensorsWriter {
public:
    SafetensorsWriter(const std::string& path, const Metadata& metadata, const std::vector<TensorForm>& tensors);

    void write(std::size_t tensor, std::uint64_t first_byte, std::span<const std::byte> bytes);
    void commit() { out_.commit(); }
    /// Of the whole file.
    [[nodiscard]] std::uint64_t size() const { return plan_.size; }

    /// Where everything lies.
    struct Plan {
        std::string head;                    ///< length and header
        std::vector<std::uint64_t> offsets;  ///< of the tensors, from the beginning of the file
        std::vector<std::size_t> order;      ///< of the tensors in the file
        std::uint64_t size = 0;
    };

private:
    Plan plan_;
    OutputFile out_;
};

/// One tensor to write; `values` fills elements first_element ... in C order and is called in ascending order.
struct TensorSource {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::size_t> shape;
    std::function<void(std::uint64_t first_element, std::span<double> out)> values;
};

[[nodiscard]] TensorSource tensor_of(std::string name, DType dtype, std::vector<std::size_t> shape,
                                     std::vector<double> values);

/// Laid out as by SafetensorsWriter, whole or not at all. A finite value that its dtype cannot hold is a write_error
/// naming it.
void write_safetensors(const std::string& path, const Metadata& metadata, const std::vector<TensorSource>& tensors);

}  // namespace spiked::sim
