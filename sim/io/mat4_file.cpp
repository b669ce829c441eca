#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "core/files/byte_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"
#include "sim/io/dtype.hpp"
#include "sim/io/file_formats.hpp"
#include "sim/io/loaded_tensors.hpp"

// MATLAB's MAT-files of level 4 (save -v4), after "MAT-File Format" of The MathWorks: for each variable five words
// (type, rows, columns, whether it is complex, bytes of the name), the name, then the real and the imaginary part, by
// columns.

namespace spiked::sim {
namespace {

constexpr std::size_t mat4_head_bytes = 20;
/// The types of numbers, at the index that is the type's digit in the header.
constexpr std::array<DType, 6> mat4_types = {DType::f64, DType::f32, DType::i32, DType::i16, DType::u16, DType::u8};

struct Mat4Variable {
    StoredTensor stored;
    DType part = DType::f64;   ///< of the numbers in the file
    std::uint64_t offset = 0;  ///< of its real part
    std::uint64_t bytes = 0;   ///< of it
    std::uint64_t lines = 0;   ///< of a sparse matrix: entries and the line of its size
};

class Mat4File {
public:
    explicit Mat4File(const std::string& path) : file_(path) {
        std::uint64_t offset = 0;
        while (offset < file_.size()) offset = list(offset);
    }
    [[nodiscard]] std::vector<StoredTensor> tensors() const {
        std::vector<StoredTensor> tensors;
        for (const auto& variable : variables_) tensors.push_back(variable.stored);
        return tensors;
    }
    [[nodiscard]] std::vector<double> load(std::size_t index) const {
        const Mat4Variable& variable = variables_.at(index);
        const std::string where = fmt::format("{}: variable {}", file_.path(), in_quotes(variable.stored.name));
        if (!variable.stored.dtype)
            throw input_error("{} holds {} (real numbers are read): save its numbers as a variable", where,
                              variable.stored.dtype_text);
        std::vector<double> values = numbers(variable, 0, variable.bytes / (dtype_bits(variable.part) / 8));
        if (variable.lines == 0) return values;
        const auto& shape = variable.stored.shape;
        DenseMatrix matrix(shape[0], shape[1], variable.bytes, where);
        for (std::size_t i = 0; i + 1 < variable.lines; ++i)
            matrix.add(values[i] - 1, values[variable.lines + i] - 1, values[2 * variable.lines + i]);
        return matrix.take();
    }

private:
    [[noreturn]] void damaged(std::uint64_t offset, std::string_view found) const {
        throw input_error("{}: damaged MATLAB 4 file (at byte {}: {}): fetch it again, or save it with save -v7",
                          file_.path(), offset, found);
    }
    [[nodiscard]] std::vector<double> numbers(const Mat4Variable& variable, std::uint64_t first,
                                              std::uint64_t count) const {
        const std::uint64_t size = dtype_bits(variable.part) / 8;
        std::vector<std::byte> bytes(count * size);
        file_.read(variable.offset + first * size, bytes);
        std::vector<double> values(count);
        decode(bytes, variable.part, values, order_);
        return values;
    }
    /// Lists the variable at this offset, and returns the offset of the next one.
    std::uint64_t list(std::uint64_t offset) {
        constexpr std::uint64_t most_name = 64;
        std::string head(std::min(mat4_head_bytes + most_name, file_.size() - offset), '\0');
        file_.read(offset, std::as_writable_bytes(std::span(head)));
        const auto read = read_mat4_head(head);
        if (!read || (offset > 0 && read->order != order_)) damaged(offset, "no variable begins");
        order_ = read->order;
        Mat4Variable variable{.part = mat4_types[read->type / 10 % 10]};
        variable.stored.name = read->name;
        variable.stored.fortran_order = true;
        variable.stored.shape = {read->rows, read->columns};
        variable.offset = offset + mat4_head_bytes + read->name_bytes;
        const std::uint64_t left = file_.size() - variable.offset;
        std::uint64_t total = 0;
        if (__builtin_mul_overflow(std::uint64_t{read->rows} * read->columns,
                                   std::uint64_t{dtype_bits(variable.part) / 8}, &variable.bytes) ||
            __builtin_mul_overflow(variable.bytes, std::uint64_t{read->complex ? 2U : 1U}, &total) || total > left)
            throw input_error(
                "{}: truncated (variable {} of shape {} begins at byte {} of {}): likely an incomplete download, fetch "
                "or save it again",
                file_.path(), in_quotes(read->name), shape_text(variable.stored.shape), offset,
                bytes_text(file_.size()));
        const std::uint32_t kind = read->type % 10;
        if (kind == 1)
            variable.stored.dtype_text = "text";
        else if (read->complex || (kind == 2 && read->columns == 4))
            variable.stored.dtype_text = "complex numbers";
        else  // numbers are doubles that may be stored in fewer bytes
            variable.stored.dtype = variable.part == DType::f32 ? DType::f32 : DType::f64;
        if (kind == 2 && variable.stored.dtype) set_sparse(*read, variable);
        if (variable.stored.dtype && variable.stored.dtype_text.empty())
            variable.stored.dtype_text = dtype_name(*variable.stored.dtype);
        variables_.push_back(std::move(variable));
        return variables_.back().offset + total;
    }
    /// A sparse matrix has lines of row, column and number, and behind them one of its size.
    void set_sparse(const Mat4Head& head, Mat4Variable& variable) const {
        if (head.columns != 3 || head.rows == 0) damaged(variable.offset, "a sparse matrix without a size");
        variable.lines = head.rows;
        for (std::size_t axis = 0; axis < 2; ++axis) {
            const double size = numbers(variable, axis * head.rows + head.rows - 1, 1).front();
            if (!(size >= 0 && size <= 0x1p31)) damaged(variable.offset, "a sparse matrix of an impossible size");
            variable.stored.shape[axis] = static_cast<std::size_t>(size);
        }
        variable.stored.dtype = DType::f64;
        variable.stored.dtype_text = "sparse";
    }

