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

/// What to do about complex numbers, which no reader takes, as the advice of an error message.
inline constexpr const char* complex_advice =
    "save numpy.block([[x.real, -x.imag], [x.imag, x.real]]) (in MATLAB [real(x) -imag(x); imag(x) real(x)]), which "
    "has the singular values of x, each twice";

/// The header of a NumPy array (.npy versions 1 to 3), of any dtype that NumPy can write.
struct NpyHeader {
    std::string descr;           ///< as written, for example "<f4"
    std::optional<DType> dtype;  ///< empty: a type that is not read (see require_dtype)
    std::endian order = std::endian::little;
    bool fortran_order = false;
    std::vector<std::size_t> shape;  ///< empty: a single number
    std::uint64_t elements = 0;
    std::uint64_t data_offset = 0;
};

/// Access to the bytes of an array in a file, in memory or in a member of a .npz.
struct ByteSource {
    std::string where;  ///< its name in messages
    std::uint64_t size = 0;
    std::function<void(std::uint64_t offset, std::span<std::byte> out)> read;
};

/// Reads and checks the header. Throws input_error, also when the array does not fill the source exactly.
[[nodiscard]] NpyHeader read_npy_header(const ByteSource& source);
/// Returns the dtype; throws an input_error that names the type and says how to save the array where it is not read.
DType require_dtype(const NpyHeader& header, const std::string& where);
/// Reads out.size() elements from number first_element on, in storage order.
void read_npy_elements(const ByteSource& source, const NpyHeader& header, std::uint64_t first_element,
                       std::span<double> out);

/// Whether its numbers are complex64 or complex128, which only read_complex_npy reads.
[[nodiscard]] bool is_complex(const NpyHeader& header);
/// The matrix of such numbers. Throws input_error for an array that does not fill the source or has not two axes.
[[nodiscard]] arma::cx_mat read_complex_npy(const ByteSource& source, NpyHeader header);

/// The file as a source; `file` must outlive it.
[[nodiscard]] ByteSource source_of(const ByteFile& file);

/// The bytes of a .npy file of the matrix: float64, Fortran order, version 1.
[[nodiscard]] std::string npy_bytes(const arma::mat& matrix);
/// Writes that file atomically (see OutputFile).
void write_npy(const std::string& path, const arma::mat& matrix);

}  // namespace spiked::sim
