#pragma once
#include <armadillo>
#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/files/byte_file.hpp"
#include "sim/io/dtype.hpp"

namespace spiked::sim {

/// The header of a NumPy array (.npy versions 1 to 3), of any dtype that NumPy can write.
struct NpyHeader {
    std::string descr;           ///< as written, for example "<f4"
    std::optional<DType> dtype;  ///< nothing: of a kind that is not read (see require_dtype)
    std::endian order = std::endian::little;
    bool fortran_order = false;
    std::vector<std::size_t> shape;  ///< empty: one number
    std::uint64_t elements = 0;
    std::uint64_t data_offset = 0;
};

/// Where the bytes of an array lie: a file, or a member of a .npz.
struct ByteSource {
    std::string where;  ///< for messages
    std::uint64_t size = 0;
    std::function<void(std::uint64_t offset, std::span<std::byte> out)> read;
};

/// Reads and checks the header: the array fills the source exactly. Throws input_error.
[[nodiscard]] NpyHeader read_npy_header(const ByteSource& source);
/// Throws input_error that says what the dtype is and how to save the array instead.
DType require_dtype(const NpyHeader& header, const std::string& where);
/// Elements first_element ... in storage order.
void read_npy_elements(const ByteSource& source, const NpyHeader& header, std::uint64_t first_element,
                       std::span<double> out);

/// The file as a source; `file` must outlive it.
[[nodiscard]] ByteSource source_of(const ByteFile& file);

/// What a .npy file of the matrix holds: float64, Fortran order, version 1.
[[nodiscard]] std::string npy_bytes(const arma::mat& matrix);
/// Whole or not at all (see OutputFile).
void write_npy(const std::string& path, const arma::mat& matrix);

}  // namespace spiked::sim