    ByteFile file_;
    std::endian order_ = std::endian::little;
    std::vector<Mat4Variable> variables_;
};

}  // namespace

std::optional<Mat4Head> read_mat4_head(std::string_view head) {
    constexpr std::size_t words = 5, most_name = 64;
    if (head.size() < words * sizeof(std::uint32_t)) return std::nullopt;
    for (const std::endian order : {std::endian::little, std::endian::big}) {
        std::array<double, words> values{};
        decode(std::as_bytes(std::span(head.substr(0, words * sizeof(std::uint32_t)))), DType::u32, values, order);
        const auto [type, rows, columns, complex, name] = values;
        // Thousands state the order of bytes; hundreds are always 0.
        constexpr double big_endian = 1000, most_size = 0x1p31;
        const double kind = type - (order == std::endian::big ? big_endian : 0);
        if (!(kind >= 0 && kind < 60) || std::fmod(kind, 10) > 2 || rows > most_size || columns > most_size ||
            complex > 1 || name < 2 || name > most_name)
            continue;
        Mat4Head found{order,
                       static_cast<std::uint32_t>(kind),
                       static_cast<std::uint32_t>(rows),
                       static_cast<std::uint32_t>(columns),
                       complex != 0,
                       "",
                       static_cast<std::uint32_t>(name)};
        found.name = head.substr(words * sizeof(std::uint32_t)).substr(0, found.name_bytes);
        if (found.name.size() != found.name_bytes || found.name.back() != '\0') continue;
        found.name.pop_back();
        const auto names = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
        if (std::isalpha(static_cast<unsigned char>(found.name.front())) != 0 && std::ranges::all_of(found.name, names))
            return found;
    }
    return std::nullopt;
}

std::unique_ptr<TensorContainer> open_mat4(const std::string& path) {
    const auto file = std::make_shared<const Mat4File>(path);
    return std::make_unique<LoadedTensors>(path, file->tensors(),
                                           [file](std::size_t index) { return file->load(index); });
}

}  // namespace spiked::sim
